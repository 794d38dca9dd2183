#include "fixture.h"

#include "guarded.h"
#include "platforms/platform.h"
#include "registry/origin.h"
#include "registry/tables.h"
#include <math.h>

static const char fa[] = "fa(x: f32[n]) -> y: f32[n]";

static void an_algorithm_is_found_in_any_case(void **state)
{
    fixture *f = *state;
    assert_int_equal(add_algorithm(f, "Flash_Attention(x: f32[n]) -> y: f32[n]"), HONE_OK);
    const hone_algorithm_entry *entry = hone_registry_find(f->registry, "FLASH_attention", NULL);
    assert_non_null(entry);
    assert_string_equal(entry->name, "flash_attention");
    assert_string_equal(entry->version, "1");
}

static void names_are_compared_in_unicode_lower_case(void **state)
{
    fixture *f = *state;
    assert_int_equal(add_algorithm(f, "ÄLG(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_int_equal(add_algorithm(f, "İx(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_non_null(hone_registry_find(f->registry, "älg", NULL));
    assert_non_null(hone_registry_find(f->registry, "i̇x", NULL));
    assert_null(hone_registry_find(f->registry, "ix", NULL));
}

static void algorithms_are_listed_by_code_point_then_version(void **state)
{
    fixture *f = *state;
    static const char *const signatures[] = {
        "b(x: f32[n]) -> y: f32[n]", "a@v10(x: f32[n]) -> y: f32[n]", "_(x: f32[n]) -> y: f32[n]",
        "Z(x: f32[n]) -> y: f32[n]", "a@v9(x: f32[n]) -> y: f32[n]",
    };
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(add_algorithm(f, signatures[i]), HONE_OK);
    size_t count = 0;
    const hone_algorithm_entry *const *all = hone_registry_all(f->registry, &count);
    static const char *const names[] = {"_", "a", "a", "b", "z"};
    assert_int_equal(count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(all[i]->name, names[i]);
    assert_string_equal(all[1]->version, "9");
}

static void without_a_version_the_newest_is_found(void **state)
{
    fixture *f = *state;
    assert_int_equal(add_algorithm(f, "fa@v10(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_int_equal(add_algorithm(f, "fa@v9(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_string_equal(hone_registry_find(f->registry, "fa", NULL)->version, "10");
    assert_string_equal(hone_registry_find(f->registry, "fa", "")->version, "10");
    assert_string_equal(hone_registry_find(f->registry, "fa", "9")->version, "9");
    assert_string_equal(hone_registry_find(f->registry, "FA@v9", NULL)->version, "9");
    assert_null(hone_registry_find(f->registry, "fa@v2", NULL));
    assert_null(hone_registry_find(f->registry, "fa@v", NULL));
}

static void versions_stand_in_the_order_of_their_numbers(void **state)
{
    (void)state;
    static const char *const ordered[] = {
        "",
        "0",
        "00",
        "01",
        "1",
        "1-rc",
        "01.5",
        "1.5",
        "1.9",
        "1.10",
        "1.10.0",
        "2",
        "9",
        "10",
        "99999999999999999999",
        "100000000000000000000",
        "a",
        "b1",
        "b2",
        "b2.1",
        "b10",
        "c"};
    enum { COUNT = sizeof ordered / sizeof ordered[0] };
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            int order = hone_registry_version_compare(ordered[i], ordered[j]);
            if ((order > 0) - (order < 0) != (i > j) - (i < j))
                fail_msg("'%s' against '%s': %d", ordered[i], ordered[j], order);
        }
}

static void names_that_no_algorithm_can_have_are_not_found(void **state)
{
    fixture *f = *state;
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    assert_null(hone_registry_find(f->registry, longest, NULL));
    assert_null(hone_registry_find(f->registry, "", NULL));
    assert_null(hone_registry_find(f->registry, "@v1", NULL));
    assert_null(hone_registry_find(f->registry, NULL, NULL));
}

// The longest version there may be, and one behind which nothing may be read.
static void names_and_versions_are_read_to_their_end_and_no_further(void **state)
{
    fixture *f = *state;
    static const char *const names[] = {"fa", "fa@v9", "fa@v123456789012345", "fa@v1234567890123456"};
    static const char *const versions[] = {"123456789012345", "9", "", NULL};
    guarded room = guarded_open(64);
    assert_int_equal(add_algorithm(f, "fa@v9(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_int_equal(add_algorithm(f, "fa@v123456789012345(x: f32[n]) -> y: f32[n]"), HONE_OK);
    for (size_t i = 0; i < 4; i++) {
        const char *name = guarded_at_end(&room, names[i], strlen(names[i]) + 1);
        const hone_algorithm_entry *entry = hone_registry_find(f->registry, name, NULL);
        if (i == 3) assert_null(entry);
        if (i < 3) assert_string_equal(entry->version, i == 1 ? "9" : "123456789012345");
        const char *version = versions[i];
        if (version != NULL) version = guarded_at_end(&room, version, strlen(version) + 1);
        entry = hone_registry_find(f->registry, "fa", version);
        assert_string_equal(entry->version, i == 1 ? "9" : "123456789012345");
    }
    assert_null(hone_registry_find(f->registry, "fa", "1234567890123456"));
    guarded_close(&room);
}

static void an_unknown_name_is_answered_with_those_there_are(void **state)
{
    fixture *f = *state;
    assert_int_equal(hone_registry_fail_unknown(f->registry, "nope", &f->err), HONE_NOT_FOUND);
    assert_says(f, "'nope'");
    assert_says(f, "none");
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    assert_int_equal(add_algorithm(f, "gemm@v2(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_int_equal(hone_registry_fail_unknown(f->registry, "nope", &f->err), HONE_NOT_FOUND);
    assert_says(f, "there are: fa, gemm@v2");
    assert_int_equal(add_algorithm(f, "gemm(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_int_equal(add_algorithm(f, "zeta(x: f32[n]) -> y: f32[n]"), HONE_OK);
    assert_int_equal(hone_registry_fail_unknown(f->registry, NULL, &f->err), HONE_NOT_FOUND);
    assert_says(f, "no algorithm named ''; there are: fa, gemm@v1, gemm@v2, zeta"); // the version where there are two
    assert_int_equal(hone_registry_fail_unknown(f->registry, "Gem@v1", &f->err), HONE_NOT_FOUND);
    assert_says(f, "no algorithm named 'Gem@v1'; did you mean gemm? There are: fa, gemm@v1, gemm@v2, zeta");
    assert_non_null(strrchr(f->err.message, 'z'));
    assert_string_equal(strrchr(f->err.message, 'z'), "zeta");
    for (int i = 0; i < 200; i++) {
        char signature[64];
        snprintf(signature, sizeof signature, "algorithm_%d(x: f32[n]) -> y: f32[n]", i);
        assert_int_equal(add_algorithm(f, signature), HONE_OK);
    }
    assert_int_equal(hone_registry_fail_unknown(f->registry, "nope", &f->err), HONE_NOT_FOUND);
    assert_says(f, "there are: algorithm_0, algorithm_1, algorithm_10, ");
    assert_true(strlen(f->err.message) < sizeof f->err.message);
}

static void the_same_algorithm_twice_is_fine_and_another_one_of_its_name_is_not(void **state)
{
    fixture *f = *state;
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    assert_int_equal(add_algorithm(f, "FA( x : f32[n] ) -> y: f32[n]"), HONE_OK);
    assert_int_equal(add_algorithm(f, "fa(x: f32[n], z: f32[n]) -> y: f32[n]"), HONE_INVALID_ARGUMENT);
    assert_says(f, "another version");
    hone_algorithm other;
    hone_algorithm_init(&other);
    other.signature = fa;
    assert_int_equal(hone_registry_add_algorithm(f->registry, &other, false, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "reference");
    char slow[] = "slow", again[] = "slow";
    hone_algorithm named;
    hone_algorithm_init(&named);
    named.signature = "gemm(x: f32[n]) -> y: f32[n]";
    named.reference_kernel = slow;
    assert_int_equal(hone_registry_add_algorithm(f->registry, &named, false, &f->err), HONE_OK);
    named.reference_kernel = again; // the same name, at another place
    assert_int_equal(hone_registry_add_algorithm(f->registry, &named, false, &f->err), HONE_OK);
    named.reference_kernel = "slower";
    assert_int_equal(hone_registry_add_algorithm(f->registry, &named, false, &f->err), HONE_INVALID_ARGUMENT);
    size_t count = 0;
    hone_registry_all(f->registry, &count);
    assert_int_equal(count, 2);
}

static void a_wrong_algorithm_is_refused_with_words(void **state)
{
    fixture *f = *state;
    assert_int_equal(hone_registry_add_algorithm(f->registry, NULL, false, &f->err), HONE_INVALID_ARGUMENT);
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    assert_int_equal(hone_registry_add_algorithm(f->registry, &algorithm, false, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "signature");
    algorithm.struct_size = 0;
    assert_int_equal(hone_registry_add_algorithm(f->registry, &algorithm, false, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "struct_size");
    assert_int_equal(add_algorithm(f, "fa(x: f32[n)"), HONE_INVALID_ARGUMENT);
    char text[200];
    memset(text, 'x', 70);
    strcpy(text + 70, "(x: f32[n]) -> y: f32[n]");
    assert_int_equal(add_algorithm(f, text), HONE_INVALID_ARGUMENT);
    assert_says(f, "too long");
    memset(text, '1', 70);
    memcpy(text, "fa@v", 4);
    assert_int_equal(add_algorithm(f, text), HONE_INVALID_ARGUMENT);
    assert_says(f, "is too long: at most");
    static const struct {
        hone_tolerance tolerance;
        const char *independent;
        uint32_t special;
        const char *words;
    } wrong[] = {
        {{.relative = NAN}, NULL, 0, "tolerance of fb is absolute 0, relative nan"},
        {{.absolute = -1}, NULL, 0, "expected numbers of 0 or more"},
        {{.scale = INFINITY}, NULL, 0, "scale inf"},
        {{.scale = 0}, "m", 0, "independent of fb names 'm', which is not a dim of its signature"},
        {{.scale = 0}, "n, q:n", 0, "names 'q'"},
        {{.scale = 0}, "...", 0, "names '...'"},
        {{.scale = 0}, NULL, 1u << 6, "special of fb is 0x40"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hone_algorithm_init(&algorithm);
        algorithm.signature = "fb(x: f32[n]) -> y: f32[n]";
        algorithm.tolerance = wrong[i].tolerance;
        algorithm.independent = wrong[i].independent;
        algorithm.special = wrong[i].special;
        assert_int_equal(hone_registry_add_algorithm(f->registry, &algorithm, false, &f->err), HONE_INVALID_ARGUMENT);
        assert_says(f, wrong[i].words);
    }
    assert_null(hone_registry_find(f->registry, "fb", NULL));
}

static void code_in_a_file_that_is_not_there_is_refused_with_its_path(void **state)
{
    fixture *f = *state;
    const hone_code code = {HONE_CODE, .file = "/nowhere/fa.cl", .entry = "fa", .arguments = "x, y"};
    assert_int_equal(add_algorithm(f, "fa(x: f32[n]) -> y: f32[n]"), HONE_OK);
    hone_kernel kernel = a_kernel("fa", "filed", HONE_OPENCL, HONE_GPU, 0);
    kernel.run = NULL;
    kernel.code = &code;
    assert_int_equal(add_kernel(f, kernel), HONE_NOT_FOUND);
    assert_says(f, "fa: kernel 'filed': ");
    assert_says(f, "/nowhere/fa.cl");
}

static void code_has_one_origin_and_an_entry(void **state)
{
    fixture *f = *state;
    const hone_code good = {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x, y"};
    static const struct {
        hone_code code;
        const char *word;
    } wrong[] = {
        {{HONE_CODE, .entry = "fa", .arguments = "x"}, "needs one of source, file and binary"},
        {{HONE_CODE, .source = "text", .binary = "bytes", .binary_size = 5, .entry = "fa", .arguments = "x"},
         "needs one of"},
        {{HONE_CODE, .binary = "", .entry = "fa", .arguments = "x"}, "a binary of no bytes"},
        {{HONE_CODE, .source = "text", .arguments = "x"}, "does not name its entry"},
        {{HONE_CODE, .source = "text", .entry = "", .arguments = "x"}, "does not name its entry"},
        {{HONE_CODE, .source = "text", .entry = "fa"}, "does not list its arguments"},
        {{HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .align = 24}, "not a power of two"},
        {{HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .align = 8192},
         "not a power of two up to 4096"},
        {{HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .flags = 1u << 9}, "flags that this version"},
        {{HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .flags = HONE_CODE_COOPERATIVE},
         "opencl knows none"},
        {{HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .cluster = "2"}, "asks for clusters"},
        {{HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .shared = "4"}, "names shared memory"},
    };
    assert_int_equal(add_algorithm(f, "fa(x: f32[n]) -> y: f32[n]"), HONE_OK);
    hone_kernel kernel = a_kernel("fa", "coded", HONE_OPENCL, HONE_GPU, 0);
    kernel.run = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        kernel.code = &wrong[i].code;
        assert_int_equal(add_kernel(f, kernel), HONE_INVALID_ARGUMENT);
        assert_says(f, wrong[i].word);
    }
    kernel.code = &good;
    if (add_kernel(f, kernel) != HONE_OK) fail_msg("%s", f->err.message);
}

static void whatever_differs_in_the_code_makes_another_revision(void **state)
{
    fixture *f = *state;
    static const hone_code codes[] = {
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x"},
        {HONE_CODE, .source = "more", .entry = "fa", .arguments = "x"},
        {HONE_CODE, .source = "text", .entry = "fb", .arguments = "x"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "y"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .grid = "2"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .block = "2"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .constants = "A = 2"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .options = "-O2"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .condition = "n > 2"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .align = 16},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x", .scratch = "4"},
        {HONE_CODE, .binary = "text", .binary_size = 4, .entry = "fa", .arguments = "x"},
        {HONE_CODE, .source = "text", .entry = "fa", .arguments = "x"}, // as the first
    };
    enum { COUNT = sizeof codes / sizeof *codes };
    const char *revisions[COUNT];
    assert_int_equal(add_algorithm(f, "fa(x: f32[n]) -> y: f32[n]"), HONE_OK);
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        hone_kernel kernel = a_kernel("fa", name, HONE_OPENCL, HONE_GPU, 100 - i);
        kernel.run = NULL;
        kernel.code = &codes[i];
        if (add_kernel(f, kernel) != HONE_OK) fail_msg("%s", f->err.message);
    }
    size_t count;
    const hone_kernel_ref *const *refs = hone_registry_list(hone_registry_find(f->registry, "fa", NULL), &count);
    assert_int_equal(count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        revisions[i] = hone_kernel_of(refs[i])->revision;
        for (int j = 0; j < i; j++)
            assert_int_equal(strcmp(revisions[i], revisions[j]) == 0, i == COUNT - 1 && j == 0);
    }
}

static void priorities_have_64_bits(void **state)
{
    fixture *f = *state;
    char names[256];
    must_add(f, "low", HONE_NATIVE, HONE_CPU, INT64_MIN);
    must_add(f, "one", HONE_NATIVE, HONE_CPU, 1);
    must_add(f, "wide", HONE_NATIVE, HONE_CPU, (int64_t)1 << 32);
    must_add(f, "high", HONE_NATIVE, HONE_CPU, INT64_MAX);
    assert_string_equal(kernel_names(f, "fa", names), "high wide one low");
}

static void kernels_stand_by_falling_priority_then_in_order_of_registration(void **state)
{
    fixture *f = *state;
    char names[256];
    must_add(f, "low", HONE_NATIVE, HONE_CPU, -5);
    must_add(f, "first", HONE_NATIVE, HONE_CPU, 0);
    must_add(f, "second", HONE_XLA, HONE_ANY, 0);
    must_add(f, "high", HONE_NATIVE, HONE_CPU, 7);
    must_add(f, "third", HONE_NATIVE, HONE_CPU, 0);
    assert_string_equal(kernel_names(f, "fa", names), "high first second third low");
}

static void a_duplicate_is_refused_unless_it_replaces(void **state)
{
    fixture *f = *state;
    char names[256];
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    must_add(f, "b", HONE_NATIVE, HONE_CPU, 0);
    hone_kernel again = a_kernel("FA", "a", HONE_NATIVE, HONE_CPU, 0);
    again.revision = "2";
    assert_int_equal(add_kernel(f, again), HONE_INVALID_ARGUMENT);
    assert_says(f, "registered already");
    assert_string_equal(only_kernel(f, "fa")->kernel.revision, "1");
    assert_int_equal(hone_registry_add_kernels(f->registry, &again, 1, true, false, &f->err), HONE_OK);
    assert_string_equal(kernel_names(f, "fa", names), "a b"); // it kept the place of what it replaced
    assert_string_equal(only_kernel(f, "fa")->kernel.revision, "2");
}

static void equal_names_for_other_hardware_are_no_duplicates(void **state)
{
    fixture *f = *state;
    char names[256];
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    must_add(f, "a", HONE_NATIVE, HONE_ANY, 0);
    must_add(f, "a", HONE_XLA, HONE_CPU, 0);
    assert_string_equal(kernel_names(f, "fa", names), "a a a");
}

static void kernels_are_registered_all_or_none(void **state)
{
    fixture *f = *state;
    char names[256];
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    assert_int_equal(add_algorithm(f, "fb(x: f32[n]) -> y: f32[n]"), HONE_OK);
    hone_kernel kernels[] = {
        a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0),
        a_kernel("fb", "b", HONE_NATIVE, HONE_CPU, 0),
        a_kernel("fc", "c", HONE_NATIVE, HONE_CPU, 0),
    };
    assert_int_equal(hone_registry_add_kernels(f->registry, kernels, 3, false, false, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "'fc'");
    assert_says(f, "fa, fb");
    assert_string_equal(kernel_names(f, "fa", names), "");
    kernels[2] = a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 9);
    assert_int_equal(hone_registry_add_kernels(f->registry, kernels, 3, true, false, &f->err), HONE_INVALID_ARGUMENT);
    assert_says(f, "twice");
    assert_string_equal(kernel_names(f, "fa", names), "");
    kernels[2].name = "c";
    assert_int_equal(hone_registry_add_kernels(f->registry, kernels, 3, false, false, &f->err), HONE_OK);
    assert_string_equal(kernel_names(f, "fa", names), "c a");
    assert_string_equal(kernel_names(f, "fb", names), "b");
}

static void a_wrong_kernel_is_refused_with_words_and_leaves_nothing(void **state)
{
    fixture *f = *state;
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    hone_kernel good = a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0);
    enum { WRONG = 17 };
    hone_kernel wrong[WRONG];
    for (size_t i = 0; i < WRONG; i++)
        wrong[i] = good;
    char longest[HONE_NAME_SIZE + 1];
    memset(longest, 'x', sizeof longest);
    longest[HONE_NAME_SIZE] = '\0';
    wrong[0].name = "";
    wrong[1].name = "two words";
    wrong[2].name = "sixty-four-letters-are-one-too-many-for-a-name-of-a-kernel-0123456789";
    wrong[3].platform = HONE_PLATFORM_NONE;
    wrong[4].platform = HONE_PLATFORM_AUTO;
    wrong[5].backend = HONE_BACKEND_NONE;
    wrong[6].backend = (hone_backend)77;
    wrong[7].run = NULL;
    wrong[8].space = "block_m: 16..";
    wrong[9].algorithm = NULL;
    wrong[10].platform = HONE_PLATFORM_COUNT;
    wrong[11].platform = (hone_platform)-1;
    wrong[12].backend = HONE_BACKEND_COUNT;
    wrong[13].backend = (hone_backend)-1;
    wrong[14].name = longest;
    wrong[15].name = NULL;
    wrong[16].revision = "2\n3";
    static const char *const words[] = {
        "name",
        "two words",
        "name of a kernel: 1 to 63 letters",
        "platform",
        "platform",
        "backend",
        "backend",
        "run",
        "space",
        "algorithm",
        "no platform",
        "no platform",
        "no backend",
        "no backend",
        "not a valid name",
        "not a valid name",
        "the revision of kernel 'a' has control characters"};
    for (size_t i = 0; i < WRONG; i++) {
        assert_int_equal(add_kernel(f, wrong[i]), HONE_INVALID_ARGUMENT);
        assert_says(f, words[i]);
    }
    char names[256];
    assert_string_equal(kernel_names(f, "fa", names), "");
    assert_int_equal(hone_registry_add_kernels(f->registry, NULL, 1, false, false, &f->err), HONE_INVALID_ARGUMENT);
    assert_int_equal(hone_registry_add_kernels(f->registry, NULL, 0, false, false, &f->err), HONE_OK);
    longest[HONE_NAME_SIZE - 1] = '\0';
    good.name = longest;
    good.platform = (hone_platform)(HONE_PLATFORM_COUNT - 1);
    good.backend = (hone_backend)(HONE_BACKEND_COUNT - 1);
    assert_int_equal(add_kernel(f, good), HONE_OK);
    assert_string_equal(kernel_names(f, "fa", names), longest);
}

static void a_pack_of_one_variant_for_all_configs_has_it_for_each(void **state)
{
    (void)state;
    hone_pack_variant variants[2] = {{.config = {.count = 1, .values = {8}}}, {.config = {.count = 1, .values = {16}}}};
    hone_pack_kernel kernel = {.variants = variants, .variant_count = 2, .is_listed = true};
    const int64_t configs[] = {8, 16, 32};
    assert_ptr_equal(hone_pack_variant_of(&kernel, &configs[0]), &variants[0]);
    assert_ptr_equal(hone_pack_variant_of(&kernel, &configs[1]), &variants[1]);
    assert_null(hone_pack_variant_of(&kernel, &configs[2]));
    kernel.is_listed = false;
    assert_ptr_equal(hone_pack_variant_of(&kernel, &configs[2]), &variants[0]);
    kernel.variant_count = 0;
    assert_null(hone_pack_variant_of(&kernel, &configs[0]));
}

static void kinds_of_code_files_are_known_by_their_suffix(void **state)
{
    (void)state;
    static const char *const binaries[] = {"a.clbin", "b.cubin", "c.fatbin", "d.ptx", ".ptx", "e.cl.ptx"};
    static const char *const sources[] = {"a.cl", "b.cu", "c.mlir", "ptx", "", "d.ptx.cl", "e.PTX", "cubin", "f.ptx "};
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        assert_true(hone_code_is_binary(binaries[i]));
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        assert_false(hone_code_is_binary(sources[i]));
}

// What a program that was built with a newer header hands over.
typedef struct newer_kernel {
    hone_kernel known;
    void *unknown;
} newer_kernel;

static void a_newer_struct_is_taken_as_long_as_its_new_fields_are_zero(void **state)
{
    fixture *f = *state;
    char names[256];
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    newer_kernel kernels[2] = {
        {.known = a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0)},
        {.known = a_kernel("fa", "b", HONE_NATIVE, HONE_CPU, 0)},
    };
    kernels[0].known.struct_size = kernels[1].known.struct_size = sizeof(newer_kernel);
    kernels[1].unknown = f;
    assert_int_equal(
        hone_registry_add_kernels(f->registry, &kernels[0].known, 2, false, false, &f->err), HONE_INCOMPATIBLE);
    kernels[1].unknown = NULL;
    assert_int_equal(hone_registry_add_kernels(f->registry, &kernels[0].known, 2, false, false, &f->err), HONE_OK);
    assert_string_equal(kernel_names(f, "fa", names), "a b");
    assert_int_equal(only_kernel(f, "fa")->kernel.struct_size, sizeof(hone_kernel));
}

static void a_struct_size_that_was_never_set_is_refused(void **state)
{
    fixture *f = *state;
    static const size_t sizes[] = {0, 3, 4, 1001, 1 << 20, SIZE_MAX};
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hone_kernel kernel = a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0);
        kernel.struct_size = sizes[i];
        assert_int_equal(add_kernel(f, kernel), HONE_INVALID_ARGUMENT);
        assert_says(f, "struct_size");
    }
    hone_kernel mixed[] = {
        a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0), a_kernel("fa", "b", HONE_NATIVE, HONE_CPU, 0)};
    mixed[1].struct_size = 0;
    assert_int_equal(hone_registry_add_kernels(f->registry, mixed, 2, false, false, &f->err), HONE_INVALID_ARGUMENT);
}

static void strings_are_copied(void **state)
{
    fixture *f = *state;
    char signature[] = "fa(x: f32[n]) -> y: f32[n]";
    char algorithm[] = "FA";
    char name[] = "mine";
    char space[] = "block: 1 | 2";
    assert_int_equal(add_algorithm(f, signature), HONE_OK);
    hone_kernel kernel = a_kernel(algorithm, name, HONE_NATIVE, HONE_CPU, 0);
    kernel.space = space;
    assert_int_equal(add_kernel(f, kernel), HONE_OK);
    memset(signature, 'z', sizeof signature - 1);
    memset(algorithm, 'z', sizeof algorithm - 1);
    memset(name, 'z', sizeof name - 1);
    memset(space, 'z', sizeof space - 1);
    const hone_kernel_ref *ref = only_kernel(f, "fa");
    assert_string_equal(ref->kernel.name, "mine");
    assert_string_equal(ref->kernel.algorithm, "fa");
    assert_string_equal(ref->kernel.space, "block: 1 | 2");
    assert_string_equal(ref->algorithm->algorithm.signature, "fa(x: f32[n]) -> y: f32[n]");
}

static void a_list_that_was_handed_out_stays_as_it_was_while_its_reader_is_inside(void **state)
{
    fixture *f = *state;
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    size_t before = 0;
    hone_registry_reader reader = {0};
    hone_registry_enter(f->registry, &reader);
    const hone_kernel_ref *const *old = hone_registry_list(hone_registry_find(f->registry, "fa", NULL), &before);
    const hone_kernel_ref *first = old[0];
    must_add(f, "b", HONE_NATIVE, HONE_CPU, 9);
    hone_kernel again = a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 99);
    assert_int_equal(hone_registry_add_kernels(f->registry, &again, 1, true, false, &f->err), HONE_OK);
    assert_int_equal(before, 1);
    assert_ptr_equal(old[0], first);
    assert_string_equal(first->kernel.name, "a");
    assert_int_equal(first->kernel.priority, 0);
    char names[256];
    assert_string_equal(kernel_names(f, "fa", names), "a b");
    hone_registry_leave(&reader);
}

// Each replacement is a batch of its own, all of them of one size.
static void replace_kernel(fixture *f, int times)
{
    const hone_kernel again = a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0);
    for (int i = 0; i < times; i++)
        assert_int_equal(hone_registry_add_kernels(f->registry, &again, 1, true, false, &f->err), HONE_OK);
}

static void what_was_replaced_goes_when_its_last_reader_has_left(void **state)
{
    fixture *f = *state;
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    replace_kernel(f, 3);
    long long one = f->memory.live;
    replace_kernel(f, 1);
    assert_int_equal(f->memory.live, one); // nobody is inside: the old one has gone at once
    hone_registry_reader first = {0}, second = {0};
    hone_registry_enter(f->registry, &first);
    replace_kernel(f, 1);
    long long batch = f->memory.live - one;
    assert_true(batch > 0);
    hone_registry_enter(f->registry, &second);
    replace_kernel(f, 5);
    assert_int_equal(f->memory.live, one + 6 * batch);
    hone_registry_leave(&first);
    assert_int_equal(f->memory.live, one + 5 * batch); // the second came after the first replacement
    hone_registry_leave(&second);
    assert_int_equal(f->memory.live, one);
}

static void a_retained_kernel_outlives_its_replacement(void **state)
{
    fixture *f = *state;
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    replace_kernel(f, 3);
    long long one = f->memory.live;
    const hone_kernel_ref *kept = hone_kernel_retain(only_kernel(f, "fa"));
    replace_kernel(f, 4);
    assert_false(hone_kernel_is_registered(kept));
    assert_string_equal(kept->kernel.name, "a");
    long long two = f->memory.live;
    assert_true(two > one);
    assert_ptr_equal(hone_kernel_retain(kept), kept);
    hone_kernel_release(kept);
    assert_int_equal(f->memory.live, two);
    hone_kernel_release(kept);
    assert_int_equal(f->memory.live, one);
    kept = hone_kernel_retain(only_kernel(f, "fa"));
    assert_true(hone_kernel_is_registered(kept));
    hone_kernel_release(kept);
    assert_int_equal(f->memory.live, one);
}

static void a_kernel_is_found_by_name_and_platform(void **state)
{
    fixture *f = *state;
    must_add(f, "a", HONE_NATIVE, HONE_CPU, 0);
    must_add(f, "a", HONE_XLA, HONE_ANY, 1);
    const hone_algorithm_entry *entry = hone_registry_find(f->registry, "fa", NULL);
    assert_int_equal(hone_kernel_by_name(entry, "a", HONE_PLATFORM_NONE)->kernel.platform, HONE_XLA);
    assert_int_equal(hone_kernel_by_name(entry, "a", HONE_NATIVE)->kernel.platform, HONE_NATIVE);
    assert_null(hone_kernel_by_name(entry, "a", HONE_CUDA));
    assert_null(hone_kernel_by_name(entry, "b", HONE_PLATFORM_NONE));
}

static void a_kernels_own_signature_says_what_it_does_not_take(void **state)
{
    fixture *f = *state;
    assert_int_equal(
        add_algorithm(f, "att(x: f32[n], *, causal: bool = false, block_m: i64 = 16, scale: f64? = none) -> y: f32[n]"),
        HONE_OK);
    hone_kernel kernel = a_kernel("att", "a", HONE_NATIVE, HONE_CPU, 0);
    kernel.signature = "ATT(x: f32[n], *, scale: f64? = none) -> y: f32[n]";
    assert_int_equal(add_kernel(f, kernel), HONE_OK);
    const hone_kernel_ref *ref = only_kernel(f, "att");
    int causal = hone_signature_find(ref->algorithm->signature, "causal");
    assert_int_equal(ref->unsupported, (uint64_t)1 << causal); // a tuning parameter is nobody's business
}

static void a_signature_that_cannot_serve_the_algorithm_is_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *signature, *word;
    } wrong[] = {
        {"fb(x: f32[n]) -> y: f32[n]", "is of 'fb"},  {"fa@v2(x: f32[n]) -> y: f32[n]", "@v2"},
        {"fa(x: f32[n]) -> z: f32[n]", "result 'y'"}, {"fa(x: f32[n], more: f32[n]) -> y: f32[n]", "'more'"},
        {"fa(x: f32[n", "signature of kernel 'a'"},
    };
    char names[256];
    assert_int_equal(add_algorithm(f, fa), HONE_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hone_kernel kernel = a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0);
        kernel.signature = wrong[i].signature;
        assert_int_equal(add_kernel(f, kernel), HONE_INVALID_ARGUMENT);
        assert_says(f, wrong[i].word);
    }
    assert_string_equal(kernel_names(f, "fa", names), "");
}

static hone_status whole_story(hone_registry *registry, hone_error *err)
{
    hone_algorithm algorithm;
    hone_algorithm_init(&algorithm);
    algorithm.signature = fa;
    hone_status status = hone_registry_add_algorithm(registry, &algorithm, false, err);
    hone_kernel kernels[] = {
        a_kernel("fa", "a", HONE_NATIVE, HONE_CPU, 0), a_kernel("fa", "b", HONE_NATIVE, HONE_CPU, 5)};
    kernels[0].space = "block: 1 | 2 | 4";
    kernels[1].signature = "fa(x: f32[n], *, fast: bool = true) -> y: f32[n]";
    if (status == HONE_OK) status = hone_registry_add_kernels(registry, kernels, 2, false, false, err);
    bool same = false;
    if (status == HONE_OK) status = hone_registry_validate(registry, NULL, true, NULL, NULL, &same, err);
    return status;
}

static void tell_whole_story_in_short_memory(bool once)
{
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK; left++) {
        failing_allocator memory;
        hone_allocator allocator = failing_allocator_of(&memory, left);
        memory.once = once;
        hone_registry *registry = NULL;
        hone_error err = {0};
        status = hone_registry_create(&allocator, hone_platform_facts_of, NULL, &registry, &err);
        if (status == HONE_OK) status = whole_story(registry, &err);
        assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        hone_registry_destroy(&registry);
        assert_int_equal(memory.live, 0);
        assert_true(left < 1000);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    tell_whole_story_in_short_memory(false);
}

static void any_one_allocation_may_fail(void **state)
{
    (void)state;
    tell_whole_story_in_short_memory(true);
}

// Texts so long that each takes memory of its own: a kernel has all of them, or there is none.
static void the_one_text_that_memory_was_short_for_is_missed(void **state)
{
    (void)state;
    enum { LONG = 100000, TEXTS = 10 };
    char *texts[TEXTS];
    for (size_t i = 0; i < TEXTS; i++) {
        texts[i] = malloc(LONG);
        assert_non_null(texts[i]);
        memset(texts[i], (char)('a' + i), LONG);
        texts[i][LONG - 1] = '\0';
    }
    const hone_code code = {
        HONE_CODE,          .source = texts[0],    .entry = texts[1],   .arguments = texts[2], .grid = texts[3],
        .block = texts[4],  .constants = texts[5], .options = texts[6], .condition = texts[7], .target = texts[8],
        .scratch = texts[9]};
    hone_status status = HONE_OUT_OF_MEMORY;
    for (long long left = 0; status != HONE_OK; left++) {
        failing_allocator memory;
        hone_allocator allocator = failing_allocator_of(&memory, -1);
        fixture f = {.registry = NULL};
        assert_int_equal(hone_registry_create(&allocator, hone_platform_facts_of, NULL, &f.registry, &f.err), HONE_OK);
        assert_int_equal(add_algorithm(&f, fa), HONE_OK);
        hone_kernel kernel = a_kernel("fa", "long", HONE_OPENCL, HONE_GPU, 0);
        kernel.run = NULL;
        kernel.code = &code;
        kernel.revision = "mine"; // else all texts are read once more, for a digest
        memory.once = true;
        memory.left = left;
        status = add_kernel(&f, kernel);
        char names[256];
        if (status != HONE_OK) {
            assert_int_equal(status, HONE_OUT_OF_MEMORY);
            assert_string_equal(kernel_names(&f, "fa", names), "");
        } else {
            const hone_code *kept = hone_kernel_of(only_kernel(&f, "fa"))->code;
            const char *const of_it[TEXTS] = {kept->source, kept->entry,     kept->arguments, kept->grid,
                                              kept->block,  kept->constants, kept->options,   kept->condition,
                                              kept->target, kept->scratch};
            for (size_t i = 0; i < TEXTS; i++)
                assert_true(of_it[i] != NULL && strcmp(of_it[i], texts[i]) == 0);
            assert_true(left >= TEXTS);
        }
        hone_registry_destroy(&f.registry);
        assert_int_equal(memory.live, 0);
        assert_true(left < 200);
    }
    for (size_t i = 0; i < TEXTS; i++)
        free(texts[i]);
}

// So many, and code so long, that each list and each text takes memory of its own.
static void memory_may_end_at_the_list_and_at_each_text(void **state)
{
    (void)state;
    enum { MANY = 1200, LONG = 100000 };
    failing_allocator memory;
    hone_allocator allocator = failing_allocator_of(&memory, -1);
    fixture f = {.registry = NULL};
    char *source = malloc(LONG);
    assert_non_null(source);
    memset(source, ' ', LONG);
    source[LONG - 1] = '\0';
    assert_int_equal(hone_registry_create(&allocator, hone_platform_facts_of, NULL, &f.registry, &f.err), HONE_OK);
    char signature[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(signature, sizeof signature, "f%d(x: f32[n]) -> y: f32[n]", i);
        assert_int_equal(add_algorithm(&f, signature), HONE_OK);
    }
    const hone_code code = {HONE_CODE, .source = source, .entry = source, .arguments = source, .scratch = source};
    hone_kernel kernel = a_kernel("f7", "long", HONE_OPENCL, HONE_GPU, 0);
    kernel.run = NULL;
    kernel.code = &code;
    for (int what = 0; what < 2; what++) {
        hone_status status = HONE_OUT_OF_MEMORY;
        for (long long left = 0; status != HONE_OK && left < 200; left++) {
            memory.left = left;
            status = what == 0 ? add_algorithm(&f, fa) : add_kernel(&f, kernel);
            assert_true(status == HONE_OK || status == HONE_OUT_OF_MEMORY);
        }
        memory.left = -1;
        assert_int_equal(status, HONE_OK);
    }
    assert_non_null(hone_registry_find(f.registry, "fa", NULL));
    const hone_code *kept = hone_kernel_of(only_kernel(&f, "f7"))->code;
    assert_string_equal(kept->source, source);
    assert_string_equal(kept->entry, source);
    assert_string_equal(kept->arguments, source);
    assert_string_equal(kept->scratch, source);
    hone_registry_destroy(&f.registry);
    assert_int_equal(memory.live, 0);
    free(source);
}

#define registry_test(f) cmocka_unit_test_setup_teardown(f, open_cpu_registry, close_registry)

int main(void)
{
    const struct CMUnitTest tests[] = {
        registry_test(an_algorithm_is_found_in_any_case),
        registry_test(names_are_compared_in_unicode_lower_case),
        registry_test(algorithms_are_listed_by_code_point_then_version),
        registry_test(without_a_version_the_newest_is_found),
        registry_test(versions_stand_in_the_order_of_their_numbers),
        registry_test(names_that_no_algorithm_can_have_are_not_found),
        registry_test(names_and_versions_are_read_to_their_end_and_no_further),
        registry_test(an_unknown_name_is_answered_with_those_there_are),
        registry_test(the_same_algorithm_twice_is_fine_and_another_one_of_its_name_is_not),
        registry_test(a_wrong_algorithm_is_refused_with_words),
        registry_test(code_in_a_file_that_is_not_there_is_refused_with_its_path),
        registry_test(code_has_one_origin_and_an_entry),
        registry_test(whatever_differs_in_the_code_makes_another_revision),
        registry_test(priorities_have_64_bits),
        registry_test(kernels_stand_by_falling_priority_then_in_order_of_registration),
        registry_test(a_duplicate_is_refused_unless_it_replaces),
        registry_test(equal_names_for_other_hardware_are_no_duplicates),
        registry_test(kernels_are_registered_all_or_none),
        registry_test(a_wrong_kernel_is_refused_with_words_and_leaves_nothing),
        registry_test(a_pack_of_one_variant_for_all_configs_has_it_for_each),
        registry_test(kinds_of_code_files_are_known_by_their_suffix),
        registry_test(a_newer_struct_is_taken_as_long_as_its_new_fields_are_zero),
        registry_test(a_struct_size_that_was_never_set_is_refused),
        registry_test(strings_are_copied),
        registry_test(a_list_that_was_handed_out_stays_as_it_was_while_its_reader_is_inside),
        registry_test(what_was_replaced_goes_when_its_last_reader_has_left),
        registry_test(a_retained_kernel_outlives_its_replacement),
        registry_test(a_kernel_is_found_by_name_and_platform),
        registry_test(a_kernels_own_signature_says_what_it_does_not_take),
        registry_test(a_signature_that_cannot_serve_the_algorithm_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(any_one_allocation_may_fail),
        cmocka_unit_test(the_one_text_that_memory_was_short_for_is_missed),
        cmocka_unit_test(memory_may_end_at_the_list_and_at_each_text),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
