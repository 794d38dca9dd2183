// Do two signatures offer the same interface? Names of dims and type variables are the author's own business, so
// both are numbered by their first use before types are compared: two types are then alike when their texts are. So one
// pass over both signatures does what unification would (equality up to renaming of bound names: H. Barendregt, "The
// Lambda Calculus", 1984, 2.1), and a report can show what was written. Numbers go on from parameter to parameter: a
// dim that two parameters share is shared on the other side, too.
#include "call/signature.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

bool hone_is_tuning_parameter(const char *name)
{
    static const char *const names[] = {
        "block_m",
        "block_n",
        "block_k",
        "block_q",
        "block_kv",
        "block_size",
        "block_v",
        "block_d",
        "block_e",
        "block_dim",
        "block_c",
        "num_warps",
        "num_stages",
        "num_ctas",
        "num_waves",
        "num_sms",
        "num_splits",
        "split_k",
        "use_bf16",
        "seq_threshold_3d",
        "num_par_softmax_segments",
        "max_warps",
        "num_queries_per_block",
        "num_kv_pages_per_block",
        "num_kv_splits",
        "gemm_block",
        "fwd_params",
        "bwd_params",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

// One side of a comparison.
typedef struct side {
    const hone_signature *signature;
    const hone_call_parameter *kept[HONE_MAX_VALUES]; // without those that only tune
    size_t count;
    int16_t dims[HONE_MAX_SLOTS]; // number of a slot's dim by first use, from 1; 0: not used yet
    int16_t variables[HONE_MAX_VARIABLES];
    int16_t next_dim, next_variable;
    bool without_leading; // the other one knows no leading dims
    hone_buffer type;     // of the parameter at hand
} side;

typedef struct comparison {
    side sides[2];
    hone_arena arena;
    void (*report)(void *ctx, const char *line);
    void *ctx;
    hone_buffer words, line;
    bool same, failed;
} comparison;

// One that came later: a kernel of before does not know it, and takes the calls that leave it out.
static bool is_unknown_to(const hone_call_parameter *p, const hone_signature *other)
{
    return p->shown.role == HONE_ROLE_GIVEN && hone_signature_find(other, p->shown.name) < 0;
}

static bool has_leading(const hone_signature *signature)
{
    for (size_t i = 0; i < signature->count; i++)
        for (const hone_shape_pattern *s = signature->parameters[i].shape; s != NULL; s = s->otherwise)
            if (s->ellipsis) return true;
    return false;
}

static void open_side(side *s, const hone_signature *signature, const hone_signature *other, hone_allocator allocator)
{
    s->signature = signature;
    // A kernel that takes no batch takes the calls that have none.
    s->without_leading = has_leading(signature) != has_leading(other);
    hone_buffer_init(&s->type, allocator);
    // Results behind all parameters, wherever the values stand in C.
    for (int results = 0; results < 2; results++)
        for (size_t i = 0; i < signature->count; i++) {
            const hone_call_parameter *p = &signature->parameters[i];
            if (p->shown.is_result == (results == 1) && !hone_is_tuning_parameter(p->shown.name) &&
                !is_unknown_to(p, other))
                s->kept[s->count++] = p;
        }
}

static void append_number(hone_buffer *out, char letter, int16_t *number, int16_t *next)
{
    hone_assert(*next < INT16_MAX);
    if (*number == 0) *number = ++*next;
    hone_buffer_format(out, "%c%d", letter, *number);
}

static void append_dim(void *ctx, hone_buffer *out, hone_view name)
{
    side *s = ctx;
    const int found = hone_signature_slot(s->signature, name);
    if (found >= 0 && s->signature->slots[found].kind == SLOT_DIM)
        append_number(out, 'd', &s->dims[found], &s->next_dim);
    else
        hone_buffer_append(out, name.data, name.size);
}

static void write_type(side *s, const hone_call_parameter *p, hone_arena *arena)
{
    const hone_dim_names names = {append_dim, s, s->without_leading};
    hone_buffer_clear(&s->type);
    if (p->shape == NULL) {
        hone_buffer_text(&s->type, p->shown.type_text);
        return;
    }
    if (p->dtype != NULL)
        hone_buffer_text(&s->type, p->dtype->name);
    else
        append_number(&s->type, 'T', &s->variables[p->variable], &s->next_variable);
    hone_append_shape(&s->type, p->shape, &names, arena);
    if (p->shown.nullable) hone_buffer_text(&s->type, "?");
}

static const char *place(const hone_parameter *p)
{
    if (p->is_result) return p->is_inout ? "inout result" : "result";
    return p->keyword_only ? "keyword-only" : "positional";
}

// Reports what stands in c->words.
static void say(comparison *c, const char *what, const char *name)
{
    c->same = false;
    hone_buffer_clear(&c->line);
    hone_buffer_format(&c->line, "Signature mismatch for algorithm '%s'", c->sides[0].signature->name);
    if (name != NULL) hone_buffer_format(&c->line, " parameter '%s'", name);
    hone_buffer_format(&c->line, ": %s: %s", what, hone_buffer_string(&c->words));
    c->failed = c->failed || c->line.failed || c->words.failed;
    if (c->report != NULL && !c->failed) c->report(c->ctx, c->line.data);
    hone_buffer_clear(&c->words);
}

static void say_texts(comparison *c, const char *what, const char *name, const char *a, const char *b)
{
    if (strcmp(a, b) == 0) return;
    hone_buffer_format(&c->words, "%s against %s", a, b);
    say(c, what, name);
}

// With numbers in place of the dims that an expression names.
static void write_default(side *s, const hone_call_parameter *p, hone_buffer *out, hone_arena *arena)
{
    const hone_dim_names names = {append_dim, s, s->without_leading};
    if (p->standard != NULL)
        hone_append_expression(out, p->standard, &names, arena);
    else if (p->shown.has_default)
        hone_append_literal(out, &p->shown.default_value);
    else
        hone_buffer_text(out, "no default");
}

static const char *shown_default(hone_buffer *text, const hone_call_parameter *p)
{
    return p->shown.default_text != NULL ? p->shown.default_text : hone_buffer_string(text);
}

static void compare_defaults(comparison *c, const hone_call_parameter *a, const hone_call_parameter *b)
{
    const hone_call_parameter *both[] = {a, b};
    hone_buffer texts[2];
    for (int i = 0; i < 2; i++) {
        hone_buffer_init(&texts[i], c->arena.allocator);
        write_default(&c->sides[i], both[i], &texts[i], &c->arena);
        c->failed = c->failed || texts[i].failed;
    }
    // As written, unless only the dims they name differ.
    const char *named[] = {shown_default(&texts[0], a), shown_default(&texts[1], b)};
    const bool alike = strcmp(named[0], named[1]) == 0;
    if (!c->failed && strcmp(hone_buffer_string(&texts[0]), hone_buffer_string(&texts[1])) != 0) {
        for (int i = 0; i < 2; i++)
            hone_buffer_format(
                &c->words, "%s%s", i == 0 ? "" : " against ", alike ? hone_buffer_string(&texts[i]) : named[i]);
        say(c, "default", a->shown.name);
    }
    hone_buffer_deinit(&texts[0]);
    hone_buffer_deinit(&texts[1]);
}

static void compare_parameter(comparison *c, const hone_call_parameter *a, const hone_call_parameter *b)
{
    write_type(&c->sides[0], a, &c->arena);
    write_type(&c->sides[1], b, &c->arena);
    c->failed = c->failed || c->sides[0].type.failed || c->sides[1].type.failed;
    if (c->failed) return; // types that were not written whole differ from each other, or do not
    say_texts(c, "name", a->shown.name, a->shown.name, b->shown.name);
    say_texts(c, "kind", a->shown.name, place(&a->shown), place(&b->shown));
    compare_defaults(c, a, b);
    const char *types[] = {hone_buffer_string(&c->sides[0].type), hone_buffer_string(&c->sides[1].type)};
    if (strcmp(types[0], types[1]) == 0) return;
    // As written, unless only the dims they name differ: "T[n]" after "T[m, n]" or after "T[n, m]".
    const bool alike = strcmp(a->shown.type_text, b->shown.type_text) == 0;
    say_texts(c, "type", a->shown.name, alike ? types[0] : a->shown.type_text, alike ? types[1] : b->shown.type_text);
}

static bool has(const side *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->kept[i]->shown.name, name) == 0) return true;
    return false;
}

static void compare_counts(comparison *c)
{
    hone_buffer_format(&c->words, "%zu against %zu", c->sides[0].count, c->sides[1].count);
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < c->sides[i].count; k++) {
            const char *name = c->sides[i].kept[k]->shown.name;
            if (!has(&c->sides[1 - i], name))
                hone_buffer_format(&c->words, "; only the %s has %s", i == 0 ? "first" : "second", name);
        }
    say(c, "parameters and results", NULL);
}

bool hone_signature_compare(
    const hone_signature *a,
    const hone_signature *b,
    void (*report)(void *ctx, const char *line),
    void *ctx,
    bool *out_failed)
{
    const hone_allocator allocator = a->arena.allocator;
    comparison *c = hone_alloc(&allocator, sizeof *c);
    if (out_failed != NULL) *out_failed = c == NULL;
    if (c == NULL) return false;
    *c = (comparison){.arena = {.allocator = allocator}, .report = report, .ctx = ctx, .same = true};
    hone_buffer_init(&c->line, allocator);
    hone_buffer_init(&c->words, allocator);
    open_side(&c->sides[0], a, b, allocator);
    open_side(&c->sides[1], b, a, allocator);
    if (c->sides[0].count != c->sides[1].count)
        compare_counts(c);
    else
        for (size_t i = 0; i < c->sides[0].count; i++)
            compare_parameter(c, c->sides[0].kept[i], c->sides[1].kept[i]);
    const bool same = c->same && !c->failed;
    if (out_failed != NULL) *out_failed = c->failed;
    hone_buffer_deinit(&c->sides[0].type);
    hone_buffer_deinit(&c->sides[1].type);
    hone_buffer_deinit(&c->words);
    hone_buffer_deinit(&c->line);
    hone_arena_destroy(&c->arena);
    hone_free(&allocator, c);
    return same;
}
