// A label's key is a hash of the call's text: arguments that hash to it are the call's, and no others need be believed.
//
// The search is over few choices: which array is which parameter, and for the scalars their defaults, the constants
// that stand in the program, and what people usually say. What few people say more than a handful of at once: so
// settings are tried by how many scalars are otherwise than their default, none, then one, two, three, over all ways to
// give the arrays (iterative deepening: R. Korf, 1985). With some 20 scalars of 4 choices those are 1 + 80 + 3,000 +
// 73,000 texts a way, of which the budget pays the first 8,000 or so: a proof of up to two deviations is found, one of
// three often. A chance match is one in 2^64 a text.
#include "offline/prove.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/number.h"
#include "call/ejkernel.h"
#include "call/foreign.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHOICES_MAX = 96, DIMENSIONS_MAX = 24, DEVIATIONS_MAX = 3, FREE_MAX = 4, EXTRA_SIZE = 64 };
// What a search may cost: a few thousand texts, some tens of milliseconds.
enum { BUDGET = 24000, LEAST_BUDGET = 600, COST_OF_BIND = 1, COST_OF_TEXT = 2 };

// One thing that can be otherwise than its default: a scalar of the signature, or an argument that hone's signature
// does not have. Its choices stand in a row. Those that are free stand first and count as no deviation: truths, and the
// platform that nearly everybody names.
typedef struct dimension {
    size_t parameter;  // of the signature; SIZE_MAX: an extra
    const char *extra; // its name
    size_t first, count;
} dimension;

typedef struct choice {
    hone_value value;
    char extra[EXTRA_SIZE]; // canonical JSON
} choice;

typedef struct proof {
    const hone_allocator *allocator;
    hone_signature *signature;
    const char *operation, *key;
    dimension dimensions[DIMENSIONS_MAX];
    choice choices[CHOICES_MAX];
    size_t dimension_count, free_count, choice_count;
    hone_value values[64];
    hone_ejkernel_extra extras[DIMENSIONS_MAX];
    size_t extra_count;
    int deviations; // from the defaults, at this stage of the search
    int budget;
    hone_buffer *spec;
} proof;

// --- choices

static dimension *add_dimension(proof *p, size_t parameter, const char *extra)
{
    if (p->dimension_count == DIMENSIONS_MAX) return NULL;
    dimension *d = &p->dimensions[p->dimension_count++];
    *d = (dimension){.parameter = parameter, .extra = extra, .first = p->choice_count};
    return d;
}

static bool same_value(const hone_value *a, const hone_value *b)
{
    return a->tag == b->tag && a->as.i64 == b->as.i64;
}

static void add_value(proof *p, dimension *d, hone_value value)
{
    for (size_t i = 0; i < d->count; i++)
        if (same_value(&p->choices[d->first + i].value, &value)) return;
    if (p->choice_count == CHOICES_MAX) return;
    p->choices[p->choice_count++].value = value;
    d->count++;
}

static void add_extra(proof *p, dimension *d, const char *json)
{
    if (p->choice_count == CHOICES_MAX) return;
    snprintf(p->choices[p->choice_count++].extra, EXTRA_SIZE, "%s", json);
    d->count++;
}

// The number that somebody may have written who got this one after it was rounded to `bits` bits: the shortest decimal
// within half a unit of the last bit.
static double undo_rounding(double value, int bits)
{
    for (int digits = 1; digits < 6; digits++) {
        double unit = pow(10, floor(log10(fabs(value))) - digits + 1);
        double written = hone_number_of_float((float)(round(value / unit) * unit));
        if (fabs(written - value) <= fabs(value) * ldexp(1, -bits)) return written;
    }
    return value;
}

static void add_floats(proof *p, dimension *d, const hone_found *found)
{
    static const int precisions[] = {24, 11, 8}; // of f32, f16, bf16
    add_value(p, d, hone_of_float(1));           // leaves no trace where it multiplies
    for (size_t k = 0; k < sizeof precisions / sizeof precisions[0]; k++) {
        for (uint32_t i = 0; i < found->literal_count && d->count < 16; i++) {
            double value;
            hone_view text = found->literals[i];
            if (!hone_number_parse(text.data, text.size, &value) || value == 0 || fabs(value) > 1e30) continue;
            double written = k == 0 ? hone_number_of_float((float)value) : undo_rounding(value, precisions[k]);
            add_value(p, d, hone_of_float(written));
        }
    }
}

static bool whole_literal(const hone_found *found, uint32_t index, int64_t *out)
{
    hone_view text = found->literals[index];
    double value;
    if (hone_integer_parse(text.data, text.size, out)) return true;
    if (!hone_number_parse(text.data, text.size, &value) || value != floor(value) || fabs(value) > 1e9) return false;
    *out = (int64_t)value;
    return true;
}

static void add_integers(proof *p, dimension *d, const hone_found *found)
{
    int64_t value;
    for (uint32_t i = 0; i < found->literal_count && d->count < 16; i++)
        if (whole_literal(found, i, &value)) add_value(p, d, hone_of_int(value));
    for (value = 1; value <= 65536 && d->count < 34; value *= 2) // block and chunk sizes leave no trace of their own
        add_value(p, d, hone_of_int(value));
}

static void add_parameter(proof *p, size_t index, const hone_parameter *parameter, const hone_found *found)
{
    bool number = parameter->kind == HONE_KIND_FLOAT || parameter->kind == HONE_KIND_INT;
    dimension *d = number && !parameter->is_result ? add_dimension(p, index, NULL) : NULL;
    if (d != NULL && parameter->kind == HONE_KIND_FLOAT) add_floats(p, d, found);
    if (d != NULL && parameter->kind == HONE_KIND_INT) add_integers(p, d, found);
}

static void add_free(proof *p)
{
    dimension *d = p->operation != NULL ? add_dimension(p, SIZE_MAX, "platform") : NULL;
    if (d != NULL) add_extra(p, d, "\"xla\"");
    for (size_t i = 0; i < hone_signature_count(p->signature) && p->dimension_count < FREE_MAX; i++) {
        const hone_parameter *parameter = hone_signature_parameter(p->signature, i);
        if (parameter->kind != HONE_KIND_BOOL) continue;
        bool truth = parameter->default_value.tag == HONE_VALUE_BOOL && parameter->default_value.as.i64 != 0;
        d = add_dimension(p, i, NULL);
        if (d != NULL) add_value(p, d, hone_of_bool(!truth));
    }
    p->free_count = p->dimension_count;
}

// What ejkernel's callers say that hone's signatures do not have, likeliest first: a platform, and what the operation's
// row says.
static void add_extras(proof *p)
{
    static const char *const platforms[] = {"\"pallas\"", "\"triton\"", "\"cuda\"", "\"auto\""};
    const hone_foreign_operation *o = hone_foreign_find(HONE_FOREIGN_EJKERNEL, hone_view_of(p->operation));
    dimension *d = add_dimension(p, SIZE_MAX, "platform");
    for (size_t i = 0; d != NULL && i < sizeof platforms / sizeof platforms[0]; i++)
        add_extra(p, d, platforms[i]);
    for (size_t i = 0; o != NULL && i < sizeof o->often / sizeof *o->often && o->often[i].theirs != NULL; i++) {
        const char *name = o->often[i].theirs;
        if (d == NULL || strcmp(d->extra, name) != 0) d = add_dimension(p, SIZE_MAX, name);
        if (d != NULL) add_extra(p, d, o->often[i].json);
    }
}

// A window of two sides, [left, right], where hone has one number: its sides stand in the program.
static void add_windows(proof *p, const hone_found *found)
{
    dimension *d =
        hone_signature_find(p->signature, "sliding_window") >= 0 ? add_dimension(p, SIZE_MAX, "sliding_window") : NULL;
    for (uint32_t i = 0; d != NULL && i < found->literal_count; i++) {
        for (uint32_t k = 0; k < found->literal_count; k++) {
            int64_t left, right;
            char json[EXTRA_SIZE];
            if (!whole_literal(found, i, &left) || !whole_literal(found, k, &right) || left < 0 || right < 0) continue;
            if (d->count == 24 || left > 1 << 20 || right > 1 << 20) continue;
            snprintf(json, sizeof json, "[%d,%d]", (int)left, (int)right);
            add_extra(p, d, json);
        }
    }
}

static void add_choices(proof *p, const hone_found *found)
{
    // What is likelier to be said together stands further in front, and is tried together first.
    add_free(p);
    for (size_t i = 0; i < hone_signature_count(p->signature); i++)
        add_parameter(p, i, hone_signature_parameter(p->signature, i), found);
    if (p->operation != NULL) add_extras(p);
    if (p->operation != NULL) add_windows(p, found);
}

// --- texts

static bool hashes_to_key(proof *p, const char *text, size_t size)
{
    char key[HONE_KEY_SIZE];
    hone_hash_key(text, size, key);
    return strcmp(key, p->key) == 0;
}

// Where memory was short nothing is proved and nothing refuted: the search ends, and the spec says why.
static void end_short(proof *p)
{
    p->budget = 0;
    p->spec->failed = true;
}

static bool is_proof(proof *p, const hone_call *call)
{
    hone_buffer_clear(p->spec);
    if (p->operation == NULL) {
        hone_buffer_text(p->spec, hone_call_spec(call));
        if (p->spec->failed) end_short(p);
        return !p->spec->failed && strcmp(hone_call_key(call), p->key) == 0;
    }
    hone_status status = hone_ejkernel_call_text(p->operation, call, p->extras, p->extra_count, p->spec, NULL);
    if (status != HONE_OK) p->budget = 0; // an operation that is not known: no other arguments will help
    if (status == HONE_OUT_OF_MEMORY) end_short(p);
    return status == HONE_OK && hashes_to_key(p, hone_buffer_string(p->spec), p->spec->size);
}

static bool try_values(proof *p)
{
    hone_call *call;
    size_t count = hone_signature_count(p->signature);
    p->budget -= COST_OF_BIND;
    hone_status status = hone_call_bind(*p->allocator, p->signature, p->values, count, true, &call, NULL);
    if (status == HONE_OUT_OF_MEMORY) end_short(p);
    if (status != HONE_OK) return false;
    p->budget -= COST_OF_TEXT;
    bool proved = is_proof(p, call);
    hone_call_release(&call);
    return proved;
}

// Takes a choice of a dimension, or with NULL gives its default back.
static void choose(proof *p, const dimension *d, const choice *c)
{
    if (d->extra != NULL && c != NULL)
        p->extras[p->extra_count++] = (hone_ejkernel_extra){d->extra, c->extra};
    else if (d->extra != NULL)
        p->extra_count--;
    else
        p->values[d->parameter] = c != NULL ? c->value : hone_of_none();
}

// Exactly `deviations` of the dimensions from `first` on are otherwise than their default. Recursion is DEVIATIONS_MAX
// deep.
static bool try_deviations(proof *p, size_t first, int deviations)
{
    hone_assert(deviations >= 0 && deviations <= DEVIATIONS_MAX);
    if (deviations == 0) return try_values(p);
    for (size_t i = first; i < p->dimension_count; i++) {
        const dimension *d = &p->dimensions[i];
        for (size_t k = 0; k < d->count && p->budget > 0; k++) {
            choose(p, d, &p->choices[d->first + k]);
            bool proved = try_deviations(p, i + 1, deviations - 1);
            choose(p, d, NULL);
            if (proved) return true;
        }
    }
    return false;
}

static bool binds(proof *p)
{
    hone_call *call;
    size_t count = hone_signature_count(p->signature);
    p->budget -= COST_OF_BIND;
    hone_status status = hone_call_bind(*p->allocator, p->signature, p->values, count, true, &call, NULL);
    if (status == HONE_OUT_OF_MEMORY) end_short(p);
    if (status != HONE_OK) return false;
    hone_call_release(&call);
    return true;
}

// Every setting of the free dimensions, which have one choice each. Types may hang on truths ("if transpose_b"), but on
// no number:
// arrays that do not fit now will not fit with other numbers.
static bool try_free(proof *p)
{
    hone_assert(p->free_count <= FREE_MAX);
    for (uint32_t mask = 0; mask < 1u << p->free_count && p->budget > 0; mask++) {
        for (size_t i = 0; i < p->free_count; i++)
            if (mask >> i & 1) choose(p, &p->dimensions[i], &p->choices[p->dimensions[i].first]);
        bool proved = binds(p) && try_deviations(p, p->free_count, p->deviations);
        for (size_t i = 0; i < p->free_count; i++)
            if (mask >> i & 1) choose(p, &p->dimensions[i], NULL);
        if (proved) return true;
    }
    return false;
}

static bool try_arguments(void *ctx, const hone_value *values, size_t count)
{
    proof *p = ctx;
    if (count > sizeof p->values / sizeof p->values[0] || p->budget <= 0) return false;
    memcpy(p->values, values, count * sizeof *values);
    return try_free(p);
}

bool hone_prove(
    const hone_allocator *allocator,
    hone_signature *signature,
    const hone_found *found,
    const char *operation,
    const char *key,
    int *patience,
    hone_buffer *out_spec)
{
    int budget = *patience >= BUDGET ? BUDGET : LEAST_BUDGET;
    proof p = {
        .allocator = allocator,
        .signature = signature,
        .operation = operation,
        .key = key,
        .budget = budget,
        .spec = out_spec,
    };
    add_choices(&p, found);
    bool proved = false;
    for (; p.deviations <= DEVIATIONS_MAX && p.budget > 0 && !proved; p.deviations++)
        proved = hone_arguments_try(signature, found, true, try_arguments, &p);
    *patience -= budget - (p.budget > 0 ? p.budget : 0);
    return proved;
}
