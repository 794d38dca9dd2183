// Programs that JAX lowered, with the file positions and call stacks taken out: what each form of them says of its
// calls.
#include "fixture.h"
#include "os/os.h"

#include <stdlib.h>

static void read_text(const char *name, hone_buffer *out)
{
    char path[512];
    hone_error err = {0};
    snprintf(path, sizeof path, "%s/golden/lowered/%s", HONE_TEST_DATA, name);
    hone_buffer_clear(out);
    assert_int_equal(hone_os_read_file(path, 1 << 24, out, &err), HONE_OK);
}

static hone_program *read_golden(fixture *f, const char *name)
{
    hone_buffer text;
    hone_buffer_init(&text, f->allocator);
    read_text(name, &text);
    hone_program *program = fixture_read(f, hone_buffer_string(&text));
    hone_buffer_deinit(&text);
    return program;
}

static void import(fixture *f, const char *name)
{
    hone_buffer text;
    hone_error err = {0};
    hone_buffer_init(&text, f->allocator);
    read_text(name, &text);
    json_decref(f->recorded);
    f->recorded = NULL;
    assert_int_equal(hone_json_parse(text.data, text.size, &f->recorded, &err), HONE_OK);
    hone_buffer_deinit(&text);
}

// One operation that must be found. NULL: does not matter.
typedef struct wanted {
    const char *algorithm, *version, *key;
    int64_t count;
    hone_match matched;
    const char *call; // NULL: it has none
} wanted;

static const hone_operation *find(const hone_program *program, const wanted *w)
{
    for (size_t i = 0; i < hone_program_operations(program); i++) {
        const hone_operation *o = hone_program_operation(program, i);
        if (strcmp(o->algorithm, w->algorithm) != 0) continue;
        if (w->key != NULL && (o->key == NULL || strcmp(o->key, w->key) != 0)) continue;
        if (w->key == NULL && (o->call == NULL || strcmp(o->call, w->call) != 0)) continue;
        return o;
    }
    fail_msg("%s %s is not found", w->algorithm, w->key ? w->key : w->call);
    return NULL;
}

static void assert_operations(const hone_program *program, const wanted *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const hone_operation *o = find(program, &list[i]);
        assert_int_equal(o->count, list[i].count);
        assert_int_equal(o->matched, list[i].matched);
        if (list[i].version != NULL)
            assert_string_equal(o->version, list[i].version);
        else
            assert_null(o->version);
        if (list[i].call != NULL)
            assert_string_equal(o->call, list[i].call);
        else
            assert_null(o->call);
        assert_int_equal(o->tunable, o->call != NULL);
        assert_int_equal(o->reason == NULL, o->tunable);
    }
    assert_int_equal(hone_program_operations(program), count);
}

#define SDPA  "scaled_dot_product_attention"
#define FLASH "flash_attention"
#define SMALL "(f32[1,32,4,16], f32[1,32,4,16], f32[1,32,4,16]"
#define LARGE "(f32[2,64,4,16], f32[2,64,4,16], f32[2,64,4,16]"
#define HALF  "(bf16[1,128,8,32], bf16[1,128,8,32], bf16[1,128,8,32]"

enum { CONTROL_COUNT = 7, MANY_COUNT = 9 };

static void want_control(wanted out[CONTROL_COUNT], hone_match how, bool versions)
{
    const wanted list[CONTROL_COUNT] = {
        {SDPA, "0", "2133cfa20c40fe20", 3, how, SDPA SMALL ", causal=true)"}, // in a scan of three steps
        {SDPA, "0", "6030860978d5766b", -1, how, SDPA SMALL ")"},             // in a while loop
        {SDPA, "0", "5d48c249e3752d21", 1, how,
         SDPA SMALL ", causal=true, sliding_window=8)"},                        // in a branch; of two sides
        {FLASH, "2", "ee831e4e3fea5782", 1, how, FLASH SMALL ")"},              // in the other branch
        {FLASH, "2", "ff12428fdc7ea53d", 2, how, FLASH SMALL ", causal=true)"}, // in a function that is called twice
        {SDPA, "0", "b230b53c2a367816", 1, how, SDPA SMALL ", softmax_scale=0.3)"}, // under vmap
        {SDPA, "0", "ad592693825eb186", 1, how, SDPA SMALL ", softmax_scale=0.7)"}, // under checkpoint
    };
    memcpy(out, list, sizeof list);
    for (size_t i = 0; i < CONTROL_COUNT && !versions; i++)
        out[i].version = NULL;
}

static void want_many(wanted out[MANY_COUNT], hone_match how)
{
    const wanted list[MANY_COUNT] = {
        {FLASH, "2", "d2b85fb5dc2f34a3", 3, how, FLASH SMALL ", softmax_scale=0.125, causal=true)"},
        {FLASH, "2", "215f676e33437886", 2, how, FLASH LARGE ", softmax_scale=0.125, causal=true)"},
        {FLASH, "2", "32509d88b836800c", 1, how, FLASH HALF ", softmax_scale=0.125, causal=true)"},
        {SDPA, "0", "6030860978d5766b", 1, how, SDPA SMALL ")"},
        {SDPA, "0", "dddb347ed22d85d3", 1, how, SDPA HALF ")"},
        {"attention", "0", "595d6becd8b63dd3", 1, how, "attention" SMALL ", causal=true)"},
        {"mean_pooling", "0", "d078c4bb1d5fca07", 2, how, "mean_pooling(f32[2,64,24], chunk_size=16)"},
        {"mean_pooling", "0", "b2fadcdadf800aa8", 1, how, "mean_pooling(f32[2,64,24])"},
        {"rwkv4", "0", "873c78b41c6c3724", 1, how, "rwkv4(f32[16], f32[16], f32[2,32,16], f32[2,32,16])"},
    };
    memcpy(out, list, sizeof list);
}

static void stablehlo_is_counted_and_proved(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    wanted control[CONTROL_COUNT], many[MANY_COUNT];
    hone_program *program = read_golden(&f, "control.mlir");
    assert_string_equal(hone_program_dialect(program), "stablehlo");
    assert_null(hone_program_note(program));
    want_control(control, HONE_MATCH_PROVED, true);
    assert_operations(program, control, CONTROL_COUNT);
    hone_program_release(&program);
    want_many(many, HONE_MATCH_PROVED);
    static const char *const forms[] = {"many.mlir", "many.export.mlir"};
    for (size_t i = 0; i < 2; i++) {
        program = read_golden(&f, forms[i]);
        assert_operations(program, many, MANY_COUNT);
        hone_program_release(&program);
    }
    fixture_close(&f);
}

static void recorded_invocations_come_before_proofs(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    wanted control[CONTROL_COUNT], many[MANY_COUNT];
    import(&f, "control.recorded.json");
    hone_program *program = read_golden(&f, "control.mlir");
    want_control(control, HONE_MATCH_RECORDED, true);
    assert_operations(program, control, CONTROL_COUNT);
    hone_program_release(&program);
    import(&f, "many.recorded.json");
    program = read_golden(&f, "many.mlir");
    want_many(many, HONE_MATCH_RECORDED);
    assert_operations(program, many, MANY_COUNT);
    hone_program_release(&program);
    fixture_close(&f);
}

static void payloads_bring_their_arguments(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    wanted control[CONTROL_COUNT],
        one = {SDPA, "0", "2133cfa20c40fe20", 1, HONE_MATCH_LABEL, SDPA SMALL ", causal=true)"};
    hone_program *program = read_golden(&f, "one_json.mlir");
    assert_operations(program, &one, 1);
    hone_program_release(&program);
    program = read_golden(&f, "control_json.hlo.txt"); // the version is behind the '@' where XLA cuts
    want_control(control, HONE_MATCH_LABEL, false);
    assert_operations(program, control, CONTROL_COUNT);
    hone_program_release(&program);
    program = read_golden(&f, "one_json.opt.hlo.txt");
    one.version = NULL;
    one.count = -1;
    assert_operations(program, &one, 1);
    assert_non_null(strstr(hone_program_note(program), "optimised"));
    hone_program_release(&program);
    fixture_close(&f);
}

static const wanted many_in_hlo[] = {
    {FLASH, NULL, NULL, 3, HONE_MATCH_OPERANDS, FLASH SMALL ")"},
    {FLASH, NULL, NULL, 2, HONE_MATCH_OPERANDS, FLASH LARGE ")"},
    {FLASH, NULL, NULL, 1, HONE_MATCH_OPERANDS, FLASH HALF ")"},
    {SDPA, NULL, NULL, 1, HONE_MATCH_OPERANDS, SDPA SMALL ")"},
    {SDPA, NULL, NULL, 1, HONE_MATCH_OPERANDS, SDPA HALF ")"},
    {"attention", NULL, NULL, 1, HONE_MATCH_OPERANDS, "attention" SMALL ")"},
    {"mean_pooling", NULL, NULL, 3, HONE_MATCH_OPERANDS, "mean_pooling(f32[2,64,24])"},
    {"rwkv4", NULL, NULL, 1, HONE_MATCH_OPERANDS, "rwkv4(f32[16], f32[16], f32[2,32,16], f32[2,32,16])"},
};

static const wanted control_in_hlo[] = {
    {SDPA, NULL, NULL, -1, HONE_MATCH_OPERANDS, SDPA SMALL ")"}, // one of them is in a loop of unknown trips
    {FLASH, NULL, NULL, 3, HONE_MATCH_OPERANDS, FLASH SMALL ")"},
};

static void assert_uncounted(fixture *f, const char *name, const wanted *list, size_t count)
{
    wanted copy[16];
    memcpy(copy, list, count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        copy[i].count = -1;
    hone_program *program = read_golden(f, name);
    assert_operations(program, copy, count);
    hone_program_release(&program);
}

static void hlo_loses_keys_and_shows_operands(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    hone_program *program = read_golden(&f, "many.hlo.txt");
    assert_string_equal(hone_program_dialect(program), "hlo");
    assert_operations(program, many_in_hlo, sizeof many_in_hlo / sizeof many_in_hlo[0]);
    hone_program_release(&program);
    program = read_golden(&f, "control.hlo.txt");
    assert_operations(program, control_in_hlo, sizeof control_in_hlo / sizeof control_in_hlo[0]);
    hone_program_release(&program);
    assert_uncounted(&f, "many.opt.hlo.txt", many_in_hlo, sizeof many_in_hlo / sizeof many_in_hlo[0]);
    assert_uncounted(&f, "control.opt.hlo.txt", control_in_hlo, sizeof control_in_hlo / sizeof control_in_hlo[0]);
    fixture_close(&f);
}

static void a_program_cut_anywhere_is_read_as_far_as_it_goes(void **state)
{
    (void)state;
    static const char *const names[] = {"control.mlir", "control.hlo.txt", "one_json.mlir", "one_json.opt.hlo.txt"};
    fixture f;
    fixture_open(&f);
    hone_buffer text;
    hone_buffer_init(&text, f.allocator);
    for (size_t i = 0; i < 4; i++) {
        read_text(names[i], &text);
        for (size_t size = text.size; size > 0; size = size * 9 / 10) {
            char *copy = malloc(size); // exactly so large: a reader that goes over the end is seen
            assert_non_null(copy);
            memcpy(copy, text.data, size);
            hone_error err = {0};
            hone_program *program = NULL;
            hone_status status = hone_offline_read(&f.environment, "cut", copy, size, &program, &err);
            assert_true(status == HONE_OK || status == HONE_CORRUPT);
            if (status == HONE_OK && size + 2 < text.size) assert_non_null(hone_program_note(program));
            hone_program_release(&program);
            free(copy);
        }
    }
    hone_buffer_deinit(&text);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stablehlo_is_counted_and_proved),
        cmocka_unit_test(recorded_invocations_come_before_proofs),
        cmocka_unit_test(payloads_bring_their_arguments),
        cmocka_unit_test(hlo_loses_keys_and_shows_operands),
        cmocka_unit_test(a_program_cut_anywhere_is_read_as_far_as_it_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
