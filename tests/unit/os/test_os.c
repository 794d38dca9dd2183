// Clock, files, libraries, the CPU.
#include "base/memory.h"
#include "hone/device.h"
#include "os/functions.h"
#include "os/limits.h"
#include "os/os.h"
#include "os/tiles.h"
#include "temporary_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void clocks_go_forward_and_times_have_one_form(void **state)
{
    (void)state;
    uint64_t before = hone_os_now_ns();
    hone_os_sleep_ns(2000000);
    assert_true(hone_os_now_ns() - before >= 2000000);
    char text[24];
    hone_os_format_utc(1795178096.9, text);
    assert_string_equal(text, "2026-11-20T12:34:56Z");
    hone_os_format_utc(-5, text);
    assert_string_equal(text, "1970-01-01T00:00:00Z");
    hone_os_format_utc(1e300, text);
    assert_string_equal(text, "1970-01-01T00:00:00Z");
    assert_true(hone_os_now_utc() > 1.6e9);
    assert_true(hone_os_load() >= -1);
}

static void make_temporary(char *out, size_t size)
{
    const char *base = getenv("TMPDIR");
    snprintf(out, size, "%s/hone-test-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(out));
}

static void folders_are_made_with_their_parents(void **state)
{
    (void)state;
    char folder[256], path[300];
    hone_error err = {0};
    make_temporary(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/a/b//c/", folder);
    assert_int_equal(hone_os_make_folders(path, &err), HONE_OK);
    assert_int_equal(hone_os_make_folders(path, &err), HONE_OK);
    struct stat info;
    snprintf(path, sizeof path, "%s/a/b/c", folder);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(hone_os_make_folders("/proc/version/x", &err), HONE_IO);
    assert_non_null(strstr(err.message, "/proc/version"));
    assert_int_equal(hone_os_make_folders("", &err), HONE_INVALID_ARGUMENT);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

static void a_file_is_read_whole_or_refused(void **state)
{
    (void)state;
    char folder[256], path[300];
    hone_error err = {0};
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    make_temporary(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/f", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 100000; i++)
        fputc('a' + i % 26, file);
    fclose(file);
    assert_int_equal(hone_os_read_file(path, 100000, &out, &err), HONE_OK);
    assert_int_equal(out.size, 100000);
    assert_int_equal(hone_os_read_file(path, 99999, &out, &err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_os_read_file(folder, 100, &out, &err), HONE_IO);
    assert_false(hone_os_is_executable(path));
    unlink(path);
    assert_int_equal(hone_os_read_file(path, 100, &out, &err), HONE_NOT_FOUND);
    assert_int_equal(err.system_code, 2);
    hone_buffer_clear(&out);
    assert_int_equal(hone_os_read_file("/proc/self/status", 1 << 20, &out, &err), HONE_OK);
    assert_true(out.size > 0);
    rmdir(folder);
    hone_buffer_deinit(&out);
}

static size_t files_in(const char *folder)
{
    DIR *list = opendir(folder);
    assert_non_null(list);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static void assert_holds(const char *path, const char *text)
{
    hone_buffer read;
    hone_buffer_init(&read, hone_allocator_system());
    assert_int_equal(hone_os_read_file(path, 100, &read, NULL), HONE_OK);
    assert_string_equal(hone_buffer_string(&read), text);
    hone_buffer_deinit(&read);
}

static void a_file_is_replaced_with_its_mode_through_links_and_without_leftovers(void **state)
{
    (void)state;
    char folder[256], path[300], alias[300];
    hone_error err = {0};
    struct stat info;
    make_temporary(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(alias, sizeof alias, "%s/alias", folder);
    assert_int_equal(hone_os_replace_file(path, "old", 3, &err), HONE_OK);
    assert_int_equal(stat(path, &info), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(info.st_mode & 07777, 0666 & ~mask);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("file", alias), 0);
    assert_int_equal(hone_os_replace_file(alias, "newer", 5, &err), HONE_OK);
    assert_holds(path, "newer");
    assert_int_equal(lstat(alias, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_int_equal(files_in(folder), 2);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

static void a_file_that_cannot_be_replaced_stays_and_leaves_nothing_beside_it(void **state)
{
    (void)state;
    char folder[256], path[300], long_path[8000];
    hone_error err = {0};
    make_temporary(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/folder", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(hone_os_replace_file(path, "x", 1, &err), HONE_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(files_in(folder), 1);
    snprintf(path, sizeof path, "%s/none/file", folder);
    assert_int_equal(hone_os_replace_file(path, "x", 1, &err), HONE_IO);
    assert_non_null(strstr(err.message, path));
    memset(long_path, 'x', sizeof long_path);
    long_path[sizeof long_path - 1] = '\0';
    assert_int_equal(hone_os_replace_file(long_path, "x", 1, &err), HONE_IO);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

static void what_stands_for_a_pipe_is_written_to_and_stays(void **state)
{
    (void)state;
    char folder[256], path[300], alias[300], read_back[8] = "";
    hone_error err = {0};
    struct stat info;
    make_temporary(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/pipe", folder);
    snprintf(alias, sizeof alias, "%s/alias", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(symlink("pipe", alias), 0);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    assert_int_equal(hone_os_replace_file(alias, "text", 4, &err), HONE_OK);
    assert_int_equal(read(fd, read_back, sizeof read_back), 4);
    assert_string_equal(read_back, "text");
    close(fd);
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(files_in(folder), 2);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

static bool count_name(void *ctx, const char *name)
{
    (void)name;
    ++*(size_t *)ctx;
    return true;
}

static void a_file_is_written_under_another_name_and_takes_its_place(void **state)
{
    (void)state;
    char folder[256], path[300], beside[300], second[300];
    hone_error err = {0};
    struct stat info;
    size_t names = 0;
    make_temporary(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(beside, sizeof beside, "%s/.file", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    assert_int_equal(hone_os_replace_file(path, "old", 3, &err), HONE_OK);
    assert_int_equal(chmod(path, 0604), 0);
    const hone_file_stamp before = hone_os_file_stamp(path);
    assert_int_equal(before.size, 3);
    assert_int_equal(hone_os_link(path, second, &err), HONE_OK);
    assert_int_equal(symlink("file", beside), 0); // is not written through
    assert_int_equal(hone_os_write_beside(path, beside, "newer", 5, &err), HONE_OK);
    assert_holds(path, "old");
    assert_int_equal(stat(beside, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0604);
    assert_int_equal(hone_os_rename(beside, path, &err), HONE_OK);
    assert_int_equal(hone_os_sync_folder(folder, &err), HONE_OK);
    assert_holds(path, "newer");
    assert_holds(second, "old");
    assert_true(hone_os_file_stamp(path).inode != before.inode);
    assert_int_equal(hone_os_list_folder(folder, count_name, &names, &err), HONE_OK);
    assert_int_equal(names, 2);
    hone_os_remove_file(path);
    assert_int_equal(hone_os_file_stamp(path).inode, 0);
    assert_int_equal(hone_os_list_folder(path, count_name, &names, &err), HONE_NOT_FOUND);
    assert_int_equal(hone_os_rename(beside, path, &err), HONE_IO);
    assert_int_equal(hone_os_link(beside, path, &err), HONE_IO);
    assert_true(hone_os_is_folder(folder) && !hone_os_is_folder(second));
    assert_true(hone_os_is_plain_file(second) && !hone_os_is_plain_file(folder));
    assert_int_equal(symlink("second", beside), 0);
    assert_false(hone_os_is_plain_file(beside));
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

static void an_address_knows_its_object(void **state)
{
    (void)state;
    static const int here = 1;
    char path[512], exe[512];
    assert_true(hone_os_object_path(&here, path, sizeof path));
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    assert_true(length > 0);
    exe[length] = '\0';
    assert_string_equal(path, exe);
    assert_true(hone_os_is_executable(path));
    assert_false(hone_os_object_path(&here, path, 3));
    int local;
    assert_false(hone_os_object_path(&local, path, sizeof path));
}

static void a_library_opens_under_the_first_name_that_works(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_error err = {0};
    hone_library *library = NULL;
    const char *const good[] = {"libno_such_thing.so.9", "libm.so.6", NULL};
    assert_int_equal(hone_library_open(&allocator, good, &library, &err), HONE_OK);
    assert_non_null(hone_library_symbol(library, "cos"));
    assert_null(hone_library_symbol(library, "no_such_symbol_of_hone"));
    hone_library_close(&allocator, &library);
    assert_null(library);
    hone_library_close(&allocator, &library);
    const char *const bad[] = {"libno_such_thing.so.9", "libnor_this.so", NULL};
    assert_int_equal(hone_library_open(&allocator, bad, &library, &err), HONE_UNAVAILABLE);
    assert_non_null(strstr(err.message, "libno_such_thing.so.9"));
    assert_non_null(strstr(err.message, "libnor_this.so"));
}

typedef struct few_functions {
    void *unused;
    double (*cosine)(double);
    double (*newer)(double);
} few_functions;

static void the_functions_of_a_library_fill_a_struct_and_a_missing_one_is_named(void **state)
{
    (void)state;
    static const hone_library_function wanted[] = {
        {"no_such_symbol_of_hone", offsetof(few_functions, newer), true},
        {"cos", offsetof(few_functions, cosine), false},
        {"neither_is_this_one", offsetof(few_functions, newer), false},
    };
    const hone_allocator allocator = hone_allocator_system();
    const char *const names[] = {"libm.so.6", NULL};
    few_functions f = {.newer = cos};
    hone_library *library = NULL;
    assert_int_equal(hone_library_open(&allocator, names, &library, NULL), HONE_OK);
    assert_null(hone_library_functions(library, wanted, 2, &f));
    assert_true(f.cosine(0.0) == 1.0);
    assert_true(f.newer == NULL && f.unused == NULL);
    assert_string_equal(hone_library_functions(library, wanted, 3, &f), "neither_is_this_one");
    hone_library_close(&allocator, &library);
}

static void the_cpu_says_what_it_is(void **state)
{
    (void)state;
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    assert_true(strlen(cpu.vendor) > 0);
    assert_true(strlen(cpu.microarchitecture) > 0);
    assert_true(cpu.threads >= 1);
    assert_true(cpu.memory_bytes > 0);
    assert_true(cpu.l1_bytes > 0 && cpu.l2_bytes >= cpu.l1_bytes);
    assert_int_equal((cpu.features & HONE_CPU_AVX2) != 0, __builtin_cpu_supports("avx2") != 0);
    assert_int_equal((cpu.features & HONE_CPU_AVX512F) != 0, __builtin_cpu_supports("avx512f") != 0);
    assert_true(hone_os_thread_count() >= 1);
}

static void tiles_count_where_the_system_lends_them(void **state)
{
    (void)state;
    const uint64_t config = 1 << 17, data = 1 << 18, both = config | data;
    assert_int_equal(hone_os_matrix_features(true, true, true, both), HONE_CPU_AMX_BF16 | HONE_CPU_AMX_INT8);
    assert_int_equal(hone_os_matrix_features(true, true, false, both | 7), HONE_CPU_AMX_BF16);
    assert_int_equal(hone_os_matrix_features(true, false, true, both), HONE_CPU_AMX_INT8);
    assert_int_equal(hone_os_matrix_features(true, true, true, config), 0);
    assert_int_equal(hone_os_matrix_features(true, true, true, data), 0);
    assert_int_equal(hone_os_matrix_features(true, true, true, 0), 0);
    assert_int_equal(hone_os_matrix_features(false, true, true, both), 0);
}

// In a process of its own: what is granted stays.
static int ask_for_tiles(void)
{
    static char small[4096];
    const stack_t stack = {.ss_sp = small, .ss_size = sizeof small}, none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(&stack, NULL) != 0) return 1;
    if (hone_os_lend_tiles()) return 2;
    if (sigaltstack(&none, NULL) != 0 || !hone_os_lend_tiles() || !hone_os_lend_tiles()) return 3;
    return sigaltstack(&stack, NULL) == 0 ? 4 : 0;
}

static void tiles_are_lent_unless_a_signal_stack_is_too_small_for_them(void **state)
{
    (void)state;
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    if ((cpu.features & HONE_CPU_AMX_BF16) == 0) {
        assert_false(hone_os_lend_tiles());
        print_message("this processor has no tiles\n");
        return;
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(ask_for_tiles());
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

static void a_folder_whose_owner_was_killed_goes_and_one_in_use_stays(void **state)
{
    (void)state;
    temporary_folder parent;
    assert_int_equal(temporary_folder_make(&parent), 0);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        char folder[TEMPORARY_PATH_SIZE], file[TEMPORARY_PATH_SIZE + 8];
        int hold;
        setenv("TMPDIR", parent.path, 1);
        if (!hone_os_make_private_folder(folder, sizeof folder, &hold)) _exit(1);
        snprintf(file, sizeof file, "%s/file", folder);
        close(open(file, O_WRONLY | O_CREAT, 0600));
        if (write(ready[1], folder, sizeof folder) != sizeof folder) _exit(1);
        pause();
        _exit(0);
    }
    char folders[2][TEMPORARY_PATH_SIZE];
    for (int i = 0; i < 2; i++)
        assert_int_equal(read(ready[0], folders[i], sizeof folders[i]), sizeof folders[i]);
    kill(children[0], SIGKILL);
    waitpid(children[0], NULL, 0);
    pid_t next = fork();
    if (next == 0) {
        char folder[TEMPORARY_PATH_SIZE];
        int hold;
        setenv("TMPDIR", parent.path, 1);
        if (!hone_os_make_private_folder(folder, sizeof folder, &hold)) _exit(1);
        hone_os_remove_private_folder(folder, &hold);
        _exit(hone_os_is_folder(folder));
    }
    int status = -1, left = 0;
    waitpid(next, &status, 0);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++)
        left += hone_os_is_folder(folders[i]);
    assert_int_equal(left, 1);
    kill(children[1], SIGKILL);
    waitpid(children[1], NULL, 0);
    close(ready[0]);
    close(ready[1]);
    temporary_folder_remove(&parent);
}

static void a_link_or_a_folder_open_to_others_is_not_a_private_folder(void **state)
{
    (void)state;
    temporary_folder parent;
    char own[TEMPORARY_PATH_SIZE], link[TEMPORARY_PATH_SIZE];
    hone_error err;
    assert_int_equal(temporary_folder_make(&parent), 0);
    snprintf(own, sizeof own, "%s/own", parent.path);
    snprintf(link, sizeof link, "%s/link", parent.path);
    assert_int_equal(hone_os_make_own_folder(own, &err), HONE_OK);
    assert_int_equal(hone_os_make_own_folder(own, &err), HONE_OK);
    assert_int_equal(symlink(own, link), 0);
    assert_int_equal(hone_os_make_own_folder(link, &err), HONE_IO);
    assert_int_equal(chmod(own, 0755), 0);
    assert_int_equal(hone_os_make_own_folder(own, &err), HONE_IO);
    assert_non_null(strstr(err.message, "0700"));
    if (geteuid() == 0) {
        assert_int_equal(chmod(own, 0700) | chown(own, 65534, 65534), 0);
        assert_int_equal(hone_os_make_own_folder(own, &err), HONE_IO);
    }
    temporary_folder_remove(&parent);
}

enum { BLOCK = 5 * 4096 };

// How a process ended that wrote to an address: 0, or the signal that ended it.
static int signal_of_write(volatile char *address, const volatile char *what)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        *address = *what;
        _exit(0);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code);
}

static void a_write_to_guarded_memory_is_noted_and_goes_on(void **state)
{
    (void)state;
    hone_os_guard guard = {NULL, 0, 0}, other = {NULL, 0, 0}, none = {NULL, 0, 0};
    volatile char *block = aligned_alloc(4096, BLOCK), *second = aligned_alloc(4096, BLOCK);
    assert_true(block != NULL && second != NULL);
    memset((char *)block, 1, BLOCK);
    memset((char *)second, 1, BLOCK);
    assert_true(hone_os_guard_begin());
    assert_false(hone_os_guard_was_written(&none));
    assert_true(hone_os_guard_open(&none));
    assert_false(hone_os_guard_close(&none, (char *)block + 1, 4096)); // it holds no page
    for (int round = 0; round < 2; round++) {
        assert_true(hone_os_guard_close(&guard, (char *)block + 1, BLOCK - 1));
        assert_true(hone_os_guard_close(&other, (char *)second, BLOCK));
        assert_true(guard.from == (char *)block + 4096 && guard.size == BLOCK - 4096);
        block[1] = 2; // before the first whole page
        assert_int_equal(block[BLOCK - 1], round == 0 ? 1 : 3);
        assert_false(hone_os_guard_was_written(&guard));
        block[BLOCK - 1] = 3;
        block[4096] = 4;
        assert_true(block[BLOCK - 1] == 3 && block[4096] == 4);
        assert_true(hone_os_guard_was_written(&guard));
        assert_false(hone_os_guard_was_written(&other));
        assert_true(hone_os_guard_open(&guard) && hone_os_guard_open(&other));
        assert_false(hone_os_guard_was_written(&guard));
    }
    free((void *)block);
    free((void *)second);
}

static void a_fault_outside_guarded_memory_ends_the_process(void **state)
{
    (void)state;
    static const char byte = 1;
    hone_os_guard guard = {NULL, 0, 0};
    signal(SIGSEGV, SIG_DFL);
    char *block = aligned_alloc(4096, BLOCK);
    char *closed = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != NULL && closed != MAP_FAILED && hone_os_guard_begin());
    assert_true(hone_os_guard_close(&guard, block, BLOCK));
    assert_int_equal(signal_of_write(block, &byte), 0);
    assert_int_equal(signal_of_write(closed, &byte), SIGSEGV);
    assert_true(hone_os_guard_open(&guard));
    assert_int_equal(signal_of_write(block, &byte), 0);
    munmap(closed, 4096);
    free(block);
}

typedef struct counter {
    atomic_int thread; // 0: it has not begun
    _Atomic uint64_t count;
    atomic_bool ends;
} counter;

static void *count(void *ctx)
{
    counter *c = ctx;
    hone_os_holdable self;
    atomic_store(&c->thread, hone_os_hold_join(&self));
    while (!atomic_load(&c->ends))
        atomic_fetch_add(&c->count, 1);
    hone_os_hold_leave(&self);
    return NULL;
}

static void a_thread_that_is_held_stands_still_until_it_is_released(void **state)
{
    (void)state;
    const uint64_t minute = UINT64_C(60000000000);
    counter c = {0};
    pthread_t thread;
    assert_true(hone_os_hold_begin());
    assert_int_equal(pthread_create(&thread, NULL, count, &c), 0);
    while (atomic_load(&c.thread) == 0)
        hone_os_sleep_ns(1000);
    for (int i = 0; i < 8; i++) {
        assert_true(hone_os_hold(atomic_load(&c.thread), minute, minute));
        const uint64_t stands_at = atomic_load(&c.count);
        hone_os_sleep_ns(1000000);
        assert_true(atomic_load(&c.count) == stands_at);
        hone_os_hold_release();
        while (atomic_load(&c.count) == stands_at)
            hone_os_sleep_ns(1000);
    }
    atomic_store(&c.ends, true);
    pthread_join(thread, NULL);
    assert_false(hone_os_hold(atomic_load(&c.thread), 1000, minute));
    hone_os_hold_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_go_forward_and_times_have_one_form),
        cmocka_unit_test(folders_are_made_with_their_parents),
        cmocka_unit_test(a_file_is_read_whole_or_refused),
        cmocka_unit_test(a_file_is_replaced_with_its_mode_through_links_and_without_leftovers),
        cmocka_unit_test(a_file_that_cannot_be_replaced_stays_and_leaves_nothing_beside_it),
        cmocka_unit_test(what_stands_for_a_pipe_is_written_to_and_stays),
        cmocka_unit_test(a_file_is_written_under_another_name_and_takes_its_place),
        cmocka_unit_test(an_address_knows_its_object),
        cmocka_unit_test(a_library_opens_under_the_first_name_that_works),
        cmocka_unit_test(the_functions_of_a_library_fill_a_struct_and_a_missing_one_is_named),
        cmocka_unit_test(the_cpu_says_what_it_is),
        cmocka_unit_test(tiles_count_where_the_system_lends_them),
        cmocka_unit_test(tiles_are_lent_unless_a_signal_stack_is_too_small_for_them),
        cmocka_unit_test(a_folder_whose_owner_was_killed_goes_and_one_in_use_stays),
        cmocka_unit_test(a_link_or_a_folder_open_to_others_is_not_a_private_folder),
        cmocka_unit_test(a_write_to_guarded_memory_is_noted_and_goes_on),
        cmocka_unit_test(a_fault_outside_guarded_memory_ends_the_process),
        cmocka_unit_test(a_thread_that_is_held_stands_still_until_it_is_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
