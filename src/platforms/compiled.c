// Compiled code on disk. A file's name is the digest of everything that it was made from, so it is never out of date; its
// first line is the digest of what follows, so a file that was cut or changed is not taken.
#include "platforms/compiled.h"

#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024, LIMIT = 256 << 20 };

static bool folder_of(char *out, size_t size)
{
    const char *named = getenv("HONE_COMPILE_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
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
