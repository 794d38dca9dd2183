// hone list
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// What the packs say of their kernels, by name, platform, backend and revision, which is a digest of all that makes the kernel.
static bool note_entry(void *ctx, const hone_pack_entry *entry)
{
    char name[4 * HONE_NAME_SIZE];
    if (entry->revision == NULL) return true;
    snprintf(
        name, sizeof name, "%s %d %d %s", entry->kernel, (int)entry->platform, (int)entry->backend, entry->revision);
    if (json_object_get(ctx, name) == NULL)
        json_object_set_new(ctx, name, json_pack("{s:s, s:s?}", "pack", entry->folder, "variant", entry->chosen));
    return true;
}

static const json_t *pack_of(const json_t *packs, const hone_kernel *kernel)
{
    char name[4 * HONE_NAME_SIZE];
    snprintf(
        name, sizeof name, "%s %d %d %s", kernel->name, (int)kernel->platform, (int)kernel->backend, kernel->revision);
    return json_object_get(packs, name);
}

static json_t *kernel_row(const hone_kernel_ref *ref, const json_t *packs)
{
    const hone_kernel *kernel = hone_kernel_of(ref);
    const json_t *pack = pack_of(packs, kernel);
    hone_error why;
    char reason[400] = "";
    const bool here = hone_kernel_check(ref, NULL, NULL, &why) == HONE_OK;
    if (!here) snprintf(reason, sizeof reason, "%.390s", why.message);
    const uint64_t size = hone_space_cartesian(hone_kernel_space(ref));
    return json_pack(
        "{s:s, s:s, s:s, s:i, s:I, s:b, s:s?, s:s?, s:s?, s:s?}", "name", kernel->name, "platform",
        hone_platform_name(kernel->platform), "backend", hone_backend_name(kernel->backend), "priority",
        (json_int_t)kernel->priority, "space", (json_int_t)(size > INT64_MAX ? INT64_MAX : size), "runs_here", here,
        "reason", here ? NULL : reason, "revision", kernel->revision, "pack",
        json_string_value(json_object_get(pack, "pack")), "variant",
        json_string_value(json_object_get(pack, "variant")));
}

static json_t *algorithm_row(hone_cli *cli, const hone_op *op, const json_t *packs)
{
    json_t *kernels = json_array();
    const hone_signature *signature = hone_op_signature(op);
    const hone_kernel_ref **list = NULL;
    const size_t count = cli_kernels(cli, op, &list);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(kernels, kernel_row(list[i], packs));
    hone_kernels_release(&list);
    return json_pack(
        "{s:s, s:s, s:s, s:o}", "name", hone_op_name(op), "version", hone_signature_version(signature), "signature",
        hone_signature_text(signature), "kernels", kernels);
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

static bool print_mismatch(void *ctx, const char *line)
{
    (void)ctx;
    printf("%s\n", line);
    return true;
}

static int validate(hone_cli *cli, const char *algorithm)
{
    hone_error err;
    bool ok = false;
    bool (*visit)(void *, const char *) = cli->options.json ? NULL : print_mismatch;
    if (hone_validate_signatures(cli->rt, algorithm, cli->options.verbose, visit, NULL, &ok, &err) != HONE_OK)
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
    json_t *algorithms = json_array(), *packs = json_object();
    if (hone_pack_list(cli->rt, note_entry, packs, &err) != HONE_OK) return cli_fail(&err);
    for (size_t i = 0; i < count; i++) {
        const hone_op *each = op != NULL ? op : hone_op_find(cli->rt, names[i], NULL);
        json_array_append_new(algorithms, algorithm_row(cli, each, packs));
        if (op != NULL) break;
    }
    hone_names_release(&names);
    json_decref(packs);
    json_t *root = json_pack("{s:o}", "algorithms", algorithms);
    if (cli->options.json) {
        cli_print_json(root);
        return EXIT_DONE;
    }
    print_text(cli, root);
    json_decref(root);
    return EXIT_DONE;
}
