// The reference, and every kernel, against what the real ejkernel answered (tests/golden/kernels/README.md).
#include "contest.h"

#include "hone/describe.h"
#include "kernels/tables.h"

#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

// The tensors of a call that are parameters, or results, take the arrays of a list one after the other.
static void each_array(
    contest *own,
    const json_t *list,
    bool results,
    void (*visit)(contest *own, size_t value, int64_t index, double number))
{
    size_t next = 0;
    for (size_t i = 0; i < own->count; i++) {
        if (own->memory[i] == NULL || hone_signature_parameter(own->signature, i)->is_result != results) continue;
        const json_t *array = json_array_get(list, next++);
        size_t count = json_array_size(array);
        assert_int_equal(count, hone_tensor_elements(&own->tensors[i]));
        for (size_t k = 0; k < count; k++)
            visit(own, i, (int64_t)k, json_number_value(json_array_get(array, k)));
    }
    assert_int_equal(next, json_array_size(list));
}

static void compare(contest *own, size_t value, int64_t index, double number)
{
    contest_expect(own, value, index, number, 1e-5);
}

static void check_case(const hone_kernel_table *table, const json_t *one)
{
    contest own;
    contest_init(&own, table, json_string_value(json_object_get(one, "call")), 0, 1);
    each_array(&own, json_object_get(one, "inputs"), false, contest_set);
    contest_run_kernel(&own, "reference");
    each_array(&own, json_object_get(one, "results"), true, compare);
    contest_run(&own, 3);
    contest_deinit(&own);
}

static void check_file(const hone_kernel_table *table, const char *name)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/golden/kernels/%s.json", HONE_TEST_DATA, name);
    json_t *file = json_load_file(path, 0, &error);
    if (file == NULL) fail_msg("%s: %s", path, error.text);
    const json_t *cases = json_object_get(file, "cases");
    assert_true(json_array_size(cases) > 0);
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(table, json_array_get(cases, i));
    json_decref(file);
}

static void flash_attention_answers_as_ejkernel(void **state)
{
    (void)state;
    check_file(&hone_flash_attention_table, "flash_attention");
}

static void scaled_dot_product_attention_answers_as_ejkernel(void **state)
{
    (void)state;
    check_file(&hone_scaled_dot_product_attention_table, "scaled_dot_product_attention");
}

static void attention_answers_as_ejkernel(void **state)
{
    (void)state;
    check_file(&hone_attention_table, "attention");
}

static void mean_pooling_answers_as_ejkernel(void **state)
{
    (void)state;
    check_file(&hone_mean_pooling_table, "mean_pooling");
}

static void rwkv4_answers_as_ejkernel(void **state)
{
    (void)state;
    check_file(&hone_rwkv4_table, "rwkv4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flash_attention_answers_as_ejkernel),
        cmocka_unit_test(scaled_dot_product_attention_answers_as_ejkernel),
        cmocka_unit_test(attention_answers_as_ejkernel),
        cmocka_unit_test(mean_pooling_answers_as_ejkernel),
        cmocka_unit_test(rwkv4_answers_as_ejkernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
