#include "hone/hone.h"
#include "registry/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void every_platform_reads_back_from_its_name(void **state)
{
    (void)state;
    for (int i = HONE_NATIVE; i < HONE_PLATFORM_COUNT; i++) {
        hone_platform platform = HONE_PLATFORM_NONE;
        assert_int_equal(hone_platform_parse(hone_platform_name((hone_platform)i), &platform, NULL), HONE_OK);
        assert_int_equal(platform, i);
    }
}

static void every_backend_reads_back_from_its_name(void **state)
{
    (void)state;
    for (int i = HONE_GPU; i < HONE_BACKEND_COUNT; i++) {
        hone_backend backend = HONE_BACKEND_NONE;
        assert_int_equal(hone_backend_parse(hone_backend_name((hone_backend)i), &backend, NULL), HONE_OK);
        assert_int_equal(backend, i);
    }
}

static void every_regime_reads_back_from_its_name(void **state)
{
    (void)state;
    hone_regime regime = HONE_WARM;
    for (int i = HONE_WARM; i < HONE_REGIME_COUNT; i++)
        assert_true(hone_regime_by_name(hone_regime_name((hone_regime)i), &regime) && (int)regime == i);
    assert_false(hone_regime_by_name("Cold", &regime));
    assert_int_equal(regime, HONE_EAGER_STABLE);
}

static void auto_is_a_platform_of_queries(void **state)
{
    (void)state;
    hone_platform platform = HONE_PLATFORM_NONE;
    assert_int_equal(hone_platform_parse("auto", &platform, NULL), HONE_OK);
    assert_int_equal(platform, HONE_PLATFORM_AUTO);
    assert_string_equal(hone_platform_name(HONE_PLATFORM_AUTO), "auto");
}

static void names_are_exact_lower_case_and_a_wrong_one_lists_them(void **state)
{
    (void)state;
    static const char *const wrong[] = {"CUDA", "Cuda", "cuda ", "cud", "", "none", "bogus"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hone_platform platform = HONE_TRITON;
        hone_error err = {0};
        assert_int_equal(hone_platform_parse(wrong[i], &platform, &err), HONE_INVALID_ARGUMENT);
        assert_int_equal(platform, HONE_TRITON);
        assert_non_null(
            strstr(err.message, "native, opencl, cuda, triton, cute, tilelang, xla, pallas, null, ffi, python"));
    }
    hone_backend backend;
    hone_error err = {0};
    assert_int_equal(hone_backend_parse("GPU", &backend, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "gpu, mps, tpu, cpu, any"));
    assert_int_equal(hone_backend_parse(NULL, &backend, &err), HONE_INVALID_ARGUMENT);
}

static void numbers_without_a_name_have_words_too(void **state)
{
    (void)state;
    assert_string_equal(hone_platform_name((hone_platform)57), "unknown platform");
    assert_string_equal(hone_platform_name((hone_platform)-1), "unknown platform");
    assert_string_equal(hone_backend_name((hone_backend)57), "unknown backend");
    assert_string_equal(hone_regime_name((hone_regime)57), "unknown regime");
}

static void features_are_written_in_the_order_of_their_bits(void **state)
{
    (void)state;
    char text[64];
    size_t size = hone_cpu_features_text(HONE_CPU_FMA | HONE_CPU_AVX2 | HONE_CPU_AVX512F, "+", text, sizeof text);
    assert_string_equal(text, "avx2+fma+avx512f");
    assert_int_equal(size, strlen(text));
    assert_int_equal(hone_cpu_features_text(0, "+", text, sizeof text), 0);
    assert_string_equal(text, "");
    hone_cpu_features_text((uint64_t)1 << 63 | HONE_CPU_AVX, ", ", text, sizeof text);
    assert_string_equal(text, "avx, bit63");
}

static void features_that_do_not_fit_are_cut_and_counted(void **state)
{
    (void)state;
    char text[8];
    assert_int_equal(hone_cpu_features_text(HONE_CPU_AVX512_BF16 | HONE_CPU_AVX2, "+", text, sizeof text), 16);
    assert_string_equal(text, "avx2+av");
}

// Whatever room there is, what fits is written and ended, and nothing behind it.
static void features_are_cut_anywhere(void **state)
{
    (void)state;
    const uint64_t features = HONE_CPU_AVX | HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_AVX512_BF16 | (uint64_t)1 << 62;
    char whole[64], text[65];
    size_t size = hone_cpu_features_text(features, ", ", whole, sizeof whole);
    assert_int_equal(size, strlen(whole));
    for (size_t room = 0; room <= sizeof whole; room++) {
        memset(text, '#', sizeof text);
        assert_int_equal(hone_cpu_features_text(features, ", ", text, room), size);
        size_t kept = room == 0 ? 0 : room <= size ? room - 1 : size;
        assert_memory_equal(text, whole, kept);
        if (room > 0) assert_int_equal(text[kept], '\0');
        for (size_t i = room > 0 ? kept + 1 : 0; i < sizeof text; i++)
            assert_int_equal(text[i], '#');
    }
    assert_int_equal(hone_cpu_features_text(features, ", ", NULL, 0), size);
}

static void a_null_output_is_refused_by_name(void **state)
{
    (void)state;
    hone_error err = {0};
    assert_int_equal(hone_platform_parse("cuda", NULL, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "out is NULL"));
    err = (hone_error){0};
    assert_int_equal(hone_backend_parse("cpu", NULL, &err), HONE_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "out is NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_platform_reads_back_from_its_name),
        cmocka_unit_test(every_backend_reads_back_from_its_name),
        cmocka_unit_test(every_regime_reads_back_from_its_name),
        cmocka_unit_test(auto_is_a_platform_of_queries),
        cmocka_unit_test(names_are_exact_lower_case_and_a_wrong_one_lists_them),
        cmocka_unit_test(numbers_without_a_name_have_words_too),
        cmocka_unit_test(features_are_written_in_the_order_of_their_bits),
        cmocka_unit_test(features_that_do_not_fit_are_cut_and_counted),
        cmocka_unit_test(features_are_cut_anywhere),
        cmocka_unit_test(a_null_output_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("registry_names", tests, NULL, NULL);
}
