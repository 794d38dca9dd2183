// Damaged programs of every form: cut at each length, each byte made the largest there is, a million labels. They are
// read as far as they are sound or refused with words, and take no more memory than their size allows.
#include "fixture.h"
#include "guarded.h"
#include "os/os.h"
#include "platforms/platform.h"

#include <stdlib.h>

enum { LINE_SIZE = 128, MILLION = 1000 * 1000 };

// Memory up to a cap, beyond which there is none.
typedef struct capped {
    size_t live, peak, cap, calls;
} capped;

static void *capped_reallocate(void *ctx, void *block, size_t old_size, size_t new_size)
{
    capped *c = ctx;
    if (new_size > old_size && new_size - old_size > c->cap - c->live) return NULL;
    void *moved = NULL;
    if (new_size > 0)
        moved = realloc(block, new_size);
    else
        free(block);
    if (new_size > 0 && moved == NULL) return NULL;
    c->live += new_size - old_size;
    c->peak = c->live > c->peak ? c->live : c->peak;
    c->calls++;
    return moved;
}

// Nothing is matched: what is looked at is the reading.
typedef struct reader {
    fixture f; // of which the environment is taken
    hone_offline_environment environment;
    capped memory;
    hone_registry *registry;
} reader;

static void open_reader(reader *r)
{
    hone_error err = {0};
    hone_allocator system = hone_allocator_system();
    fixture_open(&r->f);
    assert_int_equal(hone_registry_create(&system, hone_platform_facts_of, NULL, &r->registry, &err), HONE_OK);
    r->environment = r->f.environment;
    r->environment.registry = r->registry;
    r->environment.allocator = (hone_allocator){&r->memory, capped_reallocate};
}

static void close_reader(reader *r)
{
    hone_registry_destroy(&r->registry);
    fixture_close(&r->f);
}

// Reads bytes behind which nothing may be read. Gives back how it went; the note or the error is in `words`.
static hone_status read_bytes(reader *r, const char *bytes, size_t size, size_t cap, char words[512], size_t *out_count)
{
    guarded room = guarded_open(size);
    const char *copy = guarded_at_end(&room, bytes, size);
    r->memory = (capped){.cap = cap};
    hone_error err = {0};
    hone_program *program = NULL;
    hone_status status = hone_offline_read(&r->environment, "damaged", copy, size, &program, &err);
    const char *note = program != NULL ? hone_program_note(program) : err.message;
    snprintf(words, 512, "%.500s", note != NULL ? note : "");
    if (out_count != NULL) *out_count = program != NULL ? hone_program_operations(program) : 0;
    hone_program_release(&program);
    assert_int_equal(r->memory.live, 0);
    guarded_close(&room);
    return status;
}

static void read_golden(const char *name, hone_buffer *out)
{
    char path[512];
    hone_error err = {0};
    snprintf(path, sizeof path, "%s/golden/lowered/%s", HONE_TEST_DATA, name);
    hone_buffer_clear(out);
    assert_int_equal(hone_os_read_file(path, 1 << 24, out, &err), HONE_OK);
}

// A small program of each form: a file, or the text itself.
static const struct {
    const char *name, *text;
} programs[] = {
    {"StableHLO text", fixture_mlir}, {"HLO text", fixture_hlo}, {"one.bc", NULL},
    {"one.portable.bc", NULL},        {"one.export", NULL},      {"one.hlo.pb", NULL},
};
enum { PROGRAM_COUNT = sizeof programs / sizeof programs[0] };

static void read_program(size_t index, hone_buffer *out)
{
    if (programs[index].text == NULL) {
        read_golden(programs[index].name, out);
        return;
    }
    hone_buffer_clear(out);
    hone_buffer_text(out, programs[index].text);
}

// So much memory a program of a size may take, whatever stands in it.
static size_t cap_of(size_t size)
{
    return 64 * size + (1 << 18);
}

static void assert_read_or_refused(hone_status status, const char *words, const char *name, size_t at)
{
    bool known = status == HONE_OK || status == HONE_CORRUPT || status == HONE_UNSUPPORTED;
    if (!known) fail_msg("%s at %zu: %s: %s", name, at, hone_status_name(status), words);
    if (status != HONE_OK && words[0] == '\0') fail_msg("%s at %zu: refused without a word", name, at);
}

static void every_form_may_be_cut_at_every_length(void **state)
{
    (void)state;
    static reader r;
    open_reader(&r);
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    for (size_t i = 0; i < PROGRAM_COUNT; i++) {
        char words[512];
        size_t whole, count;
        read_program(i, &bytes);
        assert_int_equal(read_bytes(&r, bytes.data, bytes.size, cap_of(bytes.size), words, &whole), HONE_OK);
        assert_true(whole > 0);
        for (size_t size = 0; size < bytes.size; size++) {
            hone_status status = read_bytes(&r, bytes.data, size, cap_of(bytes.size), words, &count);
            assert_read_or_refused(status, words, programs[i].name, size);
            if (count > whole)
                fail_msg("%s cut to %zu has %zu operations, not %zu", programs[i].name, size, count, whole);
        }
    }
    hone_buffer_deinit(&bytes);
    close_reader(&r);
}

// Lengths, counts and numbers of what is named: each of them is somewhere the largest that its place holds.
static void every_byte_may_be_the_largest(void **state)
{
    (void)state;
    static const char larger[] =
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"; // a varint of 2^63 and more in both notations
    static reader r;
    open_reader(&r);
    hone_buffer bytes, damaged;
    hone_buffer_init(&bytes, hone_allocator_system());
    hone_buffer_init(&damaged, hone_allocator_system());
    for (size_t i = 0; i < PROGRAM_COUNT; i++) {
        char words[512];
        read_program(i, &bytes);
        for (size_t at = 0; at < bytes.size; at++) {
            for (size_t size = 1; size < sizeof larger; size += sizeof larger - 2) {
                hone_buffer_clear(&damaged);
                hone_buffer_append(&damaged, bytes.data, at);
                hone_buffer_append(&damaged, larger, size);
                hone_buffer_append(&damaged, bytes.data + at + 1, bytes.size - at - 1);
                hone_status status = read_bytes(&r, damaged.data, damaged.size, cap_of(damaged.size), words, NULL);
                assert_read_or_refused(status, words, programs[i].name, at);
            }
        }
    }
    hone_buffer_deinit(&bytes);
    hone_buffer_deinit(&damaged);
    close_reader(&r);
}

// Messages within messages, and sections within sections, as many as there are bytes for.
static void nesting_may_be_as_deep_as_the_program_is_long(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "\x0a\x7f",       "\x1a\x7f",   "\x12\x7f", "({",
        "\"a.b\"() ({\n", "module {\n", "c {\n",    "  a = f32[4]{0} call(((((\n",
        "{\"a\":[",
    };
    static const char *const heads[] = {
        "", "module @m {\n", "HloModule m\n\nENTRY e {\n", "ML\xefR\x0dStableHLO_v1.0.0"};
    static reader r;
    open_reader(&r);
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    for (size_t h = 0; h < sizeof heads / sizeof heads[0]; h++) {
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
            char words[512];
            hone_buffer_clear(&bytes);
            hone_buffer_text(&bytes, heads[h]);
            for (int k = 0; k < 20000; k++)
                hone_buffer_text(&bytes, pieces[i]);
            hone_status status = read_bytes(&r, bytes.data, bytes.size, cap_of(bytes.size), words, NULL);
            assert_read_or_refused(status, words, pieces[i], h);
        }
    }
    hone_buffer_deinit(&bytes);
    close_reader(&r);
}

// Its work is counted by what it asks of others: memory, so and so often, and recorded calls, once for an operation
// that is kept.
static void a_million_labels_take_memory_by_the_size_of_their_text(void **state)
{
    (void)state;
    static reader r;
    open_reader(&r);
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    hone_buffer_text(&text, "module @m {\nfunc.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n");
    for (unsigned i = 0; i < MILLION; i++) {
        char line[LINE_SIZE];
        int size = snprintf(
            line, sizeof line, "%%%u = stablehlo.sine %%a : tensor<4xf32> loc(\"ejkernel_ops#x@v0:%016x/y\")\n", i, i);
        hone_buffer_append(&text, line, (size_t)size);
    }
    hone_buffer_text(&text, "}\n}\n");
    char words[512];
    size_t count;
    assert_int_equal(read_bytes(&r, text.data, text.size, 16 * text.size, words, &count), HONE_OK);
    assert_int_equal(count, 20000);
    assert_non_null(strstr(words, "more operations"));
    if (r.memory.calls > 5 * MILLION) fail_msg("%zu calls for memory", r.memory.calls);
    assert_int_equal(read_bytes(&r, text.data, text.size, text.size / 4, words, &count), HONE_OUT_OF_MEMORY);
    hone_buffer_deinit(&text);
    close_reader(&r);
}

static const char *const misleading[] = {
    "HloModule jit_f // ejkernel_ops#x@v0:0123456789abcdef\n\n"
    "// op_name=\"jit(f)/ejkernel_ops#x\"\n"
    "/* metadata={op_name=\"ejkernel_ops#x\"} */\n"
    "ENTRY main.5 {\n"
    "  q = f32[4]{0} parameter(0), metadata={op_name=\"q\"}\n"
    "  a = f32[4]{0} custom-call(/*index=0 ejkernel_ops#x@v0:0123456789abcdef*/q), "
    "custom_call_target=\"ejkernel_ops#x@v0:0123456789abcdef\", backend_config=\"ejkernel_ops#x\", "
    "metadata={op_type=\"ejkernel_ops#x\" op_name=\"jit(f)/sin\" source_file=\"ejkernel_ops#x\"}\n"
    "  ROOT b = f32[4]{0} sine(a), metadata={op_name=\"jit(f)/sin\"}\n"
    "}\n",
    "module @m {\n"
    "  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    // %0 = stablehlo.sine %arg0 : tensor<4xf32> loc(\"ejkernel_ops#x@v0:0123456789abcdef/y\")\n"
    "    %1 = stablehlo.sine %arg0 {note = \"loc(ejkernel_ops#x@v0:0123456789abcdef)\"} : tensor<4xf32> loc(\"z\")\n"
    "    return %1 : tensor<4xf32>\n"
    "  }\n"
    "}\n",
};

static void labels_in_comments_and_other_strings_do_not_count(void **state)
{
    (void)state;
    static reader r;
    open_reader(&r);
    for (size_t i = 0; i < sizeof misleading / sizeof misleading[0]; i++) {
        char words[512];
        size_t count;
        assert_int_equal(read_bytes(&r, misleading[i], strlen(misleading[i]), 1 << 20, words, &count), HONE_OK);
        if (count > 0) fail_msg("%zu operations in:\n%s", count, misleading[i]);
    }
    close_reader(&r);
}

// Other dialects of MLIR are read for what they share: functions, calls, locations. What shares nothing is refused.
static const struct {
    const char *text;
    hone_status status;
    size_t count;
    const char *words;
} dialects[] = {
    {"module @m {\n  tt.func public @kernel(%arg0: !tt.ptr<f32>) {\n    %0 = tt.get_program_id x : i32 loc(#loc1)\n"
     "    tt.return loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n#loc = loc(unknown)\n#loc1 = loc(\"kernel.py\":1:2)\n",
     HONE_CORRUPT, 0, "nothing in it can be read"},
    {"func.func @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
     "  %0 = tosa.sin %arg0 : (tensor<4xf32>) -> tensor<4xf32> loc(\"ejkernel_ops#x@v0:0123456789abcdef/sin\")\n"
     "  return %0 : tensor<4xf32>\n}\n",
     HONE_OK, 1, ""},
    {"; ModuleID = 'f'\ndefine float @f(float %x) {\n  ret float %x\n}\n", HONE_CORRUPT, 0, "not one of the forms"},
    {"//\n// Generated by NVIDIA NVVM Compiler\n//\n.version 8.4\n.target sm_90\n", HONE_CORRUPT, 0,
     "not one of the forms"},
};

static void other_dialects_are_read_for_what_they_share_or_refused(void **state)
{
    (void)state;
    static reader r;
    open_reader(&r);
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        char words[512];
        size_t count, size = strlen(dialects[i].text);
        assert_int_equal(read_bytes(&r, dialects[i].text, size, cap_of(size), words, &count), dialects[i].status);
        assert_int_equal(count, dialects[i].count);
        if (strstr(words, dialects[i].words) == NULL) fail_msg("'%s' does not say '%s'", words, dialects[i].words);
    }
    close_reader(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_may_be_cut_at_every_length),
        cmocka_unit_test(every_byte_may_be_the_largest),
        cmocka_unit_test(nesting_may_be_as_deep_as_the_program_is_long),
        cmocka_unit_test(a_million_labels_take_memory_by_the_size_of_their_text),
        cmocka_unit_test(labels_in_comments_and_other_strings_do_not_count),
        cmocka_unit_test(other_dialects_are_read_for_what_they_share_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
