#include "tune/result/environment.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/number.h"
#include "hone/status.h"
#include "os/conditions.h"
#include "os/os.h"
#include "registry/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Facts ---------------------------------------------------------------------------------------------------------------

static bool keep(const char *text, size_t size, char out[HONE_FACT_SIZE])
{
    if (text == NULL || size == 0) return false;
    snprintf(out, HONE_FACT_SIZE, "%.*s", (int)(size < HONE_FACT_SIZE ? size : HONE_FACT_SIZE - 1), text);
    return true;
}

static bool keep_file(const char *path, char out[HONE_FACT_SIZE])
{
    enum { LIMIT = 4096 };
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    bool read = hone_os_read_file(path, LIMIT, &text, NULL) == HONE_OK && text.data != NULL &&
                keep(text.data, strcspn(hone_buffer_string(&text), "\n"), out);
    hone_buffer_deinit(&text);
    return read;
}

#define FACT(name)                                                                                                     \
    static bool read_##name(const hone_device_info *device, const hone_kernel *kernel, char out[HONE_FACT_SIZE])

FACT(hone)
{
    (void)device;
    (void)kernel;
    return keep(hone_version(), strlen(hone_version()), out);
}

FACT(kernels)
{
    (void)device;
    (void)kernel;
    return keep(HONE_KERNELS_DIGEST, strlen(HONE_KERNELS_DIGEST), out);
}

FACT(compiler)
{
#if defined(__clang__)
    static const char compiler[] = "clang " __clang_version__;
#else
    static const char compiler[] = "gcc " __VERSION__;
#endif
    (void)device;
    (void)kernel;
    return keep(compiler, strlen(compiler), out);
}

FACT(flags)
{
    (void)device;
    (void)kernel;
    return keep(HONE_BUILD_FLAGS, strlen(HONE_BUILD_FLAGS), out);
}

// The file's name has the version in it, "libopenblasp-r0.3.21.so", and the build identifier distinguishes two files of
// one name. The folder of the file does not matter.
FACT(library)
{
    char path[4096], build[HONE_LIBRARY_BUILD_SIZE];
    (void)device;
    if (kernel == NULL || !hone_kernel_find_library(kernel, path, sizeof path)) return false;
    if (!hone_library_build(path, build)) return false;
    const char *slash = strrchr(path, '/');
    snprintf(out, HONE_FACT_SIZE, "%.200s %s", slash != NULL ? slash + 1 : path, build);
    return true;
}

FACT(driver)
{
    (void)kernel;
    return device->driver != NULL && keep(device->driver, strlen(device->driver), out);
}

FACT(device)
{
    (void)kernel;
    return device->name != NULL && keep(device->name, strlen(device->name), out);
}

FACT(os)
{
    (void)device;
    (void)kernel;
    return keep_file("/proc/sys/kernel/ostype", out);
}

FACT(os_release)
{
    (void)device;
    (void)kernel;
    return keep_file("/proc/sys/kernel/osrelease", out);
}

static hone_os_conditions conditions(void)
{
    hone_os_conditions now;
    hone_os_conditions_read("", &now);
    return now;
}

static bool keep_switch(hone_os_switch is, char out[HONE_FACT_SIZE])
{
    const char *word = is == HONE_OS_ON ? "on" : is == HONE_OS_OFF ? "off" : "";
    return keep(word, strlen(word), out);
}

FACT(governor)
{
    (void)device;
    (void)kernel;
    const hone_os_conditions now = conditions();
    return keep(now.governor, strlen(now.governor), out);
}

FACT(frequency)
{
    (void)device;
    (void)kernel;
    const hone_os_conditions now = conditions();
    if (now.most_khz == 0) return false;
    snprintf(out, HONE_FACT_SIZE, "%lld to %lld kHz", (long long)now.least_khz, (long long)now.most_khz);
    return true;
}

FACT(turbo)
{
    (void)device;
    (void)kernel;
    return keep_switch(conditions().turbo, out);
}

FACT(smt)
{
    (void)device;
    (void)kernel;
    return keep_switch(conditions().smt, out);
}

FACT(pinned)
{
    (void)device;
    (void)kernel;
    const hone_os_conditions now = conditions();
    if (now.online == 0 || now.allowed == 0) return false;
    snprintf(out, HONE_FACT_SIZE, "%d of %d processors", (int)now.allowed, (int)now.online);
    return true;
}

FACT(load)
{
    (void)device;
    (void)kernel;
    const hone_os_conditions now = conditions();
    if (now.load < 0) return false;
    hone_print(out, HONE_FACT_SIZE, "%.2f", now.load);
    return true;
}

const hone_environment_fact hone_environment_facts[] = {
    {"fingerprint", "key", HONE_STALE, NULL},
    {"algorithm", "key", HONE_STALE, NULL},
    {"version", "key", HONE_STALE, NULL},
    {"spec", "key", HONE_STALE, NULL},
    {"revision", "column", HONE_STALE, NULL},
    {"hone", "environment", HONE_CHECK_AGAIN, read_hone},
    {"kernels", "environment", HONE_CHECK_AGAIN, read_kernels},
    {"compiler", "environment", HONE_CHECK_AGAIN, read_compiler},
    {"flags", "environment", HONE_CHECK_AGAIN, read_flags},
    {"library", "environment", HONE_CHECK_AGAIN, read_library},
    {"driver", "environment", HONE_CHECK_AGAIN, read_driver},
    {"code", "environment", HONE_CHECK_AGAIN, NULL},
    {"device", "environment", HONE_STANDS, read_device},
    {"os", "environment", HONE_STANDS, read_os},
    {"os_release", "environment", HONE_STANDS, read_os_release},
    {"governor", "environment", HONE_STANDS, read_governor},
    {"frequency", "environment", HONE_STANDS, read_frequency},
    {"turbo", "environment", HONE_STANDS, read_turbo},
    {"smt", "environment", HONE_STANDS, read_smt},
    {"pinned", "environment", HONE_STANDS, read_pinned},
    {"load", "environment", HONE_STANDS, read_load},
};
const size_t hone_environment_fact_count = sizeof hone_environment_facts / sizeof hone_environment_facts[0];

const char *hone_standing_name(hone_standing standing)
{
    static const char *const names[] = {"served", "served and checked again", "not served"};
    return names[standing];
}

// Writing -------------------------------------------------------------------------------------------------------------

static void write_facts(
    const hone_device_info *device, const hone_kernel *kernel, hone_standing least, hone_buffer *out)
{
    const char *between = "";
    hone_buffer_char(out, '{');
    for (size_t i = 0; i < hone_environment_fact_count; i++) {
        const hone_environment_fact *fact = &hone_environment_facts[i];
        char value[HONE_FACT_SIZE];
        if (fact->read == NULL || fact->when_it_differs < least || !fact->read(device, kernel, value)) continue;
        hone_buffer_format(out, "%s\"%s\":", between, fact->name);
        hone_json_string(out, value, strlen(value));
        between = ",";
    }
    hone_buffer_char(out, '}');
}

void hone_environment_json(const hone_device_info *device, const hone_kernel *kernel, hone_buffer *out)
{
    write_facts(device, kernel, HONE_STANDS, out);
}

void hone_environment_counted_json(const hone_device_info *device, const hone_kernel *kernel, hone_buffer *out)
{
    write_facts(device, kernel, HONE_CHECK_AGAIN, out);
}

static const char code_member[] = "\"code\":\"";

void hone_environment_add_code(hone_buffer *text, uint64_t digest)
{
    hone_assert(text->failed || (text->size > 2 && text->data[text->size - 1] == '}'));
    if (text->failed || digest == 0) return;
    text->size--;
    hone_buffer_format(text, ",%s%016llx\"}", code_member, (unsigned long long)digest);
}

uint64_t hone_environment_code(const char *stored)
{
    const char *at = stored != NULL ? strstr(stored, code_member) : NULL;
    return at != NULL ? strtoull(at + strlen(code_member), NULL, 16) : 0;
}

bool hone_environment_is(const char *stored, const char *counted)
{
    const size_t size = strlen(counted);
    if (size == 0 || strncmp(stored, counted, size - 1) != 0) return false;
    const char *rest = stored + size - 1;
    return strcmp(rest, "}") == 0 || (rest[0] == ',' && strncmp(rest + 1, code_member, strlen(code_member)) == 0);
}

// Comparing -----------------------------------------------------------------------------------------------------------

static hone_standing compare(
    const json_t *stored, const hone_device_info *device, const hone_kernel *kernel, char out[HONE_DIFFERENCE_SIZE])
{
    for (size_t i = 0; i < hone_environment_fact_count; i++) {
        const hone_environment_fact *fact = &hone_environment_facts[i];
        const char *was = json_string_value(json_object_get(stored, fact->name));
        char is[HONE_FACT_SIZE];
        if (fact->when_it_differs == HONE_STANDS || fact->read == NULL || was == NULL) continue;
        if (!fact->read(device, kernel, is) || strncmp(was, is, sizeof is - 1) == 0) continue;
        snprintf(out, HONE_DIFFERENCE_SIZE, "%s was %.50s, is %.50s", fact->name, was, is);
        return fact->when_it_differs;
    }
    return HONE_STANDS;
}

hone_standing hone_environment_compare(
    const char *stored, const hone_device_info *device, const hone_kernel *kernel, char out[HONE_DIFFERENCE_SIZE])
{
    json_t *object = NULL;
    out[0] = '\0';
    if (stored == NULL || hone_json_parse(stored, strlen(stored), &object, NULL) != HONE_OK) return HONE_STANDS;
    hone_standing standing = compare(object, device, kernel, out);
    json_decref(object);
    return standing;
}
