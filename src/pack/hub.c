// Which variant of a folder fits, and whether its files are what its metadata says.
#include "pack/hub.h"

#include "base/error.h"
#include "base/hash.h"
#include "os/os.h"
#include "os/plain_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METADATA_LIMIT = 4 << 20, PATH_SIZE = 2 * HONE_HUB_PATH };

static const char where[] = "pack.hub";
// As names of variants have it: libraries of this process are for the machine that hone was compiled for.
#if defined(__x86_64__)
static const char machine_here[] = "x86_64";
#elif defined(__aarch64__)
static const char machine_here[] = "aarch64";
#else
static const char machine_here[] = "another";
#endif

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static hone_status read_metadata(const hone_hub *hub, const char *variant, json_t **out, hone_error *err)
{
    char path[PATH_SIZE];
    hone_buffer text;
    json_error_t why = {.text = ""};
    snprintf(path, sizeof path, "%s/%s/metadata.json", hub->build, variant);
    hone_buffer_init(&text, hone_allocator_system());
    hone_status status = hone_os_read_plain_file(path, METADATA_LIMIT, &text, err);
    *out = status == HONE_OK ? json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &why) : NULL;
    hone_buffer_deinit(&text);
    if (status != HONE_OK || json_is_object(*out)) return status;
    if (*out == NULL) return hone_fail(err, HONE_CORRUPT, where, "%.300s is not JSON: %s", path, why.text);
    json_decref(*out);
    *out = NULL;
    return hone_fail(err, HONE_CORRUPT, where, "%.300s is not an object of JSON", path);
}

// Variants ----------------------------------------------------------------------------------------------------------

// A driver runs what was built for its own CUDA and for earlier ones.
static void judge_cuda(hone_hub_variant *v, const char *backend, const hone_pack_gpu *gpu)
{
    const int version = atoi(backend + 2), major = version / 10, minor = version % 10;
    v->cuda = major * 100 + minor;
    if (gpu->cuda == 0)
        snprintf(v->why_not, sizeof v->why_not, "is for CUDA %d.%d, and there is no NVIDIA GPU here", major, minor);
    else if (v->cuda > gpu->cuda)
        snprintf(
            v->why_not, sizeof v->why_not, "is for CUDA %d.%d, and the driver here is of CUDA %d.%d", major, minor,
            gpu->cuda / 100, gpu->cuda % 100);
}

static void judge_backend(hone_hub_variant *v, const char *name, hone_backend backend, const hone_pack_gpu *gpu)
{
    const bool is_cpu = strcmp(name, "cpu") == 0;
    v->cuda = is_cpu ? 0 : -1;
    if (!is_cpu && (!begins(name, "cu") || strlen(name) < 4))
        snprintf(v->why_not, sizeof v->why_not, "is for %.32s, which hone has no platform for", name);
    else if (backend != HONE_ANY && is_cpu != (backend == HONE_CPU))
        snprintf(v->why_not, sizeof v->why_not, "is for the %s", is_cpu ? "CPU" : "GPU");
    else if (!is_cpu)
        judge_cuda(v, name, gpu);
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

// By the capabilities that its metadata names. Metadata that cannot be read is reported where the variant is loaded.
static void judge_archs(const hone_hub *hub, hone_hub_variant *v, const hone_pack_gpu *gpu)
{
    json_t *metadata = NULL;
    hone_error unused;
    size_t i, used = 0;
    const json_t *arch;
    char named[80] = "";
    (void)!read_metadata(hub, v->name, &metadata, &unused);
    const json_t *archs = json_object_get(json_object_get(metadata, "backend"), "archs");
    bool runs = json_array_size(archs) == 0;
    json_array_foreach(archs, i, arch)
    {
        const char *name = json_is_string(arch) ? json_string_value(arch) : "";
        runs = runs || runs_arch(name, gpu->capability);
        if (used + 20 < sizeof named)
            used += (size_t)snprintf(named + used, sizeof named - used, "%s%.16s", i > 0 ? ", " : "", name);
    }
    if (!runs)
        snprintf(
            v->why_not, sizeof v->why_not, "has code for compute capability %s, and the GPU here is of %d.%d", named,
            gpu->capability / 10, gpu->capability % 10);
    json_decref(metadata);
}

// "tvm-ffi01-cu128-x86_64-linux".
static void judge(const hone_hub *hub, hone_hub_variant *v, hone_backend backend, const hone_pack_gpu *gpu)
{
    char name[32] = "", machine[32] = "", os[32] = "";
    int major = 0, minor = 0;
    v->why_not[0] = '\0';
    v->cuda = -1;
    if (begins(v->name, "torch"))
        snprintf(v->why_not, sizeof v->why_not, "is a variant of torch, for platform python");
    else if (sscanf(v->name, "tvm-ffi%1d%d-%31[^-]-%31[^-]-%31[^-]", &major, &minor, name, machine, os) != 5)
        snprintf(v->why_not, sizeof v->why_not, "is no name of a variant: tvm-ffi01-cpu-x86_64-linux");
    else if (major != 0 || minor != 1)
        snprintf(v->why_not, sizeof v->why_not, "is for tvm-ffi %d.%d: hone knows version 0.1", major, minor);
    else if (strcmp(os, "linux") != 0)
        snprintf(v->why_not, sizeof v->why_not, "is for %.31s", os);
    else if (strcmp(machine, machine_here) != 0)
        snprintf(v->why_not, sizeof v->why_not, "is for %.31s, and this machine is %.31s", machine, machine_here);
    else
        judge_backend(v, name, backend, gpu);
    if (v->why_not[0] == '\0' && v->cuda > 0) judge_archs(hub, v, gpu);
}

static bool take_variant(void *ctx, const char *name)
{
    hone_hub *hub = ctx;
    if (!begins(name, "tvm-ffi") && !begins(name, "torch")) return true;
    if (hub->count == HONE_HUB_VARIANTS || strlen(name) >= HONE_HUB_NAME) return false;
    snprintf(hub->variants[hub->count++].name, HONE_HUB_NAME, "%s", name);
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hone_hub_variant *)a)->name, ((const hone_hub_variant *)b)->name);
}

void hone_hub_look(const char *folder, hone_backend backend, const hone_pack_gpu *gpu, hone_hub *out)
{
    out->count = 0;
    out->chosen = NULL;
    snprintf(out->build, sizeof out->build, "%.4000s/build", folder);
    if (!hone_os_is_folder(out->build)) snprintf(out->build, sizeof out->build, "%.4000s", folder);
    (void)hone_os_list_folder(out->build, take_variant, out, NULL);
    qsort(out->variants, out->count, sizeof *out->variants, by_name);
    for (size_t i = 0; i < out->count; i++) {
        hone_hub_variant *v = &out->variants[i];
        judge(out, v, backend, gpu);
        if (v->why_not[0] == '\0' && (out->chosen == NULL || v->cuda > out->chosen->cuda)) out->chosen = v;
    }
}

// Digests -------------------------------------------------------------------------------------------------------------

typedef struct walk {
    const char *folder; // of the variant
    char below[HONE_HUB_PATH];
    const char *algorithm;
    const json_t *files; // NULL: there are no digests
    size_t libraries;
    hone_hub_files *out;
    hone_status status;
    hone_error *err;
} walk;

static hone_status compare(walk *w, const char *name, const hone_buffer *bytes)
{
    char digest[HONE_HASH_BASE64_SIZE];
    const char *expected = json_string_value(json_object_get(w->files, name));
    if (w->files == NULL) return HONE_OK;
    if (expected == NULL)
        return hone_fail(
            w->err, HONE_CORRUPT, where, "%.300s/%.100s is a file that metadata.json does not list", w->folder, name);
    (void)hone_hash_base64(w->algorithm, bytes->data, bytes->size, digest);
    w->out->checked++;
    if (strcmp(digest, expected) == 0) return HONE_OK;
    return hone_fail(
        w->err, HONE_CORRUPT, where, "%.300s/%.100s does not have the digest of metadata.json", w->folder, name);
}

static hone_status take_file(walk *w, const char *path, const char *name)
{
    const size_t size = strlen(name);
    const bool is_library = size > 3 && strcmp(name + size - 3, ".so") == 0;
    hone_buffer bytes;
    if (w->files == NULL && !is_library) return HONE_OK;
    hone_buffer_init(&bytes, hone_allocator_system());
    hone_status status = hone_os_read_plain_file(path, HONE_PACK_FILE_LIMIT, &bytes, w->err);
    if (status == HONE_OK) status = compare(w, name, &bytes);
    if (status == HONE_OK && is_library && w->libraries++ == 0) {
        snprintf(w->out->library, sizeof w->out->library, "%s", path);
        hone_hash_sha256(hone_buffer_string(&bytes), bytes.size, w->out->sha256);
    }
    hone_buffer_deinit(&bytes);
    return status;
}

// "a/b"; b where a is empty. False: it is too long.
static bool join(char out[HONE_HUB_PATH], const char *a, const char *b)
{
    const size_t before = strlen(a), size = strlen(b), slash = before > 0;
    if (before + slash + size >= HONE_HUB_PATH) return false;
    memcpy(out, a, before);
    if (slash == 1) out[before] = '/';
    memcpy(out + before + slash, b, size + 1);
    return true;
}

// What has no digest: the metadata and its signature, and what an interpreter of Python leaves.
static bool is_left_out(const char *below)
{
    const size_t size = strlen(below);
    return strcmp(below, "metadata.json") == 0 || strcmp(below, "metadata.json.sigstore") == 0 ||
           (size > 4 && strcmp(below + size - 4, ".pyc") == 0);
}

static bool visit(void *ctx, const char *name)
{
    walk *w = ctx;
    char below[HONE_HUB_PATH], path[HONE_HUB_PATH];
    const size_t depth = strlen(w->below);
    if (strcmp(name, "__pycache__") == 0) return true;
    if (!join(below, w->below, name) || !join(path, w->folder, below)) {
        w->status = hone_fail(w->err, HONE_UNSUPPORTED, where, "%.300s: a path in it is too long", w->folder);
        return false;
    }
    if (hone_os_is_folder(path)) {
        memcpy(w->below, below, strlen(below) + 1);
        (void)hone_os_list_folder(path, visit, w, NULL);
        w->below[depth] = '\0';
    } else if (!is_left_out(below)) {
        w->status = take_file(w, path, below);
    }
    return w->status == HONE_OK;
}

static hone_status check_algorithm(const walk *w, const json_t *digest)
{
    char unused[HONE_HASH_BASE64_SIZE];
    if (digest == NULL || json_is_null(digest)) return HONE_OK;
    if (w->files != NULL && w->algorithm != NULL && hone_hash_base64(w->algorithm, "", 0, unused)) return HONE_OK;
    return hone_fail(
        w->err, HONE_UNSUPPORTED, where, "%.300s: the digests of metadata.json are by %.40s, expected sha256 or sha512",
        w->folder, w->algorithm != NULL ? w->algorithm : "nothing");
}

static hone_status check_files(walk *w, const json_t *metadata)
{
    const json_t *digest = json_object_get(metadata, "digest"), *files = json_object_get(digest, "files");
    w->files = json_is_object(files) ? files : NULL;
    w->algorithm = json_string_value(json_object_get(digest, "algorithm"));
    hone_status status = check_algorithm(w, digest);
    if (status != HONE_OK) return status;
    w->out->has_digests = w->files != NULL;
    status = hone_os_list_folder(w->folder, visit, w, w->err);
    if (status != HONE_OK || w->status != HONE_OK) return status != HONE_OK ? status : w->status;
    if (w->files != NULL && w->out->checked != json_object_size(w->files))
        return hone_fail(w->err, HONE_CORRUPT, where, "%.300s lacks files that metadata.json lists", w->folder);
    if (w->libraries == 1) return HONE_OK;
    return hone_fail(
        w->err, HONE_UNSUPPORTED, where, "%.300s has %s, expected one", w->folder,
        w->libraries == 0 ? "no library" : "several libraries");
}

hone_status hone_hub_check(const hone_hub *hub, hone_hub_files *out, hone_error *err)
{
    char folder[PATH_SIZE];
    json_t *metadata = NULL;
    hone_error local;
    snprintf(folder, sizeof folder, "%s/%s", hub->build, hub->chosen->name);
    *out = (hone_hub_files){.checked = 0};
    hone_status status = read_metadata(hub, hub->chosen->name, &metadata, err);
    if (status != HONE_OK) return status;
    const char *id = json_string_value(json_object_get(metadata, "id"));
    snprintf(out->id, sizeof out->id, "%s", id != NULL ? id : "");
    walk w = {.folder = folder, .out = out, .err = err != NULL ? err : &local};
    status = check_files(&w, metadata);
    json_decref(metadata);
    return status;
}
