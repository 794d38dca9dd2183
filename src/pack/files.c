// The files of a pack: names that stay in its folder, and bytes that are what pack.json says.
#include "pack/reading.h"

#include "base/error.h"
#include "os/os.h"
#include "os/plain_file.h"

#include <stdio.h>
#include <string.h>

enum { NAME_LIMIT = 255, PATH_SIZE = 4096 };

static const char where[] = "pack.file";

// Why a name may not be used; NULL: it may. Links that lead out of the folder are found when the path is resolved.
static const char *wrong_name(const char *name)
{
    if (name[0] == '\0') return "is empty";
    if (name[0] == '/') return "is an absolute path";
    if (strchr(name, '\\') != NULL || strchr(name, '\n') != NULL || strchr(name, '\t') != NULL)
        return "has a character in it that no name of a pack may have";
    for (const char *at = name; *at != '\0';) {
        const size_t size = strcspn(at, "/");
        if (size == 0) return "has an empty part";
        if ((size == 1 && at[0] == '.') || (size == 2 && at[0] == '.' && at[1] == '.')) return "has '.' or '..' in it";
        at += size;
        if (*at == '/' && *++at == '\0') return "is a folder";
    }
    return NULL;
}

static bool is_inside(const char *path, const char *folder)
{
    const size_t size = strlen(folder);
    return strncmp(path, folder, size) == 0 && path[size] == '/';
}

static hone_status resolve(const hone_pack_reading *r, const char *name, char path[PATH_SIZE])
{
    char written[PATH_SIZE];
    const char *wrong = wrong_name(name);
    if (wrong != NULL)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "file", "'%.120s' %s; expected a path inside the folder of the pack", name,
            wrong);
    const int length = snprintf(written, sizeof written, "%s/%s", r->pack->folder, name);
    if (length < 0 || (size_t)length >= sizeof written)
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "file", "'%.120s' makes a path that is too long", name);
    if (!hone_os_real_path(written, path, PATH_SIZE))
        return hone_pack_fail(r, HONE_NOT_FOUND, "file", "there is no '%.120s' in the folder of the pack", name);
    if (!is_inside(path, r->pack->folder))
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "file", "'%.120s' is a link that leaves the folder of the pack, to %.200s", name,
            path);
    if (!hone_os_is_plain_file(path))
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "file", "'%.120s' is not a regular file", name);
    return HONE_OK;
}

static bool is_digest(const char *text)
{
    return strlen(text) == HONE_SHA256_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") == HONE_SHA256_HEX_SIZE - 1;
}

hone_status hone_pack_read_file(const hone_pack_file *file, hone_buffer *out, hone_error *err)
{
    char digest[HONE_SHA256_HEX_SIZE];
    hone_buffer bytes;
    hone_buffer_init(&bytes, out->allocator);
    hone_status status = hone_os_read_plain_file(file->path, HONE_PACK_FILE_LIMIT, &bytes, err);
    if (status == HONE_OK) {
        hone_hash_sha256(hone_buffer_string(&bytes), bytes.size, digest);
        if (strcmp(digest, file->sha256) != 0)
            status = hone_fail(
                err, HONE_CORRUPT, where,
                "%.400s has the SHA-256 %s, pack.json says %s: the file was changed; if that is right, write the new "
                "digest into pack.json",
                file->path, digest, file->sha256);
    }
    if (status == HONE_OK) hone_buffer_append(out, hone_buffer_string(&bytes), bytes.size);
    hone_buffer_deinit(&bytes);
    return status == HONE_OK && out->failed ? hone_fail_memory(err, where) : status;
}

const hone_pack_file *hone_pack_file_named(const hone_pack_kernel *kernel, const char *name)
{
    for (size_t i = 0; i < kernel->file_count; i++)
        if (strcmp(kernel->files[i].name, name) == 0) return &kernel->files[i];
    return NULL;
}

static hone_status look_at(const hone_pack_reading *r, hone_pack_file *file)
{
    hone_error why = {.message = ""};
    hone_buffer bytes;
    hone_buffer_init(&bytes, r->pack->allocator);
    hone_status status = hone_pack_read_file(file, &bytes, &why);
    file->size = bytes.size;
    hone_buffer_deinit(&bytes);
    if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
    if (status != HONE_OK) return hone_pack_fail(r, status, "file", "%s", why.message);
    return file->size > 0 ? HONE_OK : hone_pack_fail(r, HONE_CORRUPT, "file", "'%.120s' is empty", file->name);
}

static hone_status add_file(
    const hone_pack_reading *r, hone_pack_files *list, const hone_pack_file *file, size_t *out_index)
{
    if (list->count == HONE_PACK_FILES)
        return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "file", "more than %d files", HONE_PACK_FILES);
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? 2 * list->capacity : 4;
        hone_pack_file *grown = hone_arena_array(&r->pack->arena, capacity, sizeof *grown);
        if (grown == NULL) return hone_pack_fail_memory(r);
        if (list->count > 0) memcpy(grown, list->files, list->count * sizeof *grown);
        list->files = grown;
        list->capacity = capacity;
    }
    *out_index = list->count;
    list->files[list->count++] = *file;
    return HONE_OK;
}

// A file that several variants share is looked at once, and must have one digest.
hone_status hone_pack_add_file(
    const hone_pack_reading *r, hone_pack_files *list, hone_pack_file *file, size_t *out_index)
{
    char path[PATH_SIZE];
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->files[i].name, file->name) != 0) continue;
        *out_index = i;
        if (strcmp(list->files[i].sha256, file->sha256) == 0) return HONE_OK;
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "sha256", "'%.120s' was given with another one before", file->name);
    }
    hone_status status = resolve(r, file->name, path);
    if (status != HONE_OK) return status;
    file->path = hone_arena_text(&r->pack->arena, path, strlen(path));
    if (file->path == NULL) return hone_pack_fail_memory(r);
    status = look_at(r, file);
    return status == HONE_OK ? add_file(r, list, file, out_index) : status;
}

hone_status hone_pack_get_file(
    const hone_pack_reading *r, const json_t *object, hone_pack_files *list, size_t *out_index, bool *out_given)
{
    hone_pack_file file = {.name = NULL};
    const char *digest = NULL;
    *out_given = false;
    hone_status status = hone_pack_get_text(r, object, "file", NAME_LIMIT, &file.name);
    if (status == HONE_OK) status = hone_pack_get_text(r, object, "sha256", NAME_LIMIT, &digest);
    if (status != HONE_OK) return status;
    if (file.name == NULL && digest == NULL) return HONE_OK;
    if (file.name == NULL) return hone_pack_fail(r, HONE_INVALID_ARGUMENT, "sha256", "is there, and no file");
    if (digest == NULL)
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "sha256", "is missing; expected that of '%.120s' (sha256sum prints it)",
            file.name);
    if (!is_digest(digest))
        return hone_pack_fail(
            r, HONE_INVALID_ARGUMENT, "sha256", "is '%.80s', expected 64 lower-case hex digits (sha256sum prints them)",
            digest);
    memcpy(file.sha256, digest, sizeof file.sha256);
    *out_given = true;
    return hone_pack_add_file(r, list, &file, out_index);
}
