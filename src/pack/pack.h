// Packs of kernels: a folder with a pack.json (docs/formats.md), read and checked. What all platforms have in common is
// read here; the facts of one platform are an object that its own check reads.
#ifndef HONE_PACK_PACK_H
#define HONE_PACK_PACK_H

#include "base/buffer.h"
#include "hone/pack.h"
#include "registry/origin.h"
#include "registry/registry.h"

enum {
    HONE_PACK_FORMAT = 1,
    HONE_PACK_JSON_LIMIT = 4 << 20,   // bytes of pack.json
    HONE_PACK_FILE_LIMIT = 256 << 20, // bytes of one file
    HONE_PACK_KERNELS = 1024,         // of a pack
    HONE_PACK_VARIANTS = 4096,        // of a kernel
    HONE_PACK_FILES = 4096,           // of a kernel
    HONE_PACK_ALGORITHMS = 1024,      // one a kernel, as hone pack new begins them
    HONE_PACK_FOREIGN = 1024          // rows of foreign operations
};

// Exit codes of "hone-worker query". A library that is asked may end the process itself, most often with 0 or 1: these
// say that an answer was reached.
enum { HONE_PACK_QUERY_FOUND = 90, HONE_PACK_QUERY_REFUSED = 91 };

typedef struct hone_kernel_pack hone_kernel_pack;

// A platform's word on one variant of a kernel, from its texts, facts and files, with no device at hand: HONE_OK, or
// why it can run nowhere. What it says is put behind the names of pack, kernel and variant. HONE_OUT_OF_MEMORY ends the
// reading.
typedef hone_status hone_pack_judge(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err);

// The first GPU of NVIDIA's: by it the variant of a folder is chosen.
typedef struct hone_pack_gpu {
    int cuda;       // the newest that its driver runs, 1300 for 13.0; 0: there is no GPU; INT_MAX: not known
    int capability; // 90 for 9.0
} hone_pack_gpu;
typedef hone_pack_gpu hone_pack_gpu_finder(void);

// The platforms as packs see them from below.
typedef struct hone_pack_platforms {
    hone_platform_find *find;
    hone_pack_judge *judge;    // NULL: every platform takes everything
    hone_pack_gpu_finder *gpu; // called where a kernel needs it alone; NULL: there is none
} hone_pack_platforms;

// The same beside the signature of the kernel's algorithm: whether the variant can fit any call of it.
typedef hone_status hone_pack_fitter(
    const hone_pack_kernel *kernel, const hone_pack_variant *variant, const hone_signature *signature, hone_error *err);

// Reads folder/pack.json and looks at every file that it names. A kernel with something wrong is kept with its refusal.
// Returns as hone_pack_load.
hone_status hone_pack_open(
    const hone_allocator *allocator,
    const char *folder,
    const hone_pack_platforms *platforms,
    hone_kernel_pack **out,
    hone_error *err);
// The same with the text of pack.json at hand. folder is absolute and without links.
hone_status hone_pack_parse(
    const hone_allocator *allocator,
    const char *folder,
    const char *text,
    size_t size,
    const hone_pack_platforms *platforms,
    hone_kernel_pack **out,
    hone_error *err);
// After the registry that it was registered with.
void hone_pack_close(hone_kernel_pack **pack);

const char *hone_pack_name(const hone_kernel_pack *pack);
const char *hone_pack_folder(const hone_kernel_pack *pack);
const char *hone_pack_digest(const hone_kernel_pack *pack); // of pack.json, 64 hex digits

// A kernel as it is registered, with code->pack; also one that was refused, if it could be named.
const hone_kernel *hone_pack_kernel_at(const hone_kernel_pack *pack, size_t index);
size_t hone_pack_size(const hone_kernel_pack *pack);
// The kernel that another process means; NULL: there is none. revision NULL: any.
const hone_kernel *hone_pack_find(
    const hone_kernel_pack *pack,
    const char *algorithm,
    const char *name,
    hone_platform platform,
    const char *revision);

// Registers algorithms, then kernels, each alone: one that fits no call of its algorithm, or that the registry refuses,
// gets that for a refusal. An algorithm that is registered already with the same signature stays as it is. Once a pack.
//   fitter  NULL: every kernel fits
// Returns: HONE_OK; HONE_OUT_OF_MEMORY.
hone_status hone_pack_register(
    hone_kernel_pack *pack, hone_registry *registry, hone_pack_fitter *fitter, hone_error *err);
// The same without registering: which algorithms are not there shows in refusals.
hone_status hone_pack_try(hone_kernel_pack *pack, hone_registry *registry, hone_pack_fitter *fitter, hone_error *err);
// Refuses a kernel that is not registered yet, with what somebody else found wrong. HONE_OUT_OF_MEMORY.
hone_status hone_pack_refuse(hone_kernel_pack *pack, size_t index, const hone_error *why);
// Visits refused algorithms, then kernels.
bool hone_pack_visit(const hone_kernel_pack *pack, bool (*visit)(void *ctx, const hone_pack_entry *entry), void *ctx);

// Reads a file of a pack and compares its digest: what is appended to out is what pack.json means, whatever became of
// the file meanwhile. The bytes have a NUL behind them.
// Returns: HONE_OK; HONE_CORRUPT (it has changed); HONE_NOT_FOUND, HONE_IO; HONE_OUT_OF_MEMORY.
hone_status hone_pack_read_file(const hone_pack_file *file, hone_buffer *out, hone_error *err);
// A file of the kernel by the name that pack.json has for it; NULL: there is none.
const hone_pack_file *hone_pack_file_named(const hone_pack_kernel *kernel, const char *name);

// Packs that a process has opened because another named them, kept until the shelf is emptied. One thread at a time.
typedef struct hone_pack_shelf {
    hone_allocator allocator;
    hone_platform_find *platforms;
    hone_pack_gpu_finder *gpu;
    struct hone_pack_shelved *first;
} hone_pack_shelf;

// The kernel of that revision in the pack of that folder, which is opened, or opened again, when that is needed.
hone_status hone_pack_shelf_find(
    hone_pack_shelf *shelf,
    const char *folder,
    const char *algorithm,
    const char *name,
    hone_platform platform,
    const char *revision,
    const hone_kernel **out,
    hone_error *err);
void hone_pack_shelf_empty(hone_pack_shelf *shelf);

#endif
