// What the commands share: opening, failing, reading, tables, progress.
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 30, PATH_SIZE = 4096 };

static void print_log(void *ctx, int level, const char *message)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    (void)ctx;
    cli_warn("%s: %s", words[level >= 0 && level < 4 ? level : 0], message);
}

// A host goes on without the store that its environment names badly; who gives --store wants that one.
static int check_store(const hone_cli *cli)
{
    const char *url = cli->options.store;
    hone_store_place place;
    hone_error err;
    if (url == NULL || url[0] == '\0' || strcmp(url, "none") == 0) return 0;
    return hone_store_get_place(url, &place, &err) == HONE_OK ? 0 : cli_fail(&err);
}

// Those of --pack.
static int load_packs(const hone_cli *cli)
{
    hone_error err;
    for (size_t i = 0; i < cli->options.packs.count; i++)
        if (hone_pack_load(cli->rt, cli->options.packs.items[i], &err) != HONE_OK) return cli_fail(&err);
    return 0;
}

static int open_with(hone_cli *cli, hone_policy policy, const char *lock)
{
    const char *environment = cli_variable("HONE_POLICY");
    int wrong = check_store(cli);
    if (wrong == 0) wrong = cli_load_programs(cli);
    if (wrong != 0) return wrong;
    hone_runtime_options options = {
        .struct_size = sizeof options,
        .store = cli->options.store,
        .policy = environment != NULL && environment[0] != '\0' ? HONE_POLICY_DEFAULT : policy,
        .log = print_log,
        .lock_file = lock,
        // Functions of a program are measured in forks of a process that has them, too.
        .flags = cli->options.programs.count > 0 ? HONE_RUNTIME_ZYGOTE : 0,
    };
    hone_error err;
    if (hone_runtime_open(&options, &cli->rt, &err) == HONE_OK) {
        wrong = load_packs(cli);
        return wrong == 0 ? cli_register_programs(cli) : wrong;
    }
    // A lock file that is not there is no answer to what was asked.
    int status = cli_fail(&err);
    return status == EXIT_NO ? EXIT_WORLD : status;
}

int cli_open(hone_cli *cli, hone_policy policy)
{
    return open_with(cli, policy, NULL);
}

int cli_open_unlocked(hone_cli *cli, hone_policy policy)
{
    return open_with(cli, policy, "none");
}

const char *cli_lock_path(const hone_cli *cli)
{
    const char *path = cli->options.lock != NULL ? cli->options.lock : cli_variable("HONE_LOCK");
    return path == NULL || path[0] == '\0' || strcmp(path, "none") == 0 ? NULL : path;
}

int cli_exit_code(hone_status status)
{
    switch (status) {
    case HONE_OK:
        return EXIT_DONE;
    case HONE_NOT_FOUND:
        return EXIT_NO;
    case HONE_INVALID_ARGUMENT:
        return EXIT_USAGE;
    case HONE_CANCELLED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_WORLD;
    }
}

int cli_fail(const hone_error *err)
{
    cli_warn("%s", err->message);
    return cli_exit_code(err->status);
}

int cli_fail_call(hone_cli *cli, const char *text, const hone_error *err)
{
    char name[HONE_NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "( @"), text);
    // A kernel that a program or a pack brings is known to the process that was given it, and to no other.
    const bool is_elsewhere = err->status == HONE_NOT_FOUND && hone_op_find(cli->rt, name, NULL) == NULL &&
                              strstr(err->message, "; did you mean ") == NULL;
    cli_warn(
        "%s%s", err->message,
        is_elsewhere ? "; name the pack that has it with --pack, or its program with --program" : "");
    return cli_exit_code(err->status);
}

int cli_fail_in(const char *file, const hone_error *err)
{
    cli_warn("%s: %s", strcmp(file, "-") == 0 ? "standard input" : file, err->message);
    return cli_exit_code(err->status);
}

int cli_usage(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    cli_warn_list(format, list);
    va_end(list);
    return EXIT_USAGE;
}

int cli_parse_call(hone_cli *cli, const char *text, const hone_op **op, hone_call **call)
{
    hone_error err;
    hone_store *store = NULL;
    if (cli_is_key(text) && hone_store_of(cli->rt, HONE_STORE_OF_USER, &store, NULL) == HONE_OK) {
        const int status = cli_check_key_in(store, text);
        if (status != 0) return status;
    }
    return hone_call_of_label(cli->rt, text, op, call, &err) == HONE_OK ? 0 : cli_fail_call(cli, text, &err);
}

int cli_store_url(const hone_cli *cli, char *out, size_t size)
{
    hone_store_place standard;
    const char *url = cli->options.store != NULL ? cli->options.store : cli_variable("HONE_STORE");
    if (url == NULL) url = hone_store_get_place(NULL, &standard, NULL) == HONE_OK ? standard.url : "";
    int used = snprintf(out, size, "%s", url[0] == '\0' ? "none" : url);
    return used >= 0 && (size_t)used < size ? 0 : cli_usage("the store's URL is longer than %zu bytes", size - 1);
}

static void print_warning(void *ctx, int level, const char *message)
{
    enum { WARNING = 1 };
    if (level <= WARNING) print_log(ctx, level, message);
}

int cli_open_store(hone_cli *cli, hone_store **out)
{
    char url[PATH_SIZE];
    hone_error err;
    int status = cli_store_url(cli, url, sizeof url);
    if (status != 0) return status;
    if (strcmp(url, "none") == 0) return cli_usage("there is no store: set HONE_STORE or give --store URL");
    const hone_store_options options = {.struct_size = sizeof options, .log = print_warning};
    return hone_store_open_with(&options, url, out, &err) == HONE_OK ? 0 : cli_fail(&err);
}

int cli_open_other(const char *url, hone_store **out)
{
    hone_error err;
    if (cli_is_missing(url)) {
        cli_warn("%s: there is no such store", url);
        return EXIT_WORLD;
    }
    return hone_store_open(hone_allocator_system(), url, out, &err) == HONE_OK ? 0 : cli_fail(&err);
}

hone_status cli_open_reading(const char *url, hone_store **out, hone_error *err)
{
    const hone_store_options options = {.struct_size = sizeof options, .read_only = true};
    const hone_status status = hone_store_open_with(&options, url, out, err);
    return status == HONE_UNSUPPORTED ? hone_store_open(hone_allocator_system(), url, out, err) : status;
}

bool cli_is_missing(const char *url)
{
    hone_store_place place;
    return hone_store_get_place(url, &place, NULL) == HONE_OK && place.is_missing;
}

bool cli_lacks_store(const hone_cli *cli)
{
    char url[PATH_SIZE];
    return cli_store_url(cli, url, sizeof url) == 0 && cli_is_missing(url);
}

int cli_find_store(const hone_cli *cli)
{
    char url[PATH_SIZE];
    int status = cli_store_url(cli, url, sizeof url);
    if (status != 0 || !cli_is_missing(url)) return status;
    cli_warn("%s: there is no such store yet", url);
    return EXIT_NO;
}

int cli_need_store(hone_cli *cli)
{
    hone_store *store = NULL;
    hone_error err;
    const hone_status status = hone_store_of(cli->rt, HONE_STORE_OF_USER, &store, &err);
    if (status == HONE_OK || status == HONE_NOT_FOUND) return 0;
    cli_warn("%s", err.message);
    return EXIT_WORLD;
}

int cli_need_named_store(hone_cli *cli)
{
    return cli->options.store != NULL && !cli->options.no_store ? cli_need_store(cli) : 0;
}

int cli_read(const char *path, cli_text *out)
{
    hone_error err;
    cli_text_init(out);
    if (cli_read_file(path, FILE_LIMIT, out, &err) == HONE_OK) return 0;
    cli_text_deinit(out);
    (void)cli_fail(&err);
    return EXIT_WORLD;
}

char *cli_time_text(double nanoseconds, char out[32])
{
    if (nanoseconds <= 0)
        snprintf(out, 32, "-");
    else if (nanoseconds < 1e3)
        snprintf(out, 32, "%.1f ns", nanoseconds);
    else if (nanoseconds < 1e6)
        snprintf(out, 32, "%.2f us", nanoseconds / 1e3);
    else if (nanoseconds < 1e9)
        snprintf(out, 32, "%.2f ms", nanoseconds / 1e6);
    else
        snprintf(out, 32, "%.2f s", nanoseconds / 1e9);
    return out;
}

void cli_no_memory(void)
{
    fputs("hone: out of memory\n", stderr);
    exit(EXIT_WORLD);
}

json_t *cli_config_object(const hone_space *space, const hone_config *config)
{
    const size_t size = hone_config_json(space, config, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL) cli_no_memory();
    hone_config_json(space, config, text, size);
    json_t *object = json_loads(text, 0, NULL);
    free(text);
    if (object == NULL) cli_no_memory();
    return object;
}

void cli_print_json(json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    if (text == NULL) {
        cli_warn("a name in the answer is not UTF-8, or there is no memory: leave --json out");
        exit(EXIT_WORLD);
    }
    puts(text);
    free(text);
    json_decref(value);
}

void cli_progress(void *cli_pointer, const hone_progress *progress)
{
    const hone_cli *cli = cli_pointer;
    char best[32], line[256], left[32] = "";
    if (!cli->progress) return;
    if (progress->waiting != NULL) {
        snprintf(line, sizeof line, "%.60s  waits for %s", progress->call, progress->waiting);
        cli_print_progress(line);
        return;
    }
    // What is left of the search: the finals come after it, and take seconds.
    if (progress->remaining_seconds >= 0.5) snprintf(left, sizeof left, "  %.0f s left", progress->remaining_seconds);
    if (progress->remaining_seconds >= 0 && progress->remaining_seconds < 0.5)
        snprintf(left, sizeof left, "  finishing");
    snprintf(
        line, sizeof line, "%u/%u%s  best %s %s  %s", progress->done, progress->total, left,
        progress->best_kernel != NULL ? progress->best_kernel : "-", cli_time_text(progress->best_ns, best),
        progress->call);
    cli_print_progress(line);
}

void cli_progress_end(const hone_cli *cli)
{
    if (cli->progress) fputs("\r\033[K", stderr);
}

int cli_check_regime(const cli_options *options)
{
    hone_regime regime = options->cold ? HONE_COLD : HONE_WARM;
    if (options->regime == NULL) return EXIT_DONE;
    if (hone_regime_parse(options->regime, &regime, NULL) != HONE_OK || hone_regime_is_stable(regime))
        return cli_usage(
            "--regime is '%s', expected warm, cold, graph or eager (--stable is for itself)", options->regime);
    if (options->cold && regime != HONE_COLD)
        return cli_usage("--cold and --regime %s: give one of them", options->regime);
    return EXIT_DONE;
}

void cli_tune_options(hone_cli *cli, hone_tune_options *out)
{
    const cli_options *options = &cli->options;
    hone_regime regime = options->cold ? HONE_COLD : HONE_WARM;
    if (options->regime != NULL) (void)!hone_regime_parse(options->regime, &regime, NULL);
    *out = (hone_tune_options){
        .struct_size = sizeof *out,
        .batch_seconds = options->batch_seconds,
        .expected_calls = (double)options->calls,
        .evaluations = (uint32_t)options->evals,
        .seconds = options->seconds,
        .patience = (uint32_t)options->patience,
        .wait_seconds = options->wait,
        .isolation = options->in_process ? HONE_ISOLATION_IN_PROCESS : HONE_ISOLATION_DEFAULT,
        .regime = regime,
        .same_regime = options->no_cold || options->cold || options->regime != NULL,
        .stable = options->stable,
        .seed = (uint64_t)options->seed,
        .no_store = options->no_store,
        .fresh = options->fresh,
        .platform = options->platform,
        .kernel = options->kernel,
        .progress = cli_progress,
        .progress_ctx = cli,
        .cancel = cli_lend_cancel(),
    };
}
