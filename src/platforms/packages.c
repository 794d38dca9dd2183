#include "platforms/packages.h"

#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024 };

typedef struct search {
    bool (*visit)(void *ctx, const char *folder);
    void *ctx;
    const char *folder; // whose pythonX.Y are looked at
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

void hone_python_packages(bool (*visit)(void *ctx, const char *folder), void *ctx)
{
    search s = {.visit = visit, .ctx = ctx};
    const char *environment = getenv("VIRTUAL_ENV"), *home = getenv("HOME");
    if (environment != NULL && environment[0] == '/') look_in_prefix(&s, environment, "/lib");
    if (home != NULL && home[0] == '/') look_in_prefix(&s, home, "/.local/lib");
    look_in_prefix(&s, "/usr/local", "/lib");
    look_in_prefix(&s, "/usr", "/lib");
}
