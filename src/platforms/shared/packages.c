#include "platforms/shared/packages.h"

#include "base/error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "platforms.packages";

enum { PATH_SIZE = 1024 };

typedef struct search {
    bool (*visit)(void *ctx, const char *folder);
    void *ctx;
    const char *folder; // whose pythonX.Y are searched
    bool done;
} search;

static bool look_at_python(void *ctx, const char *name)
{
    static const char *const places[] = {"site-packages", "dist-packages"};
    search *s = ctx;
    if (strncmp(name, "python3", strlen("python3")) != 0) return true;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char packages[PATH_SIZE];
        int size = snprintf(packages, sizeof packages, "%s/%s/%s", s->folder, name, places[i]);
        if (!s->done && size > 0 && (size_t)size < sizeof packages && hone_os_is_folder(packages))
            s->done = !s->visit(s->ctx, packages);
    }
    return !s->done;
}

static void look_in_prefix(search *s, const char *prefix, const char *below)
{
    char folder[PATH_SIZE];
    int size = snprintf(folder, sizeof folder, "%s%s", prefix, below);
    if (s->done || size <= 0 || (size_t)size >= sizeof folder) return;
    s->folder = folder;
    (void)hone_os_list_folder(folder, look_at_python, s, NULL);
}

// If hone runs from its build folder, scripts/setup has installed packages in a folder beside that. CMake's cache
// distinguishes a build folder from an installation; programs and modules are up to two folders below it.
static void look_beside_build(search *s)
{
    char folder[PATH_SIZE], above[PATH_SIZE], path[PATH_SIZE + 32];
    if (s->done || !hone_os_own_path(folder, sizeof folder)) return;
    for (int levels = 0; levels < 3 && hone_os_folder_of(folder, above, sizeof above); levels++) {
        memcpy(folder, above, strlen(above) + 1);
        snprintf(path, sizeof path, "%s/CMakeCache.txt", folder);
        if (!hone_os_is_file(path)) continue;
        snprintf(path, sizeof path, "%s/../build-python", folder);
        if (hone_os_is_folder(path) && hone_os_real_path(path, folder, sizeof folder))
            s->done = !s->visit(s->ctx, folder);
        return;
    }
}

// A program may import packages from an environment that no variable names.
static const char variable[] = "HONE_PYTHON_PACKAGES";
static _Atomic(const char *) lent;

void hone_packages_lend(const char *folders)
{
    atomic_store(&lent, folders);
    // Without memory a worker searches the default folders
    if (folders != NULL) (void)hone_process_hand_on(variable, folders);
}

static void look_in_lent(search *s)
{
    const char *named = hone_os_variable(variable),
               *at = named != NULL && named[0] != '\0' ? named : atomic_load(&lent);
    while (at != NULL && *at != '\0' && !s->done) {
        char folder[PATH_SIZE];
        const size_t size = strcspn(at, ":");
        if (*at == '/' && size < sizeof folder) {
            snprintf(folder, sizeof folder, "%.*s", (int)size, at);
            if (hone_os_is_folder(folder)) s->done = !s->visit(s->ctx, folder);
        }
        at += size + (at[size] == ':');
    }
}

void hone_packages_visit(bool (*visit)(void *ctx, const char *folder), void *ctx)
{
    search s = {.visit = visit, .ctx = ctx};
    static const char *const prefixes[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const char *home = hone_os_variable("HOME");
    look_in_lent(&s);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *environment = hone_os_variable(prefixes[i]);
        if (environment != NULL && environment[0] == '/') look_in_prefix(&s, environment, "/lib");
    }
    if (home != NULL && home[0] == '/') look_in_prefix(&s, home, "/.local/lib");
    look_in_prefix(&s, "/usr/local", "/lib");
    look_in_prefix(&s, "/usr", "/lib");
    look_beside_build(&s);
}

// Libraries -----------------------------------------------------------------------------------------------------------

typedef struct finding {
    const hone_package_library *wanted;
    char found[PATH_SIZE];
} finding;

static bool look_for_library(void *ctx, const char *packages)
{
    finding *f = ctx;
    for (const char *const *below = f->wanted->below; *below != NULL; below++) {
        char path[PATH_SIZE];
        int size = snprintf(path, sizeof path, "%s/%s/%s", packages, *below, f->wanted->file);
        if (size <= 0 || (size_t)size >= sizeof path || !hone_os_is_file(path)) continue;
        memcpy(f->found, path, (size_t)size + 1);
        return false;
    }
    return true;
}

hone_status hone_package_library_open(
    const hone_allocator *allocator,
    const hone_package_library *wanted,
    const char *who,
    hone_library **out,
    hone_error *err)
{
    finding f = {.wanted = wanted};
    hone_error why = {.message = ""};
    const char *named = hone_os_variable(wanted->variable);
    const bool is_named = named != NULL && named[0] != '\0';
    if (!is_named) hone_packages_visit(look_for_library, &f);
    const char *names[] = {is_named ? named : wanted->file, f.found[0] != '\0' ? f.found : NULL, NULL};
    const hone_status status = hone_library_open_quietly(allocator, names, out, &why);
    if (status != HONE_UNAVAILABLE)
        return status == HONE_OK ? status : hone_fail(err, status, where, "%s", why.message);
    return hone_fail(
        err, status, where, "%s need %s: install PyPI's %s, or name the file in %s (%.80s)", who, wanted->file,
        wanted->package, wanted->variable, why.message);
}

// Versions ------------------------------------------------------------------------------------------------------------

// A package's metadata are in "NAME-VERSION.dist-info", with dashes in the name replaced by underscores.
typedef struct facts {
    char name[128];
    char version[64], folder[PATH_SIZE];
} facts;

static bool look_at_facts(void *ctx, const char *name)
{
    static const char end[] = ".dist-info";
    facts *f = ctx;
    const size_t own = strlen(f->name), size = strlen(name), tail = sizeof end - 1;
    if (size <= own + 1 + tail || strncmp(name, f->name, own) != 0 || name[own] != '-') return true;
    if (strcmp(name + size - tail, end) != 0 || size - own - 1 - tail >= sizeof f->version) return true;
    snprintf(f->version, sizeof f->version, "%.*s", (int)(size - own - 1 - tail), name + own + 1);
    return false;
}

static bool look_in_packages(void *ctx, const char *folder)
{
    facts *f = ctx;
    (void)hone_os_list_folder(folder, look_at_facts, f, NULL);
    if (f->version[0] != '\0') snprintf(f->folder, sizeof f->folder, "%s", folder);
    return f->version[0] == '\0';
}

void hone_package_describe(const char *package, hone_buffer *out)
{
    facts f = {.version = ""};
    snprintf(f.name, sizeof f.name, "%s", package);
    for (char *at = f.name; *at != '\0'; at++)
        if (*at == '-') *at = '_';
    hone_packages_visit(look_in_packages, &f);
    if (f.version[0] != '\0')
        hone_buffer_format(out, "%s %s, %s", package, f.version, f.folder);
    else
        hone_buffer_format(out, "no %s: PyPI has it", package);
}
