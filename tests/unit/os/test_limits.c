// The texts of /proc and /sys of several kinds of machine, laid out in a folder that stands for the root.
#include "os/limits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static char root[256];

static void put(const char *path, const char *text)
{
    char full[512];
    hone_error err = {0};
    snprintf(full, sizeof full, "%s%s", root, path);
    *strrchr(full, '/') = '\0';
    assert_int_equal(hone_os_make_folders(full, &err), HONE_OK);
    full[strlen(full)] = '/';
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int begin(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/hone-root-XXXXXX", base != NULL ? base : "/tmp");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void a_machine_without_groups_has_no_limit(void **state)
{
    (void)state;
    assert_int_equal(hone_os_cgroup_threads(root), 0);
    put("/proc/self/cgroup", "0::/\n");
    assert_int_equal(hone_os_cgroup_threads(root), 0);
}

static void the_tightest_group_of_version_2_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/kubepods.slice/pod1/c1\n");
    put("/sys/fs/cgroup/kubepods.slice/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/kubepods.slice/pod1/cpu.max", "250000 100000\n");
    put("/sys/fs/cgroup/kubepods.slice/pod1/c1/cpu.max", "max 100000\n");
    assert_int_equal(hone_os_cgroup_threads(root), 3);
}

static void a_container_sees_only_the_root_of_its_groups(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/../../host/path\n");
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_int_equal(hone_os_cgroup_threads(root), 1);
}

static void version_1_has_quota_and_period(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "11:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(hone_os_cgroup_threads(root), 4);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(hone_os_cgroup_threads(root), 0);
}

static void damaged_texts_say_nothing(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::\n::\n4\n\n4:cpu\n0::/x");
    put("/sys/fs/cgroup/x/cpu.max", "12x 100000\n");
    put("/sys/fs/cgroup/cpu.max", "100000\n"); // the period is left out: 100 ms
    assert_int_equal(hone_os_cgroup_threads(root), 1);
    put("/sys/fs/cgroup/cpu.max", "99999999999999999999 100000\n");
    assert_int_equal(hone_os_cgroup_threads(root), 0);
}

// What this process may take, in bytes, and who says so. 64 MiB: no other limit is as tight on a machine that runs
// tests.
enum { MEBIBYTE = 1 << 20 };

static int64_t left_by_group(void)
{
    const char *by = "";
    int64_t left = hone_os_memory_left(root, &by);
    if (left == INT64_MAX || strcmp(by, "its control group") != 0) return -1;
    return left;
}

static void memory_without_a_limit_is_what_the_machine_has(void **state)
{
    (void)state;
    const char *by = "";
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/meminfo", "MemTotal:       24684092 kB\nMemFree:        1000 kB\nMemAvailable:   2048 kB\n");
    assert_int_equal(hone_os_memory_left(root, &by), 2 * MEBIBYTE);
    assert_string_equal(by, "the machine");
}

static void the_tightest_group_says_what_memory_is_left(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/pod/c1\n");
    put("/sys/fs/cgroup/pod/c1/memory.max", "max\n");
    put("/sys/fs/cgroup/pod/c1/memory.current", "4194304\n");
    assert_int_equal(left_by_group(), -1);
    put("/sys/fs/cgroup/pod/memory.max", "67108864\n");
    put("/sys/fs/cgroup/pod/memory.current", "16777216\n");
    assert_int_equal(left_by_group(), 48 * MEBIBYTE);
    put("/sys/fs/cgroup/pod/c1/memory.high", "33554432\n");
    assert_int_equal(left_by_group(), 28 * MEBIBYTE);
    put("/sys/fs/cgroup/pod/c1/memory.current", "99554432\n");
    assert_int_equal(left_by_group(), 0);
}

static void inactive_file_pages_count_as_available(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "67108864\n");
    put("/sys/fs/cgroup/memory.current", "50331648\n");
    put("/sys/fs/cgroup/memory.stat", "anon 8388608\ninactive_file_x 7\ninactive_file 33554432\n");
    assert_int_equal(left_by_group(), 48 * MEBIBYTE);
    put("/sys/fs/cgroup/memory.stat", "inactive_file 99999999\n"); // more than is used
    assert_int_equal(left_by_group(), 64 * MEBIBYTE);
}

static void version_1_limits_memory_too(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "4:memory:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "67108864\n");
    put("/sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "33554432\n");
    put("/sys/fs/cgroup/memory/docker/memory.stat", "inactive_file 1\ntotal_inactive_file 16777216\n");
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(left_by_group(), 48 * MEBIBYTE);
    put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(left_by_group(), -1);
}

// What the process uses, by a line of its status: a MiB less than the limit.
static void put_used(const char *line)
{
    char status[64];
    snprintf(status, sizeof status, "Name:\tx\n%s:\t %llu kB\n", line, (1ULL << 30) - 1024);
    put("/proc/self/status", status);
}

static void a_mebibyte_is_left_by(const char *limit)
{
    const char *by = "";
    assert_int_equal(hone_os_memory_left(root, &by), MEBIBYTE);
    assert_string_equal(by, limit);
}

static void the_process_has_limits_of_its_own(void **state)
{
    (void)state;
    struct rlimit space, data;
    const rlim_t far = (rlim_t)1 << 40; // far from what this process has: it goes on
    assert_int_equal(getrlimit(RLIMIT_AS, &space), 0);
    assert_int_equal(getrlimit(RLIMIT_DATA, &data), 0);

    put_used("VmSize");
    assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){far, space.rlim_max}), 0);
    a_mebibyte_is_left_by("its limit of address space");
    assert_int_equal(setrlimit(RLIMIT_AS, &space), 0);

    put_used("VmData");
    assert_int_equal(setrlimit(RLIMIT_DATA, &(struct rlimit){far, data.rlim_max}), 0);
    a_mebibyte_is_left_by("its limit of data");
    assert_int_equal(setrlimit(RLIMIT_DATA, &data), 0);
}

static void put_cache(int index, const char *level, const char *type, const char *size)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
    put(path, level);
    *strrchr(path, '/') = '\0';
    strcat(path, "/type");
    put(path, type);
    *strrchr(path, '/') = '\0';
    strcat(path, "/size");
    put(path, size);
}

static void caches_are_read_where_they_are_not_known(void **state)
{
    (void)state;
    put_cache(0, "1\n", "Data\n", "48K\n");
    put_cache(1, "1\n", "Instruction\n", "32K\n");
    put_cache(2, "2\n", "Unified\n", "2048K\n");
    put_cache(3, "3\n", "Unified\n", "105M\n");
    hone_os_cpu cpu = {.l2_bytes = 7};
    hone_os_cache_sizes(root, &cpu);
    assert_int_equal(cpu.l1_bytes, 48 << 10);
    assert_int_equal(cpu.l2_bytes, 7);
    assert_int_equal(cpu.l3_bytes, 105 << 20);
}

static void affinity_gives_at_least_one(void **state)
{
    (void)state;
    assert_true(hone_os_affinity_threads() >= 1);
}

// A read that comes to the end says nothing in errno: what an interrupted sleep left there must not be taken for its
// word.
static void a_file_is_read_to_its_end_whatever_came_before(void **state)
{
    char text[HONE_OS_TEXT_SIZE];
    (void)state;
    errno = EINTR;
    assert_true(hone_os_read_text("", "/proc/self/stat", text));
    assert_non_null(strchr(text, '\n'));
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOT(a_machine_without_groups_has_no_limit),
        WITH_ROOT(the_tightest_group_of_version_2_counts),
        WITH_ROOT(a_container_sees_only_the_root_of_its_groups),
        WITH_ROOT(version_1_has_quota_and_period),
        WITH_ROOT(damaged_texts_say_nothing),
        WITH_ROOT(memory_without_a_limit_is_what_the_machine_has),
        WITH_ROOT(the_tightest_group_says_what_memory_is_left),
        WITH_ROOT(inactive_file_pages_count_as_available),
        WITH_ROOT(version_1_limits_memory_too),
        WITH_ROOT(the_process_has_limits_of_its_own),
        WITH_ROOT(caches_are_read_where_they_are_not_known),
        cmocka_unit_test(affinity_gives_at_least_one),
        cmocka_unit_test(a_file_is_read_to_its_end_whatever_came_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
