// hone pack: what packs hold, and what is wrong with them.
#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef struct listing {
    hone_cli *cli;
    json_t *packs;
    size_t refused;
    size_t unrun; // functions of Python, which --run was to look at
} listing;

static json_t *pack_of(listing *all, const hone_pack_entry *entry)
{
    size_t i;
    json_t *pack;
    json_array_foreach(all->packs, i, pack)
    {
        if (strcmp(json_string_value(json_object_get(pack, "folder")), entry->folder) == 0) return pack;
    }
    pack = json_pack("{s:s, s:s, s:[]}", "pack", entry->pack, "folder", entry->folder, "kernels");
    json_array_append_new(all->packs, pack);
    return pack;
}

// Why a kernel that is in order does not run on this machine; NULL: it does.
static const char *absent(const listing *all, const hone_pack_entry *entry)
{
    const char *why = NULL;
    return hone_runtime_platform(all->cli->rt, entry->platform, &why) ? NULL : why;
}

static bool take(void *ctx, const hone_pack_entry *entry)
{
    listing *all = ctx;
    const bool is_kernel = entry->kernel[0] != '\0';
    // A pack may have kernels for other machines.
    const bool refused = entry->status != HONE_OK && entry->status != HONE_UNAVAILABLE;
    const char *why = entry->status != HONE_OK ? entry->reason : absent(all, entry);
    all->refused += refused;
    all->unrun +=
        all->cli->options.run && why != NULL && !refused && is_kernel && cli_platform_is_interpreted(entry->platform);
    json_array_append_new(
        json_object_get(pack_of(all, entry), "kernels"),
        json_pack(
            "{s:s?, s:s, s:s?, s:s?, s:I, s:I, s:s?, s:b, s:b, s:s?}", "name", is_kernel ? entry->kernel : NULL,
            "algorithm", entry->algorithm, "platform", is_kernel ? hone_platform_name(entry->platform) : NULL,
            "backend", is_kernel ? hone_backend_name(entry->backend) : NULL, "variants", (json_int_t)entry->variants,
            "files", (json_int_t)entry->files, "revision", entry->revision, "refused", refused, "runs_here",
            why == NULL, "reason", why));
    return true;
}

static const char *text_of(const json_t *row, const char *field)
{
    const char *text = json_string_value(json_object_get(row, field));
    return text != NULL ? text : "";
}

static void print_text(const json_t *packs)
{
    size_t i, j;
    const json_t *pack, *row;
    json_array_foreach(packs, i, pack)
    {
        cli_say("%s%s  %s\n", i == 0 ? "" : "\n", text_of(pack, "pack"), text_of(pack, "folder"));
        cli_table *table = cli_table_new(9);
        cli_table_row(table, " ", "kernel", "algorithm", "platform", "backend", "variants", "files", "revision", "");
        json_array_foreach(json_object_get(pack, "kernels"), j, row)
        {
            char variants[24], files[24];
            snprintf(
                variants, sizeof variants, "%lld", (long long)json_integer_value(json_object_get(row, "variants")));
            snprintf(files, sizeof files, "%lld", (long long)json_integer_value(json_object_get(row, "files")));
            cli_table_row(
                table, " ", text_of(row, "name"), text_of(row, "algorithm"), text_of(row, "platform"),
                text_of(row, "backend"), variants, files, text_of(row, "revision"),
                json_is_true(json_object_get(row, "refused")) ? "REFUSED" : text_of(row, "reason"));
        }
        cli_table_print(table);
        json_array_foreach(json_object_get(pack, "kernels"), j, row)
        {
            if (json_is_true(json_object_get(row, "refused"))) cli_say("   %s\n", text_of(row, "reason"));
        }
    }
}

static void print(listing *all)
{
    if (all->cli->options.json) {
        cli_print_json(json_pack("{s:o, s:I}", "packs", all->packs, "refused", (json_int_t)all->refused));
        return;
    }
    if (json_array_size(all->packs) == 0 && all->cli->count == 1)
        cli_say("no packs: name folders in HONE_PACK_PATH, or here\n");
    print_text(all->packs);
    json_decref(all->packs);
}

// A folder that gave no pack: in words on standard error, in JSON also as a row without a kernel. Returns the exit
// status.
static int note_failure(listing *all, const char *folder, const hone_error *why)
{
    const char *slash = strrchr(folder, '/');
    const hone_pack_entry entry = {
        .struct_size = sizeof entry,
        .pack = slash != NULL && slash[1] != '\0' ? slash + 1 : folder,
        .folder = folder,
        .algorithm = "",
        .kernel = "",
        .status = why->status,
        .reason = why->message,
    };
    if (all->cli->options.json) take(all, &entry);
    const int code = cli_fail(why);
    return why->status == HONE_CORRUPT || why->status == HONE_INCOMPATIBLE ? EXIT_NO : code;
}

// A folder that is not a pack is an answer, too: no.
static int show(listing *all, bool lists)
{
    hone_error err;
    hone_runtime *rt = all->cli->rt;
    int worst = EXIT_DONE;
    for (size_t i = 1; i < all->cli->count; i++) {
        const char *folder = all->cli->arguments[i];
        hone_status status = lists ? hone_pack_load(rt, folder, &err)
                                   : hone_pack_check(rt, folder, all->cli->options.run, take, all, &err);
        if (status != HONE_OK) worst = note_failure(all, folder, &err);
    }
    if (lists) (void)!hone_pack_list(rt, take, all, &err);
    print(all);
    if (all->unrun > 0) {
        cli_warn(
            "nothing was run of %zu functions of Python: this command runs none. A program of Python with "
            "HONE_PACK_PATH verifies each before it first runs, and hone.tune measures it",
            all->unrun);
        if (worst == EXIT_DONE) worst = EXIT_WORLD;
    }
    return all->refused > 0 && (worst == EXIT_DONE || all->unrun > 0) ? EXIT_NO : worst;
}

static int list(hone_cli *cli, hone_store *store)
{
    (void)store;
    listing all = {.cli = cli, .packs = json_array()};
    return show(&all, true);
}

static int check(hone_cli *cli, hone_store *store)
{
    (void)store;
    listing all = {.cli = cli, .packs = json_array()};
    return show(&all, false);
}

const cli_verb cli_pack_verbs[] = {
    {"list", "[DIR...]", "lists the kernels of the packs of HONE_PACK_PATH and DIR, and why one does not run here",
     NULL, list, 1, 0, false},
    {"check", "DIR...",
     "checks packs and their files, and executes nothing of them without --run; exits with 1 when something is refused",
     "run", check, 2, 0, false},
    {"new", "--from LIBRARY.so|FOLDER",
     "starts a pack with the exports of a library for tvm-ffi, or of the variant of Hugging Face's kernels that fits",
     "from output kernels-lock", cli_pack_new, 1, 1, true},
    {0},
};

int cli_pack(hone_cli *cli)
{
    const cli_verb *verb = cli_find_verb(cli, "pack", cli_pack_verbs);
    if (verb == NULL) return EXIT_USAGE;
    if (cli->count < verb->least) return cli_usage("pack %s needs a folder (hone help pack)", verb->name);
    int status = cli_open(cli, HONE_POLICY_TUNE);
    return status != 0 ? status : verb->run(cli, NULL);
}
