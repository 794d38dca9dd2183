// What options and the environment name has to be there: a slip is told before anything is measured.
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_platform(const hone_cli *cli)
{
    hone_platform platform;
    hone_error err;
    const char *name = cli->options.platform;
    return name == NULL || hone_platform_parse(name, &platform, &err) == HONE_OK ? 0 : cli_fail(&err);
}

// Adds the names of an algorithm's kernels that are not there yet. Whether the wanted one is among them.
static hone_status add_kernels(hone_cli *cli, const char *algorithm, json_t *names, const char *wanted, bool *found)
{
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    hone_error err;
    hone_status status = hone_registry_kernels(cli->rt, algorithm, &kernels, &count, &err);
    for (size_t i = 0; status == HONE_OK && i < count; i++) {
        const char *name = hone_kernel_of(kernels[i])->name;
        *found |= strcmp(name, wanted) == 0;
        json_object_set_new(names, name, json_true());
    }
    hone_kernels_release(&kernels);
    return status;
}

static void put_names(cli_text *out, const json_t *names)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)names, name, value)
    {
        if (out->size > 0) cli_text_put(out, ", ");
        cli_text_put(out, name);
    }
}

char *cli_key_name(const hone_store_key *key)
{
    char *name = NULL;
    if (asprintf(&name, "%s\n%s\n%s\n%s", key->device, key->algorithm, key->version, key->key) < 0) cli_no_memory();
    return name;
}

int cli_check_key(const char *key, const json_t *algorithms)
{
    cli_text list;
    if (json_object_size(algorithms) <= 1) return 0;
    cli_text_init(&list);
    put_names(&list, algorithms);
    const int status = cli_usage("%s is the key of calls of %s: name the call", key, cli_text_string(&list));
    cli_text_deinit(&list);
    return status;
}

static bool note_algorithm(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    json_object_set_new(ctx, decision->key.algorithm, json_true());
    return true;
}

int cli_check_key_in(hone_store *store, const char *key)
{
    hone_error err;
    json_t *names = json_object();
    const hone_status status =
        hone_store_scan(store, HONE_RECORD_DECISION, &(hone_store_key){.key = key}, note_algorithm, names, &err);
    const int code = status == HONE_OK ? cli_check_key(key, names) : cli_fail(&err);
    json_decref(names);
    return code;
}

// owner: "matmul has" or "there is"; names: the kernels that it has in place of the wanted one.
static int refuse_kernel(const hone_cli *cli, const char *owner, json_t *names)
{
    const char *wanted = cli->options.kernel, *name;
    cli_meant meant = {.given = wanted, .before = ""};
    json_t *value;
    cli_text list;
    cli_text_init(&list);
    put_names(&list, names);
    json_object_foreach(names, name, value) cli_meant_by(&meant, name);
    const int status = cli_usage(
        "--kernel is '%s', and %s no kernel of that name%s; there are: %s", wanted, owner, cli_meant_text(&meant),
        cli_text_string(&list));
    cli_text_deinit(&list);
    return status;
}

static int check_kernel(hone_cli *cli)
{
    const char *wanted = cli->options.kernel;
    bool found = wanted == NULL;
    char **algorithms = NULL;
    size_t count = 0;
    hone_error err;
    if (found) return 0;
    if (hone_registry_algorithms(cli->rt, &algorithms, &count, &err) != HONE_OK) return cli_fail(&err);
    json_t *names = json_object();
    for (size_t i = 0; i < count && !found; i++)
        if (add_kernels(cli, algorithms[i], names, wanted, &found) != HONE_OK) break;
    const int status = found ? 0 : refuse_kernel(cli, "there is", names);
    json_decref(names);
    hone_names_release(&algorithms);
    return status;
}

// A kernel of another algorithm would leave nothing to measure. A call that cannot be read is refused where it is tuned.
static int check_kernel_of(hone_cli *cli, const char *text)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    bool found = false;
    if (hone_call_of_label(cli->rt, text, &op, &call, NULL) != HONE_OK) return 0;
    hone_call_release(&call);
    json_t *names = json_object();
    const hone_status status = add_kernels(cli, hone_op_name(op), names, cli->options.kernel, &found);
    char owner[HONE_NAME_SIZE + 4];
    snprintf(owner, sizeof owner, "%s has", hone_op_name(op));
    const int code = status != HONE_OK || found ? 0 : refuse_kernel(cli, owner, names);
    json_decref(names);
    return code;
}

int cli_check_kernel_of_calls(hone_cli *cli)
{
    int status = 0;
    for (size_t i = 0; i < cli->count && cli->options.kernel != NULL && status == 0; i++)
        status = check_kernel_of(cli, cli->arguments[i]);
    return status;
}

static bool is_program(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0;
}

// A contest of functions that are forked would go on without the worker, and be taken for one that had it.
int cli_check_worker(hone_cli *cli)
{
    const char *path = cli_variable("HONE_WORKER");
    char *words = NULL;
    if (path == NULL || path[0] == '\0') return 0;
    if (!is_program(path))
        return cli_usage("HONE_WORKER is '%s', which cannot be run: give the path of hone-worker", path);
    // A worker says an empty object of no functions of whatever file, and another program does not. What describes no functions
    // asks nobody.
    hone_status status = HONE_INVALID_ARGUMENT;
    for (int i = HONE_PLATFORM_NONE + 1; i < HONE_PLATFORM_COUNT && status == HONE_INVALID_ARGUMENT; i++)
        status = hone_pack_describe(cli->rt, (hone_platform)i, path, NULL, 0, &words, NULL);
    hone_text_release(&words);
    if (status == HONE_OK || status == HONE_INVALID_ARGUMENT) return 0;
    return cli_usage("HONE_WORKER is '%s', which is not hone-worker: give the path of hone-worker, or unset it", path);
}

int cli_check_names(hone_cli *cli)
{
    int status = check_platform(cli);
    if (status == 0) status = check_kernel(cli);
    if (status == 0) status = cli_check_regime(&cli->options);
    return status == 0 ? cli_check_worker(cli) : status;
}
