// Runs scenarios of the original's registry against hone's: vectors_registry FILE.jsonl
// Prints each failure and ends with "N passed, M failed"; leaves with 1 when M is not 0.
#include "scenario.h"

#include "hone/describe.h"
#include "os/os.h"
#include "platforms/platform.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct outcome {
    bool failed;
    char why[1400];
} outcome;

__attribute__((format(printf, 2, 3))) static void fail(outcome *out, const char *format, ...)
{
    if (out->failed) return; // the first reason is the one to look at
    out->failed = true;
    va_list list;
    va_start(list, format);
    vsnprintf(out->why, sizeof out->why, format, list);
    va_end(list);
}

static hone_status never_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_KERNEL_FAILED;
}

// The original has no algorithms apart from their kernels: one is registered with its first kernel.
static hone_status add_algorithm(hone_registry *registry, const char *name, hone_error *err)
{
    char signature[256];
    snprintf(signature, sizeof signature, "%s(x: f32[n]) -> y: f32[n]", name);
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = signature;
    algorithm.reference = never_run;
    return hone_registry_add_algorithm(registry, &algorithm, false, err);
}

static hone_status add_kernel(hone_registry *registry, const spec *one, const char *name, hone_error *err)
{
    hone_kernel kernel;
    hone_kernel_init(&kernel);
    hone_status status = hone_platform_parse(one->platform, &kernel.platform, err);
    if (status == HONE_OK) status = hone_backend_parse(one->backend, &kernel.backend, err);
    if (status == HONE_OK && hone_registry_find(registry, one->algorithm, NULL) == NULL)
        status = add_algorithm(registry, one->algorithm, err);
    if (status != HONE_OK) return status;
    kernel.algorithm = one->algorithm;
    kernel.name = name;
    kernel.priority = one->priority;
    kernel.run = never_run;
    return hone_registry_add_kernels(registry, &kernel, 1, false, false, err);
}

static bool is_duplicate(const scenario *from, size_t index)
{
    const spec *one = &from->specs[index];
    for (size_t i = 0; i < index; i++)
        if (strcmp(from->specs[i].lower, one->lower) == 0 && strcmp(from->specs[i].platform, one->platform) == 0 &&
            strcmp(from->specs[i].backend, one->backend) == 0)
            return true;
    return false;
}

static void register_all(hone_registry *registry, const scenario *from, outcome *out)
{
    bool refuse = scenario_refuses_duplicates(from);
    for (size_t i = 0; i < from->count; i++) {
        const spec *one = &from->specs[i];
        hone_error err = {0};
        hone_status status = add_kernel(registry, one, refuse ? "one" : one->id, &err);
        hone_status wanted = !one->valid || (refuse && is_duplicate(from, i)) ? HONE_INVALID_ARGUMENT : HONE_OK;
        if (status != wanted)
            fail(
                out, "spec %s: registering gave %s (%s), expected %s", one->id, hone_status_name(status), err.message,
                hone_status_name(wanted));
    }
}

// As a caller who has names, not numbers: an unknown algorithm is said before an unknown platform.
static hone_status ask(
    hone_registry *registry, const scenario *from, const hone_kernel_ref **out_kernel, hone_error *err)
{
    hone_query query = {.algorithm = from->algorithm};
    hone_status status = HONE_OK;
    if (hone_registry_find(registry, from->algorithm, NULL) != NULL) {
        if (from->platform != NULL) status = hone_platform_parse(from->platform, &query.platform, err);
        if (status == HONE_OK && from->backend != NULL) status = hone_backend_parse(from->backend, &query.backend, err);
    }
    return status == HONE_OK ? hone_registry_query(registry, &query, out_kernel, err) : status;
}

// Not found has to name what was asked for, and what there is.
static void check_words(hone_registry *registry, const scenario *from, const hone_error *err, outcome *out)
{
    const hone_algorithm_entry *entry = hone_registry_find(registry, from->algorithm, NULL);
    const char *words[3] = {from->algorithm, NULL, NULL};
    if (entry != NULL) {
        words[1] = from->platform;
        words[2] = from->backend;
    }
    for (size_t i = 0; i < 3; i++)
        if (words[i] != NULL && strstr(err->message, words[i]) == NULL)
            fail(out, "the error does not name '%s': %s", words[i], err->message);
    if (strstr(err->message, "there are: ") == NULL)
        fail(out, "the error does not say what there is: %s", err->message);
}

static void check_answer(hone_registry *registry, const scenario *from, outcome *out)
{
    const hone_kernel_ref *kernel = NULL;
    hone_error err = {0};
    answer wanted = scenario_expected(from);
    hone_status status = ask(registry, from, &kernel, &err);
    const char *name = kernel != NULL ? hone_kernel_of(kernel)->name : "none";
    if (status != wanted.status)
        fail(
            out, "query gave %s (%s), expected %s %s", hone_status_name(status), status == HONE_OK ? name : err.message,
            hone_status_name(wanted.status), wanted.id != NULL ? wanted.id : "");
    else if (status == HONE_OK && !scenario_refuses_duplicates(from) && strcmp(name, wanted.id) != 0)
        fail(out, "query gave kernel %s, expected %s", name, wanted.id);
    if (status == HONE_NOT_FOUND) check_words(registry, from, &err, out);
}

static bool has_valid_spec(const scenario *from, const char *lower)
{
    for (size_t i = 0; i < from->count; i++)
        if (from->specs[i].valid && strcmp(from->specs[i].lower, lower) == 0) return true;
    return false;
}

// The algorithms there are. Those that only refused kernels were meant for must have left nothing behind.
static void check_algorithms(hone_registry *registry, const scenario *from, outcome *out)
{
    const json_t *list = json_object_get(from->json, "list_algorithms");
    size_t count = 0;
    const hone_algorithm_entry *const *entries = hone_registry_all(registry, &count);
    size_t place = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL || !has_valid_spec(from, name)) continue;
        if (place >= count || strcmp(entries[place]->name, name) != 0)
            fail(
                out, "algorithm %zu is '%s', expected '%s'", place, place < count ? entries[place]->name : "missing",
                name);
        place++;
    }
    if (place != count) fail(out, "%zu algorithms are listed, expected %zu", count, place);
}

static void check_order(hone_registry *registry, const char *name, const json_t *ids, outcome *out)
{
    const hone_algorithm_entry *entry = hone_registry_find(registry, name, NULL);
    size_t count = 0;
    const hone_kernel_ref *const *kernels = entry == NULL ? NULL : hone_registry_list(entry, &count);
    if (count != json_array_size(ids)) {
        fail(out, "'%s' has %zu kernels, expected %zu", name, count, json_array_size(ids));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(ids, i);
        char id[32];
        snprintf(id, sizeof id, "%lld", (long long)json_integer_value(value));
        const char *wanted = json_is_string(value) ? json_string_value(value) : id;
        const char *came = hone_kernel_of(kernels[i])->name;
        if (strcmp(came, wanted) != 0) fail(out, "kernel %zu of '%s' is %s, expected %s", i, name, came, wanted);
    }
}

static void check_lists(hone_registry *registry, const scenario *from, outcome *out)
{
    check_algorithms(registry, from, out);
    if (scenario_refuses_duplicates(from)) return; // the original's order holds kernels that are refused here
    const char *name;
    json_t *ids;
    json_object_foreach(json_object_get(from->json, "order"), name, ids)
    {
        check_order(registry, name, ids, out);
    }
}

static void run_scenario(const json_t *json, outcome *out)
{
    static scenario read; // large, and used by one thread
    const char *why = NULL;
    hone_backend backend;
    hone_registry *registry = NULL;
    hone_error err = {0};
    hone_allocator allocator = hone_allocator_system();
    if (!scenario_read(json, &read, &why)) {
        fail(out, "not a scenario: %s", why);
        return;
    }
    if (hone_backend_parse(read.default_backend, &backend, &err) != HONE_OK ||
        hone_registry_create(&allocator, hone_platform_facts_of, NULL, &registry, &err) != HONE_OK) {
        fail(out, "default_backend: %s", err.message);
        return;
    }
    hone_registry_set_hardware(registry, 1u << backend, backend, UINT64_MAX);
    register_all(registry, &read, out);
    check_answer(registry, &read, out);
    check_lists(registry, &read, out);
    hone_registry_destroy(&registry);
}

static bool run_line(const char *line, size_t size, size_t number)
{
    outcome out = {.failed = false};
    hone_error err = {0};
    json_t *json = NULL;
    if (hone_json_parse(line, size, &json, &err) != HONE_OK)
        fail(&out, "%s", err.message);
    else
        run_scenario(json, &out);
    if (out.failed) {
        const char *tag = json_string_value(json_object_get(json, "tag"));
        printf("line %zu (%s): %s\n", number, tag != NULL ? tag : "no tag", out.why);
    }
    json_decref(json);
    return !out.failed;
}

int main(int argc, char **argv)
{
    enum { LARGEST = 256 << 20 };
    hone_error err = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: vectors_registry FILE.jsonl\n");
        return 2;
    }
    hone_buffer file;
    hone_buffer_init(&file, hone_allocator_system());
    if (hone_os_read_file(argv[1], LARGEST, &file, &err) != HONE_OK) {
        fprintf(stderr, "vectors_registry: %s\n", err.message);
        hone_buffer_deinit(&file);
        return 3;
    }
    size_t passed = 0;
    size_t failed = 0;
    size_t number = 1;
    const char *end = hone_buffer_string(&file) + file.size;
    for (const char *line = hone_buffer_string(&file), *next; line < end; line = next, number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline == NULL ? end : newline + 1;
        size_t size = (size_t)((newline == NULL ? end : newline) - line);
        if (strspn(line, " \t\r") >= size) continue;
        *(run_line(line, size, number) ? &passed : &failed) += 1;
    }
    hone_buffer_deinit(&file);
    printf("%zu passed, %zu failed\n", passed, failed);
    return failed > 0 ? 1 : 0;
}
