// ejkernel's canonical text of its own arguments: abstractify, then json.dumps(sort_keys=True, separators=(",", ":")).
// Kinds are a table; what Python would refuse is refused here with the reason.
#include "call/ejkernel.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 200 };

static const char where[] = "ejkernel.encode";

typedef struct encoder {
    hone_buffer *out;
    hone_error *err;
    int depth;
} encoder;

static hone_status wrong(encoder *e, const char *what)
{
    return hone_fail(e->err, HONE_INVALID_ARGUMENT, where, "%s", what);
}

static hone_status encode(encoder *e, const json_t *argument);

static void append_string(hone_buffer *out, const json_t *text)
{
    hone_json_string(out, json_string_value(text), json_string_length(text));
}

// A field that must be a string.
static const json_t *text_field(const json_t *argument, const char *name)
{
    const json_t *field = json_object_get(argument, name);
    return json_is_string(field) ? field : NULL;
}

static hone_status encode_text(encoder *e, const json_t *argument, const char *field)
{
    const json_t *text = text_field(argument, field);
    if (text == NULL) return wrong(e, "the description's text is missing");
    append_string(e->out, text);
    return HONE_OK;
}

// ---- plain JSON

typedef struct member {
    const char *name;
    size_t size;
    const json_t *value;
} member;

// UTF-8 sorts by code point, as Python sorts strings.
static int by_name(const void *a, const void *b)
{
    const member *x = a, *y = b;
    const size_t common = x->size < y->size ? x->size : y->size;
    const int order = common > 0 ? memcmp(x->name, y->name, common) : 0;
    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static void json_members(hone_buffer *out, const json_t *object)
{
    json_t *unowned = (json_t *)(uintptr_t)object; // iterated only
    const size_t count = json_object_size(object);
    member *members = hone_alloc_array(&out->allocator, count, sizeof *members);
    if (members == NULL) {
        out->failed = true;
        return;
    }
    size_t at = 0;
    for (void *i = json_object_iter(unowned); i != NULL; i = json_object_iter_next(unowned, i))
        members[at++] = (member){json_object_iter_key(i), json_object_iter_key_len(i), json_object_iter_value(i)};
    qsort(members, count, sizeof *members, by_name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) hone_buffer_char(out, ',');
        hone_json_string(out, members[i].name, members[i].size);
        hone_buffer_char(out, ':');
        hone_json_canonical(out, members[i].value);
    }
    hone_free(&out->allocator, members);
}

void hone_json_canonical(hone_buffer *out, const json_t *value)
{
    char number[HONE_NUMBER_SIZE];
    switch (value == NULL ? JSON_NULL : json_typeof(value)) {
    case JSON_OBJECT:
        hone_buffer_char(out, '{');
        json_members(out, value);
        hone_buffer_char(out, '}');
        return;
    case JSON_ARRAY:
        hone_buffer_char(out, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i > 0) hone_buffer_char(out, ',');
            hone_json_canonical(out, json_array_get(value, i));
        }
        hone_buffer_char(out, ']');
        return;
    case JSON_STRING:
        append_string(out, value);
        return;
    case JSON_INTEGER:
        hone_buffer_format(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return;
    case JSON_REAL:
        hone_buffer_text(out, hone_number_print(json_real_value(value), number));
        return;
    case JSON_TRUE:
        hone_buffer_text(out, "true");
        return;
    case JSON_FALSE:
        hone_buffer_text(out, "false");
        return;
    default:
        hone_buffer_text(out, "null");
        return;
    }
}

// ---- numbers

static hone_status encode_null(encoder *e, const json_t *argument)
{
    (void)argument;
    hone_buffer_text(e->out, "null");
    return HONE_OK;
}

static hone_status encode_bool(encoder *e, const json_t *argument)
{
    const json_t *value = json_object_get(argument, "value");
    if (!json_is_boolean(value)) return wrong(e, "a bool's value is true or false");
    hone_buffer_text(e->out, json_is_true(value) ? "true" : "false");
    return HONE_OK;
}

// Decimal digits of any length, without leading zeros: Python's integers have no bound.
static bool is_decimal(const char *text)
{
    const char *digits = text[0] == '-' ? text + 1 : text;
    const size_t count = strspn(digits, "0123456789");
    return count > 0 && digits[count] == '\0' && (digits[0] != '0' || (count == 1 && digits == text));
}

static hone_status encode_int(encoder *e, const json_t *argument)
{
    const json_t *value = json_object_get(argument, "value");
    const char *text = json_string_value(value);
    if (json_is_integer(value))
        hone_buffer_format(e->out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (text != NULL && is_decimal(text))
        hone_buffer_text(e->out, text);
    else
        return wrong(e, "an int's value is decimal text");
    return HONE_OK;
}

// Python's repr of a float, or the C99 hex beside it.
static bool read_float(const json_t *argument, double *out)
{
    const json_t *value = json_object_get(argument, "value");
    const char *text = json_string_value(value), *hex = json_string_value(json_object_get(argument, "hex"));
    if (json_is_number(value))
        *out = json_number_value(value);
    else if (text != NULL && hone_number_parse(text, strlen(text), out))
        return true;
    else if (text != NULL && strcmp(text, "nan") == 0)
        *out = (double)NAN;
    else if (text != NULL && strcmp(text, "inf") == 0)
        *out = (double)INFINITY;
    else if (text != NULL && strcmp(text, "-inf") == 0)
        *out = -(double)INFINITY;
    else if (text == NULL && hex != NULL)
        *out = hone_number_read(hex, NULL);
    else
        return false;
    return true;
}

static hone_status encode_float(encoder *e, const json_t *argument)
{
    char number[HONE_NUMBER_SIZE];
    double value;
    if (!read_float(argument, &value)) return wrong(e, "a float's value is its decimal text");
    hone_buffer_text(e->out, hone_number_print(value, number));
    return HONE_OK;
}

// numpy's own floats become Python's, widened exactly; ml_dtypes' are unknown to json and become their repr.
static hone_status encode_np_float(encoder *e, const json_t *argument)
{
    static const char *const known[] = {"float16", "float32", "float64"};
    const char *dtype = json_string_value(json_object_get(argument, "dtype"));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (dtype == NULL || strcmp(dtype, known[i]) == 0) return encode_float(e, argument);
    return encode_text(e, argument, "value");
}

static hone_status encode_enum(encoder *e, const json_t *argument)
{
    const char *base = json_string_value(json_object_get(argument, "base"));
    if (base == NULL) return wrong(e, "an enum's base is 'str', 'int' or 'plain'");
    if (strcmp(base, "str") == 0) return encode_text(e, argument, "value");
    if (strcmp(base, "int") == 0) return encode_int(e, argument);
    return encode_text(e, argument, "repr");
}

// ---- arrays and sequences

static hone_status encode_array(encoder *e, const json_t *argument)
{
    const json_t *dtype = text_field(argument, "dtype"), *shape = json_object_get(argument, "shape");
    if (dtype == NULL || !json_is_array(shape)) return wrong(e, "an array has a dtype and a shape");
    hone_buffer_text(e->out, "{\"dtype\":");
    append_string(e->out, dtype);
    hone_buffer_text(e->out, ",\"shape\":");
    hone_json_canonical(e->out, shape);
    hone_buffer_char(e->out, '}');
    return HONE_OK;
}

static hone_status encode_items(encoder *e, const json_t *items)
{
    if (!json_is_array(items)) return wrong(e, "a sequence has items");
    hone_buffer_char(e->out, '[');
    for (size_t i = 0; i < json_array_size(items); i++) {
        if (i > 0) hone_buffer_char(e->out, ',');
        hone_status status = encode(e, json_array_get(items, i));
        if (status != HONE_OK) return status;
    }
    hone_buffer_char(e->out, ']');
    return HONE_OK;
}

static hone_status encode_sequence(encoder *e, const json_t *argument)
{
    return encode_items(e, json_object_get(argument, "items"));
}

// ---- dictionaries

typedef enum key_class { KEY_NONE, KEY_NUMBER, KEY_TEXT } key_class;

// A key as it sorts, and the JSON text that it becomes.
typedef struct pair {
    key_class class;
    double number;       // bool, int, float
    const char *decimal; // an int's digits, which a double may not hold
    const json_t *text;  // str
    const json_t *key, *value;
} pair;

static bool read_key(const json_t *key, pair *out)
{
    const char *kind = json_string_value(json_object_get(key, "kind"));
    const json_t *value = json_object_get(key, "value");
    const char *base = json_string_value(json_object_get(key, "base"));
    out->key = key;
    out->class = KEY_NUMBER;
    if (kind == NULL) return false;
    const bool is_enum = strcmp(kind, "enum") == 0 && base != NULL;
    if (strcmp(kind, "str") == 0 || (is_enum && strcmp(base, "str") == 0)) {
        out->class = KEY_TEXT;
        out->text = value;
        return json_is_string(value);
    }
    if (strcmp(kind, "int") == 0 || (is_enum && strcmp(base, "int") == 0)) {
        out->decimal = json_string_value(value);
        if (json_is_integer(value))
            out->number = (double)json_integer_value(value);
        else if (out->decimal == NULL || !hone_number_parse(out->decimal, strlen(out->decimal), &out->number))
            return false;
        return true;
    }
    if (strcmp(kind, "float") == 0) return read_float(key, &out->number);
    out->number = json_is_true(value) ? 1 : 0;
    if (strcmp(kind, "none") == 0) out->class = KEY_NONE;
    return strcmp(kind, "bool") == 0 || out->class == KEY_NONE;
}

// Two integers whose doubles are equal may still differ: longer, then larger digits.
static int by_digits(const char *a, const char *b)
{
    const bool negative = a[0] == '-';
    const size_t x = strlen(a), y = strlen(b);
    const int order = x != y ? (x > y) - (x < y) : strcmp(a, b);
    return negative ? -order : order;
}

static int by_key(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->class == KEY_TEXT) {
        const member left = {json_string_value(x->text), json_string_length(x->text), NULL};
        const member right = {json_string_value(y->text), json_string_length(y->text), NULL};
        return by_name(&left, &right);
    }
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->decimal != NULL && y->decimal != NULL ? by_digits(x->decimal, y->decimal) : 0;
}

static hone_status append_key(encoder *e, const pair *p)
{
    if (p->class == KEY_TEXT) {
        append_string(e->out, p->text);
        return HONE_OK;
    }
    hone_buffer_char(e->out, '"');
    hone_status status = encode(e, p->key);
    hone_buffer_char(e->out, '"');
    return status;
}

static hone_status encode_pairs(encoder *e, pair *pairs, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (pairs[i].class != pairs[0].class) return wrong(e, "the keys of a dict are of types that do not compare");
    qsort(pairs, count, sizeof *pairs, by_key);
    hone_buffer_char(e->out, '{');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) hone_buffer_char(e->out, ',');
        hone_status status = append_key(e, &pairs[i]);
        hone_buffer_char(e->out, ':');
        if (status == HONE_OK) status = encode(e, pairs[i].value);
        if (status != HONE_OK) return status;
    }
    hone_buffer_char(e->out, '}');
    return HONE_OK;
}

static hone_status encode_dict(encoder *e, const json_t *argument)
{
    const json_t *items = json_object_get(argument, "items");
    const size_t count = json_array_size(items);
    if (!json_is_array(items)) return wrong(e, "a dict has items: pairs of key and value");
    pair *pairs = hone_alloc_array(&e->out->allocator, count, sizeof *pairs);
    if (pairs == NULL) return hone_fail_memory(e->err, where);
    hone_status status = HONE_OK;
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        const json_t *item = json_array_get(items, i);
        pairs[i].value = json_array_get(item, 1);
        if (!read_key(json_array_get(item, 0), &pairs[i]))
            status = wrong(e, "a dict's key is not a str, int, float, bool or none");
    }
    if (status == HONE_OK) status = encode_pairs(e, pairs, count);
    hone_free(&e->out->allocator, pairs);
    return status;
}

// ---- objects

// A name, plain or described as a str.
static const json_t *member_name(const json_t *name)
{
    const json_t *text = json_is_object(name) ? text_field(name, "value") : name;
    return json_is_string(text) ? text : NULL;
}

// Reads [[name, value], ...] in the order in which Python sorts the names. *out is freed by the caller.
static hone_status read_members(encoder *e, const json_t *pairs, member **out)
{
    const size_t count = json_array_size(pairs);
    if (!json_is_array(pairs)) return wrong(e, "expected pairs of name and value");
    *out = hone_alloc_array(&e->out->allocator, count, sizeof **out);
    if (*out == NULL) return hone_fail_memory(e->err, where);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(pairs, i), *name = member_name(json_array_get(item, 0));
        if (name == NULL) return wrong(e, "the first of a pair of name and value is a string");
        (*out)[i] = (member){json_string_value(name), json_string_length(name), json_array_get(item, 1)};
    }
    qsort(*out, count, sizeof **out, by_name);
    return HONE_OK;
}

// Writes members with what stands before, between and after each name and value: {"a":1} or [["a",1]].
static hone_status encode_members(encoder *e, const json_t *pairs, const char *brackets, char between, const char *item)
{
    member *members = NULL;
    hone_status status = read_members(e, pairs, &members);
    hone_buffer_char(e->out, brackets[0]);
    for (size_t i = 0; status == HONE_OK && i < json_array_size(pairs); i++) {
        if (i > 0) hone_buffer_char(e->out, ',');
        hone_buffer_append(e->out, item, strlen(item) / 2);
        hone_json_string(e->out, members[i].name, members[i].size);
        hone_buffer_char(e->out, between);
        status = encode(e, members[i].value);
        hone_buffer_text(e->out, item + strlen(item) / 2);
    }
    hone_buffer_char(e->out, brackets[1]);
    hone_free(&e->out->allocator, members);
    return status;
}

static hone_status encode_fields(encoder *e, const json_t *argument)
{
    return encode_members(e, json_object_get(argument, "fields"), "{}", ':', "");
}

static hone_status encode_function(encoder *e, const json_t *argument)
{
    const json_t *module = json_object_get(argument, "module"), *name = json_object_get(argument, "qualname");
    hone_buffer_text(e->out, "{\"__callable__\":true,\"module\":");
    hone_json_canonical(e->out, module);
    hone_buffer_text(e->out, ",\"name\":");
    hone_json_canonical(e->out, name);
    hone_buffer_text(e->out, ",\"pos\":");
    const json_t *file = json_object_get(argument, "file"), *line = json_object_get(argument, "line");
    const bool nowhere = (file == NULL || json_is_null(file)) && (line == NULL || json_is_null(line));
    if (nowhere) {
        hone_buffer_text(e->out, "null");
    } else {
        hone_buffer_char(e->out, '[');
        hone_json_canonical(e->out, file);
        hone_buffer_char(e->out, ',');
        hone_json_canonical(e->out, line);
        hone_buffer_char(e->out, ']');
    }
    hone_buffer_char(e->out, '}');
    return json_is_string(module) && json_is_string(name) ? HONE_OK
                                                          : wrong(e, "a function has a module and a qualname");
}

static hone_status encode_class(encoder *e, const json_t *argument)
{
    hone_buffer_text(e->out, "{\"__callable_obj__\":");
    hone_status status = encode_text(e, argument, "class");
    hone_buffer_char(e->out, '}');
    return status;
}

static hone_status encode_partial(encoder *e, const json_t *argument)
{
    hone_buffer_text(e->out, "{\"__partial__\":true,\"args\":");
    hone_status status = encode_items(e, json_object_get(argument, "args"));
    if (status != HONE_OK) return status;
    hone_buffer_text(e->out, ",\"func\":");
    status = encode(e, json_object_get(argument, "func"));
    if (status != HONE_OK) return status;
    hone_buffer_text(e->out, ",\"kwargs\":");
    status = encode_members(e, json_object_get(argument, "kwargs"), "[]", ',', "[]");
    hone_buffer_char(e->out, '}');
    return status;
}

static hone_status encode_value_text(encoder *e, const json_t *argument)
{
    return encode_text(e, argument, "value");
}

static const struct {
    const char *kind;
    hone_status (*encode)(encoder *e, const json_t *argument);
} kinds[] = {
    {"array", encode_array},         {"int", encode_int},
    {"float", encode_float},         {"bool", encode_bool},
    {"str", encode_value_text},      {"none", encode_null},
    {"tuple", encode_sequence},      {"list", encode_sequence},
    {"namedtuple", encode_sequence}, {"dict", encode_dict},
    {"dtype", encode_value_text},    {"np_int", encode_int},
    {"np_float", encode_np_float},   {"np_bool", encode_bool},
    {"enum", encode_enum},           {"dataclass", encode_fields},
    {"pydantic", encode_fields},     {"function", encode_function},
    {"partial", encode_partial},     {"callable_obj", encode_class},
    {"repr", encode_value_text},
};

static hone_status encode(encoder *e, const json_t *argument)
{
    const char *kind = json_string_value(json_object_get(argument, "kind"));
    if (kind == NULL) return wrong(e, "an argument is described by an object with a 'kind'");
    if (e->depth == MAX_DEPTH) return wrong(e, "arguments are nested deeper than 200 levels");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].kind, kind) != 0) continue;
        e->depth++;
        hone_status status = kinds[i].encode(e, argument);
        e->depth--;
        return status;
    }
    return hone_fail(e->err, HONE_UNSUPPORTED, where, "unknown kind of argument '%.60s'", kind);
}

hone_status hone_ejkernel_encode(const json_t *argument, hone_buffer *out, hone_error *err)
{
    encoder e = {out, err, 0};
    return encode(&e, argument);
}

// ---- the whole text

typedef struct named_argument {
    member name;      // of a keyword
    json_int_t index; // of a positional one
} named_argument;

static int by_index(const void *a, const void *b)
{
    const named_argument *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static int by_keyword(const void *a, const void *b)
{
    return by_name(&((const named_argument *)a)->name, &((const named_argument *)b)->name);
}

// Splits the arguments: positional ones from the front, keywords from the back of the same array.
static hone_status split_arguments(encoder *e, const json_t *arguments, named_argument *out, size_t *out_positional)
{
    size_t front = 0, back = json_array_size(arguments);
    for (size_t i = 0; i < json_array_size(arguments); i++) {
        const json_t *argument = json_array_get(arguments, i), *name = json_object_get(argument, "name");
        const char *role = json_string_value(json_object_get(argument, "role"));
        if (role != NULL && strcmp(role, "arg") == 0) {
            const json_t *index = json_object_get(argument, "index");
            out[front] = (named_argument){
                {NULL, 0, argument}, json_is_integer(index) ? json_integer_value(index) : (json_int_t)front};
            front++;
        } else if (json_is_string(name)) {
            out[--back] = (named_argument){{json_string_value(name), json_string_length(name), argument}, 0};
        } else {
            return wrong(e, "an argument is positional or has a name");
        }
    }
    *out_positional = front;
    return HONE_OK;
}

static hone_status append_arguments(
    encoder *e, const json_t *batch_axes, named_argument *arguments, size_t positional, size_t count)
{
    hone_status status = HONE_OK;
    qsort(arguments, positional, sizeof *arguments, by_index);
    qsort(arguments + positional, count - positional, sizeof *arguments, by_keyword);
    hone_buffer_text(e->out, "{\"args_spec\":[");
    for (size_t i = 0; i < positional && status == HONE_OK; i++) {
        if (i > 0) hone_buffer_char(e->out, ',');
        status = encode(e, arguments[i].name.value);
    }
    hone_buffer_text(e->out, "],\"batch_axes\":");
    hone_json_canonical(e->out, batch_axes);
    hone_buffer_text(e->out, ",\"kwargs_spec\":{");
    for (size_t i = positional; i < count && status == HONE_OK; i++) {
        if (i > positional) hone_buffer_char(e->out, ',');
        hone_json_string(e->out, arguments[i].name.name, arguments[i].name.size);
        hone_buffer_char(e->out, ':');
        status = encode(e, arguments[i].name.value);
    }
    return status;
}

hone_status hone_ejkernel_spec(
    const json_t *arguments, const json_t *batch_axes, const json_t *method, hone_buffer *out, hone_error *err)
{
    encoder e = {out, err, 0};
    const size_t count = json_array_size(arguments);
    size_t positional = 0;
    if (!json_is_array(arguments)) return wrong(&e, "arguments are an array");
    named_argument *named = hone_alloc_array(&out->allocator, count, sizeof *named);
    if (named == NULL) return hone_fail_memory(err, where);
    hone_status status = split_arguments(&e, arguments, named, &positional);
    if (status == HONE_OK) status = append_arguments(&e, batch_axes, named, positional, count);
    hone_buffer_text(out, "},\"method\":");
    hone_json_canonical(out, method);
    hone_buffer_char(out, '}');
    hone_free(&out->allocator, named);
    if (status == HONE_OK && out->failed) status = hone_fail_memory(err, where);
    return status;
}

// --- defaults

static bool is_text(const json_t *value, const char *text, size_t size)
{
    return json_is_string(value) && json_string_length(value) == size &&
           memcmp(json_string_value(value), text, size) == 0;
}

// ejkernel's text of a dtype says that it is a class, and not which: no value of it says anything.
static bool is_class(const json_t *value)
{
    static const char *const names[] = {"jax._src.numpy.scalar_types._ScalarMeta", "builtins.type"};
    const json_t *class = json_object_get(value, "__callable_obj__");
    for (size_t i = 0; json_object_size(value) == 1 && i < sizeof names / sizeof *names; i++)
        if (is_text(class, names[i], strlen(names[i]))) return true;
    return false;
}

// A truth, a number or a string that is what `json` says; 0 is 0.0.
static bool value_is(const json_t *value, const char *json)
{
    const size_t size = strlen(json);
    double number;
    if (json_is_boolean(value)) return strcmp(json, json_is_true(value) ? "true" : "false") == 0;
    if (json_is_number(value))
        return hone_number_parse(json, size, &number) && !(json_number_value(value) < number) &&
               !(json_number_value(value) > number);
    return size >= 2 && json[0] == '"' && is_text(value, json + 1, size - 2);
}

bool hone_ejkernel_is_default(const char *name, const json_t *value)
{
    static const struct {
        const char *name, *json;
    } defaults[] = {
        {"deterministic", "true"},    {"dropout_prob", "0.0"},
        {"normalize_output", "true"}, {"precision", "\"Precision.DEFAULT\""},
        {"return_state", "false"},
    };
    if (json_is_null(value) || strcmp(name, "platform") == 0 || is_class(value)) return true;
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (strcmp(defaults[i].name, name) == 0 && value_is(value, defaults[i].json)) return true;
    return false;
}
