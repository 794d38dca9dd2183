// The functions of python/older_libc beside the C library's own, which dlsym finds: those in the program are hidden.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef int by_path(const char *, void *);
typedef int by_descriptor(int, void *);

// The C library's function of a name.
static void find(const char *name, void *function)
{
    *(void **)function = dlsym(RTLD_NEXT, name);
    assert_non_null(*(void **)function);
}

static void stat_and_lstat_fill_what_the_c_librarys_fill(void **state)
{
    (void)state;
    by_path *their_stat, *their_lstat;
    find("stat", &their_stat);
    find("lstat", &their_lstat);
    assert_ptr_not_equal((void *)(uintptr_t)their_stat, (void *)(uintptr_t)stat);
    const char *link = "/proc/self/exe"; // a link to a file
    struct stat ours, theirs;
    struct stat64 ours64;
    assert_int_equal(stat(link, &ours) | their_stat(link, &theirs), 0);
    assert_true(S_ISREG(ours.st_mode));
    assert_memory_equal(&ours, &theirs, sizeof ours);
    assert_int_equal(stat64(link, &ours64), 0);
    assert_memory_equal(&ours64, &theirs, sizeof ours64);
    assert_int_equal(lstat(link, &ours) | their_lstat(link, &theirs), 0);
    assert_true(S_ISLNK(ours.st_mode));
    assert_int_equal(ours.st_ino, theirs.st_ino);
    assert_int_equal(lstat64(link, &ours64), 0);
    assert_int_equal(ours64.st_ino, theirs.st_ino);
    errno = 0;
    assert_int_equal(stat("/nowhere", &ours), -1);
    assert_int_equal(errno, ENOENT);
}

static void fstat_fills_what_the_c_librarys_fills(void **state)
{
    (void)state;
    by_descriptor *their_fstat;
    find("fstat", &their_fstat);
    struct stat ours, theirs;
    struct stat64 ours64;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &ours) | fstat64(fd, &ours64) | their_fstat(fd, &theirs), 0);
    assert_memory_equal(&ours, &theirs, sizeof ours);
    assert_memory_equal(&ours64, &theirs, sizeof ours64);
    close(fd);
    errno = 0;
    assert_int_equal(fstat(-1, &ours), -1);
    assert_int_equal(errno, EBADF);
}

static void gettid_is_the_threads_number(void **state)
{
    (void)state;
    assert_int_equal(gettid(), getpid()); // of the first thread
}

static void mallinfo2_counts_the_heap(void **state)
{
    (void)state;
    enum { SIZE = 100000 };
    size_t before = mallinfo2().uordblks;
    void *volatile block = malloc(SIZE);
    assert_in_range(mallinfo2().uordblks - before, SIZE, 2 * SIZE);
    free(block);
}

// From now on the kernel is one that has never heard of close_range.
static int be_older(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return -1;
    return syscall(SYS_close_range, ~0u, ~0u, 0) == -1 && errno == ENOSYS ? 0 : -1;
}

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

// What a child finds: 0 when of four descriptors the middle two are closed.
static int close_two_of_four(int on_older_kernel)
{
    int fds[4];
    for (int i = 0; i < 4; i++)
        if (fcntl(STDERR_FILENO, F_DUPFD, 100) != (fds[i] = 100 + i)) return 2;
    if (on_older_kernel && be_older() != 0) return 3;
    if (close_range((unsigned)fds[1], (unsigned)fds[2], 0) != 0) return 4;
    if (!is_open(fds[0]) || is_open(fds[1]) || is_open(fds[2]) || !is_open(fds[3])) return 5;
    return close_range((unsigned)fds[0], ~0u, 0) != 0 || is_open(fds[0]) || is_open(fds[3]) || !is_open(STDERR_FILENO);
}

static void close_range_closes_a_range_on_new_and_old_kernels(void **state)
{
    (void)state;
    for (int is_older = 0; is_older < 2; is_older++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) _exit(close_two_of_four(is_older));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_and_lstat_fill_what_the_c_librarys_fill),
        cmocka_unit_test(fstat_fills_what_the_c_librarys_fills),
        cmocka_unit_test(gettid_is_the_threads_number),
        cmocka_unit_test(mallinfo2_counts_the_heap),
        cmocka_unit_test(close_range_closes_a_range_on_new_and_old_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
