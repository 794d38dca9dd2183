// hone-worker: the process in which kernels are tried, so that one that crashes, hangs or writes out of bounds harms
// nobody.
// The tuner starts it and talks to it over file descriptor 3. "hone-worker query PLATFORM PATH SHA256 ENTRY" looks a
// function up in a pack's library: the exit code tells whether it exists, standard output gives the reason if not.
// "hone-worker tell PLATFORM PATH FUNCTION..." prints what a library says of its functions.
// "hone-worker devices PLATFORM" opens a platform and its drivers and reports in the same way. "hone-worker libraries"
// lists the rival libraries it can load.
#include "hone/describe.h"
#include "kernels/kernels.h"
#include "kernels/rivals/core.h"
#include "platforms/platform.h"
#include "registry/names.h"
#include "tune/tuner.h"
#include "tune/worker/confine.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int query(const char *name, const char *path, const char *sha256, const char *entry)
{
    const char *slash = strrchr(path, '/');
    hone_pack_file file = {.name = slash != NULL ? slash + 1 : path, .path = path};
    hone_platform platform = HONE_PLATFORM_NONE;
    hone_error err;
    hone_worker_give_up_rights();
    snprintf(file.sha256, sizeof file.sha256, "%s", sha256);
    hone_status status = hone_platform_parse(name, &platform, &err);
    if (status == HONE_OK) status = hone_platform_ops_of(platform)->try_file(&file, entry, &err);
    if (status == HONE_OK) return HONE_PACK_QUERY_FOUND;
    printf("%s\n", err.message);
    return HONE_PACK_QUERY_REFUSED;
}

// What a library says of its functions, as one JSON object: a function that says nothing is left out.
static int tell(const char *name, const char *path, char *const *entries, int count)
{
    hone_platform platform = HONE_PLATFORM_NONE;
    hone_error err;
    hone_worker_give_up_rights();
    hone_status status = hone_platform_parse(name, &platform, &err);
    json_t *all = json_object();
    for (int i = 0; status == HONE_OK && i < count; i++) {
        hone_buffer text;
        hone_buffer_init(&text, hone_allocator_system());
        status = hone_platform_ops_of(platform)->tell_function(path, entries[i], &text, &err);
        json_t *said = status == HONE_OK ? json_loads(hone_buffer_string(&text), 0, NULL) : NULL;
        // tvm-ffi has the type as a text of JSON in the JSON.
        const char *schema = json_string_value(json_object_get(said, "type_schema"));
        json_t *type = schema != NULL ? json_loads(schema, 0, NULL) : NULL;
        if (type != NULL) json_object_set_new(all, entries[i], type);
        json_decref(said);
        hone_buffer_deinit(&text);
    }
    if (status == HONE_OK)
        json_dumpf(all, stdout, JSON_COMPACT);
    else
        printf("%s\n", err.message);
    json_decref(all);
    return status == HONE_OK ? 0 : 1;
}

// Without the library's own end: a driver that fails at the exit has answered.
static int ask_devices(const char *name)
{
    const hone_allocator allocator = hone_allocator_system();
    const hone_log silent = {.write = NULL};
    hone_platform_instance *instance = NULL;
    hone_platform platform;
    hone_error err = {.message = ""};
    hone_status status = hone_platform_parse(name, &platform, &err);
    const hone_platform_ops *ops = status == HONE_OK ? hone_platform_ops_of(platform) : NULL;
    if (ops != NULL && ops->open != NULL) {
        size_t count = 0;
        status = ops->open(&allocator, &silent, &instance, &err);
        if (status == HONE_OK) (void)ops->devices(instance, &count);
    }
    if (status != HONE_OK) printf("\n%s\n", err.message);
    fflush(stdout);
    _Exit(status == HONE_OK ? HONE_PLATFORM_OPENED : HONE_PLATFORM_REFUSED);
}

// What the libraries of others are here, one a line: "!" before those that run below the machine's instructions. They
// start threads when they are loaded, which a process that forks must not have.
static int tell_libraries(void)
{
    hone_rival_facts facts[HONE_RIVAL_FACTS];
    char text[256];
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    const size_t count = hone_rival_facts_read(facts);
    for (size_t i = 0; i < count; i++) {
        bool is_below = hone_rival_facts_tell(&facts[i], hone_isa_of_features(cpu.features), text, sizeof text);
        printf("%c%s\n", is_below ? '!' : ' ', text);
    }
    fflush(stdout);
    _Exit(0);
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "query") == 0) return query(argv[2], argv[3], argv[4], argv[5]);
    if (argc >= 4 && strcmp(argv[1], "tell") == 0) return tell(argv[2], argv[3], argv + 4, argc - 4);
    if (argc == 2 && strcmp(argv[1], "libraries") == 0) return tell_libraries();
    if (argc == 3 && strcmp(argv[1], "devices") == 0) return ask_devices(argv[2]);
    return hone_worker_main(3, hone_kernels_register);
}
