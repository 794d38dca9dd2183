// Which instructions the libraries of others run with, and which they are asked for. OPENBLAS_CORETYPE is read when
// OpenBLAS is loaded, so each case of the real library is a process of its own: hone-worker libraries. And which file of
// a package of Python is taken.
#include "kernels/rivals/core.h"

#include "base/buffer.h"
#include "hone/device.h"
#include "platforms/shared/packages.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    assert_int_equal(hone_isa_of_onednn(0xfef, &name), HONE_ISA_AVX512);
    assert_string_equal(name, "AVX512_CORE_AMX");
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
    const char *line = hone_buffer_string(&text);
    while (*line != '\0' && strncmp(line + 1, library, strlen(library)) != 0)
        line += strcspn(line, "\n") + 1;
    if (*line == '\0') line = NULL;
    if (line != NULL) snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
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
    line_of("openblas ", line, sizeof line);
    if (line[0] != ' ') fail_msg("%s", line);
}

static void a_core_that_the_user_names_is_told_of_pythons_openblas_too(void **state)
{
    static const char *const names[] = {"numpy_openblas ", "scipy_openblas "};
    (void)state;
    char line[256];
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        line_of(names[i], line, sizeof line);
        if (hone_isa_of_features(cpu.features) < HONE_ISA_AVX2) continue; // it takes no core that this machine lacks
        assert_non_null(strstr(line, "core Haswell"));
        assert_int_equal(line[0], hone_isa_of_features(cpu.features) > HONE_ISA_AVX2 ? '!' : ' ');
    }
    unsetenv("OPENBLAS_CORETYPE");
}

static void a_core_that_the_user_names_is_kept_and_told(void **state)
{
    (void)state;
    char line[256];
    hone_os_cpu cpu;
    hone_os_cpu_read(&cpu);
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    line_of("openblas ", line, sizeof line);
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
    line_of("onednn ", line, sizeof line);
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

// Which file is taken ---------------------------------------------------------------------------------------------------

static const hone_packaged_library abacus = {"HONE_TEST_ABACUS", "abacus", "abacus.libs", "libabacus-"};

// A folder of packages below folder, with files of abacus, of which the last by name is neither the first nor the last
// that was made.
static void make_packages(const temporary_folder *folder)
{
    static const char *const parts[] = {
        "/lib", "/lib/python3.12", "/lib/python3.12/site-packages", "/lib/python3.12/site-packages/abacus.libs"};
    static const char *const files[] = {
        "libabacus-1.so", "libabacus-5.so", "libabacus-3.so", "libabacus-2.so", "libother-9.so"};
    char path[TEMPORARY_PATH_SIZE];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%s%s", folder->path, parts[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s%s/%s", folder->path, parts[3], files[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fclose(file);
    }
}

static void assert_found(const char *expected)
{
    char path[4096], real[4096];
    hone_error why = {.message = ""};
    if (!hone_rival_find_packaged(&abacus, path, sizeof path, &why)) fail_msg("%s", why.message);
    assert_true(hone_os_real_path(expected, real, sizeof real));
    assert_string_equal(path, real);
}

// What a process that is started now, a worker for one, looks at.
static void assert_handed_on(const char *expected)
{
    static const char *const arguments[] = {"sh", "-c", "echo ${HONE_TEST_ABACUS-nothing}", NULL};
    char real[4096];
    hone_buffer text;
    int code = -1;
    hone_buffer_init(&text, hone_allocator_system());
    const uint64_t deadline = hone_os_now_ns() + UINT64_C(60000000000);
    assert_true(hone_os_real_path(expected, real, sizeof real));
    assert_int_equal(hone_process_run(arguments, deadline, 4096, &text, &code, NULL), HONE_OK);
    assert_int_equal(text.size, strlen(real) + 1);
    assert_memory_equal(hone_buffer_string(&text), real, strlen(real));
    hone_buffer_deinit(&text);
}

static void a_library_of_a_package_is_that_of_the_variable_or_of_the_process_or_of_a_folder(void **state)
{
    static const char *const nowhere[] = {"/nowhere", "/nowhere/libabacus-1.so"};
    const hone_allocator allocator = hone_allocator_system();
    char path[4096], in_packages[TEMPORARY_PATH_SIZE], loaded[TEMPORARY_PATH_SIZE];
    const char *const names[] = {loaded, NULL};
    hone_library *library = NULL;
    hone_error why = {.message = ""};
    temporary_folder folder;
    (void)state;
    assert_int_equal(temporary_folder_make(&folder), 0);
    unsetenv(abacus.variable);
    assert_false(hone_rival_find_packaged(&abacus, path, sizeof path, &why));
    assert_non_null(strstr(why.message, "install PyPI's abacus"));
    make_packages(&folder);
    snprintf(in_packages, sizeof in_packages, "%s/lib/python3.12/site-packages/abacus.libs", folder.path);
    setenv(abacus.variable, in_packages, 1);
    strcat(in_packages, "/libabacus-5.so");
    assert_found(in_packages);
    unsetenv(abacus.variable);
    static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        setenv(environments[i], folder.path, 1);
        assert_found(in_packages);
        unsetenv(environments[i]);
    }
    // Those that an interpreter lends, and that it, or whoever starts a worker, names.
    static char lent[sizeof folder.path * 2];
    snprintf(lent, sizeof lent, "relative:/nowhere:%s/lib/python3.12/site-packages", folder.path);
    hone_packages_lend(lent);
    assert_found(in_packages);
    hone_packages_lend(NULL);
    assert_false(hone_rival_find_packaged(&abacus, path, sizeof path, &why));
    setenv("HONE_PYTHON_PACKAGES", lent, 1);
    assert_found(in_packages);
    unsetenv("HONE_PYTHON_PACKAGES");
    setenv("VIRTUAL_ENV", folder.path, 1);
    assert_found(in_packages);
    snprintf(loaded, sizeof loaded, "%s/libabacus-0.so", folder.path);
    assert_int_equal(symlink(HONE_TEST_LIBRARY, loaded), 0);
    assert_int_equal(hone_library_open(&allocator, names, &library, NULL), HONE_OK);
    assert_found(HONE_TEST_LIBRARY);
    assert_handed_on(HONE_TEST_LIBRARY);
    setenv(abacus.variable, in_packages, 1);
    assert_found(in_packages);
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        setenv(abacus.variable, nowhere[i], 1);
        assert_false(hone_rival_find_packaged(&abacus, path, sizeof path, &why));
        assert_non_null(strstr(why.message, nowhere[i]));
    }
    unsetenv(abacus.variable);
    unsetenv("VIRTUAL_ENV");
    hone_library_close(&allocator, &library);
    temporary_folder_remove(&folder);
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
        cmocka_unit_test(a_core_that_the_user_names_is_told_of_pythons_openblas_too),
        cmocka_unit_test(the_environment_is_as_it_was_after_a_library_is_loaded),
        cmocka_unit_test(a_library_of_a_package_is_that_of_the_variable_or_of_the_process_or_of_a_folder),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
