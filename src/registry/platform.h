// What the registry, packs and contests ask of a platform without running it: its facts. Platforms stand above the
// registry, so each states its own in its ops (platforms/platform.h), and they are handed down as a function that finds
// them.
#ifndef HONE_REGISTRY_PLATFORM_H
#define HONE_REGISTRY_PLATFORM_H

#include "hone/kernel.h"

enum {
    HONE_PLATFORM_RANKS = 2, // of a platform in the order for "auto"
    HONE_PLATFORM_HOSTS = 3, // whose devices one platform visits, with the NONE behind them
};

// A place in the order in which platform "auto" is resolved.
typedef struct hone_platform_rank {
    int rank;             // lower goes first, no two are equal; 0: "auto" does not find it
    hone_backend backend; // the hardware that must be here, which an unset backend then means; NONE: whatever is here
} hone_platform_rank;

// Zero means the plainest answer, so that a new platform says only what is special about it.
typedef struct hone_platform_facts {
    hone_platform platform;
    const char *name;   // "opencl": what users write
    hone_platform home; // whose instance its kernels are given, and on whose devices they run; NONE: its own
    hone_platform
        hosts[HONE_PLATFORM_HOSTS]; // on whose devices it runs when it finds none itself, NONE behind the last
    hone_platform_rank ranks[HONE_PLATFORM_RANKS];
    bool is_host;           // one alone: its kernels are functions of this process, on the CPU that hone itself runs on
    bool is_by_name_only;   // a query, a list or a runtime finds it only when it is named
    bool falls_back_to_any; // a query that matches nothing is asked once more with backend "any"
    bool takes_code;        // kernels come as sources, files or binaries (hone_code) beside functions
    bool
        is_interpreted; // its kernels run where an interpreter was lent (hone/interpreter.h), and in workers that lend one
    bool is_module;     // its code is a whole program: it has no entry, and gives results back in place of taking them
    bool chooses_variants; // its code may be in a folder with variants for several machines (pack/hub.h)
    // What of a kernel's code the platform does not have, as words behind "the code of kernel 'x'". NULL: all is well.
    // The function may be NULL: every field of hone_code is taken.
    const char *(*refuses)(const hone_code *code);
    // Whether code with a target can run on a device of this platform. NULL: targets are for others to read.
    hone_status (*check_target)(const hone_code *code, const hone_device_info *device, hone_error *err);
    // Why the time of a kernel on this device says nothing of it, so that it does not compete. NULL, or its answer: it
    // does.
    const char *(*is_untimed)(const hone_device_info *device);
} hone_platform_facts;

// The facts of a platform; NULL: there is no such platform.
typedef const hone_platform_facts *hone_platform_find(hone_platform platform);

#endif
