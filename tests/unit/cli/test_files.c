// Files as the command reads and replaces them, and the folder of `hone ab`.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../../cli/ab.h"

#include "temporary_folder.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void assert_holds(const char *path, const char *expected)
{
    cli_text text;
    hone_error err;
    assert_int_equal(cli_read_file(path, 100, &text, &err), HONE_OK);
    assert_string_equal(cli_text_string(&text), expected);
    cli_text_deinit(&text);
}

static bool count_one(void *ctx, const char *name)
{
    (void)name;
    ++*(size_t *)ctx;
    return true;
}

static void a_file_is_replaced_with_its_mode_and_nothing_stays_beside_it(void **state)
{
    (void)state;
    temporary_folder own;
    const char *folder = own.path;
    char path[TEMPORARY_PATH_SIZE], link[TEMPORARY_PATH_SIZE], inner[TEMPORARY_PATH_SIZE];
    hone_error err;
    size_t count = 0;
    struct stat info;
    assert_int_equal(temporary_folder_make(&own), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(cli_write_file(path, "old", 3, &err), HONE_OK);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(cli_write_file(link, "new", 3, &err), HONE_OK);
    assert_holds(path, "new");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(cli_write_file("/dev/null", "new", 3, &err), HONE_OK);
    snprintf(inner, sizeof inner, "%s/folder", folder);
    assert_int_equal(cli_make_folders(inner, &err), HONE_OK);
    assert_int_equal(cli_write_file(inner, "new", 3, &err), HONE_IO);
    assert_int_equal(cli_list_folder(folder, count_one, &count, &err), HONE_OK);
    assert_int_equal(count, 3); // the file, the link and the folder
    temporary_folder_remove(&own);
    assert_int_equal(cli_write_file(path, "new", 3, &err), HONE_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_not_equal(err.system_code, 0);
    assert_int_equal(cli_list_folder(folder, count_one, &count, &err), HONE_NOT_FOUND);
}

static void large_missing_and_special_files_are_refused(void **state)
{
    (void)state;
    temporary_folder own;
    const char *folder = own.path;
    char path[TEMPORARY_PATH_SIZE], pipe[TEMPORARY_PATH_SIZE];
    cli_text text;
    hone_error err;
    assert_int_equal(temporary_folder_make(&own), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    assert_int_equal(cli_read_plain_file(path, 100, &text, &err), HONE_NOT_FOUND);
    assert_int_equal(cli_write_file(path, "12345", 5, &err), HONE_OK);
    assert_int_equal(cli_read_plain_file(path, 5, &text, &err), HONE_OK);
    cli_text_deinit(&text);
    assert_int_equal(cli_read_plain_file(path, 4, &text, &err), HONE_INVALID_ARGUMENT);
    cli_text_deinit(&text);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (const char *const *other = (const char *const[]){folder, pipe, "/dev/null", NULL}; *other != NULL; other++) {
        assert_int_equal(cli_read_plain_file(*other, 100, &text, &err), HONE_IO);
        assert_non_null(strstr(err.message, "is not a regular file"));
    }
    temporary_folder_remove(&own);
}

static void folders_are_made_with_their_parents(void **state)
{
    (void)state;
    temporary_folder own;
    const char *folder = own.path;
    char path[TEMPORARY_PATH_SIZE];
    hone_error err;
    assert_int_equal(temporary_folder_make(&own), 0);
    snprintf(path, sizeof path, "%s/a/b//c/", folder);
    assert_int_equal(cli_make_folders(path, &err), HONE_OK);
    assert_true(cli_is_folder(path));
    assert_int_equal(cli_make_folders(path, &err), HONE_OK);
    snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(cli_write_file(path, "", 0, &err), HONE_OK);
    assert_int_equal(cli_make_folders(path, &err), HONE_IO);
    assert_non_null(strstr(err.message, "is not a folder"));
    snprintf(path, sizeof path, "%s/file/more", folder);
    assert_int_equal(cli_make_folders(path, &err), HONE_IO);
    assert_int_equal(cli_make_folders("", &err), HONE_INVALID_ARGUMENT);
    temporary_folder_remove(&own);
}

static void a_folder_whose_owner_was_killed_goes_and_one_that_is_held_stays(void **state)
{
    (void)state;
    temporary_folder own;
    const char *folder = own.path;
    char left[TEMPORARY_PATH_SIZE], link[TEMPORARY_PATH_SIZE], aside[TEMPORARY_PATH_SIZE], held[AB_PATH_SIZE],
        other[AB_PATH_SIZE];
    hone_error err;
    assert_int_equal(temporary_folder_make(&own), 0);
    setenv("TMPDIR", folder, 1);
    snprintf(left, sizeof left, "%s/hone-ab-killed/deep", folder);
    snprintf(link, sizeof link, "%s/hone-ab-killed/link", folder);
    snprintf(aside, sizeof aside, "%s/aside", folder);
    assert_int_equal(cli_make_folders(left, &err), HONE_OK);
    assert_int_equal(cli_make_folders(aside, &err), HONE_OK);
    assert_int_equal(symlink(aside, link), 0);
    strcat(aside, "/file");
    assert_int_equal(cli_write_file(aside, "stays", 5, &err), HONE_OK);
    const int hold = ab_make_folder(held), second = ab_make_folder(other);
    assert_true(hold >= 0 && second >= 0);
    assert_false(cli_is_folder(left));
    assert_int_equal(access(link, F_OK), -1);
    assert_true(cli_is_folder(held) && cli_is_folder(other));
    assert_holds(aside, "stays");
    ab_remove_folder(held, hold);
    ab_remove_folder(other, second);
    assert_false(cli_is_folder(held) || cli_is_folder(other));
    setenv("TMPDIR", "/nowhere", 1);
    assert_int_equal(ab_make_folder(other), -1);
    temporary_folder_remove(&own);
}

static void times_are_told_in_utc_and_bits_are_drawn(void **state)
{
    (void)state;
    char text[24];
    int sum = 0;
    uint64_t random = cli_random_seed();
    assert_true(random >= 1 && random <= UINT64_C(1) << 52);
    for (int i = 0; i < 1000; i++)
        sum += cli_random_bit(&random);
    assert_in_range(sum, 400, 600);
    cli_utc_text(1795181696, text);
    assert_string_equal(text, "2026-11-20T13:34:56Z");
    cli_utc_text(1e300, text);
    assert_string_equal(text, "1970-01-01T00:00:00Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_with_its_mode_and_nothing_stays_beside_it),
        cmocka_unit_test(large_missing_and_special_files_are_refused),
        cmocka_unit_test(folders_are_made_with_their_parents),
        cmocka_unit_test(a_folder_whose_owner_was_killed_goes_and_one_that_is_held_stays),
        cmocka_unit_test(times_are_told_in_utc_and_bits_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
