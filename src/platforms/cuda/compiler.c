#include "platforms/cuda/compiler.h"

#include "base/error.h"
#include "base/hash.h"
#include "os/functions.h"
#include "pack/includes.h"
#include "platforms/cuda/toolkit.h"
#include "platforms/shared/compiled.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OPTIONS = 128, MAX_ARCHS = 64, PATH_SIZE = 1024 };

static const char where[] = "cuda.compiler";

void hone_cuda_compiler_init(hone_cuda_compiler *compiler, hone_allocator allocator)
{
    memset(compiler, 0, sizeof *compiler);
    compiler->allocator = allocator;
    hone_mutex_init_long(&compiler->mutex);
}

void hone_cuda_compiler_deinit(hone_cuda_compiler *compiler)
{
    if (compiler->library != NULL) hone_library_close(&compiler->allocator, &compiler->library);
    hone_mutex_deinit(&compiler->mutex);
}

// Opening -------------------------------------------------------------------------------------------------------------

static bool take_include(void *ctx, const char *folder)
{
    hone_cuda_compiler *compiler = ctx;
    char header[PATH_SIZE];
    snprintf(header, sizeof header, "%s/include/cuda_fp16.h", folder);
    if (!hone_os_is_file(header)) return true;
    int size = snprintf(compiler->include, sizeof compiler->include, "%s/include", folder);
    if (size <= 0 || (size_t)size >= sizeof compiler->include) compiler->include[0] = '\0';
    return false;
}

static const hone_library_function functions[] = {
    {"nvrtcVersion", offsetof(hone_cuda_compiler, get_version), false},
    {"nvrtcGetNumSupportedArchs", offsetof(hone_cuda_compiler, get_arch_count), false},
    {"nvrtcGetSupportedArchs", offsetof(hone_cuda_compiler, get_archs), false},
    {"nvrtcCreateProgram", offsetof(hone_cuda_compiler, create), false},
    {"nvrtcDestroyProgram", offsetof(hone_cuda_compiler, destroy), false},
    {"nvrtcCompileProgram", offsetof(hone_cuda_compiler, compile), false},
    {"nvrtcGetProgramLogSize", offsetof(hone_cuda_compiler, get_log_size), false},
    {"nvrtcGetProgramLog", offsetof(hone_cuda_compiler, get_log), false},
    {"nvrtcGetCUBINSize", offsetof(hone_cuda_compiler, get_binary_size), false},
    {"nvrtcGetCUBIN", offsetof(hone_cuda_compiler, get_binary), false},
    {"nvrtcGetPTXSize", offsetof(hone_cuda_compiler, get_ptx_size), false},
    {"nvrtcGetPTX", offsetof(hone_cuda_compiler, get_ptx), false},
    {"nvrtcGetErrorString", offsetof(hone_cuda_compiler, get_error_string), false},
};

static hone_status find_functions(hone_cuda_compiler *compiler, hone_error *err)
{
    const char *missing =
        hone_library_functions(compiler->library, functions, sizeof functions / sizeof *functions, compiler);
    if (missing != NULL)
        return hone_fail(
            err, HONE_UNAVAILABLE, where, "NVRTC has no %s: it is too old; install that of CUDA 11.2 or later",
            missing);
    int major = 0, minor = 0;
    if (compiler->get_version(&major, &minor) != 0)
        return hone_fail(err, HONE_UNAVAILABLE, where, "NVRTC does not report its version");
    compiler->version = 1000 * major + 10 * minor;
    return HONE_OK;
}

// NVRTC opens its second library by name alone, so it finds it only on the loader's path. Opening that library before,
// from NVRTC's folder, makes it available. Failure is not an error, since an NVRTC elsewhere may not need it.
static void open_builtins(const hone_cuda_compiler *compiler)
{
    char folder[PATH_SIZE], path[PATH_SIZE + 64];
    const void *inside;
    memcpy(&inside, &compiler->get_version, sizeof inside);
    if (!hone_os_object_path(inside, folder, sizeof folder)) return;
    char *slash = strrchr(folder, '/');
    if (slash == NULL) return;
    *slash = '\0';
    snprintf(
        path, sizeof path, "%s/libnvrtc-builtins.so.%d.%d", folder, compiler->version / 1000,
        compiler->version % 1000 / 10);
    const char *const names[] = {path, NULL};
    hone_library *library = NULL;
    if (hone_library_open(&compiler->allocator, names, &library, NULL) == HONE_OK)
        hone_library_close(&compiler->allocator, &library); // the library stays mapped
}

static hone_status open_library(hone_cuda_compiler *compiler, hone_error *err)
{
    static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
    hone_error why = {.message = ""};
    hone_status status = hone_cuda_open_library(&compiler->allocator, "HONE_NVRTC", files, &compiler->library, &why);
    if (status == HONE_UNAVAILABLE)
        return hone_fail(
            err, status, where,
            "sources of CUDA need NVRTC: install the CUDA toolkit or PyPI's nvidia-cuda-nvrtc, or name it in "
            "HONE_NVRTC: "
            "%s",
            why.message);
    if (status != HONE_OK) return hone_fail_memory(err, where);
    status = find_functions(compiler, err);
    if (status == HONE_OK) {
        open_builtins(compiler);
        hone_cuda_toolkit_folders(take_include, compiler);
    } else {
        hone_library_close(&compiler->allocator, &compiler->library);
    }
    return status;
}

static hone_status need_library(hone_cuda_compiler *compiler, hone_error *err)
{
    hone_mutex_lock(&compiler->mutex);
    hone_status status = compiler->library != NULL ? HONE_OK : open_library(compiler, err);
    hone_mutex_unlock(&compiler->mutex);
    return status;
}

void hone_cuda_compiler_describe(hone_cuda_compiler *compiler, hone_buffer *out)
{
    char path[PATH_SIZE] = "";
    hone_error why = {.message = ""};
    const void *inside;
    if (need_library(compiler, &why) != HONE_OK) {
        hone_buffer_text(out, why.message);
        return;
    }
    memcpy(&inside, &compiler->get_version, sizeof inside);
    (void)hone_os_object_path(inside, path, sizeof path);
    hone_buffer_format(
        out, "sources: NVRTC %d.%d, %s; headers: %s", compiler->version / 1000, compiler->version % 1000 / 10, path,
        compiler->include[0] != '\0' ? compiler->include
                                     : "not found, PyPI's nvidia-cuda-runtime or the CUDA toolkit brings them");
}

// Compiling -----------------------------------------------------------------------------------------------------------

typedef struct options {
    const char *option[MAX_OPTIONS];
    int count;
    bool is_ptx;
    hone_arena arena;
    bool failed;
} options;

static void add_option(options *list, const char *text, size_t size)
{
    const char *copy = list->count < MAX_OPTIONS ? hone_arena_text(&list->arena, text, size) : NULL;
    if (copy == NULL)
        list->failed = true;
    else
        list->option[list->count++] = copy;
}

static void add_words(options *list, const char *words)
{
    while (words != NULL && *words != '\0') {
        size_t size = strcspn(words, " \n\t");
        if (size > 0) add_option(list, words, size);
        words += size;
        words += strspn(words, " \n\t");
    }
}

// From 9.0 on the target name with an "a" enables instructions that only that chip has.
static void add_target(const hone_cuda_compiler *compiler, options *list, int capability)
{
    int archs[MAX_ARCHS], count = 0, best = 0;
    char text[40];
    if (compiler->get_arch_count(&count) != 0 || count > MAX_ARCHS || compiler->get_archs(archs) != 0) count = 0;
    for (int i = 0; i < count; i++)
        if (archs[i] <= capability && archs[i] > best) best = archs[i];
    list->is_ptx = best != capability;
    if (list->is_ptx)
        snprintf(text, sizeof text, "-arch=compute_%d", best > 0 ? best : capability);
    else
        snprintf(text, sizeof text, "-arch=sm_%d%s", capability, capability >= 90 ? "a" : "");
    add_option(list, text, strlen(text));
}

static void collect_options(const hone_cuda_compiler *compiler, const hone_cuda_source *source, options *list)
{
    char include[PATH_SIZE];
    add_target(compiler, list, source->capability);
    add_option(list, "-std=c++17", strlen("-std=c++17"));
    // hone has its own cache; NVRTC's would hide the cost of a compilation.
    if (compiler->version >= 13000) add_option(list, "--no-cache", strlen("--no-cache"));
    for (const char *macro = source->macros; macro < source->macros + source->macros_size; macro += strlen(macro) + 1)
        add_option(list, macro, strlen(macro));
    add_words(list, source->options);
    int size = snprintf(include, sizeof include, "-I%s", compiler->include);
    if (compiler->include[0] != '\0' && size > 0 && (size_t)size < sizeof include)
        add_option(list, include, (size_t)size);
}

static bool key_of(const hone_cuda_compiler *compiler, const hone_cuda_source *source, const options *list, char *key)
{
    hone_buffer all;
    hone_buffer_init(&all, compiler->allocator);
    hone_buffer_format(&all, "nvrtc %d", compiler->version);
    hone_buffer_char(&all, '\0');
    for (int i = 0; i < list->count; i++)
        hone_buffer_append(&all, list->option[i], strlen(list->option[i]) + 1);
    hone_buffer_text(&all, source->text);
    // The toolkit's own headers are identified by the version.
    hone_includes_digest(
        source->text, list->option, (size_t)list->count, compiler->include[0] != '\0' ? compiler->include : NULL, &all);
    hone_hash_sha256(hone_buffer_string(&all), all.size, key);
    bool whole = !all.failed;
    hone_buffer_deinit(&all);
    return whole;
}

// Fails with the first lines of the log that describe the error.
static hone_status fail_log(
    const hone_cuda_compiler *compiler, nvrtc_program *program, const char *name, int result, hone_error *err)
{
    size_t size = 0;
    char *log = NULL;
    if (compiler->get_log_size(program, &size) == 0 && size > 1) log = hone_alloc(&compiler->allocator, size + 1);
    if (log != NULL && compiler->get_log(program, log) != 0) log[0] = '\0';
    const char *first = log != NULL ? strstr(log, "error") : NULL;
    while (first != NULL && first > log && first[-1] != '\n')
        first--;
    hone_status status = hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s does not compile: %.180s", name,
        first != NULL ? first : compiler->get_error_string(result));
    hone_free(&compiler->allocator, log);
    return status;
}

static hone_status take_result(
    const hone_cuda_compiler *compiler, nvrtc_program *program, bool is_ptx, hone_buffer *out, hone_error *err)
{
    size_t size = 0;
    int result = is_ptx ? compiler->get_ptx_size(program, &size) : compiler->get_binary_size(program, &size);
    char *bytes = result == 0 && size > 0 ? hone_alloc(&compiler->allocator, size) : NULL;
    if (result == 0 && bytes == NULL) return hone_fail_memory(err, where);
    if (result == 0) result = is_ptx ? compiler->get_ptx(program, bytes) : compiler->get_binary(program, bytes);
    if (result == 0) hone_buffer_append(out, bytes, size);
    hone_free(&compiler->allocator, bytes);
    if (result != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "NVRTC gives no code: %s", compiler->get_error_string(result));
    return out->failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status compile(
    const hone_cuda_compiler *compiler,
    const hone_cuda_source *source,
    const options *list,
    hone_buffer *out,
    hone_error *err)
{
    nvrtc_program *program = NULL;
    int result = compiler->create(&program, source->text, source->name, 0, NULL, NULL);
    if (result != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "NVRTC does not take %s: %s", source->name,
            compiler->get_error_string(result));
    result = compiler->compile(program, list->count, list->option);
    hone_status status = result == 0 ? take_result(compiler, program, list->is_ptx, out, err)
                                     : fail_log(compiler, program, source->name, result, err);
    (void)compiler->destroy(&program);
    return status;
}

hone_status hone_cuda_compile(
    hone_cuda_compiler *compiler, const hone_cuda_source *source, hone_buffer *out, hone_error *err)
{
    char key[HONE_SHA256_HEX_SIZE];
    hone_status status = need_library(compiler, err);
    if (status != HONE_OK) return status;
    options list = {.arena = {.allocator = compiler->allocator}};
    collect_options(compiler, source, &list);
    if (list.failed)
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s: more than %d options, or no memory", source->name, MAX_OPTIONS);
    bool keyed = status == HONE_OK && key_of(compiler, source, &list, key);
    if (status == HONE_OK && !(keyed && hone_compiled_find(key, out))) {
        status = compile(compiler, source, &list, out, err);
        if (status == HONE_OK && keyed) hone_compiled_keep(key, out);
    }
    hone_arena_destroy(&list.arena);
    return status;
}
