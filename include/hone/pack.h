// Packs: kernels that come as a folder with a pack.json, with nothing to compile into the program. docs/packs.md says
// how to write one, docs/formats.md has the format.
//
// Packs are named by HONE_PACK_PATH, folders separated by ':' (each a pack, or a folder of packs), or by
// hone_pack_load. Those of HONE_PACK_PATH are read when an algorithm is first looked up: a program that calls none pays
// nothing.
//
// What a pack holds is checked before it is used: texts, sizes, the SHA-256 of each file, that none lies outside the
// folder.
// A kernel that fails a check is refused alone: it is in the registry, where it can be named, and never runs; hone_explain,
// hone list and hone pack check say why. A pack is code: it runs in a contest's worker, and in this process
// once a kernel of it was chosen or named. Reading a pack loads and runs nothing of it.
#ifndef HONE_PACK_H
#define HONE_PACK_H

#include "hone/kernel.h"
#include "hone/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

// Reads a pack and registers its algorithms and kernels. They stay until the runtime is closed; loading the same folder
// again does nothing.
//   folder  borrowed; has pack.json in it. Files are read again when a kernel is prepared, and must not have changed.
// Threads: any, while others call.
// Returns: HONE_OK, also when some or all of the kernels were refused (hone_pack_list says which and why);
// HONE_NOT_FOUND (no such folder, or no pack.json in it); HONE_CORRUPT (not JSON, or not that of a pack);
// HONE_INCOMPATIBLE (a later format);
// HONE_IO; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_pack_load(hone_runtime *rt, const char *folder, hone_error *err);

// One kernel of a pack. Texts are borrowed for the visit.
typedef struct hone_pack_entry {
    size_t struct_size;
    const char *pack;       // its name, else that of its folder
    const char *folder;     // without links
    const char *algorithm;  // "matmul", "saxpy@v2"
    const char *kernel;     // "": this is an algorithm of the pack that was refused, a nameless kernel, or the pack
    hone_platform platform; // HONE_PLATFORM_NONE: unknown to hone
    hone_backend backend;
    size_t variants;      // explicit configs, each with code of its own; 0 if the space has them
    size_t files;         // that the kernel is made of
    const char *revision; // the digest of all of them, and of the kernel's row
    hone_status status;   // HONE_OK: nothing is wrong with it, as far as can be seen without its device
    const char *reason;   // details; NULL with HONE_OK
    const char *chosen;   // of a folder with builds for several machines: which is the code here; NULL if it has none
} hone_pack_entry;

// Visits every kernel of the packs that are loaded, those of HONE_PACK_PATH first, and every pack that could not be,
// until visit returns false.
// Threads: any. Returns: HONE_OK; HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status
hone_pack_list(hone_runtime *rt, bool (*visit)(void *ctx, const hone_pack_entry *entry), void *ctx, hone_error *err);
// Reads a pack and visits its kernels until visit returns false, without registering anything. rt has the algorithms beside the
// pack's.
//   runs  its libraries are loaded, each in a process of its own, and asked for their functions; else nothing of the
//         pack is executed
// Returns as hone_pack_load.
HONE_API HONE_MUST_CHECK hone_status hone_pack_check(
    hone_runtime *rt,
    const char *folder,
    bool runs,
    bool (*visit)(void *ctx, const hone_pack_entry *entry),
    void *ctx,
    hone_error *err);

// Making packs -------------------------------------------------------------------------------------------------------

// A build of a folder in the layout of Hugging Face's kernels: build/NAME/ with a metadata.json and a library of tvm-ffi. Texts
// are borrowed for the visit.
typedef struct hone_pack_build {
    const char *name;    // "tvm-ffi01-cu128-x86_64-linux"
    const char *why_not; // what does not fit this machine; NULL if it fits
    bool is_chosen;      // one alone: that of the latest CUDA, before that of the CPU
    // Of the one that is chosen, whose files are compared with the digests of its metadata.json:
    hone_status status;  // HONE_OK: they are as it says; else reason says what is not
    const char *reason;  // NULL with HONE_OK
    const char *library; // path of its one library
    const char *id;      // of the kernel; "": it does not say
    size_t digests;      // files that were compared; 0 if it has no digests
} hone_pack_build;

// Visits the builds of a folder by name, until visit returns false. Returns: HONE_OK, also when there are none; HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_pack_builds(
    const char *folder, bool (*visit)(void *ctx, const hone_pack_build *build), void *ctx, hone_error *err);
// Has a library say what functions of it take, in a process of its own, which loads it.
//   platform   of the functions; one that has hone_platform_traits.describes
//   library    path
//   functions  names, without what their symbols begin with; at most 1,024
//   *out_text  a JSON object, by name; a function that says nothing is left out. Free with hone_text_release (hone/tune.h)
// Returns: HONE_OK; HONE_UNAVAILABLE (there is no worker); HONE_KERNEL_FAILED (loading it ended the process, or it cannot be
// loaded); HONE_NOT_FOUND (no such file); HONE_BUSY (it took more than a minute); HONE_INVALID_ARGUMENT; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status hone_pack_describe(
    hone_runtime *rt,
    hone_platform platform,
    const char *library,
    const char *const *functions,
    size_t count,
    char **out_text,
    hone_error *err);

// Shared libraries of packs -------------------------------------------------------------------------------------------
//
// A library of a pack for platform native exports one function, which returns a table. It needs these headers and links
// nothing of hone.

enum { HONE_PACK_ABI = 1 };

// Functions of one kernel: the kernel of pack.json whose entry is this name. As in hone_kernel.
typedef struct hone_pack_function {
    size_t struct_size;
    const char *name;
    hone_run_function *run;
    hone_status (*prepare)(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
    void (*release)(const hone_kernel *kernel, void *state);
} hone_pack_function;

typedef struct hone_pack_library {
    size_t struct_size;
    uint32_t abi; // HONE_PACK_ABI of the headers that it was compiled with
    uint32_t count;
    const hone_pack_function *functions; // in steps of the first one's struct_size
} hone_pack_library;

// Exported as hone_pack_query, extern "C".
//   abi   the newest that the caller knows
// Returns a table that stays valid, or NULL when it has none for that version.
typedef const hone_pack_library *hone_pack_query_function(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
