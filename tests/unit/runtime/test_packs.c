// Packs through the public API: what hone_pack_load brings, where it is from, and that one failure harms nothing else.
#include "failing_allocator.h"
#include "temporary_folder.h"

#include "hone/hone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

// No file is named, so that platform native refuses the kernels: what is asked here needs none that runs.
static const char json[] =
    "{\"hone_pack\": 1, \"name\": \"p\","
    " \"algorithms\": [{\"signature\": \"twice(x: f32[n]) -> y: f32[n]\", \"reference\": \"plain\"}],"
    " \"kernels\": [{\"algorithm\": \"twice\", \"name\": \"plain\", \"platform\": \"native\", \"backend\": \"cpu\"},"
    "  {\"algorithm\": \"rms_norm\", \"name\": \"other\", \"platform\": \"native\", \"backend\": \"cpu\", "
    "\"priority\": 99},"
    "  {\"algorithm\": \"nothing\", \"name\": \"lost\", \"platform\": \"native\", \"backend\": \"cpu\"}]}";

typedef struct fixture {
    temporary_folder folder;
    hone_runtime *rt;
    hone_error err;
} fixture;

static void write_pack(const char *folder, const char *text)
{
    char path[TEMPORARY_PATH_SIZE + sizeof "/pack.json"];
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/pack.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static hone_status open_runtime(fixture *f, hone_allocator allocator)
{
    const hone_runtime_options options = {
        .struct_size = sizeof options, .allocator = allocator, .store = "none", .device_locks = "none"};
    return hone_runtime_open(&options, &f->rt, &f->err);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    unsetenv("HONE_PACK_PATH");
    assert_int_equal(temporary_folder_make(&f->folder), 0);
    write_pack(f->folder.path, json);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    hone_runtime_close(&f->rt);
    temporary_folder_remove(&f->folder);
    unsetenv("HONE_PACK_PATH");
    free(f);
    return 0;
}

typedef struct seen {
    size_t count, failed;
    char reasons[8][1000], folders[8][TEMPORARY_PATH_SIZE];
} seen;

static bool see(void *ctx, const hone_pack_entry *entry)
{
    seen *all = ctx;
    if (entry->status == HONE_OK) return true;
    snprintf(all->folders[all->failed % 8], sizeof all->folders[0], "%s", entry->folder);
    snprintf(all->reasons[all->failed++ % 8], sizeof all->reasons[0], "%s", entry->reason);
    all->count++;
    return true;
}

static void a_kernel_that_is_refused_can_be_named_and_never_runs(void **state)
{
    fixture *f = *state;
    assert_int_equal(open_runtime(f, (hone_allocator){0}), HONE_OK);
    assert_int_equal(hone_pack_load(f->rt, f->folder.path, &f->err), HONE_OK);
    const hone_kernel_ref **kernels = NULL;
    size_t count = 0;
    assert_int_equal(hone_registry_kernels(f->rt, "rms_norm", &kernels, &count, &f->err), HONE_OK);
    assert_string_equal(hone_kernel_of(kernels[0])->name, "other");
    hone_kernels_release(&kernels);
    float x[8] = {1}, weight[8] = {1}, y[8];
    int64_t rows[] = {1, 8}, dim[] = {8};
    hone_tensor tx = hone_tensor_of(x, HONE_F32, 2, rows), tw = hone_tensor_of(weight, HONE_F32, 1, dim),
                ty = hone_tensor_of(y, HONE_F32, 2, rows);
    hone_value args[] = {hone_of_tensor(&tx), hone_of_tensor(&tw), hone_of_tensor(&ty)};
    hone_decision decision;
    const hone_op *op = hone_op_find(f->rt, "rms_norm", &f->err);
    assert_non_null(op);
    assert_int_equal(hone_decide(op, args, 3, &decision, &f->err), HONE_OK);
    assert_string_not_equal(decision.kernel, "other");
}

static void what_was_refused_is_listed(void **state)
{
    fixture *f = *state;
    seen all = {0};
    assert_int_equal(open_runtime(f, (hone_allocator){0}), HONE_OK);
    assert_int_equal(hone_pack_load(f->rt, f->folder.path, &f->err), HONE_OK);
    assert_int_equal(hone_pack_list(f->rt, see, &all, &f->err), HONE_OK);
    assert_int_equal(all.failed, 3);
    assert_non_null(strstr(all.reasons[0], "pack p: kernel plain: file: is missing"));
    // Loading it again does nothing; loading it changed is refused.
    assert_int_equal(hone_pack_load(f->rt, f->folder.path, &f->err), HONE_OK);
    memset(&all, 0, sizeof all);
    assert_int_equal(hone_pack_list(f->rt, see, &all, &f->err), HONE_OK);
    assert_int_equal(all.failed, 3);
    char changed[sizeof json + 1];
    snprintf(changed, sizeof changed, "%s ", json);
    write_pack(f->folder.path, changed);
    assert_int_equal(hone_pack_load(f->rt, f->folder.path, &f->err), HONE_INVALID_ARGUMENT);
}

static void packs_of_the_path_load_at_the_first_lookup(void **state)
{
    fixture *f = *state;
    char path[3 * TEMPORARY_PATH_SIZE], below[TEMPORARY_PATH_SIZE];
    seen all = {0};
    snprintf(below, sizeof below, "%s/below", f->folder.path);
    mkdir(below, 0777);
    // What has no pack.json is no pack, and the others come in the order of their names.
    static const char *const names[] = {"c", "a", "b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", below, names[i]);
        if (strcmp(names[i], "a") == 0)
            mkdir(path, 0777);
        else
            write_pack(path, "{");
    }
    snprintf(path, sizeof path, ":%s:%s:/nowhere", f->folder.path, below);
    setenv("HONE_PACK_PATH", path, 1);
    assert_int_equal(open_runtime(f, (hone_allocator){0}), HONE_OK);
    assert_non_null(hone_op_find(f->rt, "twice", &f->err));
    assert_int_equal(hone_pack_list(f->rt, see, &all, &f->err), HONE_OK);
    assert_int_equal(all.failed, 6);
    assert_non_null(strstr(all.folders[3], "/below/b"));
    assert_non_null(strstr(all.folders[4], "/below/c"));
    assert_non_null(strstr(all.reasons[5], "/nowhere is neither a folder with a pack.json"));
}

static void checking_registers_nothing(void **state)
{
    fixture *f = *state;
    seen all = {0};
    assert_int_equal(open_runtime(f, (hone_allocator){0}), HONE_OK);
    assert_int_equal(hone_pack_check(f->rt, f->folder.path, false, see, &all, &f->err), HONE_OK);
    assert_int_equal(all.failed, 3);
    assert_null(hone_op_find(f->rt, "twice", &f->err));
    assert_int_equal(hone_pack_check(f->rt, "/nowhere", false, see, &all, &f->err), HONE_NOT_FOUND);
    assert_int_equal(hone_pack_load(f->rt, NULL, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_pack_load(NULL, "/", &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_pack_list(f->rt, NULL, NULL, &f->err), HONE_INVALID_ARGUMENT);
}

static void every_allocation_of_loading_may_fail(void **state)
{
    fixture *f = *state;
    failing_allocator counting;
    hone_allocator allocator = failing_allocator_of(&counting, -1);
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status == HONE_OUT_OF_MEMORY; left++) {
        atomic_store(&counting.left, -1);
        assert_int_equal(open_runtime(f, allocator), HONE_OK);
        atomic_store(&counting.left, left);
        status = hone_pack_load(f->rt, f->folder.path, &f->err);
        atomic_store(&counting.left, -1);
        hone_runtime_close(&f->rt);
        assert_int_equal(atomic_load(&counting.live), 0);
        assert_true(left < 10000);
    }
    assert_int_equal(status, HONE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kernel_that_is_refused_can_be_named_and_never_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_refused_is_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(packs_of_the_path_load_at_the_first_lookup, setup, teardown),
        cmocka_unit_test_setup_teardown(checking_registers_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_of_loading_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
