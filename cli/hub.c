#include "hub.h"

#include "os/os.h"
#include "platforms/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_LIMIT = 4 << 20 };

static int refuse(const char *format, const char *a, const char *b)
{
    fprintf(stderr, "hone: ");
    fprintf(stderr, format, a, b);
    fprintf(stderr, "\n");
    return EXIT_NO;
}

static void explain(const hone_hub *hub)
{
    for (size_t i = 0; i < hub->count; i++) {
        const hone_hub_variant *v = &hub->variants[i];
        printf(
            "   %s %s\n", v->name,
            v == hub->chosen        ? "fits, and is taken"
            : v->why_not[0] != '\0' ? v->why_not
                                    : "fits, and another is for a later CUDA or for the GPU");
    }
}

static int check_files(const hone_hub *hub, cli_hub_choice *out)
{
    hone_error err;
    hone_hub_files files;
    if (hone_hub_check(hub, &files, &err) != HONE_OK) return refuse("%s%s", err.message, "");
    memcpy(out->library, files.library, sizeof out->library);
    memcpy(out->id, files.id, sizeof out->id);
    if (files.has_digests)
        printf("   %zu files are as metadata.json says\n", files.checked);
    else
        printf("   metadata.json has no digests: nothing tells whether these are the files that were published\n");
    return EXIT_DONE;
}

static int read_json(const char *path, json_t **out)
{
    hone_buffer text;
    hone_error err;
    json_error_t why;
    hone_buffer_init(&text, hone_allocator_system());
    const hone_status status = hone_os_read_file(path, LOCK_LIMIT, &text, &err);
    *out = status == HONE_OK ? json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &why) : NULL;
    hone_buffer_deinit(&text);
    if (status != HONE_OK) return cli_fail(&err);
    return *out != NULL ? EXIT_DONE : refuse("%s is not JSON: %s", path, why.text);
}

// The lock ----------------------------------------------------------------------------------------------------------

// A folder of Hugging Face's cache: .../KIND--ORGANISATION--NAME/snapshots/COMMIT.
static bool find_revision(const char *folder, char repo[CLI_HUB_NAME], char commit[CLI_HUB_NAME])
{
    char path[CLI_HUB_PATH];
    if (!hone_os_real_path(folder, path, sizeof path)) return false;
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

static int choose(const char *folder, const char *lock, hone_hub *hub, cli_hub_choice *out)
{
    const hone_pack_gpu gpu = hone_platform_packs.gpu();
    hone_hub_look(folder, HONE_ANY, &gpu, hub);
    printf("%s\n", hub->build);
    explain(hub);
    if (hub->chosen == NULL)
        return refuse(
            "%s: no variant fits this machine%s", folder, "; variants lie in build/, tvm-ffi01-cpu-x86_64-linux");
    snprintf(out->variant, sizeof out->variant, "%s", hub->chosen->name);
    const int status = check_lock(folder, lock, out);
    return status == EXIT_DONE ? check_files(hub, out) : status;
}

int cli_hub_choose(const char *folder, const char *lock, cli_hub_choice *out)
{
    *out = (cli_hub_choice){.library = ""};
    hone_hub *hub = calloc(1, sizeof *hub);
    if (hub == NULL) cli_no_memory();
    const int status = choose(folder, lock, hub, out);
    free(hub);
    return status;
}
