// The normalised text of a signature: one spacing, defaults as canonical literals, the version only when it is not 1.
#include "base/error.h"
#include "call/signature.h"

#include <string.h>

static const char where[] = "signature.parse";

static bool is_keyword(hone_view name)
{
    static const char *const keywords[] = {"and", "or", "not", "if", "else", "in"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (hone_view_is(name, keywords[i])) return true;
    return false;
}

static bool is_one_of(hone_view text, const char *single)
{
    return text.size == 1 && strchr(single, text.data[0]) != NULL;
}

// What came before decides whether an operator is unary and where spaces stand.
typedef enum before { BEFORE_START, BEFORE_OPEN, BEFORE_OPERAND, BEFORE_OPERATOR, BEFORE_UNARY } before;

static bool space_between(before last, const hone_token *token)
{
    if (last == BEFORE_START || last == BEFORE_OPEN || last == BEFORE_UNARY) return false;
    if (token->kind != HONE_TOKEN_SYMBOL) return true;
    if (is_one_of(token->text, ",)].")) return false;
    return !(last == BEFORE_OPERAND && is_one_of(token->text, "(["));
}

static before what_now(before last, const hone_token *token)
{
    if (token->kind == HONE_TOKEN_NAME) return is_keyword(token->text) ? BEFORE_OPERATOR : BEFORE_OPERAND;
    if (token->kind != HONE_TOKEN_SYMBOL || is_one_of(token->text, ")]")) return BEFORE_OPERAND;
    if (is_one_of(token->text, "([.")) return BEFORE_OPEN;
    const bool signs = is_one_of(token->text, "+-!");
    return signs && last != BEFORE_OPERAND ? BEFORE_UNARY : BEFORE_OPERATOR;
}

static void append_name(hone_buffer *out, hone_view name, const hone_dim_names *names)
{
    if (names == NULL)
        hone_buffer_append(out, name.data, name.size);
    else
        names->append(names->ctx, out, name);
}

static void append_spaced(hone_buffer *out, hone_view source, const hone_dim_names *names, hone_arena *arena)
{
    hone_lexer lexer;
    before last = BEFORE_START;
    bool field = false; // behind '.': "shape" of x.shape is no dim
    for (hone_lexer_init(&lexer, source, arena, NULL); lexer.token.kind != HONE_TOKEN_END; hone_lexer_next(&lexer)) {
        if (lexer.token.kind == HONE_TOKEN_ERROR) {
            out->failed = true; // it was compiled once, so only memory can be short
            return;
        }
        if (space_between(last, &lexer.token)) hone_buffer_char(out, ' ');
        if (lexer.token.kind == HONE_TOKEN_NAME && !field)
            append_name(out, lexer.token.text, names);
        else
            hone_buffer_append(out, lexer.token.text.data, lexer.token.text.size);
        field = hone_lexer_is(&lexer, ".");
        last = what_now(last, &lexer.token);
    }
}

void hone_append_expression(
    hone_buffer *out, const hone_expression *expression, const hone_dim_names *names, hone_arena *arena)
{
    append_spaced(out, hone_expression_source(expression), names, arena);
}

void hone_append_shape(hone_buffer *out, const hone_shape_pattern *s, const hone_dim_names *names, hone_arena *arena)
{
    for (; s != NULL; s = s->otherwise) {
        const bool leads = s->ellipsis && (names == NULL || !names->without_leading);
        hone_buffer_text(out, leads ? "[..." : "[");
        for (uint32_t i = 0; i < s->count; i++) {
            if (i > 0 || leads) hone_buffer_text(out, ", ");
            if (s->dims[i].expression == NULL)
                append_name(out, s->dims[i].text, names);
            else
                append_spaced(out, s->dims[i].text, names, arena);
            if (s->dims[i].pow2) hone_buffer_text(out, " ~pow2");
        }
        hone_buffer_text(out, "]");
        if (s->condition == NULL) continue;
        hone_buffer_text(out, " if ");
        append_spaced(out, hone_expression_source(s->condition), names, arena);
        hone_buffer_text(out, " else ");
    }
}

static void append_type(
    hone_buffer *out, const hone_signature *signature, const hone_call_parameter *p, hone_arena *arena)
{
    static const char *const scalars[] = {
        [HONE_KIND_BOOL] = "bool", [HONE_KIND_INT] = "i64", [HONE_KIND_FLOAT] = "f64", [HONE_KIND_STRING] = "str"};
    if (p->shape == NULL) {
        hone_buffer_text(out, scalars[p->shown.kind]);
    } else {
        const hone_view variable =
            p->dtype == NULL ? signature->variables[p->variable].name : hone_view_of(p->dtype->name);
        hone_buffer_append(out, variable.data, variable.size);
        hone_append_shape(out, p->shape, NULL, arena);
    }
    if (p->shown.nullable) hone_buffer_text(out, "?");
}

// The types, and the defaults that are expressions.
static hone_status write_types(hone_signature *signature, hone_buffer *scratch, hone_error *err)
{
    for (size_t i = 0; i < signature->count; i++) {
        hone_call_parameter *p = &signature->parameters[i];
        hone_buffer_clear(scratch);
        append_type(scratch, signature, p, &signature->arena);
        if (!scratch->failed) p->shown.type_text = hone_arena_text(&signature->arena, scratch->data, scratch->size);
        if (p->shown.type_text == NULL) return hone_fail_memory(err, where);
        if (p->standard == NULL) continue;
        hone_buffer_clear(scratch);
        hone_append_expression(scratch, p->standard, NULL, &signature->arena);
        if (!scratch->failed) p->shown.default_text = hone_arena_text(&signature->arena, scratch->data, scratch->size);
        if (p->shown.default_text == NULL) return hone_fail_memory(err, where);
    }
    return HONE_OK;
}

static void append_generator(hone_buffer *out, const hone_generator_call *generator, hone_arena *arena)
{
    hone_buffer_format(out, " ~ %s(", hone_generator_name(generator->kind));
    for (uint32_t i = 0; i < generator->count; i++) {
        if (i > 0) hone_buffer_text(out, ", ");
        append_spaced(out, hone_expression_source(generator->args[i]), NULL, arena);
    }
    hone_buffer_text(out, ")");
}

static void append_parameter(hone_buffer *out, const hone_call_parameter *p, hone_arena *arena)
{
    static const char *const roles[] = {
        [HONE_ROLE_VALUE] = "",
        [HONE_ROLE_BUCKET] = " #bucket",
        [HONE_ROLE_IGNORE] = " #ignore",
        [HONE_ROLE_ANY] = " #any",
        [HONE_ROLE_GIVEN] = " #given"};
    hone_buffer_text(out, p->shown.is_inout ? "inout " : "");
    hone_buffer_text(out, p->shown.name);
    hone_buffer_text(out, ": ");
    hone_buffer_text(out, p->shown.type_text);
    if (p->shown.has_default) hone_buffer_text(out, " = ");
    if (p->shown.default_text != NULL)
        hone_buffer_text(out, p->shown.default_text);
    else if (p->shown.has_default)
        hone_append_literal(out, &p->shown.default_value);
    hone_buffer_text(out, roles[p->shown.role]);
    if (p->generator != NULL) append_generator(out, p->generator, arena);
}

static void append_parameters(hone_buffer *out, hone_signature *signature)
{
    bool starred = false, first = true;
    hone_buffer_text(out, "(");
    for (size_t i = 0; i < signature->count; i++) {
        const hone_call_parameter *p = &signature->parameters[i];
        if (p->shown.is_result) continue;
        if (!first) hone_buffer_text(out, ", ");
        if (p->shown.keyword_only && !starred) hone_buffer_text(out, "*, ");
        starred = starred || p->shown.keyword_only;
        first = false;
        append_parameter(out, p, &signature->arena);
    }
    hone_buffer_text(out, ")");
}

static void append_results(hone_buffer *out, hone_signature *signature)
{
    size_t results = 0, seen = 0;
    for (size_t i = 0; i < signature->count; i++)
        results += signature->parameters[i].shown.is_result;
    hone_buffer_text(out, results == 1 ? " -> " : " -> (");
    for (size_t i = 0; i < signature->count; i++) {
        if (!signature->parameters[i].shown.is_result) continue;
        if (seen++ > 0) hone_buffer_text(out, ", ");
        append_parameter(out, &signature->parameters[i], &signature->arena);
    }
    if (results != 1) hone_buffer_text(out, ")");
}

static void append_clauses(hone_buffer *out, hone_signature *signature)
{
    for (size_t i = 0; i < signature->variable_count; i++) {
        const hone_type_variable *variable = &signature->variables[i];
        if (variable->allowed == 0) continue;
        hone_buffer_format(out, " where %.*s in ", (int)variable->name.size, variable->name.data);
        const char *comma = "";
        for (int id = 0; id < HONE_DTYPE_COUNT; id++) {
            if ((variable->allowed >> id & 1) == 0) continue;
            hone_buffer_format(out, "%s%s", comma, hone_dtype_info_of((hone_dtype_id)id)->name);
            comma = ", ";
        }
    }
    for (size_t i = 0; i < signature->clause_count; i++) {
        hone_buffer_text(out, " where ");
        append_spaced(out, hone_expression_source(signature->clauses[i]), NULL, &signature->arena);
    }
}

hone_status hone_signature_write_text(hone_signature *signature, hone_error *err)
{
    hone_buffer out;
    hone_buffer_init(&out, signature->arena.allocator);
    hone_status status = write_types(signature, &out, err);
    if (status == HONE_OK) {
        hone_buffer_clear(&out);
        hone_buffer_text(&out, signature->name);
        if (strcmp(signature->version, "1") != 0) hone_buffer_format(&out, "@v%s", signature->version);
        append_parameters(&out, signature);
        append_results(&out, signature);
        append_clauses(&out, signature);
        if (!out.failed) signature->text = hone_arena_text(&signature->arena, out.data, out.size);
        if (signature->text == NULL) status = hone_fail_memory(err, where);
    }
    hone_buffer_deinit(&out);
    return status;
}
