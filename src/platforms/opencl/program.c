#include "platforms/opencl/program.h"

#include "base/error.h"
#include "base/hash.h"
#include "pack/includes.h"
#include "platforms/shared/compiled.h"

#include <string.h>

static const char where[] = "opencl.program";

// Appends the contents of the headers that the source may include. A driver's options are one line.
static void put_headers(const hone_opencl_source *source, hone_buffer *out)
{
    enum { MOST = 512 };
    const char *words[MOST];
    size_t count = 0;
    char *rest = NULL;
    hone_buffer line;
    hone_buffer_init(&line, out->allocator);
    hone_buffer_append(&line, source->options, strlen(source->options) + 1);
    char *word = line.failed ? NULL : strtok_r(line.data, " ", &rest);
    for (; word != NULL && count < MOST; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    hone_includes_digest(source->text, words, count, NULL, out);
    out->failed = out->failed || line.failed;
    hone_buffer_deinit(&line);
}

// The key covers everything that changes the binary, including the driver's version.
static bool key_of(
    const hone_platform_instance *instance,
    const hone_opencl_device *device,
    const hone_opencl_source *source,
    char *key)
{
    const char *const parts[] = {"opencl",       device->name,    device->architecture, device->runtime,
                                 device->driver, source->options, source->text};
    hone_buffer all;
    hone_buffer_init(&all, instance->allocator);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        hone_buffer_append(&all, parts[i], strlen(parts[i]) + 1);
    put_headers(source, &all);
    hone_hash_sha256(hone_buffer_string(&all), all.size, key);
    bool whole = !all.failed;
    hone_buffer_deinit(&all);
    return whole;
}

// Fails with the first line of the log that describes the error.
static hone_status fail_log(
    const hone_platform_instance *instance,
    const hone_opencl_device *device,
    opencl_program *program,
    const hone_opencl_source *source,
    opencl_result result,
    hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    size_t size = 0;
    char *log = NULL;
    if (icd->get_build_info(program, device->id, OPENCL_PROGRAM_LOG, 0, NULL, &size) == OPENCL_SUCCESS && size > 1)
        log = hone_alloc(&instance->allocator, size + 1);
    if (log != NULL && icd->get_build_info(program, device->id, OPENCL_PROGRAM_LOG, size, log, NULL) != OPENCL_SUCCESS)
        log[0] = '\0';
    const char *first = log != NULL ? strstr(log, "error:") : NULL;
    if (first == NULL) first = log;
    while (first != NULL && first > log && first[-1] != '\n')
        first--;
    const char *words = first != NULL && first[0] != '\0' ? first : hone_opencl_error_name(result);
    hone_status status = hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s does not compile: %.*s", source->name, (int)strcspn(words, "\n"), words);
    hone_free(&instance->allocator, log);
    return status;
}

// A digest of the machine code. Before its machine code, which is for work-groups of any size, PoCL puts the digest of
// the source with its options and LLVM's bitcode, which contains a random file name and the number of earlier programs:
// these do not affect what runs, so they are skipped.
static uint64_t digest_of(const void *binary, size_t size)
{
    static const char pocl[] = "poclbin", elf[] = {0x7f, 'E', 'L', 'F'};
    const char *bytes = binary, *code = NULL;
    if (size > sizeof pocl && memcmp(bytes, pocl, sizeof pocl) == 0) code = memmem(bytes, size, elf, sizeof elf);
    if (code == NULL) code = bytes;
    return hone_hash64(code, size - (size_t)(code - bytes));
}

// Reads the binary of the one device that the program was built for. A context of several devices has a list of
// binaries, and is skipped.
static void take_binary(const hone_platform_instance *instance, opencl_program *program, hone_buffer *out)
{
    const opencl_icd *icd = &instance->icd;
    size_t size = 0;
    opencl_result result = icd->get_program_info(program, OPENCL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL);
    unsigned char *binary = result == OPENCL_SUCCESS && size > 0 ? hone_alloc(&instance->allocator, size) : NULL;
    if (binary != NULL && icd->get_program_info(program, OPENCL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == 0)
        hone_buffer_append(out, binary, size);
    hone_free(&instance->allocator, binary);
}

static void keep_binary(
    const hone_platform_instance *instance, opencl_program *program, const char *key, uint64_t *out_digest)
{
    hone_buffer bytes;
    hone_buffer_init(&bytes, instance->allocator);
    take_binary(instance, program, &bytes);
    if (!bytes.failed && bytes.size > 0) {
        *out_digest = digest_of(bytes.data, bytes.size);
        hone_compiled_keep(key, &bytes);
    }
    hone_buffer_deinit(&bytes);
}

static hone_status load_binary(
    hone_platform_instance *instance,
    const hone_opencl_device *device,
    opencl_context *context,
    const void *binary,
    size_t size,
    const char *options,
    opencl_program **out,
    hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    const unsigned char *bytes = binary;
    opencl_result each = OPENCL_SUCCESS, result = OPENCL_SUCCESS;
    opencl_program *program = icd->create_with_binary(context, 1, &device->id, &size, &bytes, &each, &result);
    if (result == OPENCL_SUCCESS) result = each;
    if (result == OPENCL_SUCCESS) result = icd->build(program, 1, &device->id, options, NULL, NULL);
    if (result == OPENCL_SUCCESS) {
        *out = program;
        return HONE_OK;
    }
    if (program != NULL) (void)icd->release_program(program);
    return hone_opencl_check(instance, result, "the driver does not take the binary", err);
}

static hone_status compile(
    hone_platform_instance *instance,
    const hone_opencl_device *device,
    opencl_context *context,
    const hone_opencl_source *source,
    opencl_program **out,
    hone_error *err)
{
    const opencl_icd *icd = &instance->icd;
    const char *text = source->text;
    opencl_result result = OPENCL_SUCCESS;
    opencl_program *program = icd->create_with_source(context, 1, &text, NULL, &result);
    if (program == NULL || result != OPENCL_SUCCESS)
        return hone_opencl_check(instance, result, "clCreateProgramWithSource", err);
    result = icd->build(program, 1, &device->id, source->options, NULL, NULL);
    if (result == OPENCL_SUCCESS) {
        *out = program;
        return HONE_OK;
    }
    hone_status status = hone_opencl_is_sticky(result) ? hone_opencl_check(instance, result, "clBuildProgram", err)
                                                       : fail_log(instance, device, program, source, result, err);
    (void)icd->release_program(program);
    return status;
}

// Finds a cached program. False if there is none, or if the driver does not accept it any more.
static bool find_program(
    hone_platform_instance *instance,
    const hone_opencl_device *device,
    opencl_context *context,
    const hone_opencl_source *source,
    const char *key,
    opencl_program **out,
    uint64_t *out_digest)
{
    hone_buffer kept;
    hone_buffer_init(&kept, instance->allocator);
    bool found = hone_compiled_find(key, &kept);
    const char *bytes = hone_buffer_string(&kept);
    if (found) found = load_binary(instance, device, context, bytes, kept.size, source->options, out, NULL) == HONE_OK;
    if (found) *out_digest = digest_of(bytes, kept.size);
    hone_buffer_deinit(&kept);
    return found;
}

hone_status hone_opencl_build(
    hone_platform_instance *instance,
    const hone_opencl_device *device,
    opencl_context *context,
    const hone_opencl_source *source,
    opencl_program **out,
    uint64_t *out_digest,
    hone_error *err)
{
    char key[HONE_SHA256_HEX_SIZE];
    *out = NULL;
    *out_digest = 0;
    if (source->text == NULL) {
        *out_digest = digest_of(source->binary, source->binary_size);
        return load_binary(instance, device, context, source->binary, source->binary_size, source->options, out, err);
    }
    bool keyed = key_of(instance, device, source, key);
    if (keyed && find_program(instance, device, context, source, key, out, out_digest)) return HONE_OK;
    hone_status status = compile(instance, device, context, source, out, err);
    if (status == HONE_OK && keyed && context == atomic_load(&device->context))
        keep_binary(instance, *out, key, out_digest);
    return status;
}
