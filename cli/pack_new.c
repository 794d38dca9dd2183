// hone pack new: the beginning of a pack, from what a library exports.
#include "beginning.h"
#include "exports.h"
#include "hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY_LIMIT = 256 << 20, FUNCTIONS = 1024, NAME_SIZE = 244 };

typedef struct making {
    hone_cli *cli;
    hone_platform platform;
    hone_platform_traits traits; // of it
    const char *library;
    cli_text bytes;
    json_t *functions, *described; // names of functions; of those that describe themselves
    size_t left_out;               // functions beyond those that a pack may have
} making;

// The platform whose functions are known by how they are named.
static void find_platform(making *m)
{
    for (int i = HONE_PLATFORM_NONE + 1; i < HONE_PLATFORM_COUNT; i++) {
        m->platform = (hone_platform)i;
        if (hone_platform_traits_of(m->platform, &m->traits, NULL) == HONE_OK && m->traits.exports != NULL) return;
    }
}

static void take_symbol(void *ctx, const char *symbol)
{
    making *m = ctx;
    const char *prefix = m->traits.exports, *metadata = m->traits.describes;
    if (strncmp(symbol, metadata, strlen(metadata)) == 0)
        json_object_set_new(m->described, symbol + strlen(metadata), json_null());
    else if (
        strncmp(symbol, prefix, strlen(prefix)) != 0 || symbol[strlen(prefix)] == '_' || strlen(symbol) >= NAME_SIZE)
        return;
    else if (json_array_size(m->functions) < FUNCTIONS)
        json_array_append_new(m->functions, json_string(symbol + strlen(prefix)));
    else
        m->left_out++;
}

// What the library says of its functions, in a process of its own; {} where that fails, for names are enough.
static void ask(making *m)
{
    const char *functions[FUNCTIONS], *name;
    size_t count = 0;
    char *text = NULL;
    hone_error err;
    json_t *value;
    json_object_foreach(m->described, name, value)
    {
        if (count < FUNCTIONS) functions[count++] = name;
    }
    if (count == 0) return;
    const hone_status status = hone_pack_describe(m->cli->rt, m->platform, m->library, functions, count, &text, &err);
    json_t *told = status == HONE_OK ? json_loads(text, 0, NULL) : NULL;
    if (told != NULL)
        json_object_update_existing(m->described, told);
    else if (status != HONE_UNAVAILABLE)
        cli_warn("%s does not say what its functions take: %.200s", m->library, status == HONE_OK ? "" : err.message);
    json_decref(told);
    hone_text_release(&text);
}

static json_t *kernel_of(making *m, const char *function, const char *file, json_t *algorithms)
{
    char digest[65];
    json_t *algorithm = NULL;
    const json_t *schema = json_object_get(m->described, function);
    const bool is_gpu = cli_has_section(m->bytes.data, m->bytes.size, ".nv_fatbin");
    json_t *row = cli_begin_kernel(m->cli, function, json_is_object(schema) ? schema : NULL, &algorithm);
    cli_sha256(m->bytes.data, m->bytes.size, digest);
    json_object_set_new(row, "platform", json_string(hone_platform_name(m->platform)));
    json_object_set_new(row, "backend", json_string(is_gpu ? "gpu" : "cpu"));
    json_object_set_new(row, "file", json_string(file));
    json_object_set_new(row, "sha256", json_string(digest));
    if (algorithm != NULL) json_array_append_new(algorithms, algorithm);
    return row;
}

static json_t *pack_of(making *m, const char *name, const char *file, const cli_hub_choice *hub)
{
    json_t *algorithms = json_array(), *kernels = json_array();
    size_t i;
    const json_t *function;
    json_array_foreach(m->functions, i, function)
    {
        json_t *row = kernel_of(m, json_string_value(function), file, algorithms);
        if (hub != NULL)
            json_object_set_new(
                row, "producer",
                json_pack("{s:s, s:s, s:s}", "kernel", hub->id, "variant", hub->variant, "commit", hub->commit));
        json_array_append_new(kernels, row);
    }
    json_t *pack = json_pack("{s:i, s:s}", "hone_pack", 1, "name", name);
    if (json_array_size(algorithms) > 0) json_object_set(pack, "algorithms", algorithms);
    json_object_set_new(pack, "kernels", kernels);
    json_decref(algorithms);
    return pack;
}

static int write_pack(making *m, const char *folder, const char *file, json_t *pack)
{
    char path[4096 + 256];
    hone_error err;
    char *text = json_dumps(pack, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    if (text == NULL) cli_no_memory();
    hone_status status = cli_make_folders(folder, &err);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (status == HONE_OK) status = cli_write_file(path, m->bytes.data, m->bytes.size, &err);
    snprintf(path, sizeof path, "%s/pack.json", folder);
    if (status == HONE_OK) status = cli_write_file(path, text, strlen(text), &err);
    free(text);
    return status == HONE_OK ? EXIT_DONE : cli_fail(&err);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int begin(making *m, const char *folder, const char *name, const cli_hub_choice *hub)
{
    char path[4096 + 16];
    snprintf(path, sizeof path, "%s/pack.json", folder);
    if (cli_is_file(path)) {
        cli_warn("%s is there already: name another folder with -o", path);
        return EXIT_NO;
    }
    ask(m);
    json_t *pack = pack_of(m, name, name_of(m->library), hub);
    const int status = write_pack(m, folder, name_of(m->library), pack);
    if (m->left_out > 0)
        cli_warn(
            "%zu more functions of %s are left out: a pack has at most %d kernels", m->left_out, m->library,
            (int)FUNCTIONS);
    if (status == EXIT_DONE)
        printf(
            "%s: %zu function%s. Check the signature and the arguments of each, remove what is not a kernel, then run: "
            "hone pack check --run %s\n",
            path, json_array_size(m->functions), json_array_size(m->functions) == 1 ? "" : "s", folder);
    json_decref(pack);
    return status;
}

static int read_library(making *m)
{
    hone_error err;
    if (cli_read_plain_file(m->library, LIBRARY_LIMIT, &m->bytes, &err) != HONE_OK) return cli_fail(&err);
    if (!cli_exports(m->bytes.data, m->bytes.size, take_symbol, m)) {
        cli_warn("%s is not a 64-bit shared library", m->library);
        return EXIT_NO;
    }
    if (json_array_size(m->functions) > 0) return EXIT_DONE;
    cli_warn(
        "%s exports no function whose name begins with %s: was it made for tvm-ffi?", m->library, m->traits.exports);
    return EXIT_NO;
}

int cli_pack_new(hone_cli *cli, hone_store *store)
{
    (void)store;
    const char *from = cli->options.from, *out = cli->options.output;
    char name[256], folder[4096];
    cli_hub_choice hub;
    making m = {.cli = cli, .library = from};
    if (from == NULL) return cli_usage("pack new needs --from LIBRARY.so, or a folder of Hugging Face's kernels");
    const bool is_hub = cli_is_folder(from);
    int status = is_hub ? cli_hub_choose(from, cli->options.kernels_lock, &hub) : EXIT_DONE;
    if (status != EXIT_DONE) return status;
    if (is_hub) m.library = hub.library;
    const int size = (int)strcspn(name_of(m.library), ".");
    snprintf(name, sizeof name, "%.*s", size < 200 ? size : 200, name_of(m.library));
    snprintf(folder, sizeof folder, "%.4000s", out != NULL ? out : name);
    cli_text_init(&m.bytes);
    find_platform(&m);
    m.functions = json_array();
    m.described = json_object();
    status = read_library(&m);
    if (status == EXIT_DONE) status = begin(&m, folder, name, is_hub ? &hub : NULL);
    json_decref(m.functions);
    json_decref(m.described);
    cli_text_deinit(&m.bytes);
    return status;
}
