// Devices: what hone knows of one piece of hardware, and when two may share a decision.
#ifndef HONE_DEVICE_H
#define HONE_DEVICE_H

#include "hone/config.h"
#include "hone/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// How a kernel is written and run.
typedef enum hone_platform {
    HONE_PLATFORM_NONE = 0, // in a query: any
    HONE_NATIVE,
    HONE_OPENCL,
    HONE_CUDA,
    HONE_TRITON,
    HONE_CUTE,
    HONE_TILELANG, // C that TileLang writes, on the CPU
    HONE_XLA,
    HONE_PALLAS,
    HONE_NULL,   // the template for new platforms; "any" never selects it
    HONE_FFI,    // functions of shared libraries for tvm-ffi
    HONE_PYTHON, // functions of Python
    HONE_PLATFORM_COUNT,
    HONE_PLATFORM_AUTO = 100 // in a query: resolved from the devices present
} hone_platform;

// What hardware a kernel targets. An ANY kernel matches every query.
typedef enum hone_backend {
    HONE_BACKEND_NONE = 0, // in a query: whatever hardware is present
    HONE_GPU,
    HONE_MPS, // a known name without hardware behind it
    HONE_TPU,
    HONE_CPU,
    HONE_ANY,
    HONE_BACKEND_COUNT
} hone_backend;

HONE_API const char *hone_platform_name(hone_platform platform); // "native"; "auto"; "none"
HONE_API const char *hone_backend_name(hone_backend backend);
// Instruction sets that kernels may need: bits of hone_device_info.features and hone_kernel.needs.
enum {
    HONE_CPU_SSE4_2 = 1 << 0,
    HONE_CPU_AVX = 1 << 1,
    HONE_CPU_AVX2 = 1 << 2,
    HONE_CPU_FMA = 1 << 3,
    HONE_CPU_F16C = 1 << 4,
    HONE_CPU_AVX512F = 1 << 5,
    HONE_CPU_AVX512BW = 1 << 6,
    HONE_CPU_AVX512VL = 1 << 7,
    HONE_CPU_AVX512DQ = 1 << 8,
    HONE_CPU_AVX512_BF16 = 1 << 9,
    HONE_CPU_AVX512_VNNI = 1 << 10,
    HONE_CPU_NEON = 1 << 20
};

// One device as one platform sees it. Strings live as long as the runtime.
typedef struct hone_device_info {
    size_t struct_size;
    hone_platform platform;
    hone_backend backend;                 // CPU, GPU or TPU
    hone_device device;                   // the device field of tensors on it
    const char *name;                     // "AMD EPYC 9654"
    const char *fingerprint;              // docs/fingerprints.md: equal on machines that may share decisions
    uint64_t features;                    // HONE_CPU_*
    int32_t threads;                      // usable: affinity and cgroup limits honoured
    int64_t l1_bytes, l2_bytes, l3_bytes; // data caches, of one core (l3: shared); 0 when not known
    int64_t memory_bytes;
    int64_t smem_bytes, sms; // GPU: shared memory a block, multiprocessors; else 0
    const char *driver;      // name and version of its driver; NULL if there is no driver, or it is not known
    int32_t capability;      // NVIDIA: compute capability, 90 for 9.0; opencl: the device's OpenCL, 30 for 3.0; else 0
    int32_t clock_mhz;       // the highest; 0 if it is not known
    // For people; NULL where it is not known: "sm_90"; name and version of what runs kernels, and of what compiles
    // them.
    const char *architecture, *runtime, *compiler;
    double memory_rate; // GPU: peak bytes a second of its memory, from its clock and width; 0 if it is not known
} hone_device_info;

#ifdef __cplusplus
}
#endif
#endif
