// Reads a signature (docs/signatures.md). Names may be used before they are declared (a condition reads a
// keyword-only scalar), so that every name first becomes a slot and is resolved when all is read.
#include "base/error.h"
#include "base/json.h"
#include "call/signature.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SHAPE_DEPTH = 8 };

typedef struct parser {
    hone_lexer lexer;
    hone_signature *signature;
    hone_arena *arena;
    hone_error *err;
    hone_call_parameter items[HONE_MAX_VALUES];
    size_t item_count;
    hone_call_slot slots[HONE_MAX_SLOTS];
    size_t slot_count;
    hone_type_variable variables[HONE_MAX_VARIABLES];
    size_t variable_count;
    const hone_expression *clauses[HONE_MAX_CLAUSES];
    size_t clause_count;
    bool keyword_only, in_results;
} parser;

static const char where[] = "signature.parse";

static hone_status expected(parser *p, const char *what)
{
    return hone_lexer_fail(&p->lexer, p->err, where, what);
}

__attribute__((format(printf, 3, 4))) static hone_status wrong(parser *p, hone_view at, const char *format, ...)
{
    char words[512];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    const size_t offset = (size_t)(at.data - p->lexer.source.data);
    return hone_fail(p->err, HONE_INVALID_ARGUMENT, where, "offset %zu: %s", offset, words);
}

static hone_status expect(parser *p, const char *symbol)
{
    char what[16];
    if (hone_lexer_accept(&p->lexer, symbol)) return HONE_OK;
    snprintf(what, sizeof what, "'%s'", symbol);
    return expected(p, what);
}

static int shown(hone_view view)
{
    return view.size > 60 ? 60 : (int)view.size;
}

// ---- slots

static int find_slot(const hone_call_slot *slots, size_t count, hone_view name, int64_t axis)
{
    for (size_t i = 0; i < count; i++)
        if (hone_view_equal(slots[i].name, name) && slots[i].axis == axis) return (int)i;
    return -1;
}

int hone_signature_slot(const hone_signature *signature, hone_view name)
{
    return find_slot(signature->slots, signature->slot_count, name, -1);
}

// Bare names have axis -1, as the expression compiler gives them.
static bool add_slot(parser *p, hone_view name, int64_t axis, uint32_t *out)
{
    int found = find_slot(p->slots, p->slot_count, name, axis);
    if (found < 0) {
        if (p->slot_count == HONE_MAX_SLOTS) return false;
        found = (int)p->slot_count++;
        p->slots[found] = (hone_call_slot){.name = name, .axis = axis};
    }
    *out = (uint32_t)found;
    return true;
}

static bool resolve(void *ctx, hone_view name, int64_t index, uint32_t *out_slot)
{
    return add_slot(ctx, name, index, out_slot);
}

static hone_status compile(parser *p, const hone_expression **out)
{
    const hone_expression_names names = {resolve, p};
    return hone_expression_compile(&p->lexer, &names, 0, out, p->err);
}

// ---- shapes

// The byte that the next token starts with; NUL at the end. Cheaper than to read the token and go back.
static char next_byte(const parser *p)
{
    size_t i = p->lexer.position;
    while (i < p->lexer.source.size && strchr(" \t\r\n", p->lexer.source.data[i]) != NULL)
        i++;
    return i < p->lexer.source.size ? p->lexer.source.data[i] : '\0';
}

// A name that stands alone up to ',', ']' or '~'.
static bool at_bare_name(const parser *p)
{
    const char next = next_byte(p);
    return p->lexer.token.kind == HONE_TOKEN_NAME && (next == ',' || next == ']' || next == '~');
}

static hone_status parse_pow2(parser *p, hone_dim *d)
{
    const hone_view at = p->lexer.token.text;
    if (!hone_lexer_accept(&p->lexer, "~")) return HONE_OK;
    if (!hone_lexer_accept(&p->lexer, "pow2")) return expected(p, "'pow2'");
    if (d->expression != NULL) return wrong(p, at, "'~pow2' goes only on a bare dim name, not on an expression");
    d->pow2 = p->slots[d->slot].pow2 = true;
    return HONE_OK;
}

static hone_status parse_dim(parser *p, hone_dim *d)
{
    const hone_view start = p->lexer.token.text;
    hone_status status = HONE_OK;
    if (at_bare_name(p)) {
        d->text = start;
        if (!add_slot(p, start, -1, &d->slot)) return wrong(p, start, "more than %d names", HONE_MAX_SLOTS);
        // What a result's shape alone names could not be known before the call.
        if (!p->in_results) p->slots[d->slot].bound = true;
        hone_lexer_next(&p->lexer);
    } else {
        status = compile(p, &d->expression);
        if (status == HONE_OK) d->text = hone_expression_source(d->expression);
    }
    return status == HONE_OK ? parse_pow2(p, d) : status;
}

static hone_status parse_dims(parser *p, hone_shape_pattern *s)
{
    hone_dim dims[HONE_MAX_RANK];
    memset(dims, 0, sizeof dims);
    while (!hone_lexer_is(&p->lexer, "]")) {
        if (s->count > 0 || s->ellipsis) {
            hone_status status = expect(p, ",");
            if (status != HONE_OK) return status;
        }
        if (hone_lexer_is(&p->lexer, "...")) {
            if (s->count > 0 || s->ellipsis) return expected(p, "a dim ('...' may stand only once, at the front)");
            hone_lexer_next(&p->lexer);
            s->ellipsis = true;
            continue;
        }
        if (s->count == HONE_MAX_RANK) return expected(p, "']' (a shape has at most 8 dims)");
        hone_status status = parse_dim(p, &dims[s->count]);
        if (status != HONE_OK) return status;
        s->count++;
    }
    hone_dim *copy = hone_arena_array(p->arena, s->count, sizeof *copy);
    if (copy == NULL) return hone_fail_memory(p->err, where);
    memcpy(copy, dims, s->count * sizeof *copy);
    s->dims = copy;
    return expect(p, "]");
}

static hone_status parse_shape(parser *p, int depth, const hone_shape_pattern **out)
{
    if (depth > MAX_SHAPE_DEPTH) return expected(p, "the end of the type (at most 8 conditions in one)");
    hone_shape_pattern *s = hone_arena_alloc(p->arena, sizeof *s);
    if (s == NULL) return hone_fail_memory(p->err, where);
    hone_status status = expect(p, "[");
    if (status == HONE_OK) status = parse_dims(p, s);
    if (status == HONE_OK && hone_lexer_accept(&p->lexer, "if")) {
        status = compile(p, &s->condition);
        if (status == HONE_OK) status = expect(p, "else");
        if (status == HONE_OK) status = parse_shape(p, depth + 1, &s->otherwise);
    }
    *out = s;
    return status;
}

// ---- types

static const hone_dtype_info *dtype_of(hone_view name)
{
    for (int i = 0; i < HONE_DTYPE_COUNT; i++) {
        const hone_dtype_info *info = hone_dtype_info_of((hone_dtype_id)i);
        if (hone_view_is(name, info->name)) return info;
    }
    return NULL;
}

static bool find_variable(const parser *p, hone_view name, uint32_t *out)
{
    for (size_t i = 0; i < p->variable_count; i++)
        if (hone_view_equal(p->variables[i].name, name)) {
            *out = (uint32_t)i;
            return true;
        }
    return false;
}

static hone_status parse_element_type(parser *p, hone_call_parameter *item)
{
    const hone_view name = p->lexer.token.text;
    if (p->lexer.token.kind != HONE_TOKEN_NAME)
        return expected(p, "a type: 'f32[m, n]', 'T[n]', bool, i64, f64 or str");
    item->dtype = dtype_of(name);
    if (item->dtype == NULL) {
        if (name.data[0] < 'A' || name.data[0] > 'Z')
            return expected(
                p, "a dtype (f32, bf16, i64, ...), a type variable (a capital first), bool, i64, f64 or str");
        if (!find_variable(p, name, &item->variable)) {
            if (p->variable_count == HONE_MAX_VARIABLES)
                return wrong(p, name, "more than %d type variables", HONE_MAX_VARIABLES);
            item->variable = (uint32_t)p->variable_count++;
            p->variables[item->variable] = (hone_type_variable){.name = name};
        }
        if (!p->in_results) p->variables[item->variable].bound = true;
    }
    hone_lexer_next(&p->lexer);
    return parse_shape(p, 0, &item->shape);
}

static bool parse_scalar_type(parser *p, hone_call_parameter *item)
{
    static const struct {
        const char *name;
        hone_kind kind;
    } scalars[] = {
        {"bool", HONE_KIND_BOOL}, {"i64", HONE_KIND_INT}, {"f64", HONE_KIND_FLOAT}, {"str", HONE_KIND_STRING}};
    if (next_byte(p) == '[') return false;
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        if (hone_lexer_accept(&p->lexer, scalars[i].name)) {
            item->shown.kind = scalars[i].kind;
            return true;
        }
    return false;
}

// ---- items

// What is no literal up to the end of the default is an expression: a bare name is a dim, but for a text.
static bool at_literal(const parser *p, const hone_call_parameter *item)
{
    hone_lexer ahead = p->lexer;
    hone_value literal;
    if (item->shape != NULL || item->shown.kind == HONE_KIND_STRING) return true;
    if (p->lexer.token.kind == HONE_TOKEN_STRING) return true;
    ahead.err = NULL;
    if (hone_literal_parse(&ahead, &literal, NULL) != HONE_OK || literal.tag == HONE_VALUE_STRING) return false;
    return hone_lexer_is(&ahead, ",") || hone_lexer_is(&ahead, ")") || hone_lexer_is(&ahead, "#") ||
           hone_lexer_is(&ahead, "~") || ahead.token.kind == HONE_TOKEN_END;
}

static hone_status parse_default(parser *p, hone_call_parameter *item)
{
    const hone_view at = p->lexer.token.text;
    if (!hone_lexer_accept(&p->lexer, "=")) {
        // "?" alone says the same as "? = none".
        item->shown.has_default = item->shown.nullable;
        item->shown.default_value = hone_of_none();
        return HONE_OK;
    }
    item->shown.has_default = true;
    item->shown.default_value = hone_of_none();
    if (!at_literal(p, item)) return compile(p, &item->standard);
    hone_value literal;
    hone_status status = hone_literal_parse(&p->lexer, &literal, p->err);
    if (status != HONE_OK) return status;
    if (hone_value_coerce(&item->shown, &literal, &item->shown.default_value)) return HONE_OK;
    return wrong(
        p, at, "the default of %s does not fit its type%s", item->shown.name,
        literal.tag == HONE_VALUE_NONE ? " (write '?' behind the type to allow none)" : "");
}

static hone_status take_any(parser *p, hone_call_parameter *item, hone_view at)
{
    item->shown.role = HONE_ROLE_ANY;
    if (item->shown.kind == HONE_KIND_FLOAT || item->shown.kind == HONE_KIND_INT) return HONE_OK;
    return wrong(p, at, "%s is not a number: '#any' goes after an f64 or i64", item->shown.name);
}

static hone_status parse_role(parser *p, hone_call_parameter *item)
{
    const hone_view at = p->lexer.token.text;
    if (!hone_lexer_accept(&p->lexer, "#")) return HONE_OK;
    if (hone_lexer_accept(&p->lexer, "given"))
        item->shown.role = HONE_ROLE_GIVEN;
    else if (item->shape != NULL)
        return wrong(p, at, "%s is a tensor: of the roles in the call key it can only have '#given'", item->shown.name);
    else if (hone_lexer_accept(&p->lexer, "value"))
        item->shown.role = HONE_ROLE_VALUE;
    else if (hone_lexer_accept(&p->lexer, "bucket"))
        item->shown.role = HONE_ROLE_BUCKET;
    else if (hone_lexer_accept(&p->lexer, "ignore"))
        item->shown.role = HONE_ROLE_IGNORE;
    else if (hone_lexer_accept(&p->lexer, "any"))
        return take_any(p, item, at);
    else
        return expected(p, "a role: value, bucket, ignore, any or given");
    const bool left_out = item->shown.role == HONE_ROLE_IGNORE || item->shown.role == HONE_ROLE_GIVEN;
    if (left_out && !item->shown.has_default)
        return wrong(p, at, "%s is left out of the call key, so it needs a default to stand for it", item->shown.name);
    if (item->shown.role == HONE_ROLE_GIVEN && item->standard != NULL)
        return wrong(p, at, "%s has '#given', so its default must be a literal", item->shown.name);
    return HONE_OK;
}

static hone_status parse_generator_args(parser *p, hone_generator_call *generator, uint32_t wanted)
{
    while (!hone_lexer_is(&p->lexer, ")")) {
        hone_status status = generator->count > 0 ? expect(p, ",") : HONE_OK;
        if (status == HONE_OK && generator->count == wanted) return expected(p, "')' (that is one argument too many)");
        if (status == HONE_OK) status = compile(p, &generator->args[generator->count]);
        if (status != HONE_OK) return status;
        generator->count++;
    }
    return generator->count == wanted ? expect(p, ")") : expected(p, "another argument of the generator");
}

static hone_status parse_generator(parser *p, hone_call_parameter *item)
{
    if (!hone_lexer_accept(&p->lexer, "~")) return HONE_OK;
    uint32_t wanted = 0;
    const hone_view name = p->lexer.token.text;
    const int kind = p->lexer.token.kind == HONE_TOKEN_NAME ? hone_generator_find(name, &wanted) : -1;
    if (kind < 0) return expected(p, hone_generator_list);
    if (item->shape == NULL) return wrong(p, name, "%s is a scalar: only a tensor is generated", item->shown.name);
    hone_generator_call *generator = hone_arena_alloc(p->arena, sizeof *generator);
    if (generator == NULL) return hone_fail_memory(p->err, where);
    generator->kind = (uint32_t)kind;
    item->generator = generator;
    hone_lexer_next(&p->lexer);
    hone_status status = expect(p, "(");
    return status == HONE_OK ? parse_generator_args(p, generator, wanted) : status;
}

static hone_status parse_item_name(parser *p, hone_call_parameter **out)
{
    const hone_view name = p->lexer.token.text;
    if (p->lexer.token.kind != HONE_TOKEN_NAME)
        return expected(p, p->in_results ? "the name of a result" : "the name of a parameter");
    if (p->item_count == HONE_MAX_VALUES) return wrong(p, name, "more than %d parameters and results", HONE_MAX_VALUES);
    for (size_t i = 0; i < p->item_count; i++)
        if (hone_view_is(name, p->items[i].shown.name))
            return wrong(p, name, "'%.*s' is there twice", shown(name), name.data);
    hone_call_parameter *item = &p->items[p->item_count];
    memset(item, 0, sizeof *item);
    item->shown.name = hone_arena_text(p->arena, name.data, name.size);
    if (item->shown.name == NULL) return hone_fail_memory(p->err, where);
    p->item_count++;
    hone_lexer_next(&p->lexer);
    *out = item;
    return expect(p, ":");
}

static hone_status parse_parameter(parser *p)
{
    hone_call_parameter *item;
    hone_status status = parse_item_name(p, &item);
    if (status != HONE_OK) return status;
    item->shown.keyword_only = p->keyword_only;
    if (!parse_scalar_type(p, item)) status = parse_element_type(p, item);
    if (status != HONE_OK) return status;
    item->shown.nullable = hone_lexer_accept(&p->lexer, "?");
    status = parse_default(p, item);
    if (status == HONE_OK) status = parse_role(p, item);
    return status == HONE_OK ? parse_generator(p, item) : status;
}

static hone_status parse_parameters(parser *p)
{
    hone_status status = expect(p, "(");
    bool first = true;
    while (status == HONE_OK && !hone_lexer_accept(&p->lexer, ")")) {
        if (!first) status = expect(p, ",");
        first = false;
        if (status != HONE_OK) break;
        if (hone_lexer_is(&p->lexer, "*")) {
            if (p->keyword_only) return expected(p, "a parameter ('*' may stand only once)");
            hone_lexer_next(&p->lexer);
            p->keyword_only = true;
        } else {
            status = parse_parameter(p);
        }
    }
    return status;
}

static hone_status parse_result(parser *p)
{
    const bool inout = hone_lexer_accept(&p->lexer, "inout");
    hone_call_parameter *item;
    hone_status status = parse_item_name(p, &item);
    if (status != HONE_OK) return status;
    item->shown.is_result = true;
    item->shown.is_inout = inout;
    return parse_element_type(p, item);
}

static hone_status parse_results(parser *p)
{
    hone_status status = expect(p, "->");
    if (status != HONE_OK) return status;
    p->in_results = true;
    if (!hone_lexer_accept(&p->lexer, "(")) return parse_result(p);
    do
        status = parse_result(p);
    while (status == HONE_OK && hone_lexer_accept(&p->lexer, ","));
    return status == HONE_OK ? expect(p, ")") : status;
}

// ---- where

static hone_status parse_allowed(parser *p, hone_type_variable *variable)
{
    do {
        const hone_dtype_info *dtype = p->lexer.token.kind == HONE_TOKEN_NAME ? dtype_of(p->lexer.token.text) : NULL;
        if (dtype == NULL) return expected(p, "a dtype (f32, f16, bf16, ...)");
        variable->allowed |= UINT32_C(1) << dtype->id;
        hone_lexer_next(&p->lexer);
    } while (hone_lexer_accept(&p->lexer, ","));
    return HONE_OK;
}

static hone_status parse_clause(parser *p)
{
    hone_lexer ahead = p->lexer;
    ahead.err = NULL;
    hone_lexer_next(&ahead);
    if (p->lexer.token.kind == HONE_TOKEN_NAME && hone_lexer_is(&ahead, "in")) {
        uint32_t variable;
        if (!find_variable(p, p->lexer.token.text, &variable))
            return expected(p, "a type variable that some parameter has");
        hone_lexer_next(&p->lexer);
        hone_lexer_next(&p->lexer);
        return parse_allowed(p, &p->variables[variable]);
    }
    if (p->clause_count == HONE_MAX_CLAUSES) return expected(p, "the end (at most 32 'where' expressions)");
    return compile(p, &p->clauses[p->clause_count++]);
}

static hone_status parse_clauses(parser *p)
{
    hone_status status = HONE_OK;
    while (status == HONE_OK && hone_lexer_accept(&p->lexer, "where"))
        status = parse_clause(p);
    if (status == HONE_OK && p->lexer.token.kind != HONE_TOKEN_END) status = expected(p, "'where' or the end");
    return status;
}

// ---- head

bool hone_version_parse(hone_lexer *lexer, hone_view *out)
{
    *out = (hone_view){lexer->token.text.data, 0};
    if (!hone_lexer_is(lexer, "@")) return true;
    const char *data = lexer->source.data;
    size_t end = lexer->position;
    // Scanned here: "1.2-rc" is no token of the expression language.
    if (end >= lexer->source.size || data[end] != 'v') return false;
    const size_t start = ++end;
    while (end < lexer->source.size && data[end] != '\0' &&
           strchr("abcdefghijklmnopqrstuvwxyz0123456789_.-", data[end]) != NULL)
        end++;
    *out = (hone_view){data + start, end - start};
    lexer->position = end;
    hone_lexer_next(lexer);
    return end > start;
}

static hone_status parse_head(parser *p)
{
    hone_view version;
    const hone_view name = p->lexer.token.text;
    if (p->lexer.token.kind != HONE_TOKEN_NAME) return expected(p, "the algorithm's name");
    p->signature->name = hone_arena_text(p->arena, name.data, name.size);
    hone_lexer_next(&p->lexer);
    if (!hone_version_parse(&p->lexer, &version)) return expected(p, "a version: '@v' and letters in a-z 0-9 _ . -");
    p->signature->version =
        version.size > 0 ? hone_arena_text(p->arena, version.data, version.size) : hone_arena_text(p->arena, "1", 1);
    if (p->signature->name == NULL || p->signature->version == NULL) return hone_fail_memory(p->err, where);
    return HONE_OK;
}

// ---- resolving

static int find_item(const parser *p, hone_view name)
{
    for (size_t i = 0; i < p->item_count; i++)
        if (hone_view_is(name, p->items[i].shown.name)) return (int)i;
    return -1;
}

// "x.shape" or "x.ndim" of a tensor parameter.
static hone_status resolve_fact(parser *p, hone_call_slot *s, const char *dot)
{
    const hone_view owner = {s->name.data, (size_t)(dot - s->name.data)};
    const hone_view fact = {dot + 1, s->name.size - owner.size - 1};
    const int item = find_item(p, owner);
    const bool known = item >= 0 && p->items[item].shape != NULL && !p->items[item].shown.is_result;
    if (!known || !(hone_view_is(fact, "shape") || hone_view_is(fact, "ndim")))
        return wrong(
            p, s->name, "'%.*s': '%.*s' is not a tensor parameter", shown(s->name), s->name.data, shown(owner),
            owner.data);
    s->kind = hone_view_is(fact, "shape") ? SLOT_SHAPE : SLOT_NDIM;
    s->parameter = (uint32_t)item;
    return HONE_OK;
}

static hone_status resolve_slot(parser *p, hone_call_slot *s)
{
    const char *dot = memchr(s->name.data, '.', s->name.size);
    if (dot != NULL) return resolve_fact(p, s, dot);
    const int item = find_item(p, s->name);
    if (item >= 0 && p->items[item].shape == NULL) {
        s->kind = SLOT_SCALAR;
        s->parameter = (uint32_t)item;
        if (s->pow2)
            return wrong(p, s->name, "'~pow2' goes only on a dim, and %s is a scalar", p->items[item].shown.name);
        return HONE_OK;
    }
    s->kind = SLOT_DIM;
    if (s->bound) return HONE_OK;
    return wrong(
        p, s->name, "'%.*s' is neither a scalar parameter nor a dim that is alone on an axis of some parameter's shape",
        shown(s->name), s->name.data);
}

static hone_status resolve_all(parser *p)
{
    for (size_t i = 0; i < p->slot_count; i++) {
        hone_status status = resolve_slot(p, &p->slots[i]);
        if (status != HONE_OK) return status;
    }
    for (size_t i = 0; i < p->variable_count; i++)
        if (!p->variables[i].bound)
            return wrong(
                p, p->variables[i].name, "no parameter has the type variable '%.*s' of the results",
                shown(p->variables[i].name), p->variables[i].name.data);
    return HONE_OK;
}

// ---- storing

// Positional parameters, results, keyword-only parameters. map[i] is where item i went.
static void order_items(const parser *p, hone_call_parameter *out, uint32_t map[HONE_MAX_VALUES])
{
    size_t at = 0;
    for (int group = 0; group < 3; group++)
        for (size_t i = 0; i < p->item_count; i++) {
            const hone_parameter *item = &p->items[i].shown;
            if ((item->is_result ? 1 : item->keyword_only ? 2 : 0) != group) continue;
            map[i] = (uint32_t)at;
            out[at++] = p->items[i];
        }
}

static void sort_names(hone_signature *signature)
{
    for (size_t i = 0; i < signature->count; i++) {
        size_t at = i;
        for (;
             at > 0 &&
             strcmp(signature->parameters[signature->sorted[at - 1]].shown.name, signature->parameters[i].shown.name) >
                 0;
             at--)
            signature->sorted[at] = signature->sorted[at - 1];
        signature->sorted[at] = (uint16_t)i;
    }
}

static bool copy_array(hone_arena *arena, const void *from, size_t count, size_t size, void *out_pointer)
{
    void *copy = hone_arena_array(arena, count, size);
    if (copy == NULL) return false;
    if (count > 0) memcpy(copy, from, count * size);
    memcpy(out_pointer, &copy, sizeof copy);
    return true;
}

typedef struct default_reading {
    const hone_signature *signature;
    bool reads_default; // of another scalar, which is not known before
} default_reading;

static void note_default(void *ctx, uint32_t number)
{
    default_reading *r = ctx;
    const hone_call_slot *s = &r->signature->slots[number];
    if (s->kind == SLOT_SCALAR && r->signature->parameters[s->parameter].standard != NULL) r->reads_default = true;
}

// Scalars are known first, then shapes, then the defaults that follow from them.
static hone_status check_scalars(parser *p)
{
    const hone_signature *signature = p->signature;
    for (size_t i = 0; i < signature->count; i++) {
        const hone_call_parameter *item = &signature->parameters[i];
        default_reading r = {signature, false};
        if (item->shown.role == HONE_ROLE_ANY && hone_signature_shapes_read(signature, i))
            return hone_fail(
                p->err, HONE_INVALID_ARGUMENT, where, "a shape depends on %s, so that it cannot be marked '#any'",
                item->shown.name);
        if (item->standard == NULL) continue;
        const hone_view at = hone_expression_source(item->standard);
        hone_expression_slots(item->standard, note_default, &r);
        if (r.reads_default)
            return hone_fail(
                p->err, HONE_INVALID_ARGUMENT, where,
                "the default of %s, '%s', reads a scalar whose default is an expression, too", item->shown.name,
                at.data);
        if (hone_signature_shapes_read(signature, i))
            return hone_fail(
                p->err, HONE_INVALID_ARGUMENT, where,
                "a shape depends on %s, so its default is a literal: '%s' is known only after the shapes",
                item->shown.name, at.data);
    }
    return HONE_OK;
}

static hone_status store(parser *p)
{
    hone_signature *signature = p->signature;
    uint32_t map[HONE_MAX_VALUES];
    signature->count = p->item_count;
    signature->slot_count = p->slot_count;
    signature->variable_count = p->variable_count;
    signature->clause_count = p->clause_count;
    if (!copy_array(p->arena, p->items, p->item_count, sizeof *p->items, &signature->parameters) ||
        !copy_array(p->arena, p->slots, p->slot_count, sizeof *p->slots, &signature->slots) ||
        !copy_array(p->arena, p->variables, p->variable_count, sizeof *p->variables, &signature->variables) ||
        !copy_array(p->arena, p->clauses, p->clause_count, sizeof *p->clauses, &signature->clauses) ||
        (signature->sorted = hone_arena_array(p->arena, p->item_count, sizeof *signature->sorted)) == NULL)
        return hone_fail_memory(p->err, where);
    order_items(p, signature->parameters, map);
    for (size_t i = 0; i < signature->slot_count; i++) {
        hone_call_slot *s = &signature->slots[i];
        if (s->kind != SLOT_DIM) s->parameter = map[s->parameter];
        if (s->kind == SLOT_DIM && s->pow2) signature->has_buckets = true;
    }
    for (size_t i = 0; i < signature->count; i++)
        if (signature->parameters[i].shown.role == HONE_ROLE_ANY) signature->has_buckets = true;
    sort_names(signature);
    hone_status status = check_scalars(p);
    return status == HONE_OK ? hone_signature_write_text(signature, p->err) : status;
}

static hone_status parse_all(parser *p)
{
    hone_status status = parse_head(p);
    if (status == HONE_OK) status = parse_parameters(p);
    if (status == HONE_OK) status = parse_results(p);
    if (status == HONE_OK) status = parse_clauses(p);
    if (status == HONE_OK) status = resolve_all(p);
    return status == HONE_OK ? store(p) : status;
}

// The parser is some KiB: on the heap, not on a caller's small stack.
static hone_status parse_into(hone_signature *signature, hone_error *err)
{
    const hone_allocator *allocator = &signature->arena.allocator;
    parser *p = hone_alloc(allocator, sizeof *p);
    if (p == NULL) return hone_fail_memory(err, where);
    p->signature = signature;
    p->arena = &signature->arena;
    p->err = err;
    hone_lexer_init(&p->lexer, hone_view_of(signature->source), p->arena, NULL);
    hone_status status = parse_all(p);
    hone_free(allocator, p);
    return status;
}

hone_status hone_signature_parse(hone_allocator allocator, const char *text, hone_signature **out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL");
    *out = NULL;
    allocator = hone_allocator_given(allocator);
    if (text == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "no text, expected 'name(x: T[n]) -> y: T[n]'");
    if (!hone_text_is_utf8(text, strlen(text)))
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "a signature is UTF-8, and these bytes are not");
    hone_signature *signature = hone_alloc(&allocator, sizeof *signature);
    if (signature == NULL) return hone_fail_memory(err, where);
    atomic_init(&signature->references, 1);
    signature->arena.allocator = allocator;
    signature->source = hone_arena_text(&signature->arena, text, strlen(text));
    hone_status status = signature->source != NULL ? parse_into(signature, err) : hone_fail_memory(err, where);
    if (status == HONE_OK) {
        *out = signature;
        return HONE_OK;
    }
    hone_signature_release(&signature);
    return hone_fail_prefix(err, status, "signature '%.80s'", text);
}
