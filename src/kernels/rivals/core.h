// Determines which instructions other libraries use. A library that does not know a processor falls back to
// instructions of twenty years ago, and a comparison with it is then meaningless.
#ifndef HONE_KERNELS_RIVALS_CORE_H
#define HONE_KERNELS_RIVALS_CORE_H

#include "kernels/rivals/loading.h"
#include "os/os.h"

// Widths of instructions, in increasing order.
typedef enum hone_isa_level {
    HONE_ISA_UNKNOWN = -1,
    HONE_ISA_SSE,
    HONE_ISA_AVX,
    HONE_ISA_AVX2,
    HONE_ISA_AVX512
} hone_isa_level;

hone_isa_level hone_isa_of_features(uint64_t features); // HONE_CPU_*
const char *hone_isa_name(hone_isa_level level);

// The core for OpenBLAS, as a value of OPENBLAS_CORETYPE: chosen by the processor's instructions, since an OpenBLAS
// recognises only families and models that are older than it. NULL: OpenBLAS's own choice.
const char *hone_openblas_core(const char *vendor, uint64_t features);
// The instructions of a core of OpenBLAS, or of a level of oneDNN's dnnl_cpu_isa_t.
hone_isa_level hone_isa_of_core(const char *core);
hone_isa_level hone_isa_of_onednn(int isa, const char **out_name);

// A build of OpenBLAS: the system's, and those that Python packages contain.
typedef struct hone_openblas {
    const char *name;                      // of its kernels: "numpy_openblas"
    const char *prefix, *suffix;           // of its functions' names
    int64_t most;                          // of its integers, which have 32 bits, or 64
    const hone_packaged_library *packaged; // its file, which other code of this process uses too; NULL: the system's
} hone_openblas;

enum { HONE_OPENBLAS_OF_SYSTEM, HONE_OPENBLAS_OF_NUMPY, HONE_OPENBLAS_OF_SCIPY, HONE_OPENBLAS_BUILDS };
extern const hone_openblas hone_openblas_builds[HONE_OPENBLAS_BUILDS];

// Whether it is installed. Loads nothing.
bool hone_openblas_is_here(const hone_openblas *build, hone_error *why);
// Opens the system's with the processor's core, unless the user names one in OPENBLAS_CORETYPE, or this process has
// loaded the library already. Those of packages choose for themselves, as they do for Python.
hone_status hone_openblas_open(
    const hone_openblas *build, const hone_allocator *allocator, hone_library **out, hone_error *err);
// hone_rival_function for a name without the build's prefix and suffix: "cblas_sgemm".
bool hone_openblas_function(const hone_openblas *build, hone_library *library, const char *name, void *out_function);

// Facts about an installed library.
typedef struct hone_rival_facts {
    const char *name; // of its kernels: "openblas"
    char version[32], core[48];
    int32_t threads; // its default number
    hone_isa_level level;
} hone_rival_facts;

enum { HONE_RIVAL_FACTS = HONE_OPENBLAS_BUILDS + 2 };

// Loads the installed libraries, which start threads: call it in a separate process. Returns their number.
size_t hone_rival_facts_read(hone_rival_facts out[HONE_RIVAL_FACTS]);
// Writes "openblas 0.3.21, core SkylakeX, 2 threads", and whether it uses fewer instructions than the machine has.
// Returns whether it does.
bool hone_rival_facts_tell(const hone_rival_facts *facts, hone_isa_level machine, char *out, size_t size);

#endif
