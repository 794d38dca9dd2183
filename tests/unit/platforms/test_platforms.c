#include "failing_allocator.h"
#include "hone/hone.h"
#include "platforms/native/native.h"
#include "platforms/null/null.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_platform_stands_at_its_number_with_a_name_of_its_own(void **state)
{
    (void)state;
    assert_null(hone_platforms[HONE_PLATFORM_NONE]);
    for (int i = HONE_PLATFORM_NONE + 1; i < HONE_PLATFORM_COUNT; i++) {
        const hone_platform_ops *ops = hone_platforms[i];
        assert_non_null(ops);
        assert_int_equal(ops->struct_size, sizeof *ops);
        assert_int_equal(ops->facts.platform, i);
        for (int j = HONE_PLATFORM_NONE + 1; j < i; j++)
            assert_string_not_equal(ops->facts.name, hone_platforms[j]->facts.name);
    }
}

static void a_platform_is_opened_or_has_a_home_or_says_why_it_is_not(void **state)
{
    (void)state;
    for (int i = HONE_PLATFORM_NONE + 1; i < HONE_PLATFORM_COUNT; i++) {
        const hone_platform_ops *ops = hone_platforms[i];
        const hone_platform home = hone_platform_home((hone_platform)i);
        assert_int_equal(hone_platform_home(home), home);
        assert_true(ops->open != NULL || (int)home != i || ops->reason != NULL);
        if (ops->reason != NULL) assert_non_null(strstr(ops->reason, ops->facts.name));
    }
}

static void one_platform_is_the_hosts(void **state)
{
    (void)state;
    int count = 0;
    for (int i = HONE_PLATFORM_NONE + 1; i < HONE_PLATFORM_COUNT; i++)
        count += hone_platforms[i]->facts.is_host;
    assert_int_equal(count, 1);
    assert_int_equal(hone_platform_host(), HONE_NATIVE);
}

static void no_two_platforms_have_one_rank(void **state)
{
    (void)state;
    for (int i = 0; i < HONE_PLATFORM_COUNT * HONE_PLATFORM_RANKS; i++)
        for (int j = 0; j < i; j++) {
            const hone_platform_ops *a = hone_platforms[i / HONE_PLATFORM_RANKS];
            const hone_platform_ops *b = hone_platforms[j / HONE_PLATFORM_RANKS];
            if (a == NULL || b == NULL || a->facts.ranks[i % HONE_PLATFORM_RANKS].rank == 0) continue;
            assert_int_not_equal(
                a->facts.ranks[i % HONE_PLATFORM_RANKS].rank, b->facts.ranks[j % HONE_PLATFORM_RANKS].rank);
        }
}

static void the_null_platform_is_opened_only_when_asked_for(void **state)
{
    (void)state;
    assert_true(hone_null_platform.facts.is_by_name_only);
    assert_non_null(hone_null_platform.reason);
}

static const hone_os_cpu zen4 = {
    .vendor = "AuthenticAMD",
    .brand = "AMD EPYC 9654 96-Core Processor",
    .microarchitecture = "zen4",
    .features = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_AVX512F,
    .threads = 2,
    .l1_bytes = 32768,
    .l2_bytes = 1048576,
    .l3_bytes = 33554432,
    .memory_bytes = 1 << 30,
};

static void assert_fingerprint(const hone_os_cpu *cpu, const char *wanted)
{
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    hone_native_fingerprint(cpu, &text);
    assert_string_equal(hone_buffer_string(&text), wanted);
    hone_buffer_deinit(&text);
}

static void a_fingerprint_says_what_decisions_depend_on(void **state)
{
    (void)state;
    assert_fingerprint(&zen4, "cpu|AuthenticAMD,zen4,avx2+fma+avx512f,l1=32768,l2=1048576,l3=33554432,threads=2");
}

static void brand_and_memory_make_no_other_fingerprint(void **state)
{
    (void)state;
    hone_os_cpu cpu = zen4;
    strcpy(cpu.brand, "AMD EPYC 9554");
    cpu.memory_bytes = 1 << 20;
    assert_fingerprint(&cpu, "cpu|AuthenticAMD,zen4,avx2+fma+avx512f,l1=32768,l2=1048576,l3=33554432,threads=2");
}

static void an_unknown_cpu_has_a_fingerprint_too(void **state)
{
    (void)state;
    hone_os_cpu cpu = {.threads = 1};
    assert_fingerprint(&cpu, "cpu|unknown,unknown,baseline,l1=0,l2=0,l3=0,threads=1");
}

static void what_would_break_a_line_or_a_column_is_escaped(void **state)
{
    (void)state;
    hone_os_cpu cpu = {.threads = 1};
    strcpy(cpu.vendor, "a|b\nc d\x7f");
    strcpy(cpu.microarchitecture, "x=1,y%+");
    assert_fingerprint(&cpu, "cpu|a%7Cb%0Ac%20d%7F,x%3D1%2Cy%25%2B,baseline,l1=0,l2=0,l3=0,threads=1");
}

static void native_has_one_device_which_is_this_cpu(void **state)
{
    (void)state;
    hone_allocator allocator = hone_allocator_system();
    hone_platform_instance *instance = NULL;
    hone_log log = {0};
    assert_int_equal(hone_native_platform.open(&allocator, &log, &instance, NULL), HONE_OK);
    size_t count = 0;
    const hone_device_info *device = hone_native_platform.devices(instance, &count);
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    assert_int_equal(count, 1);
    assert_int_equal(device->device.type, HONE_DEVICE_CPU);
    assert_true(device->features == cpu.features);
    assert_int_equal(device->threads, cpu.threads);
    assert_true(device->threads >= 1);
    assert_true(strlen(device->name) > 0);
    hone_native_platform.close(&instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_platform_stands_at_its_number_with_a_name_of_its_own),
        cmocka_unit_test(a_platform_is_opened_or_has_a_home_or_says_why_it_is_not),
        cmocka_unit_test(one_platform_is_the_hosts),
        cmocka_unit_test(no_two_platforms_have_one_rank),
        cmocka_unit_test(the_null_platform_is_opened_only_when_asked_for),
        cmocka_unit_test(a_fingerprint_says_what_decisions_depend_on),
        cmocka_unit_test(brand_and_memory_make_no_other_fingerprint),
        cmocka_unit_test(an_unknown_cpu_has_a_fingerprint_too),
        cmocka_unit_test(what_would_break_a_line_or_a_column_is_escaped),
        cmocka_unit_test(native_has_one_device_which_is_this_cpu),
    };
    return cmocka_run_group_tests_name("platforms", tests, NULL, NULL);
}
