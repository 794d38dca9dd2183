// Damaged files are moved aside with what belongs to them, and none is ever lost.
#include "os/os.h"
#include "store/sqlite/aside.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const companions[] = {"", "-wal", "-shm", "-journal"};
enum { COMPANIONS = sizeof companions / sizeof companions[0] };

typedef struct ground {
    temporary_folder folder;
    char path[TEMPORARY_PATH_SIZE];
    hone_error err;
} ground;

static int setup(void **state)
{
    ground *g = calloc(1, sizeof *g);
    *state = g;
    if (g == NULL || temporary_folder_make(&g->folder) != 0) return -1;
    snprintf(g->path, sizeof g->path, "%s/store.db", g->folder.path);
    return 0;
}

static int teardown(void **state)
{
    ground *g = *state;
    temporary_folder_remove(&g->folder);
    free(g);
    return 0;
}

static void name_of(char out[HONE_ASIDE_SIZE], const char *path, const char *suffix)
{
    assert_in_range(snprintf(out, HONE_ASIDE_SIZE, "%s%s", path, suffix), 1, HONE_ASIDE_SIZE - 1);
}

// Its text is its number and its suffix.
static void write_file(const char *path, const char *suffix, int number)
{
    char name[HONE_ASIDE_SIZE];
    name_of(name, path, suffix);
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fprintf(file, "%d%s", number, suffix);
    fclose(file);
}

static void assert_file(const char *path, const char *suffix, int number)
{
    char name[HONE_ASIDE_SIZE], text[64] = "", expected[64];
    name_of(name, path, suffix);
    FILE *file = fopen(name, "r");
    if (file == NULL) fail_msg("%s is not there", name);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    snprintf(expected, sizeof expected, "%d%s", number, suffix);
    assert_string_equal(text, expected);
}

static void assert_no_file(const char *path, const char *suffix)
{
    char name[HONE_ASIDE_SIZE];
    name_of(name, path, suffix);
    if (hone_os_is_file(name)) fail_msg("%s is there", name);
}

// "PATH.damaged-20261120T123456Z", and a number behind it where that was taken.
static void assert_dated(const ground *g, const char *moved, int number)
{
    const size_t size = strlen(g->path);
    assert_memory_equal(moved, g->path, size);
    assert_memory_equal(moved + size, ".damaged-", 9);
    const char *date = moved + size + 9;
    assert_int_equal(strspn(date, "0123456789"), 8);
    assert_int_equal(date[8], 'T');
    assert_int_equal(strspn(date + 9, "0123456789"), 6);
    assert_int_equal(date[15], 'Z');
    char end[16] = "";
    if (number > 1) snprintf(end, sizeof end, "-%d", number);
    assert_string_equal(date + 16, end);
}

static void a_file_goes_aside_with_all_that_belongs_to_it(void **state)
{
    ground *g = *state;
    char moved[HONE_ASIDE_SIZE];
    for (int i = 0; i < COMPANIONS; i++)
        write_file(g->path, companions[i], 1);
    assert_int_equal(hone_aside_move(g->path, moved, &g->err), HONE_OK);
    assert_dated(g, moved, 1);
    for (int i = 0; i < COMPANIONS; i++) {
        assert_file(moved, companions[i], 1);
        assert_no_file(g->path, companions[i]);
    }
    // What is not there is not missed.
    char again[HONE_ASIDE_SIZE];
    write_file(g->path, "-shm", 2);
    assert_int_equal(hone_aside_move(g->path, again, &g->err), HONE_OK);
    assert_file(again, "-shm", 2);
    assert_no_file(again, "-wal");
    assert_file(moved, "", 1);
}

static void those_of_one_second_are_numbered_and_none_takes_anothers_name(void **state)
{
    enum { COUNT = 5 };
    ground *g = *state;
    char moved[COUNT][HONE_ASIDE_SIZE];
    const size_t dated = strlen(g->path) + 9 + 16;
    int number = 0, most = 0;
    for (int i = 0; i < COUNT; i++) {
        write_file(g->path, "", i);
        if (hone_aside_move(g->path, moved[i], &g->err) != HONE_OK) fail_msg("%s", g->err.message);
        number = i > 0 && strncmp(moved[i], moved[i - 1], dated) == 0 ? number + 1 : 1;
        most = number > most ? number : most;
        assert_dated(g, moved[i], number);
    }
    assert_true(most > 1);
    for (int i = 0; i < COUNT; i++)
        assert_file(moved[i], "", i);
}

static void a_file_that_others_have_open_is_replaced_and_kept(void **state)
{
    ground *g = *state;
    char moved[HONE_ASIDE_SIZE], fresh[TEMPORARY_PATH_SIZE + 8];
    snprintf(fresh, sizeof fresh, "%s.new", g->path);
    for (int i = 0; i < COMPANIONS; i++)
        write_file(g->path, companions[i], 1);
    write_file(fresh, "", 2);
    assert_int_equal(hone_aside_replace(g->path, fresh, moved, &g->err), HONE_OK);
    assert_dated(g, moved, 1);
    for (int i = 0; i < COMPANIONS; i++)
        assert_file(moved, companions[i], 1);
    assert_file(g->path, "", 2);
    assert_no_file(g->path, "-wal");
    assert_no_file(fresh, "");
    // Without a fresh one the old one stays where it is.
    assert_int_not_equal(hone_aside_replace(g->path, fresh, moved, &g->err), HONE_OK);
    assert_file(g->path, "", 2);
}

// What another process is told that asks for the lock.
static hone_status ask_elsewhere(const char *name)
{
    int come = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd = -1;
        hone_status status = hone_os_lock_open(name, 0, &fd, NULL);
        _exit((int)(status == HONE_OK ? hone_os_lock_try(fd, 0, NULL) : status));
    }
    assert_int_equal(waitpid(child, &come, 0), child);
    assert_true(WIFEXITED(come));
    return (hone_status)WEXITSTATUS(come);
}

static void a_repair_holds_the_lock_beside_the_file(void **state)
{
    ground *g = *state;
    char name[HONE_ASIDE_SIZE], expected[HONE_ASIDE_SIZE];
    int fd = -1;
    write_file(g->path, "", 1);
    assert_false(hone_aside_is_begun(g->path));
    assert_int_equal(hone_aside_lock(g->path, &fd, &g->err), HONE_OK);
    assert_true(fd >= 0);
    assert_true(hone_aside_name(g->path, name));
    name_of(expected, g->path, ".lock");
    assert_string_equal(name, expected);
    assert_true(hone_os_is_file(name));
    assert_true(hone_aside_is_begun(g->path));
    assert_int_equal(ask_elsewhere(name), HONE_BUSY);
    hone_os_lock_close(&fd);
    assert_int_equal(ask_elsewhere(name), HONE_OK);
    assert_true(hone_aside_is_begun(g->path)); // it may be held again
}

static void a_path_without_room_for_a_name_is_refused_and_said(void **state)
{
    ground *g = *state;
    char path[HONE_ASIDE_SIZE + 8], out[HONE_ASIDE_SIZE];
    int fd = -1;
    memset(path, 'x', sizeof path);
    path[HONE_ASIDE_SIZE - 1 - 5] = '\0'; // ".lock" and the end
    assert_true(hone_aside_name(path, out));
    assert_int_equal(strlen(out), HONE_ASIDE_SIZE - 1);
    path[HONE_ASIDE_SIZE - 1 - 5] = 'x';
    path[HONE_ASIDE_SIZE - 5] = '\0';
    assert_false(hone_aside_name(path, out));
    assert_false(hone_aside_is_begun(path));
    assert_int_equal(hone_aside_lock(path, &fd, &g->err), HONE_IO);
    assert_non_null(strstr(g->err.message, "the path is too long"));
    assert_int_equal(hone_aside_move(path, out, &g->err), HONE_IO);
    assert_non_null(strstr(g->err.message, "the path is too long"));
    assert_int_equal(hone_aside_replace(path, g->path, out, &g->err), HONE_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_goes_aside_with_all_that_belongs_to_it, setup, teardown),
        cmocka_unit_test_setup_teardown(those_of_one_second_are_numbered_and_none_takes_anothers_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_others_have_open_is_replaced_and_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(a_repair_holds_the_lock_beside_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_without_room_for_a_name_is_refused_and_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
