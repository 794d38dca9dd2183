// The table of stores, and what is asked of a store by its URL alone.
#include "base/error.h"
#include "store/ops.h"

#include "os/os.h"

#include <stdio.h>
#include <string.h>

#define HONE_STORE_KIND(name) extern const hone_store_ops hone_##name##_store_ops;
#include "store/kinds.h"
#undef HONE_STORE_KIND

// In the order in which messages list them; kinds.h is made of FOLDERS in CMakeLists.txt.
static const hone_store_ops *const kinds[] = {
#define HONE_STORE_KIND(name) &hone_##name##_store_ops,
#include "store/kinds.h"
#undef HONE_STORE_KIND
};

enum { COUNT = sizeof kinds / sizeof *kinds, PATH_SIZE = 4096 };

// Of who names no store.
static const char default_scheme[] = "sqlite:", default_file[] = "hone/store.db";

const hone_store_ops *hone_store_ops_of(const char *url)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strncmp(url, kinds[i]->scheme, strlen(kinds[i]->scheme)) == 0) return kinds[i];
    return NULL;
}

bool hone_store_default_url(const char *folder, char *out, size_t size)
{
    const int length = snprintf(out, size, "%s%s/%s", default_scheme, folder, default_file);
    return length > 0 && (size_t)length < size;
}

static bool is_any(const hone_store_ops *kind)
{
    (void)kind;
    return true;
}

static bool is_read_alone(const hone_store_ops *kind)
{
    return kind->open_read_only != NULL;
}

static bool is_scratch(const hone_store_ops *kind)
{
    return !kind->in_file && kind->lease == NULL;
}

static bool has_queue(const hone_store_ops *kind)
{
    return kind->queue != NULL;
}

hone_status hone_store_kinds(bool (*visit)(void *ctx, const hone_store_kind *kind), void *ctx, hone_error *err)
{
    if (visit == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "store.kinds", "visit is NULL");
    for (size_t i = 0; i < COUNT; i++) {
        const hone_store_kind kind = {
            .scheme = kinds[i]->scheme,
            .form = kinds[i]->form,
            .is_default = strcmp(kinds[i]->scheme, default_scheme) == 0,
            .is_scratch = is_scratch(kinds[i]),
            .in_file = kinds[i]->in_file,
            .reads_alone = is_read_alone(kinds[i]),
            .has_queue = has_queue(kinds[i]),
        };
        if (!visit(ctx, &kind)) break;
    }
    return HONE_OK;
}

static const char *list_forms(bool (*wanted)(const hone_store_ops *kind), char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < COUNT && used < size; i++)
        if (wanted(kinds[i]))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used == 0 ? "" : ", ", kinds[i]->form);
    return out;
}

const char *hone_store_forms(bool read_only, char *out, size_t size)
{
    return list_forms(read_only ? is_read_alone : is_any, out, size);
}

const char *hone_store_queue_forms(char *out, size_t size)
{
    return list_forms(has_queue, out, size);
}

bool hone_store_is_note(const char *scheme)
{
    static const char *const beginnings[] = {"hone.queue", "hone.seen", "hone.sent."};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(scheme, beginnings[i], strlen(beginnings[i])) == 0) return true;
    return false;
}

const char *hone_store_default_scheme(void)
{
    return default_scheme;
}

const char *hone_store_scratch_url(void)
{
    for (size_t i = 0; i < COUNT; i++)
        if (is_scratch(kinds[i])) return kinds[i]->scheme;
    return "";
}

// Files ---------------------------------------------------------------------------------------------------------------

bool hone_store_file(const char *url, char *out, size_t size)
{
    const hone_store_ops *kind = hone_store_ops_of(url);
    if (kind == NULL || !kind->in_file) return false;
    const char *location = url + strlen(kind->scheme);
    const int length = snprintf(out, size, "%s", location);
    return length > 0 && (size_t)length < size;
}

bool hone_store_is_missing(const char *url)
{
    char path[PATH_SIZE];
    return hone_store_file(url, path, sizeof path) && hone_os_is_free(path);
}

typedef struct aside_count {
    const char *const *companions; // of the kind; may be NULL
    const char *name;              // of the store's file; "": of any in its folder
    char *one;                     // the first that was found
    size_t size, count;
} aside_count;

static bool ends_with(const char *text, const char *end)
{
    const size_t size = strlen(text), length = strlen(end);
    return size >= length && strcmp(text + size - length, end) == 0;
}

static bool is_companion(const char *const *companions, const char *file)
{
    for (size_t i = 0; companions != NULL && companions[i] != NULL; i++)
        if (ends_with(file, companions[i])) return true;
    return false;
}

// "NAME.damaged-20261120T123456Z", which is not a part of another file that was moved.
static bool count_file(void *ctx, const char *file)
{
    aside_count *c = ctx;
    const char *mark = strstr(file, ".damaged-");
    if (mark == NULL || is_companion(c->companions, file)) return true;
    const size_t length = (size_t)(mark - file);
    if (c->name[0] != '\0' && (strlen(c->name) != length || strncmp(file, c->name, length) != 0)) return true;
    if (c->count++ == 0) snprintf(c->one, c->size, "%s", file);
    return true;
}

size_t hone_store_count_aside(const char *url, char *out_one, size_t size)
{
    char path[PATH_SIZE], folder[PATH_SIZE];
    if (!hone_store_file(url, path, sizeof path)) return 0;
    const bool is_folder = hone_os_is_folder(path);
    const char *slash = strrchr(path, '/');
    aside_count c = {
        .companions = hone_store_ops_of(url)->companions,
        .name = is_folder       ? ""
                : slash == NULL ? path
                                : slash + 1,
        .one = out_one,
        .size = size,
    };
    if (is_folder || hone_os_folder_of(path, folder, sizeof folder))
        (void)hone_os_list_folder(is_folder ? path : folder, count_file, &c, NULL);
    return c.count;
}
