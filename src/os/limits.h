// What the system lets this process use, read from the text files of /proc and /sys. The root of both is a
// parameter, so that tests hand in folders with the real texts of other machines.
#ifndef HONE_OS_LIMITS_H
#define HONE_OS_LIMITS_H

#include "os/os.h"

enum { HONE_OS_TEXT_SIZE = 4096 };

// Reads the start of a small text file, NUL-terminated; false if the file is absent. Allocates nothing.
bool hone_os_read_text(const char *root, const char *path, char out[HONE_OS_TEXT_SIZE]);

// Threads that the cgroup's CPU quota allows (rounded up, at least 1), the tightest of the group and its
// parents, version 2 or 1; 0 when there is no limit. root: "" for the machine itself.
int32_t hone_os_cgroup_threads(const char *root);
// Threads that sched_getaffinity allows, at least 1.
int32_t hone_os_affinity_threads(void);
// Fills the sizes of the two inner caches, which the C library knows from its own start, at no cost. (Of the
// outer one it has the sum over a package, where hone wants what one core can reach.)
void hone_os_cache_sizes_from_libc(hone_os_cpu *cpu);
// Fills the sizes that are still 0 from /sys/devices/system/cpu/cpu0/cache.
void hone_os_cache_sizes(const char *root, hone_os_cpu *cpu);
int64_t hone_os_memory_bytes(void);
// HONE_CPU_AMX_*: what of AMX a process may use, by what the processor has and which states of it the system lends.
//   states  bits of XCR0
uint64_t hone_os_matrix_features(bool has_tiles, bool has_bf16, bool has_int8, uint64_t states);
// How many outer caches the processors have that this process may run on; 0: not known.
int hone_os_outer_caches(const char *root);
// Bytes that this process may take still before somebody is in need: what the machine has available, what the control
// group and all above it leave (maximum or high mark less what is used, but for pages of files that nobody reads;
// version 2 or 1), and RLIMIT_AS and RLIMIT_DATA. INT64_MAX: nobody says. *out_by: who leaves the least, for messages;
// static.
int64_t hone_os_memory_left(const char *root, const char **out_by);

#endif
