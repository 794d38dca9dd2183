// The two sides of `hone ab`: what the command line says of each, as variables of the program's environment, and a copy of
// its store. The program runs on the copy: what it tunes and counts there changes nothing of the user's, and what it
// tuned in its first run is there for the others.
#include "ab.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { COMMAND_SECONDS = 120 };

static void set(ab_side *side, const char *name, const char *value)
{
    const size_t size = strlen(name) + strlen(value) + 2;
    char *text = malloc(size);
    if (text == NULL) cli_no_memory();
    snprintf(text, size, "%s=%s", name, value);
    side->variables[side->count++] = text;
}

void ab_free_sides(ab_side sides[2])
{
    for (int i = 0; i < 2; i++)
        while (sides[i].count > 0)
            free(sides[i].variables[--sides[i].count]);
}

void ab_enter(const ab_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        (void)!putenv(side->variables[i]);
    setenv("HONE_STORE", side->store, 1);
}

// The value of a variable that --a-env or --b-env gives; NULL: it does not.
static const char *given(const ab_side *side, const char *name)
{
    const char *found = NULL;
    const size_t size = strlen(name);
    for (size_t i = 0; i < side->env->count; i++)
        if (strncmp(side->env->items[i], name, size) == 0 && side->env->items[i][size] == '=')
            found = side->env->items[i] + size + 1;
    return found;
}

// What --a and --b name -----------------------------------------------------------------------------------------------

static int refuse(const ab_side *side, const char *why)
{
    return cli_usage(
        "--%s %s: %s; expected a lock file, a store's URL or file, a pack's folder, or FOLDER@COMMIT of a pack in git",
        side->name, side->what, why);
}

static bool has_pack(const char *folder)
{
    char path[AB_PATH_SIZE];
    return snprintf(path, sizeof path, "%s/pack.json", folder) < AB_PATH_SIZE && cli_is_file(path);
}

// Whether it ended well, in time and not interrupted. Prints how it ended where not.
static bool has_done(const ab_side *side, const char *program, const ab_run *run)
{
    if (run->pid == 0 && WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0) return true;
    char how[64];
    if (cli_is_cancelled())
        snprintf(how, sizeof how, "was interrupted");
    else if (run->pid != 0)
        snprintf(how, sizeof how, "did not end in %d s", COMMAND_SECONDS);
    else if (WIFEXITED(run->status))
        snprintf(how, sizeof how, "left with %d", WEXITSTATUS(run->status));
    else
        snprintf(how, sizeof how, "was ended by signal %d", WTERMSIG(run->status));
    cli_warn("--%s %s: %s %s", side->name, side->what, program, how);
    ab_print_tail(run);
    return false;
}

static int run_command(const ab_side *side, const char *const *arguments)
{
    static const ab_metric none = {.is_regex = false};
    static const ab_side neither = {.name = ""};
    ab_run run, *runs = &run;
    if (ab_start(&neither, &none, (char *const *)(uintptr_t)arguments, false, &run) != 0) return EXIT_WORLD;
    (void)ab_read(&runs, 1, SIZE_MAX, cli_now_ns() + COMMAND_SECONDS * UINT64_C(1000000000));
    const bool done = has_done(side, arguments[0], &run);
    ab_end(&run);
    return done ? 0 : EXIT_WORLD;
}

// A commit of the folder of a pack, unpacked into a folder of ours.
static int take_commit(ab_side *side, const char *at, const char *folder)
{
    char pack[AB_PATH_SIZE], out[AB_PATH_SIZE], archive[AB_PATH_SIZE];
    hone_error err;
    const int size = (int)(at - side->what);
    if (snprintf(pack, sizeof pack, "%.*s", size, side->what) >= AB_PATH_SIZE ||
        snprintf(out, sizeof out, "%s/%s-pack", folder, side->name) >= AB_PATH_SIZE ||
        snprintf(archive, sizeof archive, "%s/%s.tar", folder, side->name) >= AB_PATH_SIZE)
        return refuse(side, "the path is too long");
    if (at[1] == '-' || at[1] == '\0') return refuse(side, "expected a commit after the last @");
    if (cli_make_folders(out, &err) != HONE_OK) return cli_fail(&err);
    int status = run_command(
        side, (const char *[]){"git", "-C", pack, "archive", "--format=tar", "-o", archive, at + 1, ".", NULL});
    if (status == 0) status = run_command(side, (const char *[]){"tar", "-xf", archive, "-C", out, NULL});
    if (status != 0) return status;
    if (!has_pack(out)) return refuse(side, "there is no pack.json in this commit of it");
    set(side, "HONE_PACK_PATH", out);
    return 0;
}

static int take_folder(ab_side *side)
{
    char path[AB_PATH_SIZE];
    if (!cli_real_path(side->what, path, sizeof path)) return refuse(side, "the path is too long");
    if (!has_pack(path)) return refuse(side, "this folder has no pack.json");
    set(side, "HONE_PACK_PATH", path);
    return 0;
}

static int take_lock(ab_side *side)
{
    char path[AB_PATH_SIZE];
    hone_lock *lock = NULL;
    hone_error err;
    if (!cli_real_path(side->what, path, sizeof path)) return refuse(side, "the path is too long");
    if (hone_lock_read(hone_allocator_system(), path, 0, &lock, &err) != HONE_OK) return cli_fail_in(side->what, &err);
    hone_lock_release(&lock);
    set(side, "HONE_LOCK", path);
    return 0;
}

static bool is_sqlite(const char *path)
{
    char head[16] = "";
    FILE *file = fopen(path, "rb");
    const bool is = file != NULL && fread(head, 1, sizeof head, file) == sizeof head &&
                    memcmp(head, "SQLite format 3", sizeof head) == 0;
    if (file != NULL) fclose(file);
    return is;
}

static int take_store(ab_side *side, const char *scheme, const char *url)
{
    hone_store_place place;
    hone_error err;
    if (snprintf(side->source, sizeof side->source, "%s%s", scheme, url) >= AB_PATH_SIZE)
        return refuse(side, "the URL is too long");
    if (hone_store_get_place(side->source, &place, &err) != HONE_OK) return cli_fail(&err);
    if (!place.is_missing) return 0;
    cli_warn("--%s %s: there is no such store", side->name, side->what);
    return EXIT_WORLD;
}

static int take_what(ab_side *side, const char *folder)
{
    const char *what = side->what, *at = what == NULL ? NULL : strrchr(what, '@');
    if (what == NULL) return 0;
    if (cli_is_folder(what)) return take_folder(side);
    if (cli_is_file(what)) return is_sqlite(what) ? take_store(side, cli_file_scheme(), what) : take_lock(side);
    const size_t word = strspn(what, "abcdefghijklmnopqrstuvwxyz");
    if (word > 0 && what[word] == ':') return take_store(side, "", what);
    if (at != NULL) return take_commit(side, at, folder);
    return refuse(side, "there is no such file");
}

// Variables -----------------------------------------------------------------------------------------------------------

static int take_env(ab_side *side)
{
    for (size_t i = 0; i < side->env->count; i++) {
        const char *text = side->env->items[i];
        size_t size = 0;
        while (isalnum((unsigned char)text[size]) || text[size] == '_')
            size++;
        if (size == 0 || text[size] != '=' || isdigit((unsigned char)text[0]))
            return cli_usage("--%s-env '%s', expected NAME=VALUE", side->name, text);
        char name[256];
        if (size >= sizeof name) return cli_usage("--%s-env '%.60s...': the name is too long", side->name, text);
        snprintf(name, sizeof name, "%.*s", (int)size, text);
        set(side, name, text + size + 1);
    }
    return 0;
}

// Stores --------------------------------------------------------------------------------------------------------------

// The store that the program would have had, where --a and --b name none.
static int find_store(hone_cli *cli, ab_side *side)
{
    const char *env = given(side, "HONE_STORE");
    if (side->source[0] != '\0') return 0;
    if (env != NULL && snprintf(side->source, sizeof side->source, "%s", env) >= AB_PATH_SIZE)
        return cli_usage("--%s-env HONE_STORE: the URL is too long", side->name);
    int status = env == NULL ? cli_store_url(cli, side->source, sizeof side->source) : 0;
    if (status != 0) return status;
    hone_store_place place;
    hone_error err;
    if (strcmp(side->source, "none") == 0 || strcmp(side->source, cli_scratch_url()) == 0) side->source[0] = '\0';
    if (side->source[0] == '\0') return 0;
    if (hone_store_get_place(side->source, &place, &err) != HONE_OK) return cli_fail(&err);
    if (place.is_missing) side->source[0] = '\0';
    return 0;
}

static int copy_store(ab_side *side, const char *folder)
{
    hone_store *to = NULL, *from = NULL;
    hone_import_report counts;
    hone_error err;
    if (snprintf(side->store, sizeof side->store, "%s%s/%s.db", cli_file_scheme(), folder, side->name) >= AB_PATH_SIZE)
        return cli_usage("TMPDIR: the path is too long");
    hone_status status = hone_store_open(hone_allocator_system(), side->store, &to, &err);
    if (status == HONE_OK && side->source[0] != '\0') status = cli_open_reading(side->source, &from, &err);
    if (status == HONE_OK && from != NULL) status = hone_store_merge_from(to, from, NULL, &counts, &err);
    hone_store_close(&from);
    hone_store_close(&to);
    return status == HONE_OK ? 0 : cli_fail(&err);
}

int ab_read_sides(hone_cli *cli, const char *folder, ab_side sides[2])
{
    int status = 0;
    sides[0] = (ab_side){.name = "a", .what = cli->options.a, .env = &cli->options.a_env};
    sides[1] = (ab_side){.name = "b", .what = cli->options.b, .env = &cli->options.b_env};
    for (int i = 0; i < 2 && status == 0; i++) {
        status = take_env(&sides[i]);
        if (status == 0) status = take_what(&sides[i], folder);
        if (status == 0) status = find_store(cli, &sides[i]);
        if (status == 0) status = copy_store(&sides[i], folder);
    }
    return status;
}
