// Checking and walking JSON in place (RFC 8259).
//
// A document is checked once, in one pass, without recursion: a bit for each open object or array says which of the two
// it is, so that hostile nesting costs no stack. What was checked is then walked without a check a byte: a walk finds
// the end of a value by its quotes and brackets alone. So every function of the second half relies on the first having
// accepted the text. Characters beyond 16 bits stand as a pair of surrogates (RFC 8259, section 7).
#include "base/json_text.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

#include <unistr.h>

static const char where[] = "json.text";

// Checking ------------------------------------------------------------------------------------------------------------

typedef struct check {
    const char *start, *at, *end;
    hone_json_dialect dialect;
    uint32_t depth;
    bool in_object[HONE_JSON_DEPTH];
    const char *why; // the first failure
} check;

static bool fail(check *c, const char *why)
{
    if (c->why == NULL) c->why = why;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(check *c)
{
    while (c->at < c->end && is_space(*c->at))
        c->at++;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool check_escape(check *c)
{
    if (c->end - c->at < 2) return fail(c, "an escape is cut off");
    char kind = c->at[1];
    if (kind == 'u') {
        for (int i = 2; i < 6; i++)
            if (c->end - c->at <= i || !is_hex(c->at[i])) return fail(c, "\\u needs four hex digits");
        c->at += 6;
        return true;
    }
    if (strchr("\"\\/bfnrt", kind) == NULL || kind == '\0') return fail(c, "no such escape");
    c->at += 2;
    return true;
}

static bool check_string(check *c)
{
    c->at++;
    while (c->at < c->end && *c->at != '"') {
        if ((unsigned char)*c->at < 0x20) return fail(c, "a control character in a string");
        if (*c->at != '\\')
            c->at++;
        else if (!check_escape(c))
            return false;
    }
    if (c->at == c->end) return fail(c, "a string has no end");
    c->at++;
    return true;
}

static bool take_digits(check *c)
{
    const char *from = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > from;
}

static bool check_number(check *c)
{
    if (c->at < c->end && *c->at == '-') c->at++;
    bool zero = c->at < c->end && *c->at == '0';
    const char *digits = c->at;
    if (!take_digits(c)) return fail(c, "a value is expected");
    if (zero && c->at - digits > 1) return fail(c, "a number with a zero before it");
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!take_digits(c)) return fail(c, "no digits after the point");
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        if (!take_digits(c)) return fail(c, "no digits in the exponent");
    }
    return true;
}

static bool take_word(check *c, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0) return false;
    c->at += size;
    return true;
}

static bool check_scalar(check *c)
{
    static const char *const words[] = {"true", "false", "null"};
    static const char *const python[] = {"NaN", "Infinity", "-Infinity"};
    if (*c->at == '"') return check_string(c);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (take_word(c, words[i])) return true;
    for (size_t i = 0; c->dialect == HONE_JSON_PYTHON && i < sizeof python / sizeof *python; i++)
        if (take_word(c, python[i])) return true;
    return check_number(c);
}

static bool check_key(check *c)
{
    skip_space(c);
    if (c->at == c->end || *c->at != '"') return fail(c, "a key in quotes is expected");
    if (!check_string(c)) return false;
    skip_space(c);
    if (c->at == c->end || *c->at != ':') return fail(c, "':' is expected");
    c->at++;
    skip_space(c);
    return true;
}

// Enters an object or array. *out_empty: it ended at once.
static bool open_nest(check *c, bool *out_empty)
{
    bool is_object = *c->at == '{';
    if (c->depth == HONE_JSON_DEPTH) return fail(c, "nested too deep");
    c->at++;
    skip_space(c);
    *out_empty = c->at < c->end && *c->at == (is_object ? '}' : ']');
    if (*out_empty) {
        c->at++;
        return true;
    }
    hone_assert(c->depth < HONE_JSON_DEPTH);
    c->in_object[c->depth++] = is_object;
    return !is_object || check_key(c);
}

// After a value: leaves what ends here, and stands before the next value, or at depth 0.
static bool after_value(check *c)
{
    while (c->depth > 0) {
        bool is_object = c->in_object[c->depth - 1];
        skip_space(c);
        if (c->at == c->end) return fail(c, "the text ends early");
        if (*c->at == ',') {
            c->at++;
            skip_space(c);
            return !is_object || check_key(c);
        }
        if (*c->at != (is_object ? '}' : ']'))
            return fail(c, is_object ? "',' or '}' is expected" : "',' or ']' is expected");
        c->at++;
        c->depth--;
    }
    return true;
}

static bool check_value(check *c)
{
    do {
        bool empty = true;
        if (c->at == c->end) return fail(c, "the text ends early");
        if (*c->at == '{' || *c->at == '[') {
            if (!open_nest(c, &empty)) return false;
        } else if (!check_scalar(c)) {
            return false;
        }
        if (empty && !after_value(c)) return false;
    } while (c->depth > 0);
    return true;
}

static hone_status fail_at(const check *c, hone_error *err)
{
    size_t line = 1, column = 1;
    for (const char *p = c->start; p < c->at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return hone_fail(err, HONE_CORRUPT, where, "not JSON: line %zu, column %zu: %s", line, column, c->why);
}

hone_status hone_json_text_check(hone_view text, hone_json_dialect dialect, hone_view *out_value, hone_error *err)
{
    check c = {.start = text.data, .at = text.data, .end = text.data + text.size, .dialect = dialect};
    if (!hone_text_is_utf8(text.data, text.size))
        return hone_fail(err, HONE_CORRUPT, where, "not JSON: it is not UTF-8");
    skip_space(&c);
    const char *from = c.at;
    bool ok = check_value(&c);
    *out_value = (hone_view){from, (size_t)(c.at - from)};
    skip_space(&c);
    if (ok && c.at < c.end) ok = fail(&c, "more text after the value");
    return ok ? HONE_OK : fail_at(&c, err);
}

// Walking -------------------------------------------------------------------------------------------------------------

static const char *past_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

static const char *past_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

// The end of a value in text that was checked.
static const char *past_value(const char *at, const char *end)
{
    size_t depth = 0;
    if (*at != '{' && *at != '[' && *at != '"') {
        while (at < end && !is_space(*at) && strchr(",]}", *at) == NULL)
            at++;
        return at;
    }
    do {
        if (*at == '"') {
            at = past_string(at, end);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    } while (depth > 0 && at < end);
    return at;
}

hone_json_walk hone_json_walk_of(hone_view value)
{
    bool nests = hone_json_is_object(value) || hone_json_is_array(value);
    hone_assert(!nests || value.data[value.size - 1] == (value.data[0] == '{' ? '}' : ']'));
    if (!nests) return (hone_json_walk){value.data, value.data, false};
    return (hone_json_walk){value.data + 1, value.data + value.size - 1, value.data[0] == '{'};
}

bool hone_json_walk_next(hone_json_walk *walk, hone_view *out_key, hone_view *out_value)
{
    hone_assert(walk->at <= walk->end);
    const char *at = past_space(walk->at, walk->end);
    *out_key = (hone_view){at, 0};
    if (at < walk->end && *at == ',') at = past_space(at + 1, walk->end);
    if (at >= walk->end) return false;
    if (walk->is_object) {
        const char *key = at;
        at = past_string(at, walk->end);
        *out_key = (hone_view){key, (size_t)(at - key)};
        at = past_space(at, walk->end);
        at = past_space(at + 1, walk->end); // the colon
    }
    const char *value = at;
    walk->at = past_value(at, walk->end);
    *out_value = (hone_view){value, (size_t)(walk->at - value)};
    return true;
}

hone_view hone_json_member(hone_view object, const char *name)
{
    hone_assert(name != NULL);
    hone_view key, value, found = {object.data, 0};
    size_t size = strlen(name);
    if (!hone_json_is_object(object)) return found;
    for (hone_json_walk walk = hone_json_walk_of(object); hone_json_walk_next(&walk, &key, &value);)
        if (key.size == size + 2 && memcmp(key.data + 1, name, size) == 0) found = value;
    return found;
}

static bool begins(hone_view value, char c)
{
    return value.size > 0 && value.data[0] == c;
}

bool hone_json_is_object(hone_view value)
{
    return begins(value, '{');
}

bool hone_json_is_array(hone_view value)
{
    return begins(value, '[');
}

bool hone_json_is_string(hone_view value)
{
    return begins(value, '"');
}

bool hone_json_is_number(hone_view value)
{
    return value.size > 0 && (value.data[0] == '-' || (value.data[0] >= '0' && value.data[0] <= '9')) &&
           value.data[value.size - 1] != 'y'; // -Infinity
}

bool hone_json_is_null(hone_view value)
{
    return hone_view_is(value, "null");
}

// Decoding ------------------------------------------------------------------------------------------------------------

static ucs4_t unit_at(const char *digits)
{
    ucs4_t unit = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        unit = unit * 16 + (ucs4_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return unit;
}

// At "\u": the character and the text behind it; 0 if the escape is not valid.
static ucs4_t take_unicode(const char **at, const char *end)
{
    ucs4_t high = unit_at(*at + 2);
    *at += 6;
    if (high < 0xd800 || high > 0xdfff) return high;
    if (high > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') return 0;
    ucs4_t low = unit_at(*at + 2);
    if (low < 0xdc00 || low > 0xdfff) return 0;
    *at += 6;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static char short_escape(char kind)
{
    static const char kinds[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const char *found = strchr(kinds, kind);
    return found != NULL ? meant[found - kinds] : kind;
}

static bool decode(const char *at, const char *end, hone_buffer *out)
{
    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        size_t plain = (size_t)((escape != NULL ? escape : end) - at);
        hone_buffer_append(out, at, plain);
        at += plain;
        if (at == end) break;
        if (at[1] != 'u') {
            hone_buffer_char(out, short_escape(at[1]));
            at += 2;
            continue;
        }
        uint8_t bytes[8];
        ucs4_t c = take_unicode(&at, end);
        int size = c == 0 ? 0 : u8_uctomb(bytes, c, sizeof bytes);
        if (size <= 0) return false;
        hone_buffer_append(out, bytes, (size_t)size);
    }
    return true;
}

bool hone_json_decode(hone_view string, hone_buffer *out)
{
    size_t before = out->size;
    if (!hone_json_is_string(string)) return false;
    hone_assert(string.size >= 2 && string.data[string.size - 1] == '"');
    if (decode(string.data + 1, string.data + string.size - 1, out)) return true;
    out->size = before;
    if (out->data != NULL) out->data[before] = '\0';
    return false;
}

void hone_json_compact(hone_view value, hone_buffer *out)
{
    const char *end = value.data + value.size, *from = value.data;
    bool in_string = false;
    for (const char *at = value.data; at < end; at++) {
        if (in_string && *at == '\\') {
            at++; // what is escaped ends no string
        } else if (*at == '"') {
            in_string = !in_string;
        } else if (!in_string && is_space(*at)) {
            hone_buffer_append(out, from, (size_t)(at - from));
            from = at + 1;
        }
    }
    hone_buffer_append(out, from, (size_t)(end - from));
}
