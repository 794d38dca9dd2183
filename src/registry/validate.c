// Whether the kernels of an algorithm agree about what they are called with. Every pair is compared, parameter by
// parameter; each aspect of a parameter is written as words, and two kernels agree when the words are the same.
#include "registry/tables.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/number.h"

#include <inttypes.h>
#include <string.h>

static const char where[] = "registry.validate";

typedef struct validation {
    hone_registry *registry;
    void (*report)(void *ctx, const char *line);
    void *ctx;
    bool ok;
    bool failed; // no memory for a line
} validation;

// One parameter as one kernel has it.
typedef struct seen {
    const hone_kernel_ref *kernel;
    const hone_parameter *parameter;
} seen;

// Words of the type language: they mean the same everywhere, while other names are the signature's own variables.
static const char *const fixed_words[] = {
    "if",    "else", "and",  "or",  "not", "min", "max",  "ceildiv", "abs",  "log2",   "true",
    "false", "none", "bool", "i64", "f64", "str", "pow2", "shape",   "ndim", "device",
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static size_t word_size(const char *text)
{
    size_t size = 0;
    while (is_letter(text[size]) || (size > 0 && text[size] >= '0' && text[size] <= '9'))
        size++;
    return size;
}

static bool is_fixed(const hone_signature *signature, const char *word)
{
    for (size_t i = 0; i < sizeof fixed_words / sizeof fixed_words[0]; i++)
        if (strcmp(fixed_words[i], word) == 0) return true;
    return hone_dtype_by_name(word) != NULL || hone_signature_find(signature, word) >= 0;
}

enum { WORD_SIZE = 64, MOST_VARIABLES = 128 };

// The signature's variables, numbered as they first appear: renaming a dim does not make another type.
typedef struct variables {
    char names[MOST_VARIABLES][WORD_SIZE];
    size_t count;
} variables;

static size_t number_of(variables *known, const char *word)
{
    size_t i = 0;
    while (i < known->count && strcmp(known->names[i], word) != 0)
        i++;
    if (i == known->count && i < MOST_VARIABLES) memcpy(known->names[known->count++], word, strlen(word) + 1);
    return i;
}

// Appends a type with its variables as numbers: "T[rows, dim]" is "$0[$1, $2]".
static void append_type(hone_buffer *out, const hone_signature *signature, const char *type, variables *known)
{
    while (*type != '\0') {
        size_t size = word_size(type);
        char word[WORD_SIZE];
        if (size == 0 || size >= sizeof word) {
            size = size == 0 ? 1 : size;
            hone_buffer_append(out, type, size);
        } else {
            memcpy(word, type, size);
            word[size] = '\0';
            if (is_fixed(signature, word))
                hone_buffer_text(out, word);
            else
                hone_buffer_format(out, "$%zu", number_of(known, word));
        }
        type += size;
    }
}

static void write_name(hone_buffer *out, const seen *one)
{
    hone_buffer_text(out, one->parameter->name);
}

static void write_kind(hone_buffer *out, const seen *one)
{
    const hone_parameter *parameter = one->parameter;
    hone_buffer_text(
        out, parameter->is_inout       ? "inout result"
             : parameter->is_result    ? "result"
             : parameter->keyword_only ? "keyword-only"
                                       : "positional");
}

static void write_default(hone_buffer *out, const seen *one)
{
    const hone_value *value = &one->parameter->default_value;
    char number[HONE_NUMBER_SIZE];
    if (!one->parameter->has_default) {
        hone_buffer_text(out, "no default");
        return;
    }
    switch ((hone_value_tag)value->tag) {
    case HONE_VALUE_NONE:
        hone_buffer_text(out, "none");
        break;
    case HONE_VALUE_BOOL:
        hone_buffer_text(out, value->as.i64 != 0 ? "true" : "false");
        break;
    case HONE_VALUE_INT:
        hone_buffer_format(out, "%" PRId64, value->as.i64);
        break;
    case HONE_VALUE_FLOAT:
        hone_buffer_text(out, hone_number_print(value->as.f64, number));
        break;
    case HONE_VALUE_STRING:
        hone_buffer_format(out, "\"%s\"", value->as.string);
        break;
    default:
        hone_buffer_format(out, "a value of tag %d", (int)value->tag);
        break;
    }
}

// The type as written; what is compared is its numbered form.
static void write_type(hone_buffer *out, const seen *one)
{
    hone_buffer_text(out, one->parameter->type_text);
    size_t size = strlen(one->parameter->type_text);
    if (one->parameter->nullable && (size == 0 || one->parameter->type_text[size - 1] != '?'))
        hone_buffer_char(out, '?');
}

static const struct {
    const char *name;
    void (*write)(hone_buffer *out, const seen *one);
} aspects[] = {
    {"name", write_name},
    {"kind", write_kind},
    {"default", write_default},
};

static void say(validation *run, hone_buffer *line)
{
    if (line->failed)
        run->failed = true;
    else if (run->report != NULL)
        run->report(run->ctx, hone_buffer_string(line));
}

static void append_kernel(hone_buffer *line, const hone_kernel_ref *ref)
{
    hone_buffer_format(
        line, "kernel '%s' (%s/%s)", ref->kernel.name, hone_platform_name(ref->kernel.platform),
        hone_backend_name(ref->kernel.backend));
}

static void mismatch(
    validation *run, const seen *a, const seen *b, const char *aspect, void (*write)(hone_buffer *, const seen *))
{
    run->ok = false;
    hone_buffer line;
    hone_buffer_init(&line, run->registry->allocator);
    hone_buffer_format(&line, "%s: parameter '%s': %s is ", a->kernel->algorithm->name, a->parameter->name, aspect);
    write(&line, a);
    hone_buffer_text(&line, " in ");
    append_kernel(&line, a->kernel);
    hone_buffer_text(&line, ", ");
    write(&line, b);
    hone_buffer_text(&line, " in ");
    append_kernel(&line, b->kernel);
    say(run, &line);
    hone_buffer_deinit(&line);
}

static bool same_words(validation *run, const seen *a, const seen *b, void (*write)(hone_buffer *out, const seen *one))
{
    hone_buffer left;
    hone_buffer right;
    hone_buffer_init(&left, run->registry->allocator);
    hone_buffer_init(&right, run->registry->allocator);
    write(&left, a);
    write(&right, b);
    run->failed = run->failed || left.failed || right.failed;
    bool same = strcmp(hone_buffer_string(&left), hone_buffer_string(&right)) == 0;
    hone_buffer_deinit(&left);
    hone_buffer_deinit(&right);
    return same;
}

// One side of a pair: its parameters without tuning parameters.
typedef struct side {
    const hone_kernel_ref *kernel;
    const hone_parameter *parameters[HONE_REGISTRY_PARAMETERS];
    size_t count;
    variables known;
} side;

static void collect(side *out, const hone_kernel_ref *kernel, const hone_kernel_ref *other)
{
    out->kernel = kernel;
    out->count = 0;
    out->known.count = 0;
    for (size_t i = 0; i < hone_signature_count(kernel->signature); i++) {
        const hone_parameter *parameter = hone_signature_parameter(kernel->signature, i);
        if (!hone_registry_is_tuning_name(kernel, parameter->name) &&
            !hone_registry_is_tuning_name(other, parameter->name))
            out->parameters[out->count++] = parameter;
    }
}

static bool same_type(validation *run, side *a, side *b, size_t index)
{
    hone_buffer left;
    hone_buffer right;
    hone_buffer_init(&left, run->registry->allocator);
    hone_buffer_init(&right, run->registry->allocator);
    append_type(&left, a->kernel->signature, a->parameters[index]->type_text, &a->known);
    append_type(&right, b->kernel->signature, b->parameters[index]->type_text, &b->known);
    run->failed = run->failed || left.failed || right.failed;
    bool same = a->parameters[index]->nullable == b->parameters[index]->nullable &&
                strcmp(hone_buffer_string(&left), hone_buffer_string(&right)) == 0;
    hone_buffer_deinit(&left);
    hone_buffer_deinit(&right);
    return same;
}

static void report_counts(validation *run, const side *a, const side *b)
{
    run->ok = false;
    hone_buffer line;
    hone_buffer_init(&line, run->registry->allocator);
    hone_buffer_format(&line, "%s: %zu parameters and results in ", a->kernel->algorithm->name, a->count);
    append_kernel(&line, a->kernel);
    hone_buffer_format(&line, ", %zu in ", b->count);
    append_kernel(&line, b->kernel);
    say(run, &line);
    hone_buffer_deinit(&line);
}

// sides: memory for two, too large for the stack of a caller that nests.
static void compare_pair(validation *run, const hone_kernel_ref *first, const hone_kernel_ref *second, side sides[2])
{
    if (first->signature == second->signature) return;
    side *a = &sides[0];
    side *b = &sides[1];
    collect(a, first, second);
    collect(b, second, first);
    if (a->count != b->count) {
        report_counts(run, a, b);
        return;
    }
    for (size_t i = 0; i < a->count; i++) {
        seen left = {first, a->parameters[i]};
        seen right = {second, b->parameters[i]};
        for (size_t j = 0; j < sizeof aspects / sizeof aspects[0]; j++)
            if (!same_words(run, &left, &right, aspects[j].write))
                mismatch(run, &left, &right, aspects[j].name, aspects[j].write);
        if (!same_type(run, a, b, i)) mismatch(run, &left, &right, "type", write_type);
    }
}

static void report_kernels(validation *run, const kernel_list *kernels)
{
    for (size_t i = 0; i < kernels->count; i++) {
        const hone_kernel_ref *ref = kernels->refs[i];
        hone_buffer line;
        hone_buffer_init(&line, run->registry->allocator);
        hone_buffer_format(&line, "%s: ", ref->algorithm->name);
        append_kernel(&line, ref);
        hone_buffer_format(&line, ": %s", hone_signature_text(ref->signature));
        say(run, &line);
        hone_buffer_deinit(&line);
    }
}

static void validate_one(validation *run, const hone_algorithm_entry *entry, bool verbose, side sides[2])
{
    const kernel_list *kernels = hone_registry_kernels_now(entry);
    if (verbose) report_kernels(run, kernels);
    for (size_t i = 0; i < kernels->count; i++)
        for (size_t j = i + 1; j < kernels->count; j++)
            compare_pair(run, kernels->refs[i], kernels->refs[j], sides);
}

hone_status hone_registry_validate(
    hone_registry *registry,
    const char *algorithm,
    bool verbose,
    void (*report)(void *ctx, const char *line),
    void *ctx,
    bool *out_ok,
    hone_error *err)
{
    if (out_ok == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out_ok is NULL");
    size_t count = 0;
    const hone_algorithm_entry *const *entries = hone_registry_all(registry, &count);
    const hone_algorithm_entry *only = NULL;
    if (algorithm != NULL) {
        only = hone_registry_find(registry, algorithm, NULL);
        if (only == NULL) return hone_registry_fail_unknown(registry, algorithm, err);
        entries = &only;
        count = 1;
    }
    side *sides = hone_alloc_array(&registry->allocator, 2, sizeof *sides);
    if (sides == NULL) return hone_fail_memory(err, where);
    validation run = {registry, report, ctx, true, false};
    for (size_t i = 0; i < count; i++)
        validate_one(&run, entries[i], verbose, sides);
    hone_free(&registry->allocator, sides);
    if (run.failed) return hone_fail_memory(err, where);
    *out_ok = run.ok;
    return HONE_OK;
}
