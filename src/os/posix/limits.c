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
        if (count == 0 || (count < 0 && errno != EINTR)) break; // errno says nothing of a read that came to the end
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

static int32_t quota_threads(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0) return 0;
    int64_t threads = quota / period + (quota % period != 0);
    return threads > INT32_MAX ? 0 : (int32_t)threads;
}

static int32_t tighter(int32_t a, int32_t b)
{
    if (a == 0 || b == 0) return a + b;
    return a < b ? a : b;
}

// cpu.max: "100000 100000" or "max 100000".
static int32_t limit_v2(const char *root, const char *folder)
{
    char path[PATH_MAX], text[HONE_OS_TEXT_SIZE];
    int64_t quota, period;
    int length = snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (length < 0 || (size_t)length >= sizeof path || !hone_os_read_text(root, path, text)) return 0;
    size_t first = strcspn(text, " \n");
    const char *second = text[first] == ' ' ? text + first + 1 : "";
    if (!hone_integer_parse(text, first, &quota)) return 0; // "max"
    if (!hone_integer_parse(second, strcspn(second, "\n"), &period)) period = 100000;
    return quota_threads(quota, period);
}

static int32_t limit_v1(const char *root, const char *folder)
{
    char path[PATH_MAX];
    int64_t quota, period;
    int length = snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (length < 0 || (size_t)length >= sizeof path || !read_integer(root, path, &quota) || quota < 0) return 0;
    length = snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (length < 0 || (size_t)length >= sizeof path || !read_integer(root, path, &period)) return 0;
    return quota_threads(quota, period);
}

// One hierarchy of control groups: where it is mounted and how a folder of it states its limit.
typedef struct hierarchy {
    const char *controller; // in the line of /proc/self/cgroup: "" for version 2
    const char *mount;
    int32_t (*limit)(const char *root, const char *folder);
} hierarchy;

static const hierarchy hierarchies[] = {
    {"", "/sys/fs/cgroup", limit_v2},
    {"", "/sys/fs/cgroup/unified", limit_v2},
    {"cpu", "/sys/fs/cgroup/cpu", limit_v1},
    {"cpu", "/sys/fs/cgroup/cpu,cpuacct", limit_v1},
};

// The limit of group and of all above it. A container often sees only the root of its own hierarchy while
// the group's path is the host's: folders that are not there say nothing.
static int32_t limit_along(const char *root, const hierarchy *h, hone_view group)
{
    char folder[PATH_MAX];
    size_t mount = strlen(h->mount);
    if (group.size > 0 && group.data[group.size - 1] == '/') group.size--;
    int length = snprintf(folder, sizeof folder, "%s%.*s", h->mount, (int)group.size, group.data);
    if (length < 0 || (size_t)length >= sizeof folder) return 0;
    int32_t threads = 0;
    for (;;) {
        threads = tighter(threads, h->limit(root, folder));
        char *slash = strrchr(folder, '/');
        if (!slash || slash < folder + mount) return threads;
        *slash = '\0';
    }
}

// True when a comma-separated list holds name; an empty list holds the empty name.
static bool holds(hone_view list, const char *name)
{
    for (;;) {
        const char *comma = list.size > 0 ? memchr(list.data, ',', list.size) : NULL;
        hone_view item = {list.data, comma ? (size_t)(comma - list.data) : list.size};
        if (hone_view_is(item, name)) return true;
        if (!comma) return false;
        list = (hone_view){comma + 1, list.size - item.size - 1};
    }
}

// A line of /proc/self/cgroup: "4:cpu,cpuacct:/path", "0::/path".
static int32_t line_threads(const char *root, const char *line, size_t size)
{
    const char *first = memchr(line, ':', size);
    const char *second = first ? memchr(first + 1, ':', size - (size_t)(first + 1 - line)) : NULL;
    if (!second) return 0;
    hone_view controllers = {first + 1, (size_t)(second - first - 1)};
    hone_view group = {second + 1, size - (size_t)(second + 1 - line)};
    int32_t threads = 0;
    for (size_t i = 0; i < sizeof hierarchies / sizeof hierarchies[0]; i++)
        if (holds(controllers, hierarchies[i].controller))
            threads = tighter(threads, limit_along(root, &hierarchies[i], group));
    return threads;
}

int32_t hone_os_cgroup_threads(const char *root)
{
    char text[HONE_OS_TEXT_SIZE];
    if (!hone_os_read_text(root, "/proc/self/cgroup", text)) return 0;
    int32_t threads = 0;
    for (const char *line = text; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        threads = tighter(threads, line_threads(root, line, size));
        line += size + (line[size] == '\n');
    }
    return threads;
}

int32_t hone_os_affinity_threads(void)
{
    // More CPUs than any machine has: the call fails when the set is smaller than the kernel's.
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
    return unit ? size << (10 * (unit - units + 1)) : size;
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
    // The last index first: a caller often lacks the outermost cache alone.
    for (int index = 4; index >= 0 && !(cpu->l1_bytes && cpu->l2_bytes && cpu->l3_bytes); index--)
        read_cache(root, index, cpu);
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
    if (!line) return 0;
    line += strlen("\nThreads:");
    line += strspn(line, " \t");
    return hone_integer_parse(line, strcspn(line, "\n"), &count) && count <= INT32_MAX ? (int)count : 0;
}
