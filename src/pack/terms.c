// The expressions of a pack as they are read: their grammar. What their names mean is known when there is a call.
#include "pack/reading.h"

#include "base/error.h"
#include "base/expression.h"

static bool any_name(void *ctx, hone_view name, int64_t index, uint32_t *out_slot)
{
    (void)ctx;
    (void)name;
    (void)index;
    *out_slot = 0;
    return true;
}

static hone_status check_list(hone_lexer *lexer, size_t most, hone_error *err)
{
    static const hone_expression_names names = {any_name, NULL};
    const hone_expression *expression;
    for (size_t i = 0; i < most; i++) {
        hone_status status = hone_expression_compile(lexer, &names, 0, &expression, err);
        if (status != HONE_OK || lexer->token.kind == HONE_TOKEN_END) return status;
        if (!hone_lexer_accept(lexer, ",")) break;
    }
    return hone_lexer_fail(lexer, err, "pack.read", most > 1 ? "',' or the end" : "the end of the expression");
}

hone_status hone_pack_check_terms(const hone_pack_reading *r, const char *field, const char *text, size_t most)
{
    hone_arena arena = {.allocator = r->pack->allocator};
    hone_error why = {.message = ""};
    hone_lexer lexer;
    if (text == NULL) return HONE_OK;
    hone_lexer_init(&lexer, hone_view_of(text), &arena, &why);
    hone_status status = check_list(&lexer, most, &why);
    hone_arena_destroy(&arena);
    if (status == HONE_OUT_OF_MEMORY) return hone_pack_fail_memory(r);
    return status == HONE_OK ? HONE_OK
                             : hone_pack_fail(r, HONE_INVALID_ARGUMENT, field, "'%.80s': %s", text, why.message);
}
