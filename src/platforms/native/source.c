// C sources of packs: compiled for this machine by the system's compiler, with each parameter as a macro, and cached on
// disk under the digest of all inputs, including the headers that the compiler read.
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "platforms/native/compiler.h"
#include "platforms/native/native.h"
#include "platforms/shared/compiled.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, MOST_OPTIONS = 256, LOG_LIMIT = 64 << 10, LIBRARY_LIMIT = 64 << 20, SECONDS = 120 };

static const char where[] = "native.compile";
static const char shim_name[] = "hone_shim.c", shim_entry[] = "hone_shim_entry";

// One compilation. Texts are in the arena.
typedef struct job {
    hone_arena arena;
    const hone_plan *plan;
    const hone_pack_variant *variant;
    hone_buffer source, shim, macros, result;
    hone_native_compiler compiler;
    char folder[PATH_SIZE]; // a private folder; "": not created
    int hold;               // marks the folder as in use
    char key[HONE_SHA256_HEX_SIZE];
    const char *options[MOST_OPTIONS + 1];
    size_t count;
    bool failed;
} job;

static const char *type_of(const hone_argument *argument)
{
    switch (argument->type) {
    case HONE_ARGUMENT_I32:
        return "__INT32_TYPE__";
    case HONE_ARGUMENT_U32:
        return "__UINT32_TYPE__";
    case HONE_ARGUMENT_I64:
        return "__INT64_TYPE__";
    case HONE_ARGUMENT_U64:
        return "__UINT64_TYPE__";
    case HONE_ARGUMENT_F32:
        return "float";
    default:
        return "double";
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

// Writes a function that takes the arguments from an array of addresses and calls the kernel. Parameters are macros, so
// no short name is safe. A kernel of type void always succeeds; one that returns a number returns 0 on success.
static void write_shim(job *j, const hone_argument *arguments, uint32_t count)
{
    hone_buffer call;
    hone_buffer_init(&call, j->shim.allocator);
    hone_buffer_format(&call, "%s(", j->variant->code.entry);
    for (uint32_t i = 0; i < count; i++) {
        hone_buffer_text(&call, i > 0 ? ", " : "");
        if (arguments[i].type == HONE_ARGUMENT_POINTER)
            hone_buffer_format(&call, "hone_shim_values[%" PRIu32 "]", i);
        else
            hone_buffer_format(&call, "*(const %s *)hone_shim_values[%" PRIu32 "]", type_of(&arguments[i]), i);
    }
    hone_buffer_char(&call, ')');
    const char *text = hone_buffer_string(&call);
    hone_buffer_format(
        &j->shim,
        "#include \"%s\"\n"
        "__attribute__((visibility(\"default\"))) int %s(void *const *hone_shim_values);\n"
        "int %s(void *const *hone_shim_values)\n"
        "{\n"
        "    (void)hone_shim_values;\n"
        "    return __builtin_choose_expr(__builtin_types_compatible_p(__typeof__(%s), void), (%s, 0), %s);\n"
        "}\n",
        base_name(j->variant->file->name), shim_entry, shim_entry, text, text, text);
    j->failed = j->failed || call.failed || j->shim.failed;
    hone_buffer_deinit(&call);
}

static void add(job *j, const char *option, size_t size)
{
    const char *copy = j->count < MOST_OPTIONS ? hone_arena_text(&j->arena, option, size) : NULL;
    if (copy != NULL)
        j->options[j->count++] = copy;
    else
        j->failed = true;
}

static void add_format(job *j, const char *prefix, const char *text)
{
    char option[2 * PATH_SIZE];
    const int size = snprintf(option, sizeof option, "%s%s", prefix, text);
    if (size > 0 && (size_t)size < sizeof option)
        add(j, option, (size_t)size);
    else
        j->failed = true;
}

static void add_words(job *j, const char *words)
{
    while (words != NULL && *words != '\0') {
        const size_t size = strcspn(words, " \n\t");
        if (size > 0) add(j, words, size);
        words += size;
        words += strspn(words, " \n\t");
    }
}

// Collects all options except the paths of this compilation's files.
static void collect_options(job *j)
{
    char folder[PATH_SIZE];
    static const char *const always[] = {"-std=gnu11", "-O3", "-march=native", "-fPIC", "-shared", "-Wl,-Bsymbolic"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        add(j, always[i], strlen(always[i]));
    const char *macros = hone_buffer_string(&j->macros);
    for (const char *macro = macros; macro < macros + j->macros.size; macro += strlen(macro) + 1)
        add(j, macro, strlen(macro));
    add_words(j, j->variant->code.options);
    if (hone_os_folder_of(j->variant->file->path, folder, sizeof folder)) add_format(j, "-I", folder);
    add_format(j, "-I", j->plan->kernel->code->pack->folder);
}

// The key includes the machine because of -march=native.
static void make_key(job *j)
{
    hone_buffer all;
    hone_buffer_init(&all, j->arena.allocator);
    hone_buffer_format(
        &all, "cc 3\n%s\n%s\n", j->compiler.identity,
        j->plan->device != NULL && j->plan->device->fingerprint != NULL ? j->plan->device->fingerprint : "");
    for (size_t i = 0; i < j->count; i++)
        hone_buffer_append(&all, j->options[i], strlen(j->options[i]) + 1);
    hone_buffer_append(&all, hone_buffer_string(&j->shim), j->shim.size);
    hone_buffer_append(&all, hone_buffer_string(&j->source), j->source.size);
    hone_hash_sha256(hone_buffer_string(&all), all.size, j->key);
    j->failed = j->failed || all.failed;
    hone_buffer_deinit(&all);
}

// Compiling -----------------------------------------------------------------------------------------------------------

static bool path_in(const job *j, const char *name, char out[PATH_SIZE])
{
    const int size = snprintf(out, PATH_SIZE, "%s/%s", j->folder, name);
    return size > 0 && size < PATH_SIZE;
}

static hone_status write_in(const job *j, const char *name, const hone_buffer *bytes, hone_error *err)
{
    char path[PATH_SIZE];
    if (!path_in(j, name, path)) return hone_fail(err, HONE_IO, where, "the path of %.100s is too long", name);
    return hone_os_replace_file(path, hone_buffer_string(bytes), bytes->size, err);
}

static hone_status make_folder(job *j, hone_error *err)
{
    if (hone_os_make_private_folder(j->folder, sizeof j->folder, &j->hold)) return HONE_OK;
    j->folder[0] = '\0';
    return hone_fail(
        err, HONE_IO, where, "cannot make a folder for the compiler: set TMPDIR to one that can be written");
}

// Fails with the first line of the log that describes the error, without the temporary folder's path.
static hone_status fail_log(const job *j, const hone_buffer *log, hone_error *err)
{
    const char *text = hone_buffer_string(log), *first = strstr(text, "error");
    while (first != NULL && first > text && first[-1] != '\n')
        first--;
    if (first == NULL) first = text;
    const size_t folder = strlen(j->folder);
    if (strncmp(first, j->folder, folder) == 0 && first[folder] == '/') first += folder + 1;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%.80s does not compile: %.*s", j->variant->file->name,
        (int)strcspn(first, "\n"), first);
}

static hone_status run_compiler(job *j, hone_error *err)
{
    char shim[PATH_SIZE], library[PATH_SIZE], list[PATH_SIZE];
    const char *arguments[MOST_OPTIONS + 16];
    size_t count = 0;
    int code = 0;
    hone_buffer log;
    if (!path_in(j, shim_name, shim) || !path_in(j, "kernel.so", library) || !path_in(j, "kernel.d", list))
        return hone_fail(err, HONE_IO, where, "the path of %.100s is too long", j->folder);
    arguments[count++] = j->compiler.path;
    for (size_t i = 0; i < j->count; i++)
        arguments[count++] = j->options[i];
    const char *const last[] = {"-MD", "-MF", list, "-o", library, shim, "-lm", NULL};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        arguments[count++] = last[i];
    hone_buffer_init(&log, j->arena.allocator);
    hone_status status =
        hone_process_run(arguments, hone_os_now_ns() + (uint64_t)SECONDS * 1000000000u, LOG_LIMIT, &log, &code, err);
    if (status == HONE_OK && code != 0) status = fail_log(j, &log, err);
    hone_buffer_deinit(&log);
    return status;
}

// Reads the file names of a makefile rule, "kernel.so: a.c b\ c.h \", except this compilation's own files; each is
// followed by a NUL.
static bool read_list(const job *j, hone_buffer *out)
{
    char path[PATH_SIZE];
    hone_buffer text, name;
    const size_t folder = strlen(j->folder);
    hone_buffer_init(&text, j->arena.allocator);
    hone_buffer_init(&name, j->arena.allocator);
    bool read = path_in(j, "kernel.d", path) && hone_os_read_file(path, LIBRARY_LIMIT, &text, NULL) == HONE_OK;
    const char *at = read ? strstr(hone_buffer_string(&text), ": ") : NULL;
    for (at = at != NULL ? at + 2 : ""; *at != '\0';) {
        hone_buffer_clear(&name);
        at += strspn(at, " \n\\");
        for (; *at != '\0' && *at != ' ' && *at != '\n'; at++) {
            if (*at == '\\' && at[1] != '\0' && at[1] != '\n') at++;
            if (*at == '\\' && at[1] == '\n') break;
            hone_buffer_char(&name, *at);
        }
        const char *one = hone_buffer_string(&name);
        if (one[0] == '\0' || (strncmp(one, j->folder, folder) == 0 && one[folder] == '/')) continue;
        hone_buffer_append(out, one, strlen(one) + 1);
    }
    read = read && !text.failed && !name.failed && !out->failed;
    hone_buffer_deinit(&text);
    hone_buffer_deinit(&name);
    return read;
}

static void keep_result(const job *j)
{
    hone_buffer files;
    hone_buffer_init(&files, j->arena.allocator);
    if (read_list(j, &files)) {
        // Adds the source itself, so that the list is never empty.
        hone_buffer_append(&files, j->variant->file->path, strlen(j->variant->file->path) + 1);
        if (!files.failed) hone_compiled_keep_with_files(j->key, hone_buffer_string(&files), files.size, &j->result);
    }
    hone_buffer_deinit(&files);
}

static hone_status compile(job *j, hone_error *err)
{
    char library[PATH_SIZE];
    hone_status status = write_in(j, shim_name, &j->shim, err);
    if (status == HONE_OK) status = write_in(j, base_name(j->variant->file->name), &j->source, err);
    if (status == HONE_OK) status = run_compiler(j, err);
    if (status != HONE_OK) return status;
    if (!path_in(j, "kernel.so", library)) return hone_fail(err, HONE_IO, where, "a path is too long");
    status = hone_os_read_file(library, LIBRARY_LIMIT, &j->result, err);
    if (status == HONE_OK) keep_result(j);
    return status;
}

// Loading -------------------------------------------------------------------------------------------------------------

// Loads each library under a unique path, because the loader treats equal paths as the same library.
static hone_status load(const job *j, hone_native_code *out, hone_error *err)
{
    char path[PATH_SIZE];
    hone_library *library = NULL;
    const hone_allocator allocator = hone_allocator_system();
    hone_status status = write_in(j, "kernel.so", &j->result, err);
    if (status != HONE_OK) return status;
    if (!path_in(j, "kernel.so", path)) return hone_fail(err, HONE_IO, where, "a path is too long");
    status = hone_library_open_file(&allocator, path, &library, err);
    if (status != HONE_OK) return status;
    void *symbol = hone_library_symbol(library, shim_entry);
    if (symbol == NULL) {
        hone_library_close(&allocator, &library);
        return hone_fail(err, HONE_CORRUPT, where, "what was compiled has no %s", shim_entry);
    }
    memcpy(&out->entry, &symbol, sizeof symbol);
    out->library = library;
    out->digest = hone_hash64(hone_buffer_string(&j->result), j->result.size);
    return HONE_OK;
}

static hone_status describe(job *j, const hone_argument *arguments, uint32_t count, hone_error *err)
{
    const hone_allocator *allocator = &j->arena.allocator;
    hone_status status = hone_native_find_compiler(&j->compiler, err);
    if (status == HONE_OK) status = hone_pack_read_file(j->variant->file, &j->source, err);
    if (status == HONE_OK) status = hone_launch_macros(allocator, j->plan, &j->macros, err);
    if (status != HONE_OK) return status;
    write_shim(j, arguments, count);
    collect_options(j);
    make_key(j);
    if (!j->failed) return HONE_OK;
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "more than %d options, or no memory", MOST_OPTIONS);
}

hone_status hone_native_compile(
    const hone_plan *plan, const hone_argument *arguments, uint32_t count, hone_native_code *out, hone_error *err)
{
    const hone_allocator allocator = hone_allocator_system();
    job *j = hone_alloc(&allocator, sizeof *j);
    if (j == NULL) return hone_fail_memory(err, where);
    j->arena.allocator = allocator;
    j->plan = plan;
    j->variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_buffer *const buffers[] = {&j->source, &j->shim, &j->macros, &j->result};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        hone_buffer_init(buffers[i], allocator);
    hone_status status = describe(j, arguments, count, err);
    if (status == HONE_OK) status = make_folder(j, err);
    if (status == HONE_OK && !hone_compiled_find_with_files(j->key, &j->result)) status = compile(j, err);
    if (status == HONE_OK) status = load(j, out, err);
    if (j->folder[0] != '\0') hone_os_remove_private_folder(j->folder, &j->hold);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        hone_buffer_deinit(buffers[i]);
    hone_arena_destroy(&j->arena);
    hone_free(&allocator, j);
    return status;
}
