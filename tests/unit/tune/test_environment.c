// The environment: one table in the code and in the docs, and what a difference means.
#include "base/json.h"
#include "os/os.h"
#include "temporary_folder.h"
#include "tune/result/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const hone_device_info device = {
    .struct_size = sizeof device, .name = "A \"CPU\"", .fingerprint = "f", .driver = "driver 7"};

static json_t *read_environment(const hone_kernel *kernel, bool counted)
{
    hone_buffer out;
    json_t *root = NULL;
    hone_buffer_init(&out, hone_allocator_system());
    (counted ? hone_environment_counted_json : hone_environment_json)(&device, kernel, &out);
    assert_int_equal(hone_json_parse(out.data, out.size, &root, NULL), HONE_OK);
    hone_buffer_deinit(&out);
    return root;
}

static const char *fact_of(const json_t *root, const char *name)
{
    return json_string_value(json_object_get(root, name));
}

static void the_environment_is_an_object_of_texts(void **state)
{
    (void)state;
    json_t *root = read_environment(NULL, false);
    assert_string_equal(fact_of(root, "device"), "A \"CPU\"");
    assert_string_equal(fact_of(root, "driver"), "driver 7");
    assert_string_equal(fact_of(root, "hone"), hone_version());
    assert_non_null(fact_of(root, "os_release"));
    assert_int_equal(strlen(fact_of(root, "kernels")), 16);
    assert_non_null(fact_of(root, "compiler"));
    assert_non_null(strchr(fact_of(root, "flags"), '-'));
    assert_null(fact_of(root, "library"));
    json_decref(root);
}

static void only_what_counts_stands_beside_measurements(void **state)
{
    (void)state;
    json_t *root = read_environment(NULL, true);
    assert_non_null(fact_of(root, "compiler"));
    assert_null(fact_of(root, "os_release"));
    assert_null(fact_of(root, "device"));
    json_decref(root);
}

// The C library is here in every version.
static void a_kernels_library_is_named_by_its_file(void **state)
{
    (void)state;
    const hone_kernel kernel = {HONE_KERNEL, .library = "libc.so.6"};
    const hone_kernel absent = {HONE_KERNEL, .library = "libhone-that-is-not-there.so.1"};
    char path[4096], build[HONE_LIBRARY_BUILD_SIZE], said[256];
    assert_true(hone_library_find("libc.so.6", path, sizeof path));
    assert_true(hone_library_build(path, build));
    snprintf(said, sizeof said, "%s %s", strrchr(path, '/') + 1, build);
    json_t *root = read_environment(&kernel, true);
    assert_string_equal(fact_of(root, "library"), said);
    json_decref(root);
    root = read_environment(&absent, true);
    assert_null(fact_of(root, "library"));
    json_decref(root);
    assert_false(hone_library_find("libc.so.6", path, 3));
}

static char found_library[TEMPORARY_PATH_SIZE];

static bool find_library(const hone_kernel *kernel, char *path, size_t size)
{
    (void)kernel;
    return snprintf(path, size, "%s", found_library) > 0;
}

static void put_library(const temporary_folder *folder, const char *part, const char *bytes)
{
    char parent[TEMPORARY_PATH_SIZE];
    snprintf(parent, sizeof parent, "%s/%s", folder->path, part);
    (void)mkdir(parent, 0700);
    snprintf(found_library, sizeof found_library, "%s/%s/libblas-1.so", folder->path, part);
    FILE *file = fopen(found_library, "w");
    assert_non_null(file);
    assert_true(fputs(bytes, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

// As numpy's OpenBLAS, which no loader knows. The same file elsewhere is the same; another one of that name is not.
static void another_file_of_a_library_found_at_run_time_is_reported(void **state)
{
    (void)state;
    const hone_kernel kernel = {HONE_KERNEL, .find_library = find_library};
    temporary_folder folder;
    char difference[HONE_DIFFERENCE_SIZE];
    assert_int_equal(temporary_folder_make(&folder), 0);
    put_library(&folder, "here", "one build");
    json_t *root = read_environment(&kernel, false);
    char *stored = json_dumps(root, JSON_COMPACT);
    put_library(&folder, "there", "one build");
    assert_int_equal(hone_environment_compare(stored, &device, &kernel, difference), HONE_STANDS);
    put_library(&folder, "there", "two build");
    assert_int_equal(hone_environment_compare(stored, &device, &kernel, difference), HONE_CHECK_AGAIN);
    assert_non_null(strstr(difference, "library was libblas-1.so "));
    free(stored);
    json_decref(root);
    temporary_folder_remove(&folder);
}

static char *changed_environment(const char *name, const char *value)
{
    const hone_kernel kernel = {HONE_KERNEL, .library = "libc.so.6"};
    json_t *root = read_environment(&kernel, false);
    assert_int_equal(json_object_set_new(root, name, json_string(value)), 0);
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static void each_fact_that_differs_means_what_the_table_says(void **state)
{
    (void)state;
    const hone_kernel kernel = {HONE_KERNEL, .library = "libc.so.6"};
    char difference[HONE_DIFFERENCE_SIZE];
    for (size_t i = 0; i < hone_environment_fact_count; i++) {
        const hone_environment_fact *fact = &hone_environment_facts[i];
        if (fact->read == NULL) continue;
        char *stored = changed_environment(fact->name, "something else");
        assert_int_equal(hone_environment_compare(stored, &device, &kernel, difference), fact->when_it_differs);
        if (fact->when_it_differs != HONE_STANDS) {
            char words[64];
            snprintf(words, sizeof words, "%s was something else, is ", fact->name);
            assert_memory_equal(difference, words, strlen(words));
        } else {
            assert_string_equal(difference, "");
        }
        free(stored);
    }
}

static void what_is_not_known_says_nothing(void **state)
{
    (void)state;
    static const char *const stored[] = {NULL, "", "{}", "{\"new\":\"x\"}", "{\"compiler\":7}", "[1]", "no JSON"};
    char difference[HONE_DIFFERENCE_SIZE];
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++)
        assert_int_equal(hone_environment_compare(stored[i], &device, NULL, difference), HONE_STANDS);
    // A library that is gone cannot be another version.
    assert_int_equal(hone_environment_compare("{\"library\":\"libx.so.1.2\"}", &device, NULL, difference), HONE_STANDS);
}

// docs/fingerprints.md: | `name` | place | standing | why |
static void the_table_in_the_docs_is_the_one_in_the_code(void **state)
{
    (void)state;
    hone_buffer page;
    hone_buffer_init(&page, hone_allocator_system());
    assert_int_equal(hone_os_read_file(HONE_TEST_DATA "/../docs/fingerprints.md", 1 << 20, &page, NULL), HONE_OK);
    const char *at = strstr(hone_buffer_string(&page), "| fact | stands in |");
    assert_non_null(at);
    at = strchr(strchr(at, '\n') + 1, '\n') + 1;
    for (size_t i = 0; i < hone_environment_fact_count; i++) {
        const hone_environment_fact *fact = &hone_environment_facts[i];
        char row[160];
        snprintf(
            row, sizeof row, "| `%s` | %s | %s |", fact->name, fact->place, hone_standing_name(fact->when_it_differs));
        if (strncmp(at, row, strlen(row)) != 0)
            fail_msg("row %zu of docs/fingerprints.md is\n%.100s\nand should begin with\n%s", i, at, row);
        at = strchr(at, '\n') + 1;
    }
    assert_int_equal(*at, '\n');
    hone_buffer_deinit(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_an_object_of_texts),
        cmocka_unit_test(only_what_counts_stands_beside_measurements),
        cmocka_unit_test(a_kernels_library_is_named_by_its_file),
        cmocka_unit_test(another_file_of_a_library_found_at_run_time_is_reported),
        cmocka_unit_test(each_fact_that_differs_means_what_the_table_says),
        cmocka_unit_test(what_is_not_known_says_nothing),
        cmocka_unit_test(the_table_in_the_docs_is_the_one_in_the_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
