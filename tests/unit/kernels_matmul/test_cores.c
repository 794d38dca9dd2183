// Which instructions the libraries of others run with, and which they are asked for. OPENBLAS_CORETYPE is read when
// OpenBLAS is loaded, so each case of the real library is a process of its own: hone-worker libraries.
#include "kernels/rivals/core.h"

#include "base/buffer.h"
#include "hone/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    WITH_AVX = HONE_CPU_SSE4_2 | HONE_CPU_AVX,
    WITH_AVX2 = WITH_AVX | HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C,
    WITH_AVX512 = WITH_AVX2 | HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ
};

static void a_core_is_asked_for_by_the_instructions_of_the_processor(void **state)
{
    (void)state;
    static const struct {
        const char *vendor;
        uint64_t features;
        const char *core;
    } cases[] = {
        {"GenuineIntel", WITH_AVX512 | HONE_CPU_AVX512_BF16 | HONE_CPU_AVX512_VNNI, "SkylakeX"}, // Sapphire Rapids
        {"GenuineIntel", WITH_AVX512, "SkylakeX"},
        {"AuthenticAMD", WITH_AVX512 | HONE_CPU_AVX512_BF16, "SkylakeX"}, // Zen 4 and 5
        {"AuthenticAMD", WITH_AVX2, "Zen"},
        {"GenuineIntel", WITH_AVX2, "Haswell"},
        {"GenuineIntel", WITH_AVX2 | HONE_CPU_AVX512F, "Haswell"}, // Xeon Phi
        {"GenuineIntel", WITH_AVX, NULL},
        {"Another", WITH_AVX512, NULL},
        {"ARM", HONE_CPU_NEON, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *core = hone_openblas_core(cases[i].vendor, cases[i].features);
        if (cases[i].core == NULL) {
            assert_null(core);
            continue;
        }
        assert_non_null(core);
        assert_string_equal(core, cases[i].core);
        assert_int_equal(hone_isa_of_core(core), hone_isa_of_features(cases[i].features));
    }
}

static void a_library_below_the_machine_is_told_and_an_unknown_core_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *core;
        hone_isa_level machine;
        bool below;
    } cases[] = {
        {"Prescott", HONE_ISA_AVX512, true},    {"Haswell", HONE_ISA_AVX512, true},
        {"Zen", HONE_ISA_AVX2, false},          {"SkylakeX", HONE_ISA_AVX512, false},
        {"Sandybridge", HONE_ISA_AVX2, true},   {"Prescott", HONE_ISA_SSE, false},
        {"Futurelake", HONE_ISA_AVX512, false}, {"NEOVERSEN1", HONE_ISA_UNKNOWN, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hone_rival_facts facts = {.name = "openblas", .version = "0.3.21", .threads = 2};
        char text[256];
        snprintf(facts.core, sizeof facts.core, "%s", cases[i].core);
        facts.level = hone_isa_of_core(facts.core);
        assert_int_equal(hone_rival_facts_tell(&facts, cases[i].machine, text, sizeof text), cases[i].below);
        assert_non_null(strstr(text, "openblas 0.3.21, core "));
        assert_non_null(strstr(text, ", 2 threads"));
        assert_int_equal(strstr(text, "this machine has") != NULL, cases[i].below);
    }
}

static void what_onednn_may_use_at_most_is_known_by_its_number(void **state)
{
    (void)state;
    const char *name;
    assert_int_equal(hone_isa_of_onednn(0x7, &name), HONE_ISA_AVX2);
    assert_string_equal(name, "AVX2");
    assert_int_equal(hone_isa_of_onednn(0xe7, &name), HONE_ISA_AVX512);
    assert_int_equal(hone_isa_of_onednn(0x12345, &name), HONE_ISA_UNKNOWN);
}

// Its line of "hone-worker libraries"; the test is skipped where there is no such library.
static void line_of(const char *library, char *out, size_t size)
{
    const char *const arguments[] = {HONE_TEST_WORKER, "libraries", NULL};
    hone_buffer text;
    int code = -1;
    hone_error err = {.message = ""};
    hone_buffer_init(&text, hone_allocator_system());
    const uint64_t deadline = hone_os_now_ns() + UINT64_C(60000000000);
    assert_int_equal(hone_process_run(arguments, deadline, 4096, &text, &code, &err), HONE_OK);
    assert_int_equal(code, 0);
    const char *line = strstr(hone_buffer_string(&text), library);
    if (line != NULL) snprintf(out, size, "%.*s", (int)strcspn(line, "\n") + 1, line - 1);
    hone_buffer_deinit(&text);
    if (line == NULL) {
        print_message("%s is not installed\n", library);
        skip();
    }
}

static void openblas_runs_with_the_instructions_of_this_machine(void **state)
{
    (void)state;
    char line[256];
    unsetenv("OPENBLAS_CORETYPE");
    line_of("openblas", line, sizeof line);
    if (line[0] != ' ') fail_msg("%s", line);
}

static void a_core_that_the_user_names_is_kept_and_told(void **state)
{
    (void)state;
    char line[256];
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    line_of("openblas", line, sizeof line);
    unsetenv("OPENBLAS_CORETYPE");
    assert_non_null(strstr(line, "core Prescott"));
    assert_int_equal(line[0], hone_isa_of_features(cpu.features) > HONE_ISA_SSE ? '!' : ' ');
}

static void a_limit_of_the_user_for_onednn_is_told(void **state)
{
    (void)state;
    char line[256];
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
    line_of("onednn", line, sizeof line);
    unsetenv("ONEDNN_MAX_CPU_ISA");
    assert_non_null(strstr(line, "core SSE41"));
    assert_int_equal(line[0], hone_isa_of_features(cpu.features) > HONE_ISA_SSE ? '!' : ' ');
}

static void the_environment_is_as_it_was_after_a_library_is_loaded(void **state)
{
    (void)state;
    static const char *const names[] = {"libopenblas.so.0", NULL};
    const hone_allocator allocator = hone_allocator_system();
    hone_library *library = NULL;
    extern char **environ;
    char **before = environ;
    unsetenv("OPENBLAS_CORETYPE");
    if (hone_library_open_under(&allocator, names, "OPENBLAS_CORETYPE", "Prescott", &library, NULL) != HONE_OK) skip();
    assert_ptr_equal(environ, before);
    assert_null(getenv("OPENBLAS_CORETYPE"));
    char *(*core)(void);
    void *function = hone_library_symbol(library, "openblas_get_corename");
    assert_non_null(function);
    memcpy(&core, &function, sizeof function);
    assert_string_equal(core(), "Prescott");
    hone_library_close(&allocator, &library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_core_is_asked_for_by_the_instructions_of_the_processor),
        cmocka_unit_test(a_library_below_the_machine_is_told_and_an_unknown_core_is_not),
        cmocka_unit_test(what_onednn_may_use_at_most_is_known_by_its_number),
        cmocka_unit_test(openblas_runs_with_the_instructions_of_this_machine),
        cmocka_unit_test(a_core_that_the_user_names_is_kept_and_told),
        cmocka_unit_test(a_limit_of_the_user_for_onednn_is_told),
        cmocka_unit_test(the_environment_is_as_it_was_after_a_library_is_loaded),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
