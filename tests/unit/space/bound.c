#include "hone/space.h"

#include "failing_allocator.h"
#include "space/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// A space with its binding, and what a visit collects.
typedef struct fixture {
    hone_space *space;
    hone_bound_space *bound;
    char text[1000];
    size_t visited, stop_after;
} fixture;

static void bind_with(fixture *f, const char *text, const hone_call *call, const hone_device_info *device)
{
    hone_error err = {0};
    *f = (fixture){.stop_after = SIZE_MAX};
    hone_status status = hone_space_parse(hone_allocator_system(), text, &f->space, &err);
    if (status == HONE_OK) status = hone_space_bind(f->space, call, device, &f->bound, &err);
    if (status != HONE_OK) print_message("%s\n", err.message);
    assert_int_equal(status, HONE_OK);
}

static void bind_text(fixture *f, const char *text)
{
    bind_with(f, text, NULL, NULL);
}

static void release(fixture *f)
{
    hone_bound_space_release(&f->bound);
    hone_space_release(&f->space);
}

static bool collect(void *ctx, const hone_config *config)
{
    fixture *f = ctx;
    size_t used = strlen(f->text);
    if (used > 0) f->text[used++] = ';';
    hone_config_text(f->space, config, f->text + used, sizeof f->text - used);
    return ++f->visited < f->stop_after;
}

static void assert_configs(fixture *f, const char *expected)
{
    hone_error err = {0};
    uint64_t count = 0;
    assert_int_equal(hone_bound_space_enumerate(f->bound, collect, f, &err), HONE_OK);
    assert_string_equal(f->text, expected);
    assert_int_equal(hone_bound_space_count(f->bound, &count, &err), HONE_OK);
    assert_int_equal(count, f->visited);
}

static void assert_configs_of(const char *text, const char *expected)
{
    fixture f;
    bind_text(&f, text);
    assert_configs(&f, expected);
    release(&f);
}

static void configs_come_in_the_order_of_the_text_with_the_last_parameter_fastest(void **state)
{
    (void)state;
    assert_configs_of("a: 2 | 1\nb: x | y", "a=2 b=x;a=2 b=y;a=1 b=x;a=1 b=y");
    assert_configs_of("a: 1..3\nb: 1..3\nwhere a < b", "a=1 b=2;a=1 b=3;a=2 b=3");
    assert_configs_of("where b % a == 0\nwhere a != 1\na: 1..3\nb: 4..6", "a=2 b=4;a=2 b=6;a=3 b=6");
    assert_configs_of(
        "l: row | col\nt: true | false\nwhere l == 'row' or t", "l=row t=true;l=row t=false;l=col t=true");
}

// Two components whose parameters alternate: the lists are walked side by side.
static void independent_parameters_keep_the_order_of_the_text(void **state)
{
    (void)state;
    assert_configs_of(
        "a: 1..2\nb: 1..2\nc: 1..2\nd: 1..2\nwhere a <= c\nwhere b != d",
        "a=1 b=1 c=1 d=2;a=1 b=1 c=2 d=2;a=1 b=2 c=1 d=1;a=1 b=2 c=2 d=1;a=2 b=1 c=2 d=2;a=2 b=2 c=2 d=1");
    assert_configs_of("a: 1..2\nb: 1..2\nc: 1..2\nd: 1..2\nwhere a < c\nwhere b > 2 and d > b", "");
}

static void a_visit_can_stop(void **state)
{
    (void)state;
    fixture f;
    bind_text(&f, "a: 1..3\nb: 1..3");
    f.stop_after = 2;
    assert_int_equal(hone_bound_space_enumerate(f.bound, collect, &f, NULL), HONE_OK);
    assert_string_equal(f.text, "a=1 b=1;a=1 b=2");
    release(&f);
    bind_text(&f, "a: 1..3\nb: 1..3\nc: 1..3\nd: 1..3\nwhere a < b\nwhere c < d");
    f.stop_after = 1;
    assert_int_equal(hone_bound_space_enumerate(f.bound, collect, &f, NULL), HONE_OK);
    assert_string_equal(f.text, "a=1 b=2 c=1 d=2");
    release(&f);
}

static void the_space_without_parameters_has_one_config(void **state)
{
    (void)state;
    fixture f;
    uint64_t count = 0;
    bind_text(&f, "");
    assert_int_equal(hone_bound_space_enumerate(f.bound, collect, &f, NULL), HONE_OK);
    assert_int_equal(f.visited, 1);
    assert_int_equal(hone_bound_space_count(f.bound, &count, NULL), HONE_OK);
    assert_int_equal(count, 1);
    release(&f);
    bind_text(&f, "where 1 > 2");
    assert_configs(&f, "");
    release(&f);
}

static void billions_are_counted_at_once(void **state)
{
    (void)state;
    fixture f;
    uint64_t count = 0;
    bind_text(&f, "a: 1..1000\nb: 1..1000\nc: 1..1000\nd: 1..1000\nwhere a < b\nwhere c <= 10 or c > 990");
    assert_int_equal(hone_bound_space_count(f.bound, &count, NULL), HONE_OK);
    assert_true(count == 499500ull * 20 * 1000);
    release(&f);
    // A star: given a, the others are independent of each other.
    bind_text(
        &f, "a: 1..100\nb: 1..100\nc: 1..100\nd: 1..100\ne: 1..100\nwhere b <= a\nwhere c <= a\nwhere d <= a\nwhere e "
            "<= a");
    assert_int_equal(hone_bound_space_count(f.bound, &count, NULL), HONE_OK);
    assert_true(count == 2050333330ull); // the sum of a^4
    release(&f);
    bind_text(&f, "a: 1..60000\nb: 1..60000\nc: 1..60000\nd: 1..60000\ne: 1..60000");
    assert_int_equal(hone_bound_space_count(f.bound, &count, NULL), HONE_OK);
    assert_true(count == UINT64_MAX);
    release(&f);
}

static void parts_of_different_constraints_are_shared_without_harm(void **state)
{
    (void)state;
    assert_configs_of(
        "a: 1..3\nb: 1..3\nc: 0..1\nwhere a * b >= 3\nwhere b * a <= 4\nwhere c == 0 or (a * b) * c < 4 and c <= a * b",
        "a=1 b=3 c=0;a=1 b=3 c=1;a=2 b=2 c=0;a=3 b=1 c=0;a=3 b=1 c=1");
    assert_configs_of("a: 1..4\nwhere 1 < a < 4", "a=2;a=3");
    assert_configs_of("a: 0.5 | 1.5\nb: 1 | 2\nwhere a * b == 3 or min(a, b) == 0.5 and b > 1", "a=0.5 b=2;a=1.5 b=2");
}

static void a_part_of_an_and_that_is_false_refuses_whatever_follows(void **state)
{
    (void)state;
    assert_configs_of("a: 0..2\nb: 4\nwhere a != 0 and b % a == 0", "a=1 b=4;a=2 b=4");
    assert_configs_of("b: 4\na: 0..2\nwhere a != 0\nwhere b % a == 0", "b=4 a=1;b=4 a=2");
}

static void what_cannot_be_evaluated_names_constraint_and_config(void **state)
{
    (void)state;
    fixture f;
    hone_error err = {0};
    hone_config config;
    uint64_t count = 7;
    bind_text(&f, "a: 4\nb: 2 | 0\nc: 1\nwhere a % b == 0\nwhere c < 5");
    static const char message[] = "'where a % b == 0' cannot be evaluated for a=4 b=0: division by zero";
    assert_int_equal(hone_bound_space_enumerate(f.bound, collect, &f, &err), HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, message);
    assert_int_equal(hone_bound_space_count(f.bound, &count, &err), HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, message);
    assert_int_equal(count, 7);
    assert_int_equal(hone_config_from_text(f.space, "a=4 b=0 c=1", &config, &err), HONE_OK);
    assert_int_equal(hone_bound_space_check(f.bound, &config, &err), HONE_INVALID_ARGUMENT);
    assert_string_equal(err.message, message);
    release(&f);
    bind_text(&f, "a: 9223372036854775807\nb: 1 | 2\nwhere a * b > 0");
    assert_int_equal(hone_bound_space_count(f.bound, &count, &err), HONE_INVALID_ARGUMENT);
    assert_string_equal(
        err.message, "'where a * b > 0' cannot be evaluated for a=9223372036854775807 b=2: overflow of 64 bits");
    release(&f);
}

static hone_call *call_of(const char *signature_text, const char *text)
{
    hone_error err = {0};
    hone_signature *signature;
    hone_call *call = NULL;
    hone_status status = hone_signature_parse(hone_allocator_system(), signature_text, &signature, &err);
    if (status == HONE_OK) status = hone_call_parse(hone_allocator_system(), signature, text, &call, &err);
    if (status != HONE_OK) print_message("%s\n", err.message);
    assert_int_equal(status, HONE_OK);
    hone_signature_release(&signature);
    return call;
}

static hone_call *a_call(void)
{
    return call_of(
        "mm(a: f32[m, k], b: f32[k, n], *, causal: bool = false, scale: f64 = 1.0, mode: str = \"fast\", w: i64? = "
        "none) "
        "-> c: f32[m, n]",
        "mm(f32[64,16], f32[16,8], causal=true)");
}

static void constraints_read_the_dims_and_scalars_of_the_call(void **state)
{
    (void)state;
    fixture f;
    hone_call *call = a_call();
    static const struct {
        const char *text, *configs;
    } table[] = {
        {"t: 16..256 *2\nwhere t <= m", "t=16;t=32;t=64"},
        {"t: 16..256 *2\nwhere m % t == 0 and t * n <= 256", "t=16;t=32"},
        {"t: 8 | 16\nwhere a.shape[1] == t", "t=16"},
        {"t: 1..3\nwhere t == b.ndim", "t=2"},
        {"t: 1..3\nwhere a.size == m * a.shape[1] and t < 2", "t=1"},
        {"t: 1..3\nwhere causal or t > 2", "t=1;t=2;t=3"},
        {"t: 1..3\nwhere not causal", ""},
        {"t: 1..3\nwhere mode == 'fast' and t > scale", "t=2;t=3"},
        {"t: 1..3\nwhere w == none and t > 2", "t=3"},
        {"m: 1..3\nwhere m == 2", "m=2"}, // a parameter hides a dim
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bind_with(&f, table[i].text, call, NULL);
        assert_configs(&f, table[i].configs);
        release(&f);
    }
    bind_with(&f, "t: 1..3\nwhere mode == 'fast'", call, NULL);
    hone_call_release(&call);
    assert_configs(&f, "t=1;t=2;t=3"); // the binding keeps what it read
    release(&f);
}

static void constraints_read_the_limits_of_the_device(void **state)
{
    (void)state;
    fixture f;
    hone_device_info device = {.struct_size = sizeof device, .threads = 2, .l1_bytes = 32768, .sms = 4};
    bind_with(&f, "t: 1..8\nwhere t <= device.threads", NULL, &device);
    assert_configs(&f, "t=1;t=2");
    release(&f);
    bind_with(&f, "t: 8..128 *2\nwhere t * t * 4 <= device.l1_bytes / 2 and device.sms == 4", NULL, &device);
    assert_configs(&f, "t=8;t=16;t=32;t=64");
    release(&f);
}

static void assert_unbound(const char *text, const hone_call *call, const char *message)
{
    hone_error err = {0};
    hone_space *space;
    hone_bound_space *bound = NULL;
    assert_int_equal(hone_space_parse(hone_allocator_system(), text, &space, &err), HONE_OK);
    assert_int_equal(hone_space_bind(space, call, NULL, &bound, &err), HONE_INVALID_ARGUMENT);
    assert_null(bound);
    assert_string_equal(err.message, message);
    hone_space_release(&space);
}

static void names_that_are_nowhere_are_errors_of_binding(void **state)
{
    (void)state;
    hone_call *call = a_call();
    assert_unbound(
        "t: 1..3\nwhere t < m", NULL,
        "'where t < m': 'm' is not a parameter of the space, and there is no call that could have it");
    assert_unbound(
        "t: 1..3\nwhere t < q", call,
        "'where t < q': 'q' is neither a parameter of the space nor a dim or scalar of the call");
    assert_unbound(
        "t: 1..3\nwhere t < a.shape[2]", call,
        "'where t < a.shape[2]': 'a.shape[2]' is neither a parameter of the space nor a dim or scalar of the call");
    assert_unbound(
        "t: 1..3\nwhere t < a", call,
        "'where t < a': 'a' is a tensor; its dims are read as x.shape[0], their number as x.ndim");
    assert_unbound(
        "t: 1..3\nwhere t < device.threads", call,
        "'where t < device.threads': 'device.threads' needs a device, and there is none");
    assert_unbound("t: 1..3\nwhere m / 0 > 1", call, "'where m / 0 > 1' cannot be evaluated: division by zero");
    assert_unbound(
        "t: 1..3\nwhere m / 0 > 1 and t > 2", call,
        "'where m / 0 > 1 and t > 2' cannot be evaluated: division by zero");
    hone_call_release(&call);
}

static void the_default_is_that_of_the_text_where_it_fits(void **state)
{
    (void)state;
    static const struct {
        const char *text, *config;
    } table[] = {
        {"a: 1..3 default 2\nb: x | y default y", "a=2 b=y"},
        {"a: 1..3\nb: x | y", "a=1 b=x"},
        {"a: 1..3 default 1\nb: 1..3 default 1\nwhere a > b", "a=2 b=1"},
        {"a: 1..3\nb: 1..3\nc: 1..3\nd: 1..3\nwhere a > b\nwhere c > d", "a=2 b=1 c=2 d=1"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        fixture f;
        char text[100];
        hone_config config;
        bind_text(&f, table[i].text);
        assert_int_equal(hone_bound_space_default(f.bound, &config, NULL), HONE_OK);
        hone_config_text(f.space, &config, text, sizeof text);
        assert_string_equal(text, table[i].config);
        release(&f);
    }
}

static void an_empty_space_has_no_default(void **state)
{
    (void)state;
    fixture f;
    hone_error err = {0};
    hone_config config = {.count = 9};
    bind_text(&f, "a: 1..3\nb: 1..3\nwhere a > b + 3");
    assert_int_equal(hone_bound_space_default(f.bound, &config, &err), HONE_NOT_FOUND);
    assert_string_equal(err.message, "no config fulfils every constraint of this call and device");
    release(&f);
    bind_text(&f, "a: 1..3\nwhere 1 > 2 and a > 1");
    assert_int_equal(hone_bound_space_default(f.bound, &config, &err), HONE_NOT_FOUND);
    assert_string_equal(err.message, "no config: 'where 1 > 2 and a > 1' is false for this call and device");
    assert_int_equal(config.count, 9);
    release(&f);
}

static void a_check_names_what_refuses_a_config(void **state)
{
    (void)state;
    static const struct {
        hone_config config;
        const char *message; // NULL: it is one
    } table[] = {
        {{2, {2, 0}}, NULL},
        {{2, {1, 0}}, "refused by 'where a % 2 == 0'"},
        {{2, {3, 1}}, "refused by 'where a % 2 == 0'"},
        {{2, {4, 1}}, "refused by 'where l == 'row' or a < 4'"},
        {{2, {5, 0}}, "parameter 'a': 5 is not one of its values (1, 2, 3, 4)"},
        {{2, {2, 2}}, "parameter 'l': position 2 is not one of its values (row, col)"},
        {{2, {2, -1}}, "parameter 'l': position -1 is not one of its values (row, col)"},
        {{1, {2}}, "the config has 1 values, and the space 2 parameters"},
    };
    fixture f;
    bind_text(&f, "a: 1..4\nl: row | col\nwhere a % 2 == 0\nwhere l == 'row' or a < 4");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        hone_error err = {0};
        hone_status status = hone_bound_space_check(f.bound, &table[i].config, &err);
        assert_int_equal(status, table[i].message == NULL ? HONE_OK : HONE_INVALID_ARGUMENT);
        if (table[i].message != NULL) assert_string_equal(err.message, table[i].message);
    }
    release(&f);
}

static void a_binding_keeps_its_space(void **state)
{
    (void)state;
    uint64_t count;
    fixture f;
    bind_text(&f, "a: 1..4\nwhere a > 1");
    hone_space_release(&f.space);
    assert_int_equal(hone_bound_space_count(f.bound, &count, NULL), HONE_OK);
    assert_int_equal(count, 3);
    release(&f);
    hone_bound_space_release(NULL);
}

static bool keep_going(void *ctx, const hone_config *config)
{
    (void)ctx;
    (void)config;
    return true;
}

// Everything that allocates, in turn.
static hone_status use(const hone_space *space)
{
    uint64_t counted;
    size_t sampled;
    hone_config configs[4], config;
    hone_bound_space *bound;
    hone_status status = hone_space_bind(space, NULL, NULL, &bound, NULL);
    if (status != HONE_OK) return status;
    status = hone_bound_space_count(bound, &counted, NULL);
    if (status == HONE_OK) status = hone_bound_space_enumerate(bound, keep_going, NULL, NULL);
    if (status == HONE_OK) status = hone_bound_space_sample(bound, 1, 4, configs, &sampled, NULL);
    if (status == HONE_OK) status = hone_bound_space_default(bound, &config, NULL);
    if (status == HONE_OK) status = hone_bound_space_check(bound, &config, NULL);
    hone_bound_space_release(&bound);
    return status;
}

static void every_failed_allocation_is_reported_and_nothing_stays(void **state)
{
    (void)state;
    failing_allocator failing;
    hone_space *space;
    static const char text[] =
        "a: 1..4 default 4\nb: 1..4\nc: 1..4\nd: 1..4\nwhere a < b and a * b < 9 or 2 * a == b\nwhere c < d";
    assert_int_equal(hone_space_parse(failing_allocator_of(&failing, -1), text, &space, NULL), HONE_OK);
    long long live = atomic_load(&failing.live), allowed = 0;
    hone_status status = HONE_OUT_OF_MEMORY;
    for (; status != HONE_OK; allowed++) {
        atomic_store(&failing.left, allowed);
        status = use(space);
        if (status != HONE_OK) assert_int_equal(status, HONE_OUT_OF_MEMORY);
        assert_int_equal(atomic_load(&failing.live), live);
    }
    assert_true(allowed > 20);
    hone_space_release(&space);
    assert_int_equal(atomic_load(&failing.live), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(configs_come_in_the_order_of_the_text_with_the_last_parameter_fastest),
        cmocka_unit_test(independent_parameters_keep_the_order_of_the_text),
        cmocka_unit_test(a_visit_can_stop),
        cmocka_unit_test(the_space_without_parameters_has_one_config),
        cmocka_unit_test(billions_are_counted_at_once),
        cmocka_unit_test(parts_of_different_constraints_are_shared_without_harm),
        cmocka_unit_test(a_part_of_an_and_that_is_false_refuses_whatever_follows),
        cmocka_unit_test(what_cannot_be_evaluated_names_constraint_and_config),
        cmocka_unit_test(constraints_read_the_dims_and_scalars_of_the_call),
        cmocka_unit_test(constraints_read_the_limits_of_the_device),
        cmocka_unit_test(names_that_are_nowhere_are_errors_of_binding),
        cmocka_unit_test(the_default_is_that_of_the_text_where_it_fits),
        cmocka_unit_test(an_empty_space_has_no_default),
        cmocka_unit_test(a_check_names_what_refuses_a_config),
        cmocka_unit_test(a_binding_keeps_its_space),
        cmocka_unit_test(every_failed_allocation_is_reported_and_nothing_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
