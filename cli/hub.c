#include "hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_LIMIT = 4 << 20 };

static int refuse(const char *format, const char *a, const char *b)
{
    cli_warn(format, a, b);
    return EXIT_NO;
}

// The build that is chosen, and what its files are compared with its metadata.
typedef struct chosen {
    cli_hub_choice *out;
    bool is_any;
    hone_status status;
    char reason[1000];
    size_t digests;
} chosen;

static bool take_build(void *ctx, const hone_pack_build *build)
{
    chosen *c = ctx;
    printf(
        "   %s %s\n", build->name,
        build->is_chosen         ? "fits, and is taken"
        : build->why_not != NULL ? build->why_not
                                 : "fits, and another is for a later CUDA or for the GPU");
    if (!build->is_chosen) return true;
    c->is_any = true;
    c->status = build->status;
    c->digests = build->digests;
    if (build->reason != NULL) snprintf(c->reason, sizeof c->reason, "%s", build->reason);
    snprintf(c->out->variant, sizeof c->out->variant, "%s", build->name);
    snprintf(c->out->library, sizeof c->out->library, "%s", build->library);
    snprintf(c->out->id, sizeof c->out->id, "%s", build->id);
    return true;
}

static int check_files(const chosen *c)
{
    if (c->status != HONE_OK) return refuse("%s%s", c->reason, "");
    if (c->digests > 0)
        printf("   %zu files are as metadata.json says\n", c->digests);
    else
        printf("   metadata.json has no digests: nothing tells whether these are the files that were published\n");
    return EXIT_DONE;
}

static int read_json(const char *path, json_t **out)
{
    cli_text text;
    hone_error err;
    json_error_t why;
    const hone_status status = cli_read_file(path, LOCK_LIMIT, &text, &err);
    *out = status == HONE_OK ? json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &why) : NULL;
    cli_text_deinit(&text);
    if (status != HONE_OK) return cli_fail(&err);
    return *out != NULL ? EXIT_DONE : refuse("%s is not JSON: %s", path, why.text);
}

// The lock ----------------------------------------------------------------------------------------------------------

// A folder of Hugging Face's cache: .../KIND--ORGANISATION--NAME/snapshots/COMMIT.
static bool find_revision(const char *folder, char repo[CLI_HUB_NAME], char commit[CLI_HUB_NAME])
{
    char path[CLI_HUB_PATH];
    if (!cli_real_path(folder, path, sizeof path)) return false;
    char *at = strstr(path, "/snapshots/");
    if (at == NULL || sscanf(at, "/snapshots/%255[0-9a-f]", commit) != 1) return false;
    *at = '\0';
    char *name = strrchr(path, '/'), *organisation = name != NULL ? strstr(name, "--") : NULL;
    char *end = organisation != NULL ? strstr(organisation + 2, "--") : NULL;
    if (end == NULL) return false;
    *end = '\0';
    snprintf(repo, CLI_HUB_NAME, "%.120s/%.120s", organisation + 2, end + 2);
    return true;
}

// What one row of a kernels.lock locks, by the names of kernels 0.17, and by those of other releases. NULL: another
// repository.
static const char *commit_of(const json_t *row, const char *repo)
{
    const json_t *dependency = json_object_get(row, "dependency"), *lock = json_object_get(row, "lock");
    const char *id = json_string_value(
        json_object_get(dependency != NULL ? dependency : row, dependency != NULL ? "repo-id" : "repo_id"));
    const char *commit = json_string_value(json_object_get(lock != NULL ? lock : row, lock != NULL ? "commit" : "sha"));
    return id != NULL && strcmp(id, repo) == 0 ? commit : NULL;
}

static int check_lock(const char *folder, const char *lock, cli_hub_choice *choice)
{
    char repo[CLI_HUB_NAME] = "";
    const bool is_known = find_revision(folder, repo, choice->commit);
    json_t *rows = NULL;
    if (lock == NULL) return EXIT_DONE;
    if (!is_known)
        return refuse(
            "%s is not a snapshot of Hugging Face's cache (.../snapshots/COMMIT), so that nobody can tell whether it "
            "is "
            "what %s locks",
            folder, lock);
    int status = read_json(lock, &rows);
    const json_t *row;
    const char *locked = NULL; // several versions of one may be locked
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const char *commit = commit_of(row, repo);
        if (commit != NULL && (locked == NULL || strcmp(commit, choice->commit) == 0)) locked = commit;
    }
    if (status == EXIT_DONE && locked == NULL)
        status = refuse("%s does not lock %s", lock, repo);
    else if (status == EXIT_DONE && locked[strspn(locked, "0123456789abcdef")] != '\0')
        status = refuse("%s locks %s at a commit that is not hexadecimal", lock, repo);
    else if (status == EXIT_DONE && strcmp(locked, choice->commit) != 0)
        status = refuse("%s locks commit %s, and the folder is another", lock, locked);
    else if (status == EXIT_DONE)
        printf("   %s locks this commit of %s\n", lock, repo);
    json_decref(rows);
    return status;
}

// Choosing ----------------------------------------------------------------------------------------------------------

int cli_hub_choose(const char *folder, const char *lock, cli_hub_choice *out)
{
    hone_error err;
    chosen c = {.out = out};
    char build[CLI_HUB_PATH];
    *out = (cli_hub_choice){.library = ""};
    snprintf(build, sizeof build, "%s/build", folder);
    printf("%s\n", cli_is_folder(build) ? build : folder);
    if (hone_pack_builds(folder, take_build, &c, &err) != HONE_OK) return cli_fail(&err);
    if (!c.is_any)
        return refuse(
            "%s: no variant fits this machine%s", folder, "; variants lie in build/, tvm-ffi01-cpu-x86_64-linux");
    const int status = check_lock(folder, lock, out);
    return status == EXIT_DONE ? check_files(&c) : status;
}
