// What pack.json may say, and how each thing that it may not is refused.
#include "failing_allocator.h"
#include "fixture.h"

#include "hone/hone.h"

static const char whole[] =
    "{'hone_pack': 1, 'name': 'first', 'version': '1.2', 'producer': {'tool': 'hand'},"
    " 'algorithms': [{'signature': 'saxpy(x: f32[n], y: f32[n]) -> z: f32[n]', 'tolerance': {'scale': 2}, "
    "'reference': 'plain'}],"
    " 'kernels': ["
    "  {'algorithm': 'saxpy', 'name': 'plain', 'platform': 'native', 'backend': 'cpu', 'file': 'a.c', 'sha256': '%',"
    "   'entry': 'saxpy', 'arguments': ['x', 'y', 'z', 'i64(n)']},"
    "  {'algorithm': 'saxpy', 'name': 'blocked', 'platform': 'native', 'backend': 'cpu', 'priority': 7,"
    "   'needs': ['avx2', 'fma'], 'space': ['block: 8..64 *2', 'unroll: 1 | 2'], 'file': 'a.c', 'sha256': '%',"
    "   'entry': 'saxpy', 'arguments': 'x, y, z, i64(n)', 'scratch': '4 * n', 'condition': 'n % block == 0'},"
    "  {'algorithm': 'saxpy', 'name': 'listed', 'platform': 'triton', 'backend': 'gpu', 'target': 'sm_90a', 'align': "
    "16,"
    "   'grid': ['ceildiv(n, block)', 1], 'block': 128, 'arguments': 'x, y, z, i32(n)', 'facts': {'a': 1},"
    "   'variants': ["
    "    {'config': {'block': 256, 'order': 'rows', 'wide': true}, 'file': 'a.c', 'sha256': '%', 'shared': 512},"
    "    {'config': {'block': 512, 'order': 'columns', 'wide': false}, 'file': 'a.c', 'sha256': '%', 'block': 64,"
    "     'condition': 'n >= 512', 'flags': ['cooperative'], 'facts': {'a': 2}}]}]}";

static void a_pack_is_read(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    fixture_pack(&f, "{'hone_pack': 1}");
    char text[8192];
    // The one '%' of the condition is no digest.
    snprintf(text, sizeof text, "%s", whole);
    char *at = strstr(text, "n % block == 0");
    memcpy(at, "n >= block    ", 14);
    fixture_pack(&f, text);
    assert_int_equal(fixture_read(&f), HONE_OK);
    assert_string_equal(hone_pack_name(f.pack), "first");
    assert_int_equal(hone_pack_size(f.pack), 3);
    const hone_kernel *plain = hone_pack_kernel_at(f.pack, 0), *blocked = hone_pack_kernel_at(f.pack, 1);
    assert_true(plain->is_reference);
    assert_string_equal(plain->code->arguments, "x, y, z, i64(n)");
    assert_null(fixture_kernel(&f, 1)->refusal);
    assert_false(blocked->is_reference);
    assert_int_equal(blocked->priority, 7);
    assert_true(blocked->needs == (HONE_CPU_AVX2 | HONE_CPU_FMA));
    assert_string_equal(blocked->space, "block: 8..64 *2\nunroll: 1 | 2");
    assert_string_equal(blocked->code->scratch, "4 * n");
    fixture_close(&f);
}

static void variants_have_code_of_their_own(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    char text[8192];
    snprintf(text, sizeof text, "%s", whole);
    memcpy(strstr(text, "n % block == 0"), "n >= block    ", 14);
    fixture_pack(&f, text);
    assert_int_equal(fixture_read(&f), HONE_OK);
    const hone_pack_kernel *listed = fixture_kernel(&f, 2);
    assert_null(listed->refusal);
    assert_true(listed->is_listed);
    assert_int_equal(listed->variant_count, 2);
    assert_int_equal(listed->file_count, 1);
    const hone_pack_variant *first = &listed->variants[0], *second = &listed->variants[1];
    assert_string_equal(first->code.grid, "ceildiv(n, block), 1");
    assert_string_equal(first->code.block, "128");
    assert_string_equal(first->code.shared, "512");
    assert_string_equal(first->facts, "{\"a\":1}");
    assert_string_equal(second->code.block, "64");
    assert_null(second->code.shared);
    assert_int_equal(second->code.flags, HONE_CODE_COOPERATIVE);
    assert_string_equal(second->facts, "{\"a\":2}");
    assert_string_equal(
        hone_pack_kernel_at(f.pack, 2)->space, "block: 256 | 512\norder: \"rows\" | \"columns\"\nwide: true | false\n");
    assert_ptr_equal(hone_pack_variant_of(listed, second->config.values), second);
    const int64_t other[] = {256, 1, 0};
    assert_null(hone_pack_variant_of(listed, other));
    fixture_close(&f);
}

static void errors_of_a_kernel_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *more, *words;
    } cases[] = {
        {", 'blok': 1", "there is no field 'blok'"},
        {", 'priority': 'high'", "priority: is a text, expected a whole number"},
        {", 'priority': 1e99", "priority: is a number, expected a whole number"},
        {", 'align': 3", "align: is 3, expected a power of two"},
        {", 'align': 0", "align: is 0, expected 1 to 4096"},
        {", 'grid': 'ceildiv(n,'", "grid: 'ceildiv(n,'"},
        {", 'grid': '1, 2, 3, 4'", "grid: '1, 2, 3, 4'"},
        {", 'shared': 'a b'", "shared: 'a b'"},
        {", 'grid': {}", "grid: is an object"},
        {", 'needs': ['avx9']", "needs: 'avx9' is no instruction set, expected one of"},
        {", 'needs': [1]", "needs: 'a number'"},
        {", 'flags': ['fast']", "flags: 'fast' is no flag"},
        {", 'space': 'a: 1 |'", "space: "},
        {", 'signature': 3", "signature: is a number, expected a text"},
        {", 'facts': []", "facts: is an array, expected an object"},
        {", 'entry': 'a\\u0007b'", "entry: has the control character 0x07 at byte 1"},
        {", 'sha256': '%'", "sha256: is there, and no file"},
        {", 'file': 'a.c'", "sha256: is missing; expected that of 'a.c'"},
        {", 'file': 'a.c', 'sha256': 'ABC'",
         "sha256: is 'ABC', expected 64 lower-case hex digits (sha256sum prints them)"},
        {", 'files': [{'file': 'b.h', 'sha256': '%'}]", "files[0].file: there is no 'b.h'"},
        {", 'files': [3]", "files[0]: is a number, expected an object"},
        {", 'variants': []", "variants: is empty"},
        {", 'variants': {}", "variants: is an object, expected an array"},
        {", 'variants': [{}]", "variants[0].config: is missing"},
        {", 'variants': [3]", "variants[0].config: is missing"},
        {", 'variants': [{'config': {'a': null}}]", "variants[0].config: a is null"},
        {", 'variants': [{'config': {'a b': 1}}]", "config: 'a b' is no name"},
        {", 'variants': [{'config': {'a': 1}}, {'config': {'b': 1}}]", "variants[1].config: has no a"},
        {", 'variants': [{'config': {'a': 1}}, {'config': {'a': 1}}]",
         "variants[1].config: is that of variants[0], too"},
        {", 'variants': [{'config': {'a': 1}, 'name': 'x'}]", "variants[0]: there is no field 'name'"},
        {", 'space': 'a: 1 | 2', 'variants': [{'config': {'a': 3}}]", "variants[0].config: "},
        {", 'space': 'a: 1 | 2', 'variants': [{'config': {'b': 1}}]", "variants[0].config: "},
        {", 'variants': [{'config': {'a': 1}, 'file': '../x', 'sha256': '%'}]",
         "variants[0].file: '../x' has '.' or '..'"},
    };
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *refusal = fixture_refusal(&f, cases[i].more);
        if (refusal == NULL) fail_msg("%s was taken", cases[i].more);
        if (strstr(refusal, cases[i].words) == NULL) fail_msg("%s: %s", cases[i].more, refusal);
        if (strncmp(refusal, "pack p: kernel k: ", 18) != 0) fail_msg("%s: %s", cases[i].more, refusal);
        // It can be named and registered, with nothing of what is wrong.
        assert_null(hone_pack_kernel_at(f.pack, 0)->space);
    }
    fixture_close(&f);
}

static void errors_of_the_document_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *json, *words;
        hone_status status;
    } cases[] = {
        {"", "pack.json: ", HONE_CORRUPT},
        {"[]", "is an array", HONE_CORRUPT},
        {"{'a': 1, 'a': 1}", "duplicate", HONE_CORRUPT},
        {"{}", "hone_pack: is missing", HONE_CORRUPT},
        {"{'hone_pack': 2}", "hone_pack: is 2, this version of hone reads 1", HONE_INCOMPATIBLE},
        {"{'hone_pack': 1, 'what': 2}", "there is no field 'what'", HONE_CORRUPT},
        {"{'hone_pack': 1}", "kernels: is missing or empty", HONE_CORRUPT},
        {"{'hone_pack': 1, 'algorithms': [{'signature': 'a(x: f32[n]) -> y: f32[n]', 'reference': 'zz'}], 'kernels': "
         "[{'algorithm': 'a', 'name': 'k', 'platform': 'native', 'backend': 'cpu'}]}",
         "reference: no kernel of a(x: f32[n]) -> y: f32[n] is called 'zz' in this pack", HONE_CORRUPT},
        {"{'hone_pack': 1, 'kernels': 3}", "kernels: is a number, expected an array", HONE_CORRUPT},
    };
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture_pack(&f, cases[i].json);
        assert_int_equal(fixture_read(&f), cases[i].status);
        assert_null(f.pack);
        if (strstr(f.err.message, cases[i].words) == NULL) fail_msg("%s: %s", cases[i].json, f.err.message);
    }
    fixture_close(&f);
}

static void a_document_too_deep_is_refused(void **state)
{
    (void)state;
    enum { DEEP = 100000 };
    static char text[2 * DEEP + 1];
    fixture f;
    fixture_open(&f);
    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    fixture_write(&f, "pack.json", text);
    assert_int_equal(fixture_read(&f), HONE_CORRUPT);
    fixture_close(&f);
}

static void a_document_too_large_is_refused(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    char path[TEMPORARY_PATH_SIZE];
    snprintf(path, sizeof path, "%s/pack.json", f.folder.path);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < (HONE_PACK_JSON_LIMIT >> 10) + 1; i++)
        fprintf(file, "%1024s", "");
    fclose(file);
    assert_int_equal(fixture_read(&f), HONE_CORRUPT);
    assert_non_null(strstr(f.err.message, "too large"));
    fixture_close(&f);
}

typedef struct findings {
    size_t count, refused;
    char last[1000];
} findings;

static bool find(void *ctx, const hone_pack_entry *entry)
{
    findings *all = ctx;
    all->count++;
    all->refused += entry->status != HONE_OK;
    if (entry->reason != NULL) snprintf(all->last, sizeof all->last, "%s", entry->reason);
    return true;
}

static void one_bad_kernel_loses_alone(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    fixture_pack(
        &f, "{'hone_pack': 1, 'name': 'p', 'kernels': ["
            "{'algorithm': 'saxpy', 'name': 'good', 'platform': 'native', 'backend': 'cpu'},"
            "{'algorithm': 'saxpy', 'name': 'bad one', 'platform': 'native', 'backend': 'cpu'},"
            "{'algorithm': 'saxpy', 'name': 'other', 'platform': 'abacus', 'backend': 'cpu'},"
            "{'algorithm': 'saxpy', 'name': 'good', 'platform': 'native', 'backend': 'cpu'},"
            "{'algorithm': 'saxpy', 'name': 'odd', 'platform': 'native', 'backend': 'cpu', 'odd': 1}, 3]}");
    assert_int_equal(fixture_read(&f), HONE_OK);
    assert_int_equal(hone_pack_size(f.pack), 2);
    assert_null(fixture_kernel(&f, 0)->refusal);
    findings all = {0};
    hone_pack_visit(f.pack, find, &all);
    assert_int_equal(all.count, 6);
    assert_int_equal(all.refused, 5);
    fixture_close(&f);
}

static void a_reference_runs_on_the_cpu_and_has_nothing_to_choose(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    fixture_pack(
        &f,
        "{'hone_pack': 1, 'algorithms': [{'signature': 'saxpy(x: f32[n]) -> y: f32[n]', 'reference': 'r'}],"
        "'kernels': [{'algorithm': 'saxpy', 'name': 'r', 'platform': 'native', 'backend': 'cpu', 'space': 'a: 1 | 2'}"
        "]}");
    assert_int_equal(fixture_read(&f), HONE_OK);
    assert_non_null(strstr(fixture_kernel(&f, 0)->refusal, "is the reference of its algorithm, and has parameters"));
    fixture_close(&f);
}

static void a_module_is_a_reference_where_it_runs_on_the_cpu(void **state)
{
    static const char *const backends[] = {"cpu", "gpu"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char text[400];
        fixture f;
        fixture_open(&f);
        snprintf(
            text, sizeof text,
            "{'hone_pack': 1, 'algorithms': [{'signature': 'saxpy(x: f32[n]) -> y: f32[n]', 'reference': 'r'}],"
            "'kernels': [{'algorithm': 'saxpy', 'name': 'r', 'platform': 'xla', 'backend': '%s', 'arguments': 'x', "
            "'file': 'a.c', 'sha256': '%%'}]}",
            backends[i]);
        fixture_pack(&f, text);
        assert_int_equal(fixture_read(&f), HONE_OK);
        const char *refusal = fixture_kernel(&f, 0)->refusal;
        if (i == 0)
            assert_null(refusal);
        else
            assert_non_null(strstr(refusal, "is not of platform native, and no module for backend cpu"));
        fixture_close(&f);
    }
}

static hone_status refuse_second(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    assert_true(variant >= kernel->variants && variant < kernel->variants + kernel->variant_count);
    if (variant == &kernel->variants[0]) return HONE_OK;
    snprintf(err->message, sizeof err->message, "not this one");
    return HONE_INCOMPATIBLE;
}

static void the_platform_has_a_word_on_every_variant(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_allocator allocator = hone_allocator_system();
    fixture_pack(
        &f, "{'hone_pack': 1, 'name': 'p', 'kernels': [{'algorithm': 'a', 'name': 'k', 'platform': 'cuda', "
            "'backend': 'gpu', 'variants': [{'config': {'a': 1}}, {'config': {'a': 2}}]}]}");
    assert_int_equal(fixture_read_with(&f, &allocator, refuse_second), HONE_OK);
    assert_string_equal(fixture_kernel(&f, 0)->refusal, "pack p: kernel k: variants[1]: not this one");
    assert_int_equal(fixture_kernel(&f, 0)->status, HONE_INCOMPATIBLE);
    fixture_close(&f);
}

static void the_revision_changes_with_the_kernel_alone(void **state)
{
    (void)state;
    fixture f;
    char first[HONE_KEY_SIZE];
    fixture_open(&f);
    assert_null(fixture_refusal(&f, ", 'file': 'a.c', 'sha256': '%', 'grid': 1"));
    snprintf(first, sizeof first, "%s", hone_pack_kernel_at(f.pack, 0)->revision);
    assert_null(fixture_refusal(&f, ", 'grid': 1, 'sha256': '%', 'file': 'a.c', 'priority': 3"));
    assert_string_equal(hone_pack_kernel_at(f.pack, 0)->revision, first);
    assert_null(fixture_refusal(&f, ", 'file': 'a.c', 'sha256': '%', 'grid': 2"));
    assert_string_not_equal(hone_pack_kernel_at(f.pack, 0)->revision, first);
    fixture_close(&f);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fixture f;
    failing_allocator counting;
    hone_status status = HONE_OUT_OF_MEMORY;
    fixture_open(&f);
    char text[8192];
    snprintf(text, sizeof text, "%s", whole);
    memcpy(strstr(text, "n % block == 0"), "n >= block    ", 14);
    fixture_pack(&f, text);
    for (long long left = 0; status == HONE_OUT_OF_MEMORY; left++) {
        hone_allocator allocator = failing_allocator_of(&counting, left);
        status = fixture_read_with(&f, &allocator, NULL);
        if (status == HONE_OK) assert_null(fixture_kernel(&f, 2)->refusal);
        hone_pack_close(&f.pack);
        assert_int_equal(atomic_load(&counting.live), 0);
        assert_true(left < 10000);
    }
    assert_int_equal(status, HONE_OK);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pack_is_read),
        cmocka_unit_test(variants_have_code_of_their_own),
        cmocka_unit_test(errors_of_a_kernel_are_reported),
        cmocka_unit_test(errors_of_the_document_are_reported),
        cmocka_unit_test(a_document_too_deep_is_refused),
        cmocka_unit_test(a_document_too_large_is_refused),
        cmocka_unit_test(one_bad_kernel_loses_alone),
        cmocka_unit_test(a_reference_runs_on_the_cpu_and_has_nothing_to_choose),
        cmocka_unit_test(a_module_is_a_reference_where_it_runs_on_the_cpu),
        cmocka_unit_test(the_platform_has_a_word_on_every_variant),
        cmocka_unit_test(the_revision_changes_with_the_kernel_alone),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
