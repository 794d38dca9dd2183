#include "failing_allocator.h"
#include "hone/hone.h"
#include "platforms/native/native.h"
#include "platforms/null/null.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_platform_has_its_row_in_order(void **state)
{
    (void)state;
    assert_int_equal(hone_platforms_count, HONE_PLATFORM_COUNT - HONE_NATIVE);
    for (size_t i = 0; i < hone_platforms_count; i++)
        assert_int_equal(hone_platforms[i].platform, HONE_NATIVE + (int)i);
}

static void a_platform_without_a_loader_says_its_name_and_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < hone_platforms_count; i++) {
        const hone_platform_row *row = &hone_platforms[i];
        if (row->ops != NULL) {
            assert_int_equal(row->ops->platform, row->platform);
            assert_string_equal(row->ops->name, hone_platform_name(row->platform));
            continue;
        }
        assert_non_null(row->reason);
        assert_non_null(strstr(row->reason, hone_platform_name(row->platform)));
    }
}

static void the_null_platform_is_opened_only_when_asked_for(void **state)
{
    (void)state;
    const hone_platform_row *row = &hone_platforms[HONE_NULL - HONE_NATIVE];
    assert_null(row->ops);
    assert_ptr_equal(row->when_asked, &hone_null_platform);
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
        cmocka_unit_test(every_platform_has_its_row_in_order),
        cmocka_unit_test(a_platform_without_a_loader_says_its_name_and_why),
        cmocka_unit_test(the_null_platform_is_opened_only_when_asked_for),
        cmocka_unit_test(a_fingerprint_says_what_decisions_depend_on),
        cmocka_unit_test(brand_and_memory_make_no_other_fingerprint),
        cmocka_unit_test(an_unknown_cpu_has_a_fingerprint_too),
        cmocka_unit_test(what_would_break_a_line_or_a_column_is_escaped),
        cmocka_unit_test(native_has_one_device_which_is_this_cpu),
    };
    return cmocka_run_group_tests_name("platforms", tests, NULL, NULL);
}
