// Folders in the layout of Hugging Face's kernels: build/VARIANT/ with a metadata.json, a library of tvm-ffi in each.
#ifndef HONE_PACK_HUB_H
#define HONE_PACK_HUB_H

#include "base/json.h"
#include "hone/kernel.h"
#include "pack/pack.h"

enum { HONE_HUB_PATH = 4096, HONE_HUB_NAME = 256, HONE_HUB_VARIANTS = 256 };

typedef struct hone_hub_variant {
    char name[HONE_HUB_NAME];
    int cuda;          // 1208 for 12.8; 0: of the CPU; -1: of another
    char why_not[160]; // "": it fits
} hone_hub_variant;

typedef struct hone_hub {
    char build[HONE_HUB_PATH]; // the folder of the variants
    hone_hub_variant variants[HONE_HUB_VARIANTS];
    size_t count;
    const hone_hub_variant *chosen; // NULL: none fits
} hone_hub;

// Looks at the variants below folder/build, else folder, and chooses the one that fits a kernel of a backend
// (HONE_ANY: either) beside this GPU: that of the latest CUDA, before that of the CPU. The files are not read
// but for the metadata of those that fit. Their names are sorted.
void hone_hub_look(const char *folder, hone_backend backend, const hone_pack_gpu *gpu, hone_hub *out);

typedef struct hone_hub_files {
    char library[HONE_HUB_PATH]; // the one that the variant has
    char sha256[HONE_SHA256_HEX_SIZE];
    char id[HONE_HUB_NAME]; // "": not said
    size_t checked;         // files whose digests are those of metadata.json
    bool has_digests;
} hone_hub_files;

// Compares the files of the chosen variant with the digests of its metadata.json, where it has some: none is missing, and
// none is there that it does not list, but for what an interpreter of Python leaves.
// Returns: HONE_OK; HONE_CORRUPT (a file is another, is missing or is not listed; the metadata is no JSON);
//          HONE_UNSUPPORTED (digests of an algorithm other than SHA-256 and SHA-512; no library, or several);
//          HONE_NOT_FOUND, HONE_IO; HONE_OUT_OF_MEMORY.
hone_status hone_hub_check(const hone_hub *hub, hone_hub_files *out, hone_error *err);

#endif
