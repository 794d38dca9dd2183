// hone list
#include "cli.h"
#include "registry/names.h"

#include "platforms/platform.h"
#include "registry/origin.h"
#include "registry/registry.h"
#include "runtime/state/operation.h"
#include "runtime/state/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Whether a device of this platform may be one that the kernel runs on: of its home, or of a host of its home.
static bool is_of(const hone_kernel *kernel, const hone_device_info *device)
{
    const hone_platform home = hone_platform_home(kernel->platform);
    if (device->platform == home) return true;
    for (const hone_platform *host = hone_platform_facts_of(home)->hosts; *host != HONE_PLATFORM_NONE; host++)
        if (*host == device->platform) return true;
    return false;
}

// Whether a kernel can run here at all, whatever the call. The reason is that of its first device.
static bool runs_here(hone_cli *cli, const hone_kernel_ref *ref, char *reason, size_t size)
{
    const char *why = NULL;
    bool is_told = false;
    const hone_pack_kernel *pack = ref->kernel.code != NULL ? ref->kernel.code->pack : NULL;
    if (pack != NULL && pack->refusal != NULL) {
        snprintf(reason, size, "%s", pack->refusal);
        return false;
    }
    if (!hone_runtime_platform(cli->rt, ref->kernel.platform, &why)) {
        snprintf(reason, size, "%s", why);
        return false;
    }
    size_t count = 0;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    snprintf(reason, size, "there is no device for it");
    for (size_t i = 0; i < count; i++) {
        hone_error err;
        if (!is_of(&ref->kernel, devices[i])) continue;
        hone_status status = hone_kernel_eligible(ref, NULL, devices[i], &err);
        if (status == HONE_OK) status = hone_runtime_visit(cli->rt, ref, devices[i], &err);
        if (status == HONE_OK) return true;
        if (!is_told) snprintf(reason, size, "%.390s", err.message);
        is_told = true;
    }
    return false;
}

// The folder of the pack that brought it; NULL: none did.
static const char *pack_of(const hone_kernel *kernel)
{
    return kernel->code != NULL && kernel->code->pack != NULL ? kernel->code->pack->folder : NULL;
}

// Which variant of the pack's folder it is; NULL: it has none.
static const char *variant_of(const hone_kernel *kernel)
{
    return kernel->code != NULL && kernel->code->pack != NULL ? kernel->code->pack->chosen : NULL;
}

static json_t *kernel_row(hone_cli *cli, const hone_kernel_ref *ref)
{
    char reason[400] = "";
    bool here = runs_here(cli, ref, reason, sizeof reason);
    uint64_t size = hone_space_cartesian(ref->space);
    return json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:b, s:s?, s:s?, s:s?, s:s?}", "name", ref->kernel.name, "platform",
        hone_platform_name(ref->kernel.platform), "backend", hone_backend_name(ref->kernel.backend), "priority",
        (json_int_t)ref->kernel.priority, "space", (json_int_t)(size > INT64_MAX ? INT64_MAX : size), "runs_here", here,
        "reason", here ? NULL : reason, "revision", ref->kernel.revision, "pack", pack_of(&ref->kernel), "variant",
        variant_of(&ref->kernel));
}

static json_t *algorithm_row(hone_cli *cli, const hone_algorithm_entry *algorithm)
{
    json_t *kernels = json_array();
    size_t count = 0;
    const hone_kernel_ref *const *list = hone_registry_list(algorithm, &count);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(kernels, kernel_row(cli, list[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:o}", "name", algorithm->name, "version", algorithm->version, "signature",
        hone_signature_text(algorithm->signature), "kernels", kernels);
}

static const char *text(const json_t *row, const char *name)
{
    const char *value = json_string_value(json_object_get(row, name));
    return value != NULL ? value : "";
}

static void add_row(cli_table *table, const json_t *kernel)
{
    char priority[24], space[24], note[1200] = "";
    snprintf(priority, sizeof priority, "%" PRId64, (int64_t)json_integer_value(json_object_get(kernel, "priority")));
    snprintf(space, sizeof space, "%" PRId64, (int64_t)json_integer_value(json_object_get(kernel, "space")));
    if (text(kernel, "pack")[0] != '\0') snprintf(note, sizeof note, "pack %s", text(kernel, "pack"));
    if (text(kernel, "variant")[0] != '\0')
        snprintf(note, sizeof note, "pack %.500s: %.600s", text(kernel, "pack"), text(kernel, "variant"));
    cli_table_row(
        table, " ", text(kernel, "name"), text(kernel, "platform"), text(kernel, "backend"), priority, space, note);
}

// Kernels that cannot run here, each reason once; they were rows of the table, too.
static void print_reasons(const json_t *kernels)
{
    json_t *reasons = json_object();
    size_t i;
    const json_t *kernel;
    json_array_foreach(kernels, i, kernel)
    {
        const char *reason = text(kernel, "reason"), *before = text(reasons, reason);
        if (reason[0] == '\0') continue;
        json_object_set_new(
            reasons, reason, json_sprintf("%s%s%s", before, before[0] == '\0' ? "" : ", ", text(kernel, "name")));
    }
    const char *reason;
    json_t *names;
    json_object_foreach(reasons, reason, names) cli_say("   not here: %s: %s\n", json_string_value(names), reason);
    json_decref(reasons);
}

static void print_algorithm(const hone_cli *cli, const json_t *algorithm)
{
    const json_t *kernel, *kernels = json_object_get(algorithm, "kernels");
    size_t i, elsewhere = 0;
    cli_say("%s\n", text(algorithm, "signature"));
    cli_table *table = cli_table_new(7);
    cli_table_row(table, " ", "kernel", "platform", "backend", "priority", "space", "");
    json_array_foreach(kernels, i, kernel)
    {
        const bool is_here = json_is_true(json_object_get(kernel, "runs_here"));
        elsewhere += !is_here;
        if (is_here || cli->options.all) add_row(table, kernel);
    }
    cli_table_print(table);
    if (cli->options.all)
        print_reasons(kernels);
    else if (elsewhere > 0)
        cli_say_elsewhere("   ", elsewhere);
}

static void print_text(const hone_cli *cli, const json_t *root)
{
    size_t i;
    const json_t *algorithm;
    json_array_foreach(json_object_get(root, "algorithms"), i, algorithm)
    {
        if (i > 0) putchar('\n');
        print_algorithm(cli, algorithm);
    }
}

static void print_mismatch(void *ctx, const char *line)
{
    (void)ctx;
    printf("%s\n", line);
}

static int validate(hone_cli *cli, const char *algorithm)
{
    hone_error err;
    bool ok = false;
    void (*report)(void *, const char *) = cli->options.json ? NULL : print_mismatch;
    if (hone_validate_signatures(cli->rt, algorithm, cli->options.verbose, report, NULL, &ok, &err) != HONE_OK)
        return cli_fail(&err);
    if (cli->options.json)
        cli_print_json(json_pack("{s:b}", "valid", ok));
    else
        printf("%s\n", ok ? "all signatures agree" : "signatures differ");
    return ok ? EXIT_DONE : EXIT_NO;
}

int cli_list(hone_cli *cli)
{
    int status = cli_open(cli, HONE_POLICY_TUNE);
    if (status != 0) return status;
    const char *wanted = cli->count > 0 ? cli->arguments[0] : NULL;
    hone_error err;
    const hone_op *op = NULL;
    if (wanted != NULL && hone_op_get(cli->rt, wanted, &op, &err) != HONE_OK) return cli_fail_call(cli, wanted, &err);
    if (cli->options.validate) return validate(cli, wanted);
    char **names = NULL;
    size_t count = 0;
    if (hone_registry_algorithms(cli->rt, &names, &count, &err) != HONE_OK) return cli_fail(&err);
    json_t *algorithms = json_array();
    for (size_t i = 0; i < count; i++) {
        const hone_op *each = op != NULL ? op : hone_op_find(cli->rt, names[i], NULL);
        json_array_append_new(algorithms, algorithm_row(cli, each->algorithm));
        if (op != NULL) break;
    }
    hone_names_free(cli->rt, &names);
    json_t *root = json_pack("{s:o}", "algorithms", algorithms);
    if (cli->options.json) {
        cli_print_json(root);
        return EXIT_DONE;
    }
    print_text(cli, root);
    json_decref(root);
    return EXIT_DONE;
}
