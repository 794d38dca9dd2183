// Which instructions other libraries run with. A library that does not know a processor falls back to instructions of
// twenty years ago, and a comparison with it then says nothing.
#ifndef HONE_KERNELS_RIVALS_CORE_H
#define HONE_KERNELS_RIVALS_CORE_H

#include "kernels/rivals/loading.h"
#include "os/os.h"

// Widths of instructions, in the order of what they can do.
typedef enum hone_isa_level {
    HONE_ISA_UNKNOWN = -1,
    HONE_ISA_SSE,
    HONE_ISA_AVX,
    HONE_ISA_AVX2,
    HONE_ISA_AVX512
} hone_isa_level;

hone_isa_level hone_isa_of_features(uint64_t features); // HONE_CPU_*
const char *hone_isa_name(hone_isa_level level);

// The core that OpenBLAS is to run with, as OPENBLAS_CORETYPE names it, by the instructions that the processor has and
// not by its family and model, of which each OpenBLAS knows those before it. NULL: its own choice.
const char *hone_openblas_core(const char *vendor, uint64_t features);
// What a core of OpenBLAS, or a level of oneDNN's dnnl_cpu_isa_t, runs with.
hone_isa_level hone_isa_of_core(const char *core);
hone_isa_level hone_isa_of_onednn(int isa, const char **out_name);

// A build of OpenBLAS: the system's, and those that Python's packages bring along for themselves.
typedef struct hone_openblas {
    const char *name;                      // of its kernels: "numpy_openblas"
    const char *prefix, *suffix;           // of its functions' names
    int64_t most;                          // of its integers, which have 32 bits, or 64
    const hone_packaged_library *packaged; // whose file it is, which others in this process use too; NULL: the system's
} hone_openblas;

enum { HONE_OPENBLAS_OF_SYSTEM, HONE_OPENBLAS_OF_NUMPY, HONE_OPENBLAS_OF_SCIPY, HONE_OPENBLAS_BUILDS };
extern const hone_openblas hone_openblas_builds[HONE_OPENBLAS_BUILDS];

// Is it here? Loads nothing.
bool hone_openblas_is_here(const hone_openblas *build, hone_error *why);
// Opens the system's with the processor's core. One that the user names in OPENBLAS_CORETYPE is the user's, and one
// that this process has loaded already keeps its own. Those of packages choose for themselves, as they do for Python.
hone_status hone_openblas_open(
    const hone_openblas *build, const hone_allocator *allocator, hone_library **out, hone_error *err);
// hone_rival_function for a name without what the build puts around it: "cblas_sgemm".
bool hone_openblas_function(const hone_openblas *build, hone_library *library, const char *name, void *out_function);

// What a library is here.
typedef struct hone_rival_facts {
    const char *name; // of its kernels: "openblas"
    char version[32], core[48];
    int32_t threads; // as many as it would take by itself
    hone_isa_level level;
} hone_rival_facts;

enum { HONE_RIVAL_FACTS = HONE_OPENBLAS_BUILDS + 2 };

// Loads the libraries that are installed, which start threads: for a process of its own. Returns how many there are.
size_t hone_rival_facts_read(hone_rival_facts out[HONE_RIVAL_FACTS]);
// "openblas 0.3.21, core SkylakeX, 2 threads"; where it runs below the machine's instructions, that too. Returns
// whether it does.
bool hone_rival_facts_tell(const hone_rival_facts *facts, hone_isa_level machine, char *out, size_t size);

#endif
