// Kernel Tuner's T1 documents: parameters as JSON, or as the text of a Python list, and Python conditions.
#include "space/builder.h"

#include "base/error.h"
#include "base/json.h"

static const char where[] = "space.parse_t1";

static hone_view text_of(const json_t *string)
{
    return (hone_view){json_string_value(string), json_string_length(string)};
}

static bool scalar_of(const json_t *json, hone_scalar *out)
{
    switch (json_typeof(json)) {
    case JSON_INTEGER:
        *out = hone_scalar_int(json_integer_value(json));
        return true;
    case JSON_REAL:
        *out = hone_scalar_float(json_real_value(json));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = hone_scalar_bool(json_is_true(json));
        return true;
    case JSON_STRING:
        *out = hone_scalar_text(text_of(json));
        return true;
    default:
        return false;
    }
}

static void read_array(hone_space_builder *builder, const json_t *values)
{
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value)
    {
        hone_scalar scalar;
        if (scalar_of(value, &scalar))
            hone_space_add_value(builder, scalar);
        else
            hone_space_builder_fail(
                builder, "parameter '%s': value %zu is not a number, string or boolean", builder->parameter->name, i);
        if (hone_space_builder_failed(builder)) return;
    }
}

static void list_failed(hone_space_builder *builder, const hone_lexer *lexer, const char *expected)
{
    if (hone_space_builder_failed(builder)) return;
    builder->status = hone_lexer_fail(lexer, builder->err, where, expected);
    hone_fail_prefix(builder->err, builder->status, "parameter '%s': Values", builder->parameter->name);
}

// "[16, 32, 64]"
static void read_list_text(hone_space_builder *builder, hone_view text)
{
    hone_lexer lexer;
    hone_scalar scalar;
    hone_lexer_init(&lexer, text, &builder->space->arena, NULL);
    if (!hone_lexer_accept(&lexer, "[")) list_failed(builder, &lexer, "'[' and a list of values");
    while (!hone_space_builder_failed(builder) && !hone_lexer_is(&lexer, "]")) {
        if (hone_lexer_literal(&lexer, &scalar))
            hone_space_add_value(builder, scalar);
        else
            list_failed(builder, &lexer, "a value");
        if (!hone_lexer_accept(&lexer, ",")) break;
    }
    if (!hone_lexer_accept(&lexer, "]")) list_failed(builder, &lexer, "',' or ']'");
    if (lexer.token.kind != HONE_TOKEN_END) list_failed(builder, &lexer, "the end of the text");
}

static void read_parameter(hone_space_builder *builder, const json_t *parameter, size_t index)
{
    const json_t *name = json_object_get(parameter, "Name"), *values = json_object_get(parameter, "Values");
    const json_t *by_default = json_object_get(parameter, "Default");
    hone_scalar scalar;
    if (!json_is_string(name)) {
        hone_space_builder_fail(builder, "TuningParameters[%zu]: expected a Name, a string", index);
        return;
    }
    hone_space_begin_parameter(builder, text_of(name));
    if (hone_space_builder_failed(builder)) return;
    if (json_is_array(values))
        read_array(builder, values);
    else if (json_is_string(values))
        read_list_text(builder, text_of(values));
    else
        hone_space_builder_fail(
            builder, "parameter '%s': expected Values, a list or the text of a list", json_string_value(name));
    if (hone_space_builder_failed(builder)) return;
    if (by_default != NULL && !json_is_null(by_default) && !scalar_of(by_default, &scalar))
        hone_space_builder_fail(
            builder, "parameter '%s': its Default is not a number, string or boolean", json_string_value(name));
    hone_space_end_parameter(builder, by_default == NULL || json_is_null(by_default) ? NULL : &scalar);
}

static void read_condition(hone_space_builder *builder, const json_t *condition, size_t index)
{
    hone_lexer lexer;
    const json_t *expression = json_is_string(condition) ? condition : json_object_get(condition, "Expression");
    if (!json_is_string(expression)) {
        hone_space_builder_fail(builder, "Conditions[%zu]: expected an Expression, a string", index);
        return;
    }
    hone_lexer_init(&lexer, text_of(expression), &builder->space->arena, NULL);
    hone_space_add_constraint(builder, &lexer);
    if (!hone_space_builder_failed(builder) && lexer.token.kind != HONE_TOKEN_END)
        builder->status = hone_lexer_fail(&lexer, builder->err, where, "the end of the condition");
    if (hone_space_builder_failed(builder) && builder->status != HONE_OUT_OF_MEMORY)
        hone_fail_prefix(
            builder->err, builder->status, "Conditions[%zu] '%.200s'", index, json_string_value(expression));
}

static void read_document(hone_space_builder *builder, const json_t *document)
{
    const json_t *space = json_object_get(document, "ConfigurationSpace");
    const json_t *parameters = json_object_get(space, "TuningParameters");
    const json_t *conditions = json_object_get(space, "Conditions");
    size_t i;
    json_t *entry;
    if (!json_is_array(parameters)) {
        hone_space_builder_fail(builder, "expected an object with ConfigurationSpace.TuningParameters, a list");
        return;
    }
    if (conditions != NULL && !json_is_null(conditions) && !json_is_array(conditions)) {
        hone_space_builder_fail(builder, "ConfigurationSpace.Conditions: expected a list");
        return;
    }
    json_array_foreach(parameters, i, entry)
    {
        read_parameter(builder, entry, i);
        if (hone_space_builder_failed(builder)) return;
    }
    json_array_foreach(conditions, i, entry)
    {
        read_condition(builder, entry, i);
        if (hone_space_builder_failed(builder)) return;
    }
}

hone_status hone_space_parse_t1(
    hone_allocator allocator, const char *json, size_t size, hone_space **out, hone_error *err)
{
    if (json == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "json or out is NULL");
    }
    json_t *document;
    hone_space_builder builder;
    *out = NULL;
    hone_status status = hone_json_parse(json, size, &document, err);
    // A wrong document is a wrong argument here, not damaged storage.
    if (status == HONE_CORRUPT) status = HONE_INVALID_ARGUMENT;
    if (err != NULL && status != HONE_OK) err->status = status;
    if (status != HONE_OK) return status;
    status = hone_space_builder_begin(&builder, hone_allocator_given(allocator), where, err);
    if (status == HONE_OK) {
        builder.flags = HONE_EXPRESSION_PYTHON;
        builder.parameters_only = true;
        read_document(&builder, document);
        status = hone_space_builder_end(&builder, out);
    }
    json_decref(document);
    return status;
}
