// Expressions: compiled from any bytes, evaluated with a value of every kind, and compiled again from their source.
#include "base/expression.h"

#include <stdlib.h>

enum { SLOTS = 8 };

static const hone_scalar slots[SLOTS] = {
    {HONE_SCALAR_INT, {.i64 = 0}},
    {HONE_SCALAR_INT, {.i64 = 7}},
    {HONE_SCALAR_INT, {.i64 = INT64_MIN}},
    {HONE_SCALAR_INT, {.i64 = INT64_MAX}},
    {HONE_SCALAR_FLOAT, {.f64 = -0.5}},
    {HONE_SCALAR_BOOL, {.i64 = 1}},
    {HONE_SCALAR_TEXT, {.text = {"row", 3}}},
    {HONE_SCALAR_NONE, {.i64 = 0}},
};

// Any name is known; its bytes say which slot it is.
static bool resolve(void *ctx, hone_view name, int64_t index, uint32_t *out_slot)
{
    (void)ctx;
    uint32_t sum = (uint32_t)index;
    for (size_t i = 0; i < name.size; i++)
        sum += (unsigned char)name.data[i];
    *out_slot = sum % SLOTS;
    return true;
}

static void check_slot(void *ctx, uint32_t slot)
{
    (void)ctx;
    if (slot >= SLOTS) abort();
}

static bool same(const hone_scalar *a, const hone_scalar *b)
{
    if (a->kind != b->kind) return false;
    // A NaN is not equal to itself.
    if (a->kind == HONE_SCALAR_FLOAT && a->as.f64 != a->as.f64) return b->as.f64 != b->as.f64;
    return hone_scalar_equal(a, b);
}

static hone_status run(
    hone_view source,
    unsigned flags,
    hone_arena *arena,
    const hone_expression **out,
    hone_scalar *value,
    hone_error *err)
{
    hone_lexer lexer;
    hone_expression_names names = {resolve, NULL};
    hone_lexer_init(&lexer, source, arena, err);
    hone_status status = hone_expression_compile(&lexer, &names, flags, out, err);
    if (status != HONE_OK) return status;
    hone_expression_slots(*out, check_slot, NULL);
    return hone_expression_evaluate(*out, slots, value, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (unsigned flags = 0; flags <= HONE_EXPRESSION_PYTHON; flags++) {
        hone_arena arena = {.allocator = hone_allocator_system()};
        hone_error err = {0};
        hone_scalar value, again;
        const hone_expression *expression = NULL, *second;
        hone_status status = run((hone_view){(const char *)data, size}, flags, &arena, &expression, &value, &err);
        if (status != err.status && status != HONE_OK) abort();
        if (status == HONE_OK && value.kind == HONE_SCALAR_ERROR) abort();
        if (expression != NULL) {
            hone_view source = hone_expression_source(expression);
            if (run(source, flags, &arena, &second, &again, &err) != status) abort();
            if (status == HONE_OK && !same(&value, &again)) abort();
        }
        hone_arena_destroy(&arena);
    }
    return 0;
}
