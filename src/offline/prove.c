// A label's key is a hash of the call's text: arguments that hash to it are the call's, and no others need be believed.
//
// The text is a list of parameters, each with one JSON value. Which array is which parameter comes from the types that
// the call reads; every other parameter has choices: what the signature and the row of the operation say is usual, the
// constants that stand in the program, and what follows from dims, as 1/sqrt(dim). A choice costs 0 to 4, the less
// likely the more; texts are tried by rising cost (iterative deepening: R. Korf, 1985) until one hashes to the key or
// the budget is spent. Some 400,000 texts are hashed a second. A chance match is one in 2^64 a text.
#include "offline/prove.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/number.h"
#include "call/call.h"
#include "call/ejkernel.h"
#include "call/signature.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_MAX = 80,
    CHOICES_MAX = 2048,
    WAYS_MAX = 24,     // to give the arrays to the required parameters
    OPTIONAL_MAX = 10, // arrays that may be none
    GUESSES_MAX = 16,
    TRUTHS_MAX = 3,
    COST_MAX = 7,
    TEXT_SIZE = 16384
};
enum { BUDGET = 400000, LEAST_BUDGET = 300 };
// Whole numbers that may leave no trace in a program: sizes of chunks and blocks.
enum { UNSEEN_MOST = 4096, COST_OF_UNSEEN = 4 };
// Numbers that one rounded number may have been.
enum { ROUNDED_MAX = 64 };
enum { COST_OF_LEFT = 2, LEFT_MAX = 2, COST_OF_UNREAD = 2 };

typedef struct choice {
    const char *json;
    uint8_t cost;
    bool partial; // what is said by default all the same: only where the text has but what was said
} choice;

// One parameter of the text.
typedef struct slot {
    const char *name;
    size_t parameter; // of the signature; SIZE_MAX: of the row's values
    const char *standard, *json;
    size_t first, count; // choices, cheapest first
    bool required;       // an array that is always there
    bool only_given;     // a text that names all parameters leaves it out at its default
    bool unseen;         // a whole number, which may be any
} slot;

// An array that a parameter which may be none can be.
typedef struct guess {
    size_t slot;
    int array; // of the types that the call reads; -1: it reads none like it
    const char *json;
} guess;

// One way to give arrays to parameters.
typedef struct way {
    const char *arrays[SLOTS_MAX];   // JSON of the required ones, by slot
    const char *defaults[SLOTS_MAX]; // of defaults that dims say: "1 / sqrt(dim)"
    bool has_defaults;
    guess guesses[GUESSES_MAX];
    size_t guess_count;
    uint32_t used, all; // types that the required arrays are of, and all that are read: bits
} way;

// How much of a call its text has: all parameters by name, or what was said, with the arrays by position or by name.
typedef enum form { FORM_WHOLE, FORM_POSITIONAL, FORM_SAID, FORMS } form;

typedef struct proof {
    const hone_prove_question *question;
    const hone_allocator *allocator;
    hone_arena texts;
    slot slots[SLOTS_MAX];         // as the text has them: sorted by name
    size_t order[SLOTS_MAX];       // slots with choices, in the order in which they are tried
    size_t optional[OPTIONAL_MAX]; // slots of arrays that may be none
    size_t positions[SLOTS_MAX];   // slots of the required arrays, in the signature's order
    size_t slot_count, order_count, optional_count, position_count;
    choice choices[CHOICES_MAX];
    size_t choice_count;
    way ways[WAYS_MAX];
    size_t way_count;
    form form;
    int budget;
    bool failed; // memory was short
    char text[TEXT_SIZE];
    size_t text_size;
} proof;

// --- slots

static const char *keep(proof *p, const char *text, size_t size)
{
    const char *kept = hone_arena_text(&p->texts, text, size);
    p->failed |= kept == NULL;
    return kept != NULL ? kept : "";
}

static const char *json_of(proof *p, const json_t *value)
{
    hone_buffer text;
    hone_buffer_init(&text, *p->allocator);
    hone_json_canonical(&text, value);
    p->failed |= text.failed;
    const char *kept = keep(p, hone_buffer_string(&text), text.size);
    hone_buffer_deinit(&text);
    return kept;
}

static const char *json_of_value(proof *p, const hone_value *value)
{
    char number[HONE_NUMBER_SIZE];
    switch (value->tag) {
    case HONE_VALUE_BOOL:
        return value->as.i64 != 0 ? "true" : "false";
    case HONE_VALUE_INT:
        snprintf(number, sizeof number, "%lld", (long long)value->as.i64);
        return keep(p, number, strlen(number));
    case HONE_VALUE_FLOAT:
        hone_number_print(value->as.f64, number);
        return keep(p, number, strlen(number));
    case HONE_VALUE_STRING: {
        json_t *text = json_string(value->as.string);
        const char *json = json_of(p, text);
        json_decref(text);
        return json;
    }
    default:
        return "null";
    }
}

static slot *add_slot(proof *p, const char *name, size_t parameter, const char *standard)
{
    if (p->slot_count == SLOTS_MAX) return NULL;
    slot *s = &p->slots[p->slot_count++];
    *s = (slot){.name = name, .parameter = parameter, .standard = standard, .json = standard};
    return s;
}

static const json_t *values_of(const proof *p, const char *name)
{
    return p->question->row != NULL ? json_object_get(p->question->row->values, name) : NULL;
}

static void add_signature(proof *p)
{
    const hone_signature *signature = p->question->signature;
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        if (parameter->is_result || parameter->role == HONE_ROLE_IGNORE) continue;
        slot *s = add_slot(p, parameter->name, i, json_of_value(p, &parameter->default_value));
        if (s == NULL) continue;
        s->required = parameter->kind == HONE_KIND_TENSOR && !parameter->nullable;
        s->only_given = parameter->role == HONE_ROLE_GIVEN;
    }
}

static void add_values(proof *p)
{
    const char *name;
    json_t *values;
    if (p->question->row == NULL) {
        if (p->question->foreign) add_slot(p, "platform", SIZE_MAX, "null");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)p->question->row->values, name, values)
    {
        if (hone_signature_find(p->question->signature, name) < 0)
            add_slot(p, name, SIZE_MAX, json_of(p, json_array_get(values, 0)));
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const slot *)a)->name, ((const slot *)b)->name);
}

static int by_parameter(const proof *p, size_t a, size_t b)
{
    return p->slots[a].parameter < p->slots[b].parameter ? -1 : p->slots[a].parameter > p->slots[b].parameter;
}

static void sort_slots(proof *p)
{
    qsort(p->slots, p->slot_count, sizeof *p->slots, by_name);
    for (size_t i = 0; i < p->slot_count; i++) {
        const slot *s = &p->slots[i];
        const hone_parameter *parameter =
            s->parameter != SIZE_MAX ? hone_signature_parameter(p->question->signature, s->parameter) : NULL;
        if (s->required) {
            size_t at = p->position_count++;
            for (; at > 0 && by_parameter(p, p->positions[at - 1], i) > 0; at--)
                p->positions[at] = p->positions[at - 1];
            p->positions[at] = i;
        } else if (parameter != NULL && parameter->kind == HONE_KIND_TENSOR) {
            if (p->optional_count < OPTIONAL_MAX) p->optional[p->optional_count++] = i;
        }
    }
}

// --- choices

static void add_choice(proof *p, slot *s, const char *json, uint8_t cost, bool partial)
{
    if (p->choice_count == CHOICES_MAX || json == NULL) return;
    hone_assert(s->count == 0 || s->first + s->count == p->choice_count);
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(p->choices[s->first + i].json, json) == 0) return;
    if (!partial && strcmp(json, s->standard) == 0) return;
    p->choices[p->choice_count++] = (choice){json, cost, partial};
    s->count++;
}

static void add_number(proof *p, slot *s, double value, uint8_t cost)
{
    char number[HONE_NUMBER_SIZE];
    if (!(fabs(value) <= 1e30)) return;
    hone_number_print(value, number);
    add_choice(p, s, keep(p, number, strlen(number)), cost, false);
}

static void add_integer(proof *p, slot *s, int64_t value, uint8_t cost)
{
    char number[HONE_NUMBER_SIZE];
    snprintf(number, sizeof number, "%lld", (long long)value);
    add_choice(p, s, keep(p, number, strlen(number)), cost, false);
}

static bool is_rounded(double exact, double rounded, int bits)
{
    return fabs(exact - rounded) <= fabs(exact) * ldexp(1, -bits);
}

// Whole-number expressions that give what the program shows as f32: 1/sqrt(n), n**-0.5, 1/n, sqrt(n).
static void add_expressions_of(proof *p, slot *s, double value)
{
    const double square = round(1 / (value * value)), inverse = round(1 / value), root = round(value * value);
    if (square >= 2 && square <= 65536 && is_rounded(1 / sqrt(square), value, 24)) {
        add_number(p, s, 1 / sqrt(square), 1);
        add_number(p, s, pow(square, -0.5), 1);
    }
    if (inverse >= 2 && inverse <= 65536 && is_rounded(1 / inverse, value, 24)) add_number(p, s, 1 / inverse, 1);
    if (root >= 2 && root <= 65536 && is_rounded(sqrt(root), value, 24)) add_number(p, s, sqrt(root), 2);
}

// What people make of a dim, whatever the program shows of it: a factor may have been taken into another.
static void add_expressions_of_dims(proof *p, slot *s, const int64_t *dims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double dim = (double)dims[i];
        add_number(p, s, 1 / sqrt(dim), 2);
        add_number(p, s, pow(dim, -0.5), 2);
        add_number(p, s, (double)(float)(1 / sqrt(dim)), 2); // in f32: which rounds otherwise by the way it was taken
        add_number(p, s, (double)nextafterf((float)(1 / sqrt(dim)), 1), 2);
        add_number(p, s, (double)nextafterf((float)(1 / sqrt(dim)), 0), 2);
        add_number(p, s, 1 / dim, 3);
        add_number(p, s, 1 / sqrt(2 * dim), 3);
    }
}

// The number of so many bits that the program wrote with some seven digits; NAN if it is not a number.
static double of_bits(double value, int bits)
{
    int exponent;
    const double mantissa = frexp(value, &exponent), rounded = ldexp(round(ldexp(mantissa, bits)), exponent - bits);
    return fabs(rounded - value) <= fabs(value) * 1e-6 ? rounded : (double)NAN;
}

// Adds the decimals of so many digits between two numbers.
static void add_decimals(proof *p, slot *s, double low, double high, int digits, uint8_t cost)
{
    const int place = digits - 1 - (int)floor(log10(high));
    const double unit = pow(10, place), first = ceil(low * unit), last = floor(high * unit);
    char text[HONE_NUMBER_SIZE];
    double value;
    for (double whole = first; whole <= last && whole < first + ROUNDED_MAX; whole++) {
        snprintf(text, sizeof text, "%.0fe%d", whole, -place);
        if (hone_number_parse(text, strlen(text), &value)) add_number(p, s, value, cost);
    }
}

// The numbers that somebody may have written who got this one after it was rounded to `bits` bits.
static void add_rounded(proof *p, slot *s, double value, int bits)
{
    const double exact = of_bits(value, bits), low = exact * (1 - ldexp(1, -bits)),
                 high = exact * (1 + ldexp(1, -bits));
    if (!(exact > 0) || exact == floor(exact)) return;
    for (int digits = 1; digits <= 2 + (bits < 11); digits++)
        add_decimals(p, s, low, high, digits, 2);
    const double first = ceil(1 / (high * high)), last = floor(1 / (low * low));
    for (double n = first; n <= last && n <= 65536 && n < first + ROUNDED_MAX; n++) {
        add_number(p, s, 1 / sqrt(n), 3);
        add_number(p, s, pow(n, -0.5), 3);
    }
    for (double n = ceil(1 / high); n <= floor(1 / low) && n <= 65536 && n < ceil(1 / high) + ROUNDED_MAX; n++)
        add_number(p, s, 1 / n, 3);
    add_decimals(p, s, low, high, 4, 4);
}

static bool float_literal(const proof *p, uint32_t index, double *out)
{
    const hone_view text = p->question->found->literals[index];
    return hone_number_parse(text.data, text.size, out) && *out != 0 && fabs(*out) <= 1e30;
}

static void add_floats(proof *p, slot *s, const int64_t *dims, size_t dim_count)
{
    const hone_found *found = p->question->found;
    double value;
    for (uint32_t i = 0; i < found->literal_count; i++) {
        if (!float_literal(p, i, &value)) continue;
        add_number(p, s, hone_number_of_float((float)value), 1);
        add_expressions_of(p, s, value);
        add_number(p, s, (double)(float)value, 2);
    }
    add_number(p, s, 1, 1); // leaves no trace where it multiplies
    add_expressions_of_dims(p, s, dims, dim_count);
    for (uint32_t i = 0; i < found->literal_count; i++) {
        if (!float_literal(p, i, &value)) continue;
        add_rounded(p, s, value, 11); // f16
        add_rounded(p, s, value, 8);  // bf16
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

static bool is_window(const proof *p, const char *name)
{
    const json_t *windows = p->question->row != NULL ? p->question->row->windows : NULL;
    for (size_t i = 0; i < json_array_size(windows); i++)
        if (strcmp(json_string_value(json_array_get(windows, i)), name) == 0) return true;
    return false;
}

static void add_integers(proof *p, slot *s)
{
    const hone_found *found = p->question->found;
    int64_t value;
    for (uint32_t i = 0; i < found->literal_count; i++)
        if (whole_literal(found, i, &value)) add_integer(p, s, value, 1);
    add_integer(p, s, 0, 2);
    for (value = 1; value <= 65536; value *= 2)
        add_integer(p, s, value, 2);
    s->unseen = !is_window(p, s->name);
}

// A window of two sides, [left, right]: those stand in the program, but for what is 0 or reaches over all keys.
static void add_windows(proof *p, slot *s)
{
    const hone_found *found = p->question->found;
    int64_t sides[HONE_LITERALS_MAX + 2] = {0, 1};
    size_t count = 2;
    for (uint32_t i = 0; i < found->literal_count; i++)
        if (whole_literal(found, i, &sides[count]) && sides[count] > 1 && sides[count] <= 1 << 20) count++;
    for (int cost = 1; cost < 3; cost++) {
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < count; k++) {
                char json[64];
                if ((cost == 1) != (k < 2 || i == k)) continue; // most look to the left alone
                snprintf(json, sizeof json, "[%lld,%lld]", (long long)sides[i], (long long)sides[k]);
                add_choice(p, s, keep(p, json, strlen(json)), (uint8_t)cost, false);
            }
        }
    }
}

// What a row lists, the first ones likelier; platforms are named by nearly everybody.
static void add_listed(proof *p, slot *s)
{
    const json_t *values = values_of(p, s->name);
    const bool platform = strcmp(s->name, "platform") == 0;
    if (platform && values == NULL) add_choice(p, s, "\"xla\"", 0, false);
    for (size_t i = 0; i < json_array_size(values); i++)
        add_choice(p, s, json_of(p, json_array_get(values, i)), platform && i == 1 ? 0 : i < 2 ? 1 : 2, false);
}

static void add_choices_of(proof *p, slot *s, const int64_t *dims, size_t dim_count)
{
    s->first = p->choice_count;
    const hone_parameter *parameter =
        s->parameter != SIZE_MAX ? hone_signature_parameter(p->question->signature, s->parameter) : NULL;
    const hone_kind kind = parameter != NULL ? parameter->kind : HONE_KIND_STRING;
    if (kind == HONE_KIND_TENSOR) return;
    if (kind == HONE_KIND_BOOL) {
        const bool usual = strcmp(s->standard, "true") != 0; // what is off by default is on as often
        add_choice(p, s, usual ? "true" : "false", usual ? 0 : 2, false);
    }
    add_listed(p, s);
    if (kind == HONE_KIND_FLOAT) add_floats(p, s, dims, dim_count);
    if (is_window(p, s->name)) add_windows(p, s);
    if (kind == HONE_KIND_INT) add_integers(p, s);
    // What is said though it is the default: only where the text has but what was said.
    if (p->question->foreign) add_choice(p, s, keep(p, s->standard, strlen(s->standard)), 1, true);
}

static size_t distinct_dims(const proof *p, int64_t out[16])
{
    size_t count = 0;
    const hone_found *found = p->question->found;
    for (uint32_t v = 0; v < found->view_count; v++) {
        for (uint32_t i = 0; i < found->views[v].count; i++) {
            hone_array array;
            if (!hone_array_read(found->views[v].types[i], &array) || array.ndim == 0) continue;
            const int64_t dim = array.dims[array.ndim - 1]; // a vector's length: what scales hang on
            size_t k = 0;
            while (k < count && out[k] != dim)
                k++;
            if (k == count && count < 4 && dim > 1) out[count++] = dim;
        }
    }
    return count;
}

static void add_choices(proof *p)
{
    int64_t dims[16];
    const size_t dim_count = distinct_dims(p, dims);
    for (size_t i = 0; i < p->slot_count; i++) {
        slot *s = &p->slots[i];
        add_choices_of(p, s, dims, dim_count);
        if (s->count > 0) p->order[p->order_count++] = i;
    }
}

// Those alone that cost nothing: most calls say no more, and need no others to be made up.
static void add_free_choices(proof *p)
{
    for (size_t i = 0; i < p->slot_count; i++) {
        slot *s = &p->slots[i];
        const bool is_truth = s->parameter != SIZE_MAX &&
                              hone_signature_parameter(p->question->signature, s->parameter)->kind == HONE_KIND_BOOL;
        s->first = p->choice_count;
        if (is_truth && strcmp(s->standard, "false") == 0) add_choice(p, s, "true", 0, false);
        if (strcmp(s->name, "platform") == 0) add_choice(p, s, "\"xla\"", 0, false);
        if (s->count > 0) p->order[p->order_count++] = i;
    }
}

static void forget_choices(proof *p)
{
    p->choice_count = p->order_count = 0;
    for (size_t i = 0; i < p->slot_count; i++)
        p->slots[i].count = 0;
}

// --- arrays

static const char *json_of_array(proof *p, const hone_array *array)
{
    hone_buffer text;
    hone_buffer_init(&text, *p->allocator);
    const hone_dtype_info *info = hone_dtype_find(array->dtype);
    hone_buffer_format(&text, "{\"dtype\":\"%s\",\"shape\":[", info != NULL ? info->numpy_name : "?");
    hone_buffer_integers(&text, array->dims, (size_t)array->ndim);
    hone_buffer_text(&text, "]}");
    p->failed |= text.failed;
    const char *kept = keep(p, hone_buffer_string(&text), text.size);
    hone_buffer_deinit(&text);
    return kept;
}

// The dtypes that a parameter's type may be, one bit each; 0: any.
static uint32_t variable_of(const hone_signature *signature, size_t parameter)
{
    const hone_call_parameter *p = &signature->parameters[parameter];
    return p->dtype != NULL ? 1u << p->dtype->id : signature->variables[p->variable].allowed;
}

static bool binds(proof *p, const hone_value *values, size_t count)
{
    hone_call *call;
    hone_status status = hone_call_bind(*p->allocator, p->question->signature, values, count, true, &call, NULL);
    p->failed |= status == HONE_OUT_OF_MEMORY;
    if (status != HONE_OK) return false;
    hone_call_release(&call);
    return true;
}

// Types may hang on truths ("if transpose_b"): those that make the arrays fit are left in the values.
static bool fits_some_truths(proof *p, hone_value *values, size_t count)
{
    size_t truths[TRUTHS_MAX], truth_count = 0;
    for (size_t i = 0; i < count && truth_count < TRUTHS_MAX; i++) {
        const hone_parameter *parameter = hone_signature_parameter(p->question->signature, i);
        if (parameter->kind == HONE_KIND_BOOL) truths[truth_count++] = i;
    }
    for (uint32_t set = 0; set < 1u << truth_count; set++) {
        for (size_t i = 0; i < truth_count; i++)
            values[truths[i]] = set == 0 ? hone_of_none() : hone_of_bool(set >> i & 1);
        if (binds(p, values, count)) return true;
    }
    return false;
}

static bool is_array(const hone_value *value, const hone_array *array)
{
    const hone_tensor *t = value->tag == HONE_VALUE_TENSOR ? value->as.tensor : NULL;
    return t != NULL && t->ndim == array->ndim && memcmp(&t->dtype, &array->dtype, sizeof t->dtype) == 0 &&
           memcmp(t->shape, array->dims, (size_t)t->ndim * sizeof *t->shape) == 0;
}

// An array for a parameter that may be none. One that nobody else takes is likelier. Returns which it is; -1: none fits.
static int find_optional(
    proof *p,
    hone_value *values,
    size_t count,
    size_t parameter,
    const hone_array *arrays,
    size_t array_count,
    uint32_t used)
{
    int fits = -1;
    for (size_t a = 0; a < array_count && a < 32; a++) {
        hone_array copy = arrays[a];
        hone_tensor tensor = {
            .device = {HONE_DEVICE_CPU, 0}, .ndim = copy.ndim, .dtype = copy.dtype, .shape = copy.dims};
        if (fits >= 0 && (used >> copy.source & 1)) continue;
        values[parameter] = hone_of_tensor(&tensor);
        if (binds(p, values, count) && (fits < 0 || (used >> arrays[fits].source & 1))) fits = (int)a;
        values[parameter] = hone_of_none();
    }
    return fits;
}

static void add_guess(way *w, size_t which, int array, const char *json)
{
    if (w->guess_count < GUESSES_MAX) w->guesses[w->guess_count++] = (guess){which, array, json};
}

// An array of a parameter that the call does not read: what it says else may have made it needless. Dims that nothing
// tells are those of the first array, or 1, which stands for all.
static void add_unread(proof *p, way *w, hone_value *values, size_t count, size_t which)
{
    const size_t parameter = p->slots[which].parameter;
    const hone_shape_pattern *shape = p->question->signature->parameters[parameter].shape;
    const hone_tensor *first = values[p->slots[p->positions[0]].parameter].as.tensor;
    const uint32_t allowed = variable_of(p->question->signature, parameter);
    hone_call *call;
    if (shape == NULL || shape->ellipsis || shape->count != 4 || first->ndim != 4 || allowed == 0) return;
    if (hone_call_bind(*p->allocator, p->question->signature, values, count, true, &call, NULL) != HONE_OK) return;
    for (int heads = 0; heads < 2; heads++) {
        hone_array array = {.dtype = hone_dtype_of((hone_dtype_id)__builtin_ctz(allowed)), .ndim = 4};
        const int64_t usual[] = {first->shape[0], heads ? first->shape[2] : 1};
        bool known = true;
        for (uint32_t i = 0; i < shape->count; i++) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)shape->dims[i].text.size, shape->dims[i].text.data);
            if (hone_call_dim(call, name, &array.dims[i]) != HONE_OK) {
                known &= i < 2;
                array.dims[i] = usual[i < 2 ? i : 0];
            }
        }
        if (known) add_guess(w, which, -1, json_of_array(p, &array));
    }
    hone_call_release(&call);
}

// What a function writes into its text who works out a default before it does.
static void add_defaults(proof *p, way *w, const hone_value *values, size_t count)
{
    const hone_signature *signature = p->question->signature;
    hone_call *call;
    if (hone_call_bind(*p->allocator, p->question->signature, values, count, true, &call, NULL) != HONE_OK) return;
    for (size_t i = 0; i < p->slot_count; i++) {
        const size_t parameter = p->slots[i].parameter;
        if (parameter == SIZE_MAX || signature->parameters[parameter].standard == NULL) continue;
        w->defaults[i] = json_of_value(p, &hone_call_defaults(call)[parameter]);
        w->has_defaults = true;
    }
    hone_call_release(&call);
}

// One way to give the required arrays, and what could be the others.
static bool add_way(void *ctx, const hone_value *given, size_t count, const hone_array *arrays, size_t array_count)
{
    proof *p = ctx;
    hone_value values[HONE_MAX_VALUES];
    if (count > HONE_MAX_VALUES || p->way_count == WAYS_MAX || p->failed) return true;
    memcpy(values, given, count * sizeof *values);
    if (!fits_some_truths(p, values, count)) return false;
    way *w = &p->ways[p->way_count++];
    *w = (way){.guess_count = 0};
    for (size_t a = 0; a < array_count && a < 32; a++) {
        w->all |= 1u << arrays[a].source;
        for (size_t i = 0; i < count; i++)
            if (is_array(&values[i], &arrays[a])) w->used |= 1u << arrays[a].source;
    }
    for (size_t i = 0; i < p->position_count; i++) {
        const slot *s = &p->slots[p->positions[i]];
        for (size_t a = 0; a < array_count && w->arrays[p->positions[i]] == NULL; a++)
            if (is_array(&values[s->parameter], &arrays[a])) w->arrays[p->positions[i]] = json_of_array(p, &arrays[a]);
    }
    add_defaults(p, w, values, count);
    for (size_t i = 0; i < p->optional_count; i++) {
        const size_t which = p->optional[i];
        const int fits = find_optional(p, values, count, p->slots[which].parameter, arrays, array_count, w->used);
        if (fits >= 0)
            add_guess(w, which, (int)arrays[fits].source, json_of_array(p, &arrays[fits]));
        else
            add_unread(p, w, values, count, which);
    }
    return false;
}

// --- texts

static void put(proof *p, const char *text)
{
    const size_t size = strlen(text);
    if (p->text_size + size >= TEXT_SIZE) return;
    memcpy(p->text + p->text_size, text, size);
    p->text_size += size;
}

static bool is_in_text(const proof *p, const slot *s)
{
    if (p->form == FORM_WHOLE) return !s->only_given || s->json != s->standard;
    if (s->required) return p->form == FORM_SAID;
    return s->json != s->standard;
}

static void write_text(proof *p)
{
    p->text_size = 0;
    put(p, "{\"args_spec\":[");
    for (size_t i = 0; p->form == FORM_POSITIONAL && i < p->position_count; i++) {
        if (i > 0) put(p, ",");
        put(p, p->slots[p->positions[i]].json);
    }
    put(p, "],\"batch_axes\":null,\"kwargs_spec\":{");
    bool first = true;
    for (size_t i = 0; i < p->slot_count; i++) {
        const slot *s = &p->slots[i];
        if (!is_in_text(p, s)) continue;
        put(p, first ? "\"" : ",\"");
        put(p, s->name);
        put(p, "\":");
        put(p, s->json);
        first = false;
    }
    put(p, "},\"method\":null}");
}

static bool is_proof(proof *p)
{
    char key[HONE_KEY_SIZE];
    p->budget--;
    write_text(p);
    hone_hash_key(p->text, p->text_size, key);
    return strcmp(key, p->question->key) == 0;
}

static bool try_cost(proof *p, size_t first, int cost);

// A whole number of which the program shows nothing.
static bool try_unseen(proof *p, size_t at, int cost)
{
    slot *s = &p->slots[p->order[at]];
    char text[24];
    bool proved = false;
    for (int value = 3; value <= UNSEEN_MOST && p->budget > 0 && !proved; value++) {
        snprintf(text, sizeof text, "%d", value);
        s->json = text;
        proved = try_cost(p, at + 1, cost);
    }
    s->json = s->standard;
    return proved;
}

// Choices of the slots from `first` on that cost `cost` together. Recursion is as deep as there are slots.
static bool try_cost(proof *p, size_t first, int cost)
{
    if (cost == 0 && is_proof(p)) return true;
    for (size_t i = first; i < p->order_count; i++) {
        slot *s = &p->slots[p->order[i]];
        for (size_t k = 0; k < s->count && p->budget > 0; k++) {
            const choice *c = &p->choices[s->first + k];
            if (c->cost > cost || (c->partial && p->form == FORM_WHOLE)) continue;
            s->json = c->json;
            bool proved = try_cost(p, i + 1, cost - c->cost);
            s->json = s->standard;
            if (proved) return true;
        }
        if (s->unseen && cost >= COST_OF_UNSEEN && try_unseen(p, i, cost - COST_OF_UNSEEN)) return true;
    }
    return false;
}

// Sets of the guesses from `first` on. An array that nobody else takes is likely someone's; one that is left, or not
// read at all, is less so.
static bool try_guesses(proof *p, const way *w, size_t first, uint32_t used, int cost)
{
    const int unread = __builtin_popcount(w->all & ~used),
              left = COST_OF_LEFT * (unread < LEFT_MAX ? unread : LEFT_MAX);
    if (left <= cost && try_cost(p, 0, cost - left)) return true;
    for (size_t i = first; i < w->guess_count && p->budget > 0; i++) {
        const guess *g = &w->guesses[i];
        slot *s = &p->slots[g->slot];
        const int own = g->array < 0 ? COST_OF_UNREAD : (int)(used >> g->array & 1);
        if (s->json != s->standard || own > cost) continue;
        s->json = g->json;
        const bool proved = try_guesses(p, w, i + 1, g->array < 0 ? used : used | 1u << g->array, cost - own);
        s->json = s->standard;
        if (proved) return true;
    }
    return false;
}

static void set_standard(slot *s, const char *standard)
{
    s->standard = s->json = standard;
}

static bool try_way(proof *p, const way *w, int cost)
{
    for (size_t i = 0; i < p->position_count; i++)
        p->slots[p->positions[i]].json = w->arrays[p->positions[i]];
    return try_guesses(p, w, 0, w->used, cost);
}

// The same where defaults stand as the numbers that they are: only in a text that has what nobody said.
static bool try_spelled_way(proof *p, const way *w, int cost)
{
    if (!w->has_defaults || p->form != FORM_WHOLE) return false;
    for (size_t i = 0; i < p->slot_count; i++)
        if (w->defaults[i] != NULL) set_standard(&p->slots[i], w->defaults[i]);
    const bool proved = try_way(p, w, cost);
    for (size_t i = 0; i < p->slot_count && !proved; i++)
        if (w->defaults[i] != NULL) set_standard(&p->slots[i], "null");
    return proved;
}

static bool search(proof *p, int most)
{
    static const int costs_of_forms[FORMS] = {0, 1, 3};
    const int forms = p->question->foreign ? FORMS : 1;
    for (int cost = 0; cost <= most && p->budget > 0; cost++) {
        for (int f = 0; f < forms && costs_of_forms[f] <= cost; f++) {
            p->form = (form)f;
            for (size_t w = 0; w < p->way_count && p->budget > 0; w++)
                if (try_way(p, &p->ways[w], cost - costs_of_forms[f]) ||
                    try_spelled_way(p, &p->ways[w], cost - costs_of_forms[f]))
                    return true;
        }
    }
    return false;
}

bool hone_prove(
    const hone_allocator *allocator, const hone_prove_question *question, int *patience, hone_buffer *out_spec)
{
    const int budget = *patience >= BUDGET ? BUDGET : LEAST_BUDGET;
    proof *p = hone_alloc(allocator, sizeof *p);
    hone_buffer_clear(out_spec);
    if (p == NULL) {
        out_spec->failed = true;
        return false;
    }
    p->question = question;
    p->allocator = allocator;
    p->texts.allocator = *allocator;
    p->budget = budget;
    add_signature(p);
    add_values(p);
    sort_slots(p);
    add_free_choices(p);
    if (!p->failed) hone_arguments_try(question->signature, question->found, true, add_way, p);
    bool proved = !p->failed && search(p, 0);
    if (!proved && !p->failed) {
        forget_choices(p);
        add_choices(p);
        proved = !p->failed && search(p, COST_MAX);
    }
    if (proved) hone_buffer_append(out_spec, p->text, p->text_size);
    out_spec->failed |= p->failed;
    *patience -= budget - (p->budget > 0 ? p->budget : 0);
    hone_arena_destroy(&p->texts);
    hone_free(allocator, p);
    return proved && !out_spec->failed;
}
