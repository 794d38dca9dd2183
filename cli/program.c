// --program: shared libraries of programs, whose operations the command handles like the built-in ones. They call the hone
// that is in the command, which exports it: the libhone that they were linked with is loaded beside it and not used.
#include "cli.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *loaded[CLI_NAMES_SIZE];

static int fail(const char *path, const char *why, const char *advice)
{
    cli_warn("--program %s: %s%s", path, why, advice);
    return EXIT_WORLD;
}

static int load(const char *path, void **out)
{
    char file[4096];
    // dlopen looks a name without a slash up among the system's libraries.
    snprintf(file, sizeof file, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    *out = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (*out == NULL) {
        const char *why = dlerror();
        if (strstr(why, "executable") != NULL)
            return fail(path, why, "; build what registers your operations as a shared library, too (-shared -fPIC)");
        // The command has hone's functions itself: a library need not be linked with any.
        if (strncmp(why, "libhone.so", strlen("libhone.so")) == 0)
            return fail(path, why, "; link it without -lhone, or name hone's folder in LD_LIBRARY_PATH");
        if (strstr(why, "ELF") != NULL || strstr(why, "file too short") != NULL)
            return fail(path, why, "; expected a shared library (cc -shared -fPIC)");
        return fail(path, why, "");
    }
    if (dlsym(*out, HONE_PROGRAM_REGISTER) != NULL) return EXIT_DONE;
    return fail(
        path, "the library exports no function " HONE_PROGRAM_REGISTER,
        "(hone_runtime *rt, hone_error *err), which registers its operations (hone/registry.h)");
}

int cli_load_programs(const hone_cli *cli)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < cli->options.programs.count && status == EXIT_DONE; i++)
        status = load(cli->options.programs.items[i], &loaded[i]);
    return status;
}

int cli_register_programs(const hone_cli *cli)
{
    for (size_t i = 0; i < cli->options.programs.count; i++) {
        hone_error err = {.message = ""};
        hone_program_register_function *registers;
        void *const symbol = dlsym(loaded[i], HONE_PROGRAM_REGISTER);
        memcpy(
            &registers, &symbol, sizeof registers); // C does not convert a pointer to an object into one to a function
        const hone_status status = registers(cli->rt, &err);
        if (status == HONE_OK) continue;
        err.status = status;
        return cli_fail_in(cli->options.programs.items[i], &err);
    }
    return EXIT_DONE;
}
