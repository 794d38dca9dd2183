// What the files of a JSON store are called, and which a record goes to.
#include "store/json/parts.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char common_name[] = "@store.json"; // '@' stands in no algorithm's file name

size_t hone_json_print(char *out, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int count = vsnprintf(out, size, format, list);
    va_end(list);
    return count < 0 ? 0 : (size_t)count;
}

void hone_json_path_of(const hone_json_files *files, const char *name, char out[HONE_JSON_PATH_SIZE])
{
    hone_json_print(out, HONE_JSON_PATH_SIZE, "%s/%s", files->folder, name);
}

void hone_json_temporary_of(const hone_json_files *files, const char *name, char out[HONE_JSON_PATH_SIZE])
{
    hone_json_print(out, HONE_JSON_PATH_SIZE, "%s/.%s.new", files->folder, name);
}

static bool is_plain(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || (c == '.' && !first);
}

// Other characters as %XX. One that gets too long is cut and told apart by its hash.
static void name_of_algorithm(const char *algorithm, char out[HONE_JSON_NAME_SIZE])
{
    enum { LIMIT = HONE_JSON_NAME_SIZE - 64 };
    size_t used = 0;
    for (const char *c = algorithm; *c != '\0'; c++) {
        if (used > LIMIT) {
            hone_json_print(
                out + used, HONE_JSON_NAME_SIZE - used, "%%%016" PRIx64 ".json",
                hone_hash64(algorithm, strlen(algorithm)));
            return;
        }
        if (is_plain(*c, used == 0))
            out[used++] = *c;
        else
            used += hone_json_print(out + used, 4, "%%%02X", (unsigned)(unsigned char)*c);
    }
    hone_json_print(out + used, HONE_JSON_NAME_SIZE - used, ".json");
}

void hone_json_name_of_row(
    const hone_json_files *files, const hone_row_shape *shape, const hone_row *row, char out[HONE_JSON_NAME_SIZE])
{
    const char *name = files->single[0] != '\0' ? files->single : common_name;
    if (shape == files->damage.shape) name = row->cells[0].as.text;
    for (size_t i = 0; files->single[0] == '\0' && i < shape->key_count && shape != files->damage.shape; i++) {
        if (strcmp(hone_row_column_name(shape, i), "algorithm") != 0) continue;
        name_of_algorithm(row->cells[i].as.text, out);
        return;
    }
    hone_json_print(out, HONE_JSON_NAME_SIZE, "%s", name);
}

bool hone_json_row_is_of(
    const hone_json_files *files, const hone_json_file *file, const hone_row_shape *shape, const hone_row *row)
{
    char name[HONE_JSON_NAME_SIZE];
    hone_json_name_of_row(files, shape, row, name);
    return strcmp(name, file->name) == 0;
}

static hone_json_file *find_file(const hone_json_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->files[i].name, name) == 0) return &files->files[i];
    return NULL;
}

hone_json_file *hone_json_need_file(hone_json_files *files, const char *name)
{
    hone_json_file *file = find_file(files, name);
    if (file != NULL) return file;
    if (!hone_grow(&files->allocator, &files->files, &files->capacity, files->count + 1, sizeof *files->files))
        return NULL;
    file = &files->files[files->count++];
    *file = (hone_json_file){0};
    hone_json_print(file->name, sizeof file->name, "%s", name);
    return file;
}
