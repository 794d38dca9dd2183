#include "os/limits.h"

#include "base/number.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

bool hone_os_read_text(const char *root, const char *path, char out[HONE_OS_TEXT_SIZE])
{
    char full[PATH_MAX];
    int length = snprintf(full, sizeof full, "%s%s", root, path);
    if (length < 0 || (size_t)length >= sizeof full) return false;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t size = 0;
    while (size < HONE_OS_TEXT_SIZE - 1) {
        ssize_t count = read(fd, out + size, HONE_OS_TEXT_SIZE - 1 - size);
        // errno is not set by a read that reached the end of the file
        if (count == 0 || (count < 0 && errno != EINTR)) break;
        if (count > 0) size += (size_t)count;
    }
    close(fd);
    out[size] = '\0';
    return size > 0;
}

static bool read_integer(const char *root, const char *path, int64_t *out)
{
    char text[HONE_OS_TEXT_SIZE];
    return hone_os_read_text(root, path, text) && hone_integer_parse(text, strcspn(text, " \n"), out);
}

// The result for a control group folder that states no limit.
static const int64_t no_limit = INT64_MAX;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t quota_threads(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0) return no_limit;
    int64_t threads = quota / period + (quota % period != 0);
    return threads > INT32_MAX ? no_limit : threads;
}

// The path of a file in a folder of groups; false when it does not fit.
static bool file_of(const char *folder, const char *name, char out[PATH_MAX])
{
    int length = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return length >= 0 && length < PATH_MAX;
}

static bool integer_of(const char *root, const char *folder, const char *name, int64_t *out)
{
    char path[PATH_MAX];
    return file_of(folder, name, path) && read_integer(root, path, out);
}

// cpu.max: "100000 100000" or "max 100000".
static int64_t threads_v2(const char *root, const char *folder)
{
    char path[PATH_MAX], text[HONE_OS_TEXT_SIZE];
    int64_t quota, period;
    if (!file_of(folder, "cpu.max", path) || !hone_os_read_text(root, path, text)) return no_limit;
    size_t first = strcspn(text, " \n");
    const char *second = text[first] == ' ' ? text + first + 1 : "";
    if (!hone_integer_parse(text, first, &quota)) return no_limit; // "max"
    if (!hone_integer_parse(second, strcspn(second, "\n"), &period)) period = 100000;
    return quota_threads(quota, period);
}

static int64_t threads_v1(const char *root, const char *folder)
{
    int64_t quota, period;
    if (!integer_of(root, folder, "cpu.cfs_quota_us", &quota) || quota < 0) return no_limit;
    return integer_of(root, folder, "cpu.cfs_period_us", &period) ? quota_threads(quota, period) : no_limit;
}

// The number of a line "name 123" of a text; 0: there is none.
static int64_t number_of_line(const char *text, const char *name)
{
    const size_t size = strlen(name);
    int64_t number = 0;
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, name, size) != 0 || (line[size] != ' ' && line[size] != ':')) continue;
        const char *digits = line + size + 1 + strspn(line + size + 1, " \t");
        return hone_integer_parse(digits, strspn(digits, "0123456789"), &number) ? number : 0;
    }
    return 0;
}

// Inactive pages of files count as used, but are reclaimed first.
static int64_t left_of(
    const char *root, const char *folder, int64_t limit, const char *used_name, const char *reclaimable)
{
    char path[PATH_MAX], text[HONE_OS_TEXT_SIZE] = "";
    int64_t used = 0;
    if (!integer_of(root, folder, used_name, &used)) used = 0;
    if (file_of(folder, "memory.stat", path) && hone_os_read_text(root, path, text))
        used -= least(used, number_of_line(text, reclaimable));
    return limit > used ? limit - used : 0;
}

static int64_t memory_v2(const char *root, const char *folder)
{
    static const char *const limits[] = {"memory.max", "memory.high"};
    int64_t limit = no_limit, stated;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (integer_of(root, folder, limits[i], &stated)) limit = least(limit, stated); // else "max"
    return limit == no_limit ? no_limit : left_of(root, folder, limit, "memory.current", "inactive_file");
}

static int64_t memory_v1(const char *root, const char *folder)
{
    const int64_t unlimited = INT64_MAX - (1 << 20); // without a limit it states the largest number of whole pages
    int64_t limit;
    if (!integer_of(root, folder, "memory.limit_in_bytes", &limit) || limit >= unlimited) return no_limit;
    return left_of(root, folder, limit, "memory.usage_in_bytes", "total_inactive_file");
}

// One hierarchy of control groups: where it is mounted and how a folder of it states its limit.
typedef struct hierarchy {
    const char *controller; // in the line of /proc/self/cgroup: "" for version 2
    const char *mount;
    int64_t (*limit)(const char *root, const char *folder);
} hierarchy;

enum { HIERARCHIES = 4 };

static const hierarchy of_threads[HIERARCHIES] = {
    {"", "/sys/fs/cgroup", threads_v2},
    {"", "/sys/fs/cgroup/unified", threads_v2},
    {"cpu", "/sys/fs/cgroup/cpu", threads_v1},
    {"cpu", "/sys/fs/cgroup/cpu,cpuacct", threads_v1},
};

static const hierarchy of_memory[HIERARCHIES] = {
    {"", "/sys/fs/cgroup", memory_v2},
    {"", "/sys/fs/cgroup/unified", memory_v2},
    {"memory", "/sys/fs/cgroup/memory", memory_v1},
    {"memory", "/sys/fs/cgroup", memory_v1},
};

// The least limit of the group and of all groups above it. A container often sees only the root of its own hierarchy
// while the group's path is the host's: folders that do not exist state no limit.
static int64_t limit_along(const char *root, const hierarchy *h, hone_view group)
{
    char folder[PATH_MAX];
    size_t mount = strlen(h->mount);
    if (group.size > 0 && group.data[group.size - 1] == '/') group.size--;
    int length = snprintf(folder, sizeof folder, "%s%.*s", h->mount, (int)group.size, group.data);
    if (length < 0 || (size_t)length >= sizeof folder) return no_limit;
    int64_t limit = no_limit;
    for (;;) {
        limit = least(limit, h->limit(root, folder));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash < folder + mount) return limit;
        *slash = '\0';
    }
}

// True when a comma-separated list holds name; an empty list holds the empty name.
static bool holds(hone_view list, const char *name)
{
    for (;;) {
        const char *comma = list.size > 0 ? memchr(list.data, ',', list.size) : NULL;
        hone_view item = {list.data, comma != NULL ? (size_t)(comma - list.data) : list.size};
        if (hone_view_is(item, name)) return true;
        if (comma == NULL) return false;
        list = (hone_view){comma + 1, list.size - item.size - 1};
    }
}

// A line of /proc/self/cgroup: "4:cpu,cpuacct:/path", "0::/path".
static int64_t limit_of_line(const char *root, const hierarchy all[HIERARCHIES], const char *line, size_t size)
{
    const char *first = memchr(line, ':', size);
    const char *second = first != NULL ? memchr(first + 1, ':', size - (size_t)(first + 1 - line)) : NULL;
    if (second == NULL) return no_limit;
    hone_view controllers = {first + 1, (size_t)(second - first - 1)};
    hone_view group = {second + 1, size - (size_t)(second + 1 - line)};
    int64_t limit = no_limit;
    for (size_t i = 0; i < HIERARCHIES; i++)
        if (holds(controllers, all[i].controller)) limit = least(limit, limit_along(root, &all[i], group));
    return limit;
}

static int64_t limit_of_groups(const char *root, const hierarchy all[HIERARCHIES])
{
    char text[HONE_OS_TEXT_SIZE];
    if (!hone_os_read_text(root, "/proc/self/cgroup", text)) return no_limit;
    int64_t limit = no_limit;
    for (const char *line = text; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        limit = least(limit, limit_of_line(root, all, line, size));
        line += size + (line[size] == '\n');
    }
    return limit;
}

int32_t hone_os_cgroup_threads(const char *root)
{
    int64_t threads = limit_of_groups(root, of_threads);
    return threads == no_limit ? 0 : (int32_t)threads;
}

// What a limit of the process leaves, given the line of /proc/self/status with the amount used.
static int64_t left_of_process(const struct rlimit *limit, const char *status, const char *used_name)
{
    if (limit->rlim_cur == RLIM_INFINITY || limit->rlim_cur > INT64_MAX) return no_limit;
    const int64_t used = number_of_line(status, used_name) * 1024;
    return (int64_t)limit->rlim_cur > used ? (int64_t)limit->rlim_cur - used : 0;
}

int64_t hone_os_memory_left(const char *root, const char **out_by)
{
    char info[HONE_OS_TEXT_SIZE] = "", status[HONE_OS_TEXT_SIZE] = "";
    bool has_info = hone_os_read_text(root, "/proc/meminfo", info);
    (void)hone_os_read_text(root, "/proc/self/status", status);
    const int64_t available = number_of_line(info, "MemAvailable") * 1024;
    struct rlimit space, data;
    if (getrlimit(RLIMIT_AS, &space) != 0) space.rlim_cur = RLIM_INFINITY;
    if (getrlimit(RLIMIT_DATA, &data) != 0) data.rlim_cur = RLIM_INFINITY;
    const struct {
        int64_t left;
        const char *by;
    } limits[] = {
        {has_info && available > 0 ? available : no_limit, "the machine"},
        {limit_of_groups(root, of_memory), "its control group"},
        {left_of_process(&space, status, "VmSize"), "its limit of address space"},
        {left_of_process(&data, status, "VmData"), "its limit of data"},
    };
    size_t tightest = 0;
    for (size_t i = 1; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].left < limits[tightest].left) tightest = i;
    *out_by = limits[tightest].by;
    return limits[tightest].left;
}

int32_t hone_os_affinity_threads(void)
{
    // More CPUs than any machine has: the call fails if the set is smaller than the kernel's.
    static const size_t counts[] = {CPU_SETSIZE, 8 * CPU_SETSIZE};
    unsigned char room[8 * CPU_SETSIZE / 8];
    cpu_set_t *set = (cpu_set_t *)(void *)room;
    for (size_t i = 0; i < 2; i++) {
        size_t size = CPU_ALLOC_SIZE(counts[i]);
        memset(room, 0, sizeof room);
        if (sched_getaffinity(0, size, set) != 0) continue;
        int threads = CPU_COUNT_S(size, set);
        return threads > 0 ? threads : 1;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < INT32_MAX ? (int32_t)online : 1;
}

// "32K", "1024K", "96M", "512".
static int64_t size_of(const char *text)
{
    static const char units[] = "KMG";
    int64_t size;
    size_t digits = strspn(text, "0123456789");
    if (!hone_integer_parse(text, digits, &size) || size > INT32_MAX) return 0;
    const char *unit = text[digits] != '\0' ? strchr(units, text[digits]) : NULL;
    return unit != NULL ? size << (10 * (unit - units + 1)) : size;
}

static void read_cache(const char *root, int index, hone_os_cpu *cpu)
{
    char path[96], type[HONE_OS_TEXT_SIZE], size[HONE_OS_TEXT_SIZE];
    int64_t level;
    int64_t *const places[] = {&cpu->l1_bytes, &cpu->l2_bytes, &cpu->l3_bytes};
    const char *folder = "/sys/devices/system/cpu/cpu0/cache/index";
    snprintf(path, sizeof path, "%s%d/level", folder, index);
    if (!read_integer(root, path, &level) || level < 1 || level > 3) return;
    snprintf(path, sizeof path, "%s%d/type", folder, index);
    if (!hone_os_read_text(root, path, type) || type[0] == 'I') return; // Data, Instruction, Unified
    snprintf(path, sizeof path, "%s%d/size", folder, index);
    if (hone_os_read_text(root, path, size) && *places[level - 1] == 0) *places[level - 1] = size_of(size);
}

void hone_os_cache_sizes_from_libc(hone_os_cpu *cpu)
{
    long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    cpu->l1_bytes = l1 > 0 ? l1 : 0;
    cpu->l2_bytes = l2 > 0 ? l2 : 0;
}

void hone_os_cache_sizes(const char *root, hone_os_cpu *cpu)
{
    // Begins with the last index: a caller often lacks only the outermost cache.
    for (int index = 4; index >= 0 && !(cpu->l1_bytes && cpu->l2_bytes && cpu->l3_bytes); index--)
        read_cache(root, index, cpu);
}

int hone_os_outer_caches(const char *root)
{
    enum { MOST = 1024 };
    bool seen[MOST] = {false};
    int caches = 0;
    cpu_set_t set;
    // Fails on a machine with more processors than the set holds.
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char path[96];
        int64_t id;
        if (!CPU_ISSET(cpu, &set)) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/cache/index3/id", cpu);
        if (!read_integer(root, path, &id) || id < 0 || id >= MOST) return 0;
        caches += !seen[id];
        seen[id] = true;
    }
    return caches;
}

int64_t hone_os_memory_bytes(void)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? pages * page : 0;
}

int hone_os_thread_count(void)
{
    char text[HONE_OS_TEXT_SIZE];
    if (!hone_os_read_text("", "/proc/self/status", text)) return 0;
    const char *line = strstr(text, "\nThreads:");
    int64_t count;
    if (line == NULL) return 0;
    line += strlen("\nThreads:");
    line += strspn(line, " \t");
    if (!hone_integer_parse(line, strcspn(line, "\n"), &count) || count > INT32_MAX) return 0;
    const int tickers = hone_ticker_count();
    return count > tickers ? (int)count - tickers : 1;
}
