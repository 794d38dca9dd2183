// Where a kernel of a pack comes from: what src/pack has read and the platforms use. All of it is immutable once the
// kernel is registered, and lives as long as its pack.
#ifndef HONE_REGISTRY_ORIGIN_H
#define HONE_REGISTRY_ORIGIN_H

#include "base/hash.h"
#include "hone/kernel.h"
#include "hone/space.h"

// A file of a pack. It was as its digest says when the pack was read; hone_pack_read_file looks again.
typedef struct hone_pack_file {
    const char *name; // as pack.json has it, relative to the folder: "b128.cubin"
    const char *path; // absolute, without links
    char sha256[HONE_SHA256_HEX_SIZE];
    size_t size;
} hone_pack_file;

// One config with code of its own; of a kernel without a list, all configs.
typedef struct hone_pack_variant {
    hone_config config;         // of a kernel with a list
    hone_code code;             // whole: what a variant leaves out is the kernel's. source and binary are NULL
    const hone_pack_file *file; // that the code is in; NULL: it has none
    const char *facts; // JSON object, what the platform alone understands; the kernel's where it has none: never NULL
} hone_pack_variant;

typedef struct hone_pack_kernel {
    const char *pack;   // its name
    const char *folder; // absolute, without links
    const char *algorithm;
    const char *name;
    hone_platform platform;
    hone_backend backend;
    const hone_space *space;     // NULL: it was refused
    const char *producer;        // JSON object: tool, version and the like; NULL: not said
    const char *facts;           // JSON object; "{}" where there is none
    const hone_pack_file *files; // all that it is made of, each once
    size_t file_count;
    const hone_pack_variant *variants; // at least one, unless it was refused
    size_t variant_count;
    bool is_listed;     // each variant is one config; else there is one for every config
    const char *chosen; // of a folder with variants for several machines: which is the code here; NULL: it has none
    hone_status status;
    const char *refusal; // why it cannot run anywhere; NULL: nothing is wrong with it
} hone_pack_kernel;

// Whether a file is loaded as it is (.clbin, .cubin, .fatbin, .ptx), by its name; else it is a source.
bool hone_code_is_binary(const char *name);
// The code of a plan: its kernel's, or that of the variant which has its config. NULL: no variant has.
const hone_code *hone_code_of_plan(const hone_plan *plan);
// The same of a kernel of a pack.
const hone_pack_variant *hone_pack_variant_of(const hone_pack_kernel *kernel, const int64_t *config);

#endif
