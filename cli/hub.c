#include "hub.h"

#include "base/error.h"
#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { VARIANTS = 256, FILES = 4096, FILE_LIMIT = 256 << 20, METADATA_LIMIT = 4 << 20 };

typedef struct variant {
    char name[CLI_HUB_NAME];
    int backend_version; // of CUDA, 1208 for 12.8; 0: of the CPU; -1: another
    char why_not[160];   // "": it fits
} variant;

typedef struct variants {
    variant items[VARIANTS];
    size_t count;
    bool failed;
} variants;

static int refuse(const char *format, const char *a, const char *b)
{
    fprintf(stderr, "hone: ");
    fprintf(stderr, format, a, b);
    fprintf(stderr, "\n");
    return EXIT_NO;
}

// Variants ----------------------------------------------------------------------------------------------------------

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

// The first GPU of NVIDIA's.
typedef struct gpu {
    int cuda;       // the newest that its driver runs, 1300; 0: there is no GPU; UNKNOWN_CUDA
    int capability; // 90 for 9.0
} gpu;

enum { UNKNOWN_CUDA = 9999 };

static gpu find_gpu(hone_cli *cli)
{
    size_t count;
    const hone_device_info *const *devices = hone_runtime_devices(cli->rt, &count);
    for (size_t i = 0; i < count; i++) {
        int major = 0, minor = 0;
        if (devices[i]->device.type != HONE_DEVICE_CUDA) continue;
        const char *at = devices[i]->driver != NULL ? strstr(devices[i]->driver, "CUDA ") : NULL;
        const bool is_known = at != NULL && sscanf(at, "CUDA %d.%d", &major, &minor) >= 1;
        return (gpu){is_known ? major * 100 + minor : UNKNOWN_CUDA, devices[i]->capability};
    }
    return (gpu){0, 0};
}

// A driver runs what was built for its own CUDA and for earlier ones.
static void judge_backend(variant *v, const char *backend, const gpu *here)
{
    v->backend_version = strcmp(backend, "cpu") == 0 ? 0 : -1;
    if (v->backend_version == 0) return;
    if (!begins(backend, "cu") || strlen(backend) < 4) {
        snprintf(v->why_not, sizeof v->why_not, "is for %.32s, which hone has no platform for", backend);
        return;
    }
    const int version = atoi(backend + 2), major = version / 10, minor = version % 10;
    v->backend_version = major * 100 + minor;
    if (here->cuda == 0)
        snprintf(v->why_not, sizeof v->why_not, "is for CUDA %d.%d, and there is no NVIDIA GPU here", major, minor);
    else if (v->backend_version > here->cuda)
        snprintf(
            v->why_not, sizeof v->why_not, "is for CUDA %d.%d, and the driver here is of CUDA %d.%d", major, minor,
            here->cuda / 100, here->cuda % 100);
}

// "9.0", which later ones of 9 run, "9.0a", which no other runs, or "9.0+PTX", which all later ones compile.
static bool runs_arch(const char *arch, int capability)
{
    int major = 0, minor = 0, used = 0;
    if (sscanf(arch, "%d.%d%n", &major, &minor, &used) != 2) return true; // of a form that hone does not know
    const int wanted = 10 * major + minor;
    if (strstr(arch + used, "+PTX") != NULL) return wanted <= capability;
    return arch[used] == '\0' ? major == capability / 10 && wanted <= capability : wanted == capability;
}

// By the capabilities that its metadata names. Metadata that cannot be read is told where the variant is taken.
static void judge_archs(variant *v, const char *build, const gpu *here)
{
    char path[2 * CLI_HUB_PATH];
    hone_buffer text;
    hone_error err;
    size_t i, used = 0;
    const json_t *arch;
    char named[80] = "";
    snprintf(path, sizeof path, "%s/%s/metadata.json", build, v->name);
    hone_buffer_init(&text, hone_allocator_system());
    const bool is_read = hone_os_read_file(path, METADATA_LIMIT, &text, &err) == HONE_OK;
    json_t *metadata = is_read ? json_loadb(text.data, text.size, 0, NULL) : NULL;
    const json_t *archs = json_object_get(json_object_get(metadata, "backend"), "archs");
    bool runs = json_array_size(archs) == 0;
    json_array_foreach(archs, i, arch)
    {
        const char *name = json_is_string(arch) ? json_string_value(arch) : "";
        runs = runs || runs_arch(name, here->capability);
        if (used + 20 < sizeof named)
            used += (size_t)snprintf(named + used, sizeof named - used, "%s%.16s", i > 0 ? ", " : "", name);
    }
    if (!runs)
        snprintf(
            v->why_not, sizeof v->why_not, "has code for compute capability %s, and the GPU here is of %d.%d", named,
            here->capability / 10, here->capability % 10);
    json_decref(metadata);
    hone_buffer_deinit(&text);
}

// "tvm-ffi01-cu128-x86_64-linux".
static void judge(variant *v, const char *build, const gpu *gpu_here)
{
    char backend[32] = "", machine[32] = "", os[32] = "";
    int major = 0, minor = 0;
    struct utsname here;
    v->why_not[0] = '\0';
    v->backend_version = -1;
    if (begins(v->name, "torch"))
        snprintf(
            v->why_not, sizeof v->why_not,
            "is a variant of torch: a program of Python imports it, and hone.kernel takes its functions");
    else if (
        sscanf(v->name, "tvm-ffi%1d%d-%31[^-]-%31[^-]-%31[^-]", &major, &minor, backend, machine, os) != 5 ||
        uname(&here) != 0)
        snprintf(v->why_not, sizeof v->why_not, "is no name of a variant: tvm-ffi01-cpu-x86_64-linux");
    else if (major != 0 || minor != 1)
        snprintf(v->why_not, sizeof v->why_not, "is for tvm-ffi %d.%d: hone knows version 0.1", major, minor);
    else if (strcmp(os, "linux") != 0)
        snprintf(v->why_not, sizeof v->why_not, "is for %.31s", os);
    else if (strcmp(machine, here.machine) != 0)
        snprintf(v->why_not, sizeof v->why_not, "is for %.31s, and this machine is %.31s", machine, here.machine);
    else
        judge_backend(v, backend, gpu_here);
    if (v->why_not[0] == '\0' && v->backend_version > 0) judge_archs(v, build, gpu_here);
}

static bool take_variant(void *ctx, const char *name)
{
    variants *all = ctx;
    if (!begins(name, "tvm-ffi") && !begins(name, "torch")) return true;
    all->failed = all->count == VARIANTS || strlen(name) >= sizeof all->items->name;
    if (!all->failed) snprintf(all->items[all->count++].name, CLI_HUB_NAME, "%s", name);
    return !all->failed;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const variant *)a)->name, ((const variant *)b)->name);
}

// The fitting one of the highest CUDA, else that of the CPU. NULL: none fits.
static const variant *best_of(variants *all, const char *build, const gpu *here)
{
    const variant *best = NULL;
    qsort(all->items, all->count, sizeof *all->items, by_name);
    for (size_t i = 0; i < all->count; i++) {
        variant *v = &all->items[i];
        judge(v, build, here);
        if (v->why_not[0] == '\0' && (best == NULL || v->backend_version > best->backend_version)) best = v;
    }
    return best;
}

static void explain(const variants *all, const variant *best)
{
    for (size_t i = 0; i < all->count; i++) {
        const variant *v = &all->items[i];
        printf(
            "   %s %s\n", v->name,
            v == best               ? "fits, and is taken"
            : v->why_not[0] != '\0' ? v->why_not
                                    : "fits, and another is for a later CUDA or for the GPU");
    }
}

// Digests -------------------------------------------------------------------------------------------------------------

// 64 hex digits of 44 characters in base64. False: they are none.
static bool hex_of(const char *base64, char out[HONE_SHA256_HEX_SIZE])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    size_t have = 0, written = 0;
    if (strlen(base64) != 44 || base64[43] != '=') return false;
    for (size_t i = 0; i < 43; i++) {
        const char *at = strchr(digits, base64[i]);
        if (at == NULL) return false;
        bits = bits << 6 | (uint32_t)(at - digits);
        for (have += 6; have >= 8 && written < 32; have -= 8, written++)
            snprintf(out + 2 * written, 3, "%02x", bits >> (have - 8) & 0xff);
        if (have >= 8) return false;
    }
    return written == 32;
}

typedef struct walk {
    const char *folder; // of the variant
    char below[CLI_HUB_PATH];
    const json_t *files; // NULL: there are no digests
    size_t seen;
    cli_hub_choice *choice;
    size_t libraries;
    int status;
} walk;

static int check_file(walk *w, const char *path, const char *name)
{
    char digest[HONE_SHA256_HEX_SIZE], wanted[HONE_SHA256_HEX_SIZE];
    const char *expected = json_string_value(json_object_get(w->files, name));
    if (w->files == NULL) return EXIT_DONE;
    if (expected == NULL) return refuse("%s/%s is a file that metadata.json does not list", w->folder, name);
    hone_buffer bytes;
    hone_error err;
    hone_buffer_init(&bytes, hone_allocator_system());
    if (hone_os_read_file(path, FILE_LIMIT, &bytes, &err) != HONE_OK) {
        hone_buffer_deinit(&bytes);
        return cli_fail(&err);
    }
    hone_hash_sha256(bytes.data, bytes.size, digest);
    hone_buffer_deinit(&bytes);
    w->seen++;
    if (!hex_of(expected, wanted)) return refuse("%s: the digest of %s in metadata.json is none", w->folder, name);
    return strcmp(digest, wanted) == 0
               ? EXIT_DONE
               : refuse("%s/%s is not the file whose digest metadata.json has", w->folder, name);
}

// "a/b"; b where a is empty. False: it is too long.
static bool join(char out[CLI_HUB_PATH], const char *a, const char *b)
{
    const size_t before = strlen(a), size = strlen(b), slash = before > 0;
    if (before + slash + size >= CLI_HUB_PATH) return false;
    memcpy(out, a, before);
    if (slash == 1) out[before] = '/';
    memcpy(out + before + slash, b, size + 1);
    return true;
}

// What has no digest: the metadata and its signature, and what an interpreter of Python leaves.
static bool is_left_out(const char *below, const char *name)
{
    const size_t size = strlen(name);
    return strcmp(below, "metadata.json") == 0 || strcmp(below, "metadata.json.sigstore") == 0 ||
           (size > 4 && strcmp(name + size - 4, ".pyc") == 0);
}

static bool visit(void *ctx, const char *name)
{
    walk *w = ctx;
    char below[CLI_HUB_PATH], path[CLI_HUB_PATH];
    const size_t size = strlen(name), depth = strlen(w->below);
    if (strcmp(name, "__pycache__") == 0) return true;
    if (!join(below, w->below, name) || !join(path, w->folder, below)) {
        w->status = refuse("%s: the path of %s is too long", w->folder, name);
        return false;
    }
    if (hone_os_is_folder(path)) {
        memcpy(w->below, below, strlen(below) + 1);
        (void)hone_os_list_folder(path, visit, w, NULL);
        w->below[depth] = '\0';
        return w->status == EXIT_DONE;
    }
    if (is_left_out(below, name)) return true;
    if (size > 3 && strcmp(name + size - 3, ".so") == 0 && w->libraries++ == 0)
        snprintf(w->choice->library, sizeof w->choice->library, "%.4000s", path);
    w->status = check_file(w, path, below);
    return w->status == EXIT_DONE;
}

static int check_files(const char *folder, const json_t *metadata, cli_hub_choice *choice)
{
    const json_t *digest = json_object_get(metadata, "digest"), *files = json_object_get(digest, "files");
    const char *algorithm = json_string_value(json_object_get(digest, "algorithm"));
    walk w = {.folder = folder, .files = files, .choice = choice};
    hone_error err;
    if (digest != NULL && !json_is_null(digest) &&
        (!json_is_object(files) || algorithm == NULL || strcmp(algorithm, "sha256") != 0))
        return refuse(
            "%s: the digests of metadata.json are by %s, expected sha256", folder,
            algorithm != NULL ? algorithm : "nothing");
    if (hone_os_list_folder(folder, visit, &w, &err) != HONE_OK) return cli_fail(&err);
    if (w.status != EXIT_DONE) return w.status;
    if (files != NULL && w.seen != json_object_size(files))
        return refuse("%s lacks files that metadata.json lists%s", folder, "");
    if (w.libraries != 1)
        return refuse("%s has %s, expected one", folder, w.libraries == 0 ? "no library" : "several libraries");
    if (files != NULL)
        printf("   %zu files are as metadata.json says\n", w.seen);
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
    const hone_status status = hone_os_read_file(path, METADATA_LIMIT, &text, &err);
    *out = status == HONE_OK ? json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &why) : NULL;
    hone_buffer_deinit(&text);
    if (status != HONE_OK) return cli_fail(&err);
    return *out != NULL ? EXIT_DONE : refuse("%s is no JSON: %s", path, why.text);
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
            "%s is no snapshot of Hugging Face's cache (.../snapshots/COMMIT), so that nobody can tell whether it is "
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
    else if (status == EXIT_DONE && strcmp(locked, choice->commit) != 0)
        status = refuse("%s locks commit %s, and the folder is another", lock, locked);
    else if (status == EXIT_DONE)
        printf("   %s locks this commit of %s\n", lock, repo);
    json_decref(rows);
    return status;
}

// Choosing ----------------------------------------------------------------------------------------------------------

int cli_hub_choose(hone_cli *cli, const char *folder, const char *lock, cli_hub_choice *out)
{
    char build[CLI_HUB_PATH], chosen[2 * CLI_HUB_PATH], path[2 * CLI_HUB_PATH + 32];
    json_t *metadata = NULL;
    *out = (cli_hub_choice){.library = ""};
    variants *all = calloc(1, sizeof *all);
    if (all == NULL) cli_no_memory();
    snprintf(build, sizeof build, "%.4000s/build", folder);
    if (!hone_os_is_folder(build)) snprintf(build, sizeof build, "%.4000s", folder);
    (void)hone_os_list_folder(build, take_variant, all, NULL);
    const gpu here = find_gpu(cli);
    const variant *best = best_of(all, build, &here);
    printf("%s\n", build);
    explain(all, best);
    if (best != NULL) snprintf(out->variant, sizeof out->variant, "%s", best->name);
    free(all);
    if (out->variant[0] == '\0')
        return refuse(
            "%s: no variant fits this machine%s", folder, "; variants lie in build/, tvm-ffi01-cpu-x86_64-linux");
    snprintf(chosen, sizeof chosen, "%s/%s", build, out->variant);
    snprintf(path, sizeof path, "%s/metadata.json", chosen);
    int status = read_json(path, &metadata);
    const char *id = json_string_value(json_object_get(metadata, "id"));
    snprintf(out->id, sizeof out->id, "%s", id != NULL ? id : "");
    if (status == EXIT_DONE) status = check_lock(folder, lock, out);
    if (status == EXIT_DONE) status = check_files(chosen, metadata, out);
    json_decref(metadata);
    return status;
}
