#include "space/builder.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool hone_space_builder_failed(const hone_space_builder *builder)
{
    return builder->status != HONE_OK;
}

void hone_space_builder_fail(hone_space_builder *builder, const char *format, ...)
{
    char words[600];
    va_list list;
    if (hone_space_builder_failed(builder)) return;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    if (builder->lexer == NULL)
        builder->status = hone_fail(builder->err, HONE_INVALID_ARGUMENT, builder->where, "%s", words);
    else
        builder->status = hone_fail(
            builder->err, HONE_INVALID_ARGUMENT, builder->where, "offset %zu: %s", builder->lexer->token.offset, words);
}

void hone_space_builder_out_of_memory(hone_space_builder *builder)
{
    if (!hone_space_builder_failed(builder)) builder->status = hone_fail_memory(builder->err, builder->where);
}

hone_status hone_space_builder_begin(
    hone_space_builder *builder, hone_allocator allocator, const char *where, hone_error *err)
{
    *builder = (hone_space_builder){.err = err, .where = where};
    builder->space = hone_alloc(&allocator, sizeof *builder->space);
    if (builder->space == NULL) return hone_fail_memory(err, where);
    builder->space->allocator = allocator;
    builder->space->arena.allocator = allocator;
    atomic_init(&builder->space->references, 1);
    return HONE_OK;
}

// A growing array of the builder as an array of its final size in the space's arena.
static void *settle(hone_space_builder *builder, const void *array, size_t count, size_t size)
{
    void *settled = hone_arena_array(&builder->space->arena, count, size);
    if (settled == NULL)
        hone_space_builder_out_of_memory(builder);
    else if (count > 0)
        memcpy(settled, array, count * size);
    return settled;
}

// Constraints may stand before the parameters that they read, so names find theirs only at the end.
static void settle_names(hone_space_builder *builder)
{
    hone_space *space = builder->space;
    for (size_t i = 0; i < space->name_count; i++) {
        hone_space_name *name = &builder->names[i];
        int index = name->kind == HONE_NAME_CALL ? hone_space_find_parameter(space, hone_view_of(name->text)) : -1;
        if (index < 0) continue;
        name->kind = HONE_NAME_PARAMETER;
        name->index = (size_t)index;
    }
    space->names = settle(builder, builder->names, space->name_count, sizeof *space->names);
    space->constraints = settle(builder, builder->constraints, space->constraint_count, sizeof *space->constraints);
}

hone_status hone_space_builder_end(hone_space_builder *builder, hone_space **out)
{
    hone_space *space = builder->space;
    hone_allocator allocator = space->allocator;
    if (!hone_space_builder_failed(builder)) settle_names(builder);
    hone_free(&allocator, builder->values);
    hone_free(&allocator, builder->names);
    hone_free(&allocator, builder->constraints);
    if (hone_space_builder_failed(builder))
        hone_space_release(&space);
    else
        *out = space;
    return builder->status;
}

// Words that mean something else in an expression or in a space.
static bool is_reserved(hone_view name)
{
    static const char *const words[] = {"and",  "or",    "not",  "true",  "false",  "none",
                                        "True", "False", "None", "where", "default"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hone_view_is(name, words[i])) return true;
    return false;
}

static void check_name(hone_space_builder *builder, hone_view name)
{
    int size = name.size > HONE_NAME_SIZE ? HONE_NAME_SIZE : (int)name.size;
    if (name.size == 0 || name.size >= HONE_NAME_SIZE)
        hone_space_builder_fail(
            builder, "parameter '%.*s': a name has 1 to %d bytes", size, name.data, HONE_NAME_SIZE - 1);
    else if (is_reserved(name))
        hone_space_builder_fail(
            builder, "'%.*s' cannot name a parameter: it is a word of the language", size, name.data);
    else if (hone_space_find_parameter(builder->space, name) >= 0)
        hone_space_builder_fail(builder, "parameter '%.*s' is there already; names are unique", size, name.data);
    else if (builder->space->parameter_count == HONE_MAX_PARAMETERS)
        hone_space_builder_fail(
            builder, "parameter '%.*s': a space has at most %d parameters", size, name.data, HONE_MAX_PARAMETERS);
}

// Text as a JSON string in the space's arena.
static const char *json_text(hone_space_builder *builder, const char *text, size_t size)
{
    hone_buffer buffer;
    hone_buffer_init(&buffer, builder->space->allocator);
    hone_json_string(&buffer, text, size);
    const char *copy = buffer.failed ? NULL : hone_arena_text(&builder->space->arena, buffer.data, buffer.size);
    hone_buffer_deinit(&buffer);
    if (copy == NULL) hone_space_builder_out_of_memory(builder);
    return copy;
}

static const char *kept_text(hone_space_builder *builder, const char *text, size_t size)
{
    const char *copy = hone_arena_text(&builder->space->arena, text, size);
    if (copy == NULL) hone_space_builder_out_of_memory(builder);
    return copy;
}

void hone_space_begin_parameter(hone_space_builder *builder, hone_view name)
{
    if (hone_space_builder_failed(builder)) return;
    check_name(builder, name);
    if (hone_space_builder_failed(builder)) return;
    builder->parameter = &builder->space->parameters[builder->space->parameter_count];
    *builder->parameter = (hone_space_parameter){.integers = true};
    builder->parameter->name = kept_text(builder, name.data, name.size);
    builder->parameter->json_name = json_text(builder, name.data, name.size);
}

// Whether text reads back as itself where a literal is expected, without quotes.
static bool is_plain_word(const char *text)
{
    hone_lexer lexer;
    hone_scalar literal;
    hone_view view = hone_view_of(text);
    hone_arena no_arena = {.chunks = NULL};       // names need none
    if (strchr(text, '\\') != NULL) return false; // no name; and an escape would ask the arena for memory
    hone_lexer_init(&lexer, view, &no_arena, NULL);
    if (lexer.token.kind != HONE_TOKEN_NAME || lexer.token.text.size != view.size) return false;
    return hone_lexer_literal(&lexer, &literal) && literal.kind == HONE_SCALAR_TEXT;
}

static void write_text_value(hone_space_builder *builder, hone_space_value *value)
{
    hone_view text = value->scalar.as.text;
    value->text = kept_text(builder, text.data, text.size);
    value->json = json_text(builder, text.data, text.size);
    if (hone_space_builder_failed(builder)) return;
    value->scalar.as.text.data = value->text;
    value->word = is_plain_word(value->text) ? value->text : value->json;
}

static void write_value(hone_space_builder *builder, hone_space_value *value)
{
    char digits[HONE_NUMBER_SIZE];
    if (value->scalar.kind == HONE_SCALAR_TEXT) {
        write_text_value(builder, value);
        return;
    }
    if (value->scalar.kind == HONE_SCALAR_FLOAT)
        hone_number_print(value->scalar.as.f64, digits);
    else if (value->scalar.kind == HONE_SCALAR_INT)
        snprintf(digits, sizeof digits, "%" PRId64, value->scalar.as.i64);
    else
        snprintf(digits, sizeof digits, "%s", value->scalar.as.i64 != 0 ? "true" : "false");
    value->text = kept_text(builder, digits, strlen(digits));
    value->word = value->json = value->text;
}

static void append_value(hone_space_builder *builder, hone_scalar value)
{
    hone_space_parameter *parameter = builder->parameter;
    size_t size = sizeof *builder->values;
    if (!hone_grow(
            &builder->space->allocator, &builder->values, &builder->value_capacity, parameter->count + 1, size)) {
        hone_space_builder_out_of_memory(builder);
        return;
    }
    builder->values[parameter->count] = (hone_space_value){.scalar = value};
    write_value(builder, &builder->values[parameter->count]);
    if (hone_space_builder_failed(builder)) return;
    parameter->count++;
    parameter->integers = parameter->integers && value.kind == HONE_SCALAR_INT;
}

// true is 1 and 1.0 is 1: a config could not say which of the two it means.
static void refuse_equal(hone_space_builder *builder, const hone_space_value *first, hone_scalar second)
{
    const char *name = builder->parameter->name;
    hone_space_value again = {.scalar = second};
    write_value(builder, &again);
    if (hone_space_builder_failed(builder)) return;
    if (strcmp(first->text, again.text) == 0)
        hone_space_builder_fail(builder, "parameter '%s': the value %.60s is there twice", name, again.text);
    else
        hone_space_builder_fail(
            builder, "parameter '%s': the value %.60s is equal to %.60s, which is there too", name, again.text,
            first->text);
}

void hone_space_add_value(hone_space_builder *builder, hone_scalar value)
{
    if (hone_space_builder_failed(builder)) return;
    hone_space_parameter *parameter = builder->parameter;
    if (value.kind == HONE_SCALAR_NONE) {
        hone_space_builder_fail(builder, "parameter '%s': none is not a value", parameter->name);
        return;
    }
    if (parameter->count == HONE_SPACE_LIST_VALUES) {
        hone_space_builder_fail(
            builder, "parameter '%s': more than %d values; write a range", parameter->name, HONE_SPACE_LIST_VALUES);
        return;
    }
    for (size_t i = 0; i < parameter->count; i++) {
        if (!hone_scalar_equal(&builder->values[i].scalar, &value)) continue;
        refuse_equal(builder, &builder->values[i], value);
        return;
    }
    append_value(builder, value);
}

static bool range_is_wrong(hone_space_builder *builder, int64_t first, int64_t last, bool multiply, int64_t by)
{
    const char *name = builder->parameter->name;
    if (first > last)
        hone_space_builder_fail(
            builder, "parameter '%s': the range %" PRId64 "..%" PRId64 " is empty", name, first, last);
    else if (multiply && (by < 2 || first < 1))
        hone_space_builder_fail(
            builder, "parameter '%s': a range with '*' needs a start of at least 1 and a factor of at least 2", name);
    else if (!multiply && by < 1)
        hone_space_builder_fail(builder, "parameter '%s': a range adds 1 or more", name);
    return hone_space_builder_failed(builder);
}

void hone_space_add_range(hone_space_builder *builder, int64_t first, int64_t last, bool multiply, int64_t by)
{
    if (hone_space_builder_failed(builder) || range_is_wrong(builder, first, last, multiply, by)) return;
    bool overflow = false;
    for (int64_t value = first; !overflow && value <= last && !hone_space_builder_failed(builder);) {
        if (builder->parameter->count == HONE_SPACE_RANGE_VALUES) {
            hone_space_builder_fail(
                builder, "parameter '%s': the range has more than %d values", builder->parameter->name,
                HONE_SPACE_RANGE_VALUES);
            return;
        }
        append_value(builder, hone_scalar_int(value));
        if (multiply)
            overflow = __builtin_mul_overflow(value, by, &value);
        else
            overflow = __builtin_add_overflow(value, by, &value);
    }
}

void hone_space_end_parameter(hone_space_builder *builder, const hone_scalar *by_default)
{
    if (hone_space_builder_failed(builder)) return;
    hone_space_parameter *parameter = builder->parameter;
    hone_assert(parameter != NULL); // begun
    if (parameter->count == 0) {
        hone_space_builder_fail(builder, "parameter '%s' has no values", parameter->name);
        return;
    }
    parameter->values = settle(builder, builder->values, parameter->count, sizeof *parameter->values);
    if (hone_space_builder_failed(builder)) return;
    int64_t position = by_default == NULL ? 0 : hone_space_find_value(parameter, by_default);
    if (position < 0) {
        char value[80], values[300];
        hone_space_describe(by_default, value, sizeof value);
        hone_space_list_values(parameter, values, sizeof values);
        hone_space_builder_fail(
            builder, "parameter '%s': the default %s is not one of its values (%s)", parameter->name, value, values);
        return;
    }
    parameter->by_default = (size_t)position;
    builder->space->parameter_count++;
}

static int find_limit(hone_view name)
{
    for (size_t i = 0; i < hone_space_device_limit_count; i++)
        if (hone_view_is(name, hone_space_device_limits[i].name)) return (int)i;
    return -1;
}

// What a name can be while parameters may still follow; false for one that can be nothing.
static bool classify(hone_space_builder *builder, hone_view name, hone_space_name *out)
{
    bool is_device = name.size > 7 && memcmp(name.data, "device.", 7) == 0;
    int index = is_device ? find_limit(name) : hone_space_find_parameter(builder->space, name);
    builder->wrong_limit = is_device && index < 0;
    out->kind = is_device ? HONE_NAME_DEVICE : HONE_NAME_CALL;
    if (index >= 0) out->index = (size_t)index;
    return is_device ? index >= 0 && !builder->parameters_only : index >= 0 || !builder->parameters_only;
}

// The name as people write it, in the arena: the expression's index goes back behind it.
static const char *full_name(hone_space_builder *builder, hone_view name, int64_t index)
{
    char suffix[32] = "";
    if (index >= 0) snprintf(suffix, sizeof suffix, "[%" PRId64 "]", index);
    size_t length = strlen(suffix);
    char *text = hone_arena_alloc(&builder->space->arena, name.size + length + 1);
    if (text == NULL) {
        hone_space_builder_out_of_memory(builder);
        return NULL;
    }
    memcpy(text, name.data, name.size);
    memcpy(text + name.size, suffix, length);
    return text;
}

static bool resolve(void *ctx, hone_view name, int64_t index, uint32_t *out_slot)
{
    hone_space_builder *builder = ctx;
    hone_space *space = builder->space;
    hone_space_name entry = {.constraint = space->constraint_count};
    if (!classify(builder, name, &entry)) return false;
    entry.text = full_name(builder, name, index);
    if (entry.text == NULL) return false;
    for (size_t i = 0; i < space->name_count; i++) {
        *out_slot = (uint32_t)i;
        if (strcmp(builder->names[i].text, entry.text) == 0) return true;
    }
    if (!hone_grow(&space->allocator, &builder->names, &builder->name_capacity, space->name_count + 1, sizeof entry)) {
        hone_space_builder_out_of_memory(builder);
        return false;
    }
    *out_slot = (uint32_t)space->name_count;
    builder->names[space->name_count++] = entry;
    return true;
}

void hone_space_add_constraint(hone_space_builder *builder, hone_lexer *lexer)
{
    hone_error err = {0};
    hone_space *space = builder->space;
    const hone_expression *expression = NULL;
    const hone_expression_names names = {resolve, builder};
    if (hone_space_builder_failed(builder)) return;
    hone_status status = hone_expression_compile(lexer, &names, builder->flags, &expression, &err);
    if (status == HONE_OUT_OF_MEMORY) hone_space_builder_out_of_memory(builder);
    if (status != HONE_OK && !hone_space_builder_failed(builder))
        builder->status = hone_fail(
            builder->err, status, builder->where, "%s%s%s", err.message, builder->wrong_limit ? "; a device has " : "",
            builder->wrong_limit ? hone_space_device_limit_names : "");
    if (hone_space_builder_failed(builder)) return;
    size_t count = space->constraint_count + 1, size = sizeof *builder->constraints;
    if (!hone_grow(&space->allocator, &builder->constraints, &builder->constraint_capacity, count, size)) {
        hone_space_builder_out_of_memory(builder);
        return;
    }
    builder->constraints[space->constraint_count++] = expression;
}
