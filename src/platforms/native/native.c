// The native platform: one device, the CPU. Kernels are functions of this process, or of packs (load.c), so no copying
// or waiting is needed.
#include "platforms/native/native.h"
#include "platforms/native/compiler.h"
#include "platforms/native/kernel.h"

#include "base/error.h"
#include "base/memory.h"

static const char where[] = "native.open";

struct hone_platform_instance {
    hone_allocator allocator;
    hone_os_cpu cpu;
    hone_buffer fingerprint;
    hone_device_info device;
};

static const char *name_of(const hone_os_cpu *cpu)
{
    if (cpu->brand[0] != '\0') return cpu->brand;
    return cpu->vendor[0] != '\0' ? cpu->vendor : "CPU";
}

static hone_status native_open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    (void)log;
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    hone_os_cpu *cpu = &instance->cpu;
    hone_os_cpu_read(cpu);
    hone_buffer_init(&instance->fingerprint, *allocator);
    hone_native_fingerprint(cpu, &instance->fingerprint);
    if (instance->fingerprint.failed) {
        hone_buffer_deinit(&instance->fingerprint);
        hone_free(allocator, instance);
        return hone_fail_memory(err, where);
    }
    instance->device = (hone_device_info){
        .struct_size = sizeof instance->device,
        .platform = HONE_NATIVE,
        .backend = HONE_CPU,
        .device = {HONE_DEVICE_CPU, 0},
        .name = name_of(cpu),
        .fingerprint = hone_buffer_string(&instance->fingerprint),
        .features = cpu->features,
        .threads = cpu->threads,
        .l1_bytes = cpu->l1_bytes,
        .l2_bytes = cpu->l2_bytes,
        .l3_bytes = cpu->l3_bytes,
        .memory_bytes = cpu->memory_bytes,
    };
    *out = instance;
    return HONE_OK;
}

static void native_close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    hone_buffer_deinit(&gone->fingerprint);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

static const hone_device_info *native_devices(hone_platform_instance *instance, size_t *out_count)
{
    *out_count = 1;
    return &instance->device;
}

static void native_describe(hone_platform_instance *instance, hone_buffer *out)
{
    (void)instance;
    hone_native_describe_compiler(out);
}

static hone_status native_try_file(const hone_pack_file *file, const char *entry, hone_error *err)
{
    const hone_pack_function *function = NULL;
    return hone_native_find_function(file, entry, &function, err);
}

const hone_platform_ops hone_native_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts = {.platform = HONE_NATIVE, .name = "native", .ranks = {{60, HONE_CPU}}, .is_host = true},
    .open = native_open,
    .close = native_close,
    .devices = native_devices,
    .prepare = hone_native_prepare,
    .release = hone_native_release,
    .run = hone_native_run,
    .describe = native_describe,
    .check = hone_native_check_pack,
    .stands_alone = true,
    .digest = hone_native_digest,
    .try_file = native_try_file,
};
