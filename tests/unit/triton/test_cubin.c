// Reading a binary that Triton has written: data/vadd.cubin, of (x, y, o, n) and two pointers behind them.
#include "base/memory.h"
#include "os/os.h"
#include "platforms/cuda/cubin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hone_buffer vadd;

static int read_vadd(void **state)
{
    (void)state;
    hone_buffer_init(&vadd, hone_allocator_system());
    return hone_os_read_file(HONE_TEST_DATA "/unit/triton/data/vadd.cubin", 1 << 20, &vadd, NULL) == HONE_OK ? 0 : -1;
}

static int free_vadd(void **state)
{
    (void)state;
    hone_buffer_deinit(&vadd);
    return 0;
}

static void a_function_says_what_it_takes(void **state)
{
    (void)state;
    static const uint32_t offsets[] = {0, 8, 16, 24, 32, 40}, sizes[] = {8, 8, 8, 4, 8, 8};
    hone_cubin_function function;
    assert_true(hone_cubin_is_one(vadd.data, vadd.size));
    assert_int_equal(hone_cubin_find(vadd.data, vadd.size, "vadd", &function, NULL), HONE_OK);
    assert_int_equal(function.capability, 90);
    assert_true(function.says);
    assert_int_equal(function.count, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(function.parameters[i].offset, offsets[i]);
        assert_int_equal(function.parameters[i].size, sizes[i]);
    }
}

static void the_only_function_needs_no_name(void **state)
{
    (void)state;
    char name[64], small[3];
    assert_int_equal(hone_cubin_only(vadd.data, vadd.size, name, sizeof name, NULL), HONE_OK);
    assert_string_equal(name, "vadd");
    assert_int_equal(hone_cubin_only(vadd.data, vadd.size, small, sizeof small, NULL), HONE_NOT_FOUND);
}

static void another_name_is_answered_with_those_there_are(void **state)
{
    (void)state;
    hone_cubin_function function;
    hone_error err;
    assert_int_equal(hone_cubin_find(vadd.data, vadd.size, "vsub", &function, &err), HONE_NOT_FOUND);
    assert_non_null(strstr(err.message, "no function vsub; it has vadd"));
}

static void bytes_that_are_not_a_cubin_are_refused(void **state)
{
    (void)state;
    hone_cubin_function function;
    hone_error err;
    char other[128] = "\177ELF";
    assert_int_equal(hone_cubin_find("// ptx", 6, "vadd", &function, &err), HONE_CORRUPT);
    other[18] = 62; // x86-64
    assert_int_equal(hone_cubin_find(other, sizeof other, "vadd", &function, &err), HONE_CORRUPT);
    assert_non_null(strstr(err.message, "machine 62"));
}

// Every cut and every changed byte is refused or read, and nothing is read outside.
static void a_damaged_cubin_is_never_read_out_of_bounds(void **state)
{
    (void)state;
    hone_cubin_function function;
    for (size_t size = 0; size < vadd.size; size += 7) {
        char *cut = malloc(size + 1);
        memcpy(cut, vadd.data, size);
        hone_status status = hone_cubin_find(cut, size, "vadd", &function, NULL);
        assert_true(status != HONE_OK || size > vadd.size / 2); // what stands last is not asked for
        free(cut);
    }
    char *changed = malloc(vadd.size);
    for (size_t at = 0; at < vadd.size; at++) {
        memcpy(changed, vadd.data, vadd.size);
        changed[at] = (char)~changed[at];
        (void)!hone_cubin_find(changed, vadd.size, "vadd", &function, NULL);
    }
    free(changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_says_what_it_takes),
        cmocka_unit_test(the_only_function_needs_no_name),
        cmocka_unit_test(another_name_is_answered_with_those_there_are),
        cmocka_unit_test(bytes_that_are_not_a_cubin_are_refused),
        cmocka_unit_test(a_damaged_cubin_is_never_read_out_of_bounds),
    };
    return cmocka_run_group_tests(tests, read_vadd, free_vadd);
}
