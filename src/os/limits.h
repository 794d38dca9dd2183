// Reads from the text files of /proc and /sys what the system lets this process use. The root of both is a parameter,
// so that tests can pass folders with the texts of other machines.
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
// Fills the sizes of the two inner caches from the C library, which reads them when it starts, so this costs nothing.
// The library reports the outer cache as a sum over the package, but hone needs what one core can reach.
void hone_os_cache_sizes_from_libc(hone_os_cpu *cpu);
// Fills the sizes that are still 0 from /sys/devices/system/cpu/cpu0/cache.
void hone_os_cache_sizes(const char *root, hone_os_cpu *cpu);
int64_t hone_os_memory_bytes(void);
// Returns HONE_CPU_AMX_*: the parts of AMX that a process may use, given the processor's features and the states that
// the system lends.
//   states  bits of XCR0
uint64_t hone_os_matrix_features(bool has_tiles, bool has_bf16, bool has_int8, uint64_t states);
// Returns the number of outer caches of the processors that this process may run on, 0 if it is not known.
int hone_os_outer_caches(const char *root);
// Returns the bytes that this process may still allocate without exhausting memory: the least of what the machine has
// available, what the control group and all groups above it leave, and what RLIMIT_AS and RLIMIT_DATA leave. A group
// (version 2 or 1) leaves its maximum or high mark minus what is used; inactive pages of files do not count as used.
// INT64_MAX if there is no limit. *out_by is the name of the tightest limit, for messages; it is static.
int64_t hone_os_memory_left(const char *root, const char **out_by);

#endif
