// Files of a pack: none outside of its folder, none that is not what pack.json says.
#include "fixture.h"

#include "hone/hone.h"

#include <sys/stat.h>
#include <unistd.h>

static void refuse(fixture *f, const char *name, const char *words)
{
    char more[600];
    snprintf(more, sizeof more, ", 'file': '%s', 'sha256': '%%'", name);
    const char *refusal = fixture_refusal(f, more);
    if (refusal == NULL) fail_msg("%s was taken", name);
    if (strstr(refusal, words) == NULL) fail_msg("%s: %s", name, refusal);
}

static void names_stay_in_the_folder(void **state)
{
    (void)state;
    fixture f;
    char path[TEMPORARY_PATH_SIZE];
    fixture_open(&f);
    snprintf(path, sizeof path, "%s/sub", f.folder.path);
    assert_int_equal(mkdir(path, 0777), 0);
    refuse(&f, "", "is empty");
    refuse(&f, "/etc/passwd", "is an absolute path");
    refuse(&f, "../a.c", "has '.' or '..' in it");
    refuse(&f, "sub/../a.c", "has '.' or '..' in it");
    refuse(&f, "./a.c", "has '.' or '..' in it");
    refuse(&f, "sub//a.c", "has an empty part");
    refuse(&f, "sub/", "is a folder");
    refuse(&f, "sub", "is not a regular file");
    refuse(&f, "a\\\\b", "has a character in it");
    refuse(&f, "none.c", "there is no 'none.c'");
    fixture_close(&f);
}

static void links_may_not_lead_out(void **state)
{
    (void)state;
    fixture f, outside;
    char path[2 * TEMPORARY_PATH_SIZE], target[2 * TEMPORARY_PATH_SIZE];
    fixture_open(&f);
    fixture_open(&outside);
    fixture_write(&outside, "a.c", "code\n");
    snprintf(target, sizeof target, "%s/a.c", outside.folder.path);
    snprintf(path, sizeof path, "%s/link.c", f.folder.path);
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof path, "%s/sub", f.folder.path);
    assert_int_equal(symlink(outside.folder.path, path), 0);
    snprintf(path, sizeof path, "%s/round", f.folder.path);
    assert_int_equal(symlink("round", path), 0);
    snprintf(path, sizeof path, "%s/pipe", f.folder.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/inside.c", f.folder.path);
    assert_int_equal(symlink("a.c", path), 0);
    refuse(&f, "link.c", "is a link that leaves the folder of the pack");
    refuse(&f, "sub/a.c", "is a link that leaves the folder of the pack");
    refuse(&f, "round", "there is no 'round'");
    refuse(&f, "pipe", "is not a regular file");
    assert_null(fixture_refusal(&f, ", 'file': 'inside.c', 'sha256': '%'"));
    fixture_close(&outside);
    fixture_close(&f);
}

static void bytes_must_be_those_that_were_meant(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    assert_null(fixture_refusal(&f, ", 'file': 'a.c', 'sha256': '%'"));
    const hone_pack_file *file = hone_pack_file_named(fixture_kernel(&f, 0), "a.c");
    assert_non_null(file);
    assert_null(hone_pack_file_named(fixture_kernel(&f, 0), "b.c"));
    assert_int_equal(file->size, 5);
    assert_int_equal(hone_pack_read_file(file, &bytes, &f.err), HONE_OK);
    assert_string_equal(hone_buffer_string(&bytes), "code\n");
    fixture_write(&f, "a.c", "edoc\n");
    assert_int_equal(hone_pack_read_file(file, &bytes, &f.err), HONE_CORRUPT);
    assert_non_null(strstr(f.err.message, "the file was changed"));
    // And when the pack is read anew, the kernel alone is refused.
    assert_int_equal(fixture_read(&f), HONE_OK);
    assert_non_null(strstr(fixture_kernel(&f, 0)->refusal, "the file was changed"));
    assert_int_equal(fixture_kernel(&f, 0)->status, HONE_CORRUPT);
    hone_buffer_deinit(&bytes);
    fixture_close(&f);
}

static void an_empty_file_is_none(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    fixture_write(&f, "empty.c", "");
    const char *refusal = fixture_refusal(
        &f, ", 'file': 'empty.c', 'sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'");
    assert_non_null(refusal);
    assert_non_null(strstr(refusal, "is empty"));
    fixture_close(&f);
}

static void a_file_has_one_digest(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    const char *refusal = fixture_refusal(
        &f, ", 'file': 'a.c', 'sha256': '%', 'files': [{'file': 'a.c', "
            "'sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}]");
    assert_non_null(refusal);
    fixture_close(&f);
}

static void a_folder_without_a_pack_is_said(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    assert_int_equal(fixture_read(&f), HONE_NOT_FOUND);
    assert_non_null(strstr(f.err.message, "there is no pack.json in this folder"));
    char path[TEMPORARY_PATH_SIZE];
    snprintf(path, sizeof path, "%s/pack.json", f.folder.path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(fixture_read(&f), HONE_CORRUPT);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stay_in_the_folder),
        cmocka_unit_test(links_may_not_lead_out),
        cmocka_unit_test(bytes_must_be_those_that_were_meant),
        cmocka_unit_test(an_empty_file_is_none),
        cmocka_unit_test(a_file_has_one_digest),
        cmocka_unit_test(a_folder_without_a_pack_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
