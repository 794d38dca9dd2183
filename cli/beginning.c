#include "beginning.h"

#include <stdio.h>
#include <string.h>

// The kinds of what a function takes, as far as a list of arguments tells them apart.
typedef enum kind { TENSOR, INTEGER, NUMBER, TRUTH, TEXT, INTEGERS, OTHER } kind;

typedef struct taken {
    kind kind;
    bool is_optional;
} taken;

enum { MOST = 64 };

typedef struct list {
    taken items[MOST];
    size_t count, returned; // results that it returns
} list;

// What the library says of the type --------------------------------------------------------------------------------

static kind kind_named(const char *type)
{
    static const struct {
        const char *name;
        kind kind;
    } known[] = {{"DLTensor*", TENSOR}, {"ffi.Tensor", TENSOR}, {"Tensor", TENSOR},      {"int", INTEGER},
                 {"float", NUMBER},     {"bool", TRUTH},        {"ffi.String", TEXT},    {"str", TEXT},
                 {"const char*", TEXT}, {"std::string", TEXT},  {"ffi.Shape", INTEGERS}, {"ffi.Array", INTEGERS}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, type) == 0) return known[i].kind;
    return OTHER;
}

static taken taken_of(const json_t *type)
{
    const char *name = json_string_value(json_object_get(type, "type"));
    if (name == NULL) return (taken){OTHER, false};
    if (strcmp(name, "Optional") != 0) return (taken){kind_named(name), false};
    taken inner = taken_of(json_array_get(json_object_get(type, "args"), 0));
    inner.is_optional = true;
    return inner;
}

// Of tvm-ffi 0.1: "named_args" with "params" and "return", or "args" whose first is what it returns.
static bool read_schema(const json_t *schema, list *out)
{
    const json_t *named = json_object_get(schema, "named_args");
    const json_t *types = named != NULL ? json_object_get(named, "params") : json_object_get(schema, "args");
    const json_t *returned =
        named != NULL ? json_array_get(json_object_get(named, "return"), 0) : json_array_get(types, 0);
    const size_t first = named != NULL ? 0 : 1;
    if (!json_is_array(types) || returned == NULL || json_array_size(types) > MOST) return false;
    const taken result = taken_of(returned);
    *out = (list){.returned = result.kind == TENSOR || result.kind == INTEGERS ? 1 : 0};
    for (size_t i = first; i < json_array_size(types); i++)
        out->items[out->count++] = taken_of(json_array_get(types, i));
    return true;
}

// Arguments ---------------------------------------------------------------------------------------------------------

// The next parameter of the signature of one of these kinds, from *at on; NULL: there is none.
static const hone_parameter *next_of(const hone_signature *signature, kind wanted, size_t *at)
{
    while (*at < hone_signature_count(signature)) {
        const hone_parameter *parameter = hone_signature_parameter(signature, (*at)++);
        const bool fits = wanted == TENSOR    ? parameter->kind == HONE_KIND_TENSOR
                          : wanted == INTEGER ? parameter->kind == HONE_KIND_INT
                          : wanted == NUMBER  ? parameter->kind == HONE_KIND_FLOAT
                          : wanted == TRUTH   ? parameter->kind == HONE_KIND_BOOL
                                              : parameter->kind == HONE_KIND_STRING;
        if (fits) return parameter;
    }
    return NULL;
}

static void add(cli_text *out, const char *format, const char *name)
{
    if (out->size > 0) cli_text_put(out, ", ");
    cli_text_format(out, format, name);
}

// What is passed where the signature has nothing of that kind left.
static const char *otherwise(const taken *item)
{
    static const char *const values[] = {"scratch", "i64(0)", "f64(0.0)", "bool(false)", "text('')", "[1]", "none"};
    return item->is_optional ? "none" : values[item->kind];
}

// Tensors and scalars in the signature's order, each kind for itself. False: scratch memory is among them.
static bool write_arguments(const hone_signature *signature, const list *types, cli_text *out)
{
    static const char *const formats[] = {"%s", "i64(%s)", "f64(%s)", "bool(%s)", "text(%s)"};
    size_t at[TEXT + 1] = {0};
    bool needs_scratch = false;
    for (size_t i = 0; i < types->count; i++) {
        const taken *item = &types->items[i];
        const bool is_matched = item->kind <= TEXT && !item->is_optional;
        const hone_parameter *parameter = is_matched ? next_of(signature, item->kind, &at[item->kind]) : NULL;
        if (parameter != NULL && types->returned > 0 && parameter->is_result) parameter = NULL;
        needs_scratch = needs_scratch || (parameter == NULL && item->kind == TENSOR && !item->is_optional);
        add(out, parameter != NULL ? formats[item->kind] : "%s", parameter != NULL ? parameter->name : otherwise(item));
    }
    for (size_t i = 0, written = 0; types->returned > 0 && i < hone_signature_count(signature); i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        if (!parameter->is_result) continue;
        cli_text_format(out, written++ == 0 ? " -> %s" : ", %s", parameter->name);
    }
    return !needs_scratch;
}

// The signature's own values where nothing is known of the function.
static void guess(const hone_signature *signature, list *out)
{
    *out = (list){.count = 0};
    for (size_t i = 0; i < hone_signature_count(signature) && i < MOST; i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        const kind of[] = {
            [HONE_KIND_TENSOR] = TENSOR,
            [HONE_KIND_INT] = INTEGER,
            [HONE_KIND_FLOAT] = NUMBER,
            [HONE_KIND_BOOL] = TRUTH,
            [HONE_KIND_STRING] = TEXT};
        out->items[out->count++] = (taken){of[parameter->kind], false};
    }
}

// An algorithm of its own -------------------------------------------------------------------------------------------

// A first signature: tensors of one shape, the last of which is the result unless it is returned; scalars behind them.
static void write_signature(const char *function, const list *types, cli_text *out)
{
    static const char *const scalars[] = {"", ": i64 = 0", ": f64 = 0.0", ": bool = false", ": str = none"};
    size_t tensors = 0, written = 0;
    for (size_t i = 0; i < types->count; i++)
        tensors += types->items[i].kind == TENSOR && !types->items[i].is_optional;
    const size_t parameters = types->returned > 0 || tensors == 0 ? tensors : tensors - 1;
    cli_text_format(out, "%s(", function);
    for (size_t i = 0; i < parameters; i++)
        cli_text_format(out, "%sx%zu: T[...]", i == 0 ? "" : ", ", i);
    for (size_t i = 0; i < types->count; i++) {
        const kind of = types->items[i].kind;
        if (of == TENSOR || of > TRUTH) continue;
        cli_text_format(out, "%sa%zu%s", written > 0 ? ", " : parameters > 0 ? ", *, " : "*, ", written, scalars[of]);
        written++;
    }
    cli_text_put(out, ") -> y: T[...] where T in f32");
}

json_t *cli_begin_kernel(hone_cli *cli, const char *function, const json_t *schema, json_t **out_algorithm)
{
    const hone_allocator system = hone_allocator_system();
    hone_error err;
    cli_text text, arguments;
    hone_signature *own = NULL;
    list types = {.count = 3, .items = {{TENSOR, false}, {TENSOR, false}, {TENSOR, false}}};
    cli_text_init(&text);
    cli_text_init(&arguments);
    *out_algorithm = NULL;
    const bool is_known = schema != NULL && read_schema(schema, &types);
    const hone_op *op = hone_op_find(cli->rt, function, &err);
    const hone_signature *signature = op != NULL ? hone_op_signature(op) : NULL;
    if (op == NULL) {
        write_signature(function, &types, &text);
        if (hone_signature_parse(system, cli_text_string(&text), &own, &err) == HONE_OK) signature = own;
        *out_algorithm = json_pack("{s:s}", "signature", cli_text_string(&text));
    } else if (!is_known) {
        guess(signature, &types);
    }
    const bool has_scratch = signature != NULL && !write_arguments(signature, &types, &arguments);
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:s}", "algorithm", function, "name", function, "entry", function, "arguments",
        cli_text_string(&arguments));
    if (has_scratch) json_object_set_new(row, "scratch", json_integer(1 << 20));
    json_object_set_new(
        row, "description",
        json_string(
            is_known ? "begun from the types of the function: look at the order of its arguments, and at signature"
                     : "begun from the function's name alone: say what it takes in arguments, and look at signature"));
    hone_signature_release(&own);
    cli_text_deinit(&text);
    cli_text_deinit(&arguments);
    return row;
}
