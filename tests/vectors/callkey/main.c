// Rebuilds the call texts and keys of a file that ejkernel made: each line's "args" must give its "spec" byte for
// byte and its "key". Left out and counted: lines that name another key builder, and strings with lone surrogates,
// which UTF-8 cannot hold (hone refuses such text).
#include "base/hash.h"
#include "call/ejkernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_FAILURES = 20 };

typedef enum outcome { PASSED, FAILED, OTHER_BUILDER, LONE_SURROGATE, OUTCOMES } outcome;

static int hex_unit(const char *text, size_t left)
{
    int unit = 0;
    if (left < 6 || text[0] != '\\' || text[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        const char *digit = strchr("0123456789abcdef0123456789ABCDEF", text[i]);
        if (text[i] == '\0' || digit == NULL) return -1;
        unit = unit * 16 + (int)((digit - "0123456789abcdef0123456789ABCDEF") % 16);
    }
    return unit;
}

// Whether some \uXXXX of the line's strings is half a pair.
static bool has_lone_surrogate(const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (line[i] != '\\') continue;
        const int unit = hex_unit(line + i, size - i);
        if (unit < 0 || unit < 0xd800 || unit > 0xdfff) {
            i += unit < 0 ? 1 : 5;
            continue;
        }
        const int low = hex_unit(line + i + 6, size > i + 6 ? size - i - 6 : 0);
        if (unit >= 0xdc00 || low < 0xdc00 || low > 0xdfff) return true;
        i += 11;
    }
    return false;
}

// What is wrong with a line, at most a few hundred bytes of it.
typedef struct complaint {
    char text[1200];
} complaint;

static outcome compare(const json_t *row, hone_buffer *text, complaint *why)
{
    char key[HONE_KEY_SIZE];
    hone_error err = {0};
    const char *spec = json_string_value(json_object_get(row, "spec"));
    const char *wanted_key = json_string_value(json_object_get(row, "key"));
    if (spec == NULL || wanted_key == NULL) {
        snprintf(why->text, sizeof why->text, "a line has 'spec', 'key' and 'args'");
        return FAILED;
    }
    const json_t *args = json_object_get(row, "args");
    if (hone_ejkernel_spec(args, json_object_get(row, "batch_axes"), json_object_get(row, "method"), text, &err) !=
        HONE_OK) {
        snprintf(why->text, sizeof why->text, "%s", err.message);
        return FAILED;
    }
    hone_hash_key(text->data, text->size, key);
    if (text->size == strlen(spec) && memcmp(text->data, spec, text->size) == 0 && strcmp(key, wanted_key) == 0)
        return PASSED;
    snprintf(
        why->text, sizeof why->text, "came     %s %.480s\n    expected %s %.480s", key, text->data, wanted_key, spec);
    return FAILED;
}

static outcome run_row(const json_t *row, complaint *why)
{
    const json_t *builder = json_object_get(row, "builder");
    if (builder != NULL && !json_is_null(builder)) return OTHER_BUILDER;
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    const outcome result = compare(row, &text, why);
    hone_buffer_deinit(&text);
    return result;
}

static outcome run_line(const char *line, size_t size, complaint *why)
{
    json_error_t error;
    if (has_lone_surrogate(line, size)) return LONE_SURROGATE;
    json_t *row = json_loadb(line, size, JSON_ALLOW_NUL, &error);
    if (row == NULL) {
        snprintf(why->text, sizeof why->text, "no JSON object: %s", error.text);
        return FAILED;
    }
    const outcome result = run_row(row, why);
    json_decref(row);
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: vectors_callkey FILE.jsonl\n");
        return 2;
    }
    FILE *file = fopen(argv[1], "r");
    if (file == NULL) {
        perror(argv[1]);
        return 2;
    }
    size_t counts[OUTCOMES] = {0}, capacity = 0;
    char *line = NULL;
    ssize_t size;
    for (size_t number = 1; (size = getline(&line, &capacity, file)) >= 0; number++) {
        complaint why = {""};
        if (strspn(line, " \t\r\n") == (size_t)size) continue;
        const outcome result = run_line(line, (size_t)size, &why);
        counts[result]++;
        if (result == FAILED && counts[FAILED] <= SHOWN_FAILURES) printf("line %zu: %s\n", number, why.text);
    }
    const bool unread = ferror(file) != 0;
    free(line);
    fclose(file);
    if (unread) {
        perror(argv[1]);
        return 2;
    }
    printf(
        "left out: %zu with another key builder, %zu with lone surrogates\n", counts[OTHER_BUILDER],
        counts[LONE_SURROGATE]);
    printf("%zu passed, %zu failed\n", counts[PASSED], counts[FAILED]);
    return counts[FAILED] > 0 ? 1 : 0;
}
