// Compiled code on disk. A file's name is the digest of everything from which it was made, so it is never out of date;
// its first line is the digest of the rest, so a truncated or changed file is rejected.
#include "platforms/shared/compiled.h"

#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024, LIMIT = 256 << 20 };

static bool folder_of(char *out, size_t size)
{
    const char *named = hone_os_variable("HONE_COMPILE_CACHE"), *cache = hone_os_variable("XDG_CACHE_HOME"),
               *home = hone_os_variable("HOME");
    int length = 0;
    if (named != NULL && named[0] != '\0')
        length = strcmp(named, "none") == 0 ? 0 : snprintf(out, size, "%s", named);
    else if (cache != NULL && cache[0] == '/')
        length = snprintf(out, size, "%s/hone/compiled", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(out, size, "%s/.cache/hone/compiled", home);
    return length > 0 && (size_t)length < size;
}

static bool path_of(const char *key, char *out, size_t size, bool make)
{
    char folder[PATH_SIZE];
    if (!folder_of(folder, sizeof folder)) return false;
    if (make && hone_os_make_folders(folder, NULL) != HONE_OK) return false;
    int length = snprintf(out, size, "%s/%s", folder, key);
    return length > 0 && (size_t)length < size;
}

bool hone_compiled_find(const char *key, hone_buffer *out)
{
    enum { HEAD = HONE_SHA256_HEX_SIZE }; // the digest and a newline
    char path[PATH_SIZE], digest[HONE_SHA256_HEX_SIZE];
    hone_buffer file;
    if (!path_of(key, path, sizeof path, false)) return false;
    hone_buffer_init(&file, out->allocator);
    bool found = hone_os_read_file(path, LIMIT, &file, NULL) == HONE_OK && file.size > HEAD;
    if (found) {
        hone_hash_sha256(file.data + HEAD, file.size - HEAD, digest);
        found = memcmp(file.data, digest, HEAD - 1) == 0 && file.data[HEAD - 1] == '\n';
    }
    if (found) hone_buffer_append(out, file.data + HEAD, file.size - HEAD);
    hone_buffer_deinit(&file);
    return found;
}

void hone_compiled_keep(const char *key, const hone_buffer *bytes)
{
    char path[PATH_SIZE], digest[HONE_SHA256_HEX_SIZE];
    hone_buffer file;
    if (!path_of(key, path, sizeof path, true)) return;
    hone_buffer_init(&file, bytes->allocator);
    hone_hash_sha256(bytes->data, bytes->size, digest);
    hone_buffer_format(&file, "%s\n", digest);
    hone_buffer_append(&file, bytes->data, bytes->size);
    if (!file.failed) (void)!hone_os_replace_file(path, file.data, file.size, NULL);
    hone_buffer_deinit(&file);
}

// Files ---------------------------------------------------------------------------------------------------------------

// Appends "DIGEST path\n" for the current contents of a file.
static bool put_file(const char *path, hone_buffer *list)
{
    char digest[HONE_SHA256_HEX_SIZE];
    hone_buffer bytes;
    hone_buffer_init(&bytes, list->allocator);
    bool read = hone_os_read_file(path, LIMIT, &bytes, NULL) == HONE_OK;
    if (read) hone_hash_sha256(hone_buffer_string(&bytes), bytes.size, digest);
    hone_buffer_deinit(&bytes);
    if (read) hone_buffer_format(list, "%s %s\n", digest, path);
    return read && !list->failed;
}

static bool second_key(const char *key, const hone_buffer *list, char out[HONE_SHA256_HEX_SIZE])
{
    hone_buffer all;
    hone_buffer_init(&all, list->allocator);
    hone_buffer_format(&all, "%s\n", key);
    hone_buffer_append(&all, hone_buffer_string(list), list->size);
    hone_hash_sha256(hone_buffer_string(&all), all.size, out);
    bool whole = !all.failed;
    hone_buffer_deinit(&all);
    return whole;
}

// Makes the list again, with the digests of the files' current contents.
static bool list_again(const hone_buffer *old, hone_buffer *out)
{
    const char *at = hone_buffer_string(old);
    while (*at != '\0') {
        char path[PATH_SIZE];
        const size_t size = strcspn(at, "\n");
        const size_t length = size > HONE_SHA256_HEX_SIZE ? size - HONE_SHA256_HEX_SIZE : 0;
        if (length == 0 || length >= sizeof path || at[HONE_SHA256_HEX_SIZE - 1] != ' ') return false;
        memcpy(path, at + HONE_SHA256_HEX_SIZE, length);
        path[length] = '\0';
        if (!put_file(path, out)) return false;
        at += size + (at[size] == '\n');
    }
    return true;
}

bool hone_compiled_find_with_files(const char *key, hone_buffer *out)
{
    char second[HONE_SHA256_HEX_SIZE];
    hone_buffer old, now;
    hone_buffer_init(&old, out->allocator);
    hone_buffer_init(&now, out->allocator);
    bool found = hone_compiled_find(key, &old) && list_again(&old, &now) && second_key(key, &now, second) &&
                 hone_compiled_find(second, out);
    hone_buffer_deinit(&now);
    hone_buffer_deinit(&old);
    return found;
}

void hone_compiled_keep_with_files(const char *key, const char *files, size_t files_size, const hone_buffer *bytes)
{
    char second[HONE_SHA256_HEX_SIZE];
    hone_buffer list;
    hone_buffer_init(&list, bytes->allocator);
    bool whole = true;
    for (const char *at = files; whole && at < files + files_size; at += strlen(at) + 1)
        whole = strchr(at, '\n') == NULL && put_file(at, &list);
    // The source is always in the list, so the list is never empty.
    if (whole && list.size > 0 && second_key(key, &list, second)) {
        hone_compiled_keep(second, bytes);
        hone_compiled_keep(key, &list);
    }
    hone_buffer_deinit(&list);
}
