// One tokenizer, so that a number, a name or a string reads the same in every language of hone. It looks one token
// ahead and no further; of symbols that begin alike the longest is taken. Whoever needs more copies the lexer, which
// holds nothing, and reads on with the copy. Invariant: the token's text lies inside the source, and each call moves on
// or stays at the end.
#include "base/lexer.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/number.h"

#include <string.h>

static const char where[] = "lexer";

// Longer ones before their beginnings.
static const char *const symbols[] = {
    "...", "..", "->", "//", "==", "!=", "<=", ">=", "&&", "||", "**", ".", "-", "+", "*", "/", "%", "=",
    "!",   "<",  ">",  "|",  "(",  ")",  "[",  "]",  "{",  "}",  ",",  ":", ";", "@", "#", "~", "?",
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_space(const hone_lexer *lexer, char c)
{
    return c == ' ' || c == '\t' || c == '\r' || (c == '\n' && !lexer->newline_ends);
}

// The byte at a position; NUL behind the end, which no token holds.
static char byte_at(const hone_lexer *lexer, size_t position)
{
    return position < lexer->source.size ? lexer->source.data[position] : '\0';
}

// The token's text runs from its offset to end, which becomes the position.
static void end_token(hone_lexer *lexer, hone_token_kind kind, size_t end)
{
    hone_assert(end >= lexer->token.offset && end <= lexer->source.size);
    lexer->token.kind = kind;
    lexer->token.text.data = lexer->source.data + lexer->token.offset;
    lexer->token.text.size = end - lexer->token.offset;
    lexer->position = end;
}

static void stop(hone_lexer *lexer, hone_status status, const char *problem)
{
    lexer->status = status;
    lexer->problem = problem;
    end_token(lexer, HONE_TOKEN_ERROR, lexer->position);
    hone_fail(lexer->err, status, where, "offset %zu: %s", lexer->token.offset, problem);
}

static size_t skip_digits(const hone_lexer *lexer, size_t position)
{
    while (is_digit(byte_at(lexer, position)))
        position++;
    return position;
}

// The end of an exponent that starts at position, or position itself.
static size_t skip_exponent(const hone_lexer *lexer, size_t position)
{
    if (byte_at(lexer, position) != 'e' && byte_at(lexer, position) != 'E') return position;
    size_t digits = position + 1;
    if (byte_at(lexer, digits) == '+' || byte_at(lexer, digits) == '-') digits++;
    return is_digit(byte_at(lexer, digits)) ? skip_digits(lexer, digits) : position;
}

// The end of the ".25e-3" behind the digits that end at position, or position for an integer. "1..8" is a range.
static size_t skip_fraction(const hone_lexer *lexer, size_t position)
{
    if (byte_at(lexer, position) == '.' && byte_at(lexer, position + 1) != '.') {
        if (is_digit(byte_at(lexer, position + 1)))
            position = skip_digits(lexer, position + 1);
        else if (!starts_name(byte_at(lexer, position + 1)))
            return position + 1;
    }
    return skip_exponent(lexer, position);
}

static void read_float(hone_lexer *lexer, const char *text, size_t size)
{
    double value;
    if (text[size - 1] == '.') size--;
    if (!hone_number_parse(text, size, &value) || value > 1.7976931348623157e308) {
        stop(lexer, HONE_INVALID_ARGUMENT, "a float that no double can hold");
        return;
    }
    lexer->token.scalar = hone_scalar_float(value);
}

static void read_integer(hone_lexer *lexer, const char *text, size_t size)
{
    int64_t value;
    if (!hone_integer_parse(text, size, &value)) {
        stop(lexer, HONE_INVALID_ARGUMENT, "an integer that 64 bits cannot hold");
        return;
    }
    lexer->token.scalar = hone_scalar_int(value);
}

static void read_number(hone_lexer *lexer)
{
    size_t start = lexer->position, whole = skip_digits(lexer, start), end = skip_fraction(lexer, whole);
    if (starts_name(byte_at(lexer, end))) {
        stop(lexer, HONE_INVALID_ARGUMENT, "a number with letters behind it (names start with a letter or '_')");
        return;
    }
    end_token(lexer, end == whole ? HONE_TOKEN_INTEGER : HONE_TOKEN_FLOAT, end);
    if (end == whole)
        read_integer(lexer, lexer->token.text.data, end - start);
    else
        read_float(lexer, lexer->token.text.data, end - start);
}

static void read_name(hone_lexer *lexer)
{
    size_t end = lexer->position;
    while (starts_name(byte_at(lexer, end)) || is_digit(byte_at(lexer, end)))
        end++;
    end_token(lexer, HONE_TOKEN_NAME, end);
}

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// The four hex digits at position, or -1.
static int32_t hex4(const hone_lexer *lexer, size_t position)
{
    int32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(byte_at(lexer, position + i));
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[size] | code);
    return size;
}

// The code point of the \uXXXX (or pair of them) whose 'u' is at *position; moves there behind it. -1: none.
static int32_t read_unicode(const hone_lexer *lexer, size_t *position)
{
    int32_t high = hex4(lexer, *position + 1);
    *position += 5;
    if (high < 0xd800 || high > 0xdfff) return high;
    bool pair = high < 0xdc00 && byte_at(lexer, *position) == '\\' && byte_at(lexer, *position + 1) == 'u';
    int32_t low = pair ? hex4(lexer, *position + 2) : -1;
    *position += 6;
    return low < 0xdc00 || low > 0xdfff ? -1 : 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static char plain_escape(char c)
{
    static const char names[] = "\\\"'/nrtbf", values[] = "\\\"'/\n\r\t\b\f";
    const char *found = c == '\0' ? NULL : strchr(names, c);
    return found == NULL ? '\0' : values[found - names];
}

// Resolves the escapes between start and end into out, which has room for as many bytes. -1: a bad escape.
static ptrdiff_t unescape(const hone_lexer *lexer, size_t start, size_t end, char *out)
{
    size_t size = 0;
    for (size_t i = start; i < end;) {
        char c = byte_at(lexer, i++);
        if (c != '\\') {
            out[size++] = c;
        } else if (byte_at(lexer, i) == 'u') {
            int32_t code = read_unicode(lexer, &i);
            if (code < 0) return -1;
            size += put_utf8(out + size, (uint32_t)code);
        } else {
            c = plain_escape(byte_at(lexer, i++));
            if (c == '\0') return -1;
            out[size++] = c;
        }
    }
    return (ptrdiff_t)size;
}

// The position of the closing quote; the source's size when there is none on this line.
static size_t find_quote(const hone_lexer *lexer, size_t position, char quote, bool *out_escapes)
{
    *out_escapes = false;
    for (; position < lexer->source.size; position++) {
        char c = lexer->source.data[position];
        if (c == quote) return position;
        if (c == '\n') break;
        if (c != '\\') continue;
        *out_escapes = true;
        position++;
    }
    return lexer->source.size;
}

static void read_string(hone_lexer *lexer)
{
    bool escapes;
    size_t start = lexer->position + 1;
    size_t end = find_quote(lexer, start, byte_at(lexer, lexer->position), &escapes);
    if (end >= lexer->source.size) {
        stop(lexer, HONE_INVALID_ARGUMENT, "a string without its closing quote on the same line");
        return;
    }
    hone_view content = {lexer->source.data + start, end - start};
    if (escapes) {
        char *text = hone_arena_alloc(lexer->arena, content.size + 1);
        if (text == NULL) {
            stop(lexer, HONE_OUT_OF_MEMORY, "no memory for a string");
            return;
        }
        ptrdiff_t size = unescape(lexer, start, end, text);
        if (size < 0) {
            stop(
                lexer, HONE_INVALID_ARGUMENT,
                "a string with an unknown escape (there are \\\\ \\\" \\' \\/ \\n \\r \\t \\b \\f and \\uXXXX)");
            return;
        }
        content = (hone_view){text, (size_t)size};
    }
    end_token(lexer, HONE_TOKEN_STRING, end + 1);
    lexer->token.scalar = hone_scalar_text(content);
}

static void read_symbol(hone_lexer *lexer)
{
    size_t left = lexer->source.size - lexer->position;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        size_t size = strlen(symbols[i]);
        if (size > left || memcmp(lexer->source.data + lexer->position, symbols[i], size) != 0) continue;
        end_token(lexer, HONE_TOKEN_SYMBOL, lexer->position + size);
        return;
    }
    stop(lexer, HONE_INVALID_ARGUMENT, "a character that has no meaning here");
}

void hone_lexer_init(hone_lexer *lexer, hone_view source, hone_arena *arena, hone_error *err)
{
    if (source.data == NULL) source = (hone_view){"", 0};
    *lexer = (hone_lexer){.source = source, .arena = arena, .err = err};
    hone_lexer_next(lexer);
}

void hone_lexer_next(hone_lexer *lexer)
{
    if (lexer->token.kind == HONE_TOKEN_ERROR) return;
    while (lexer->position < lexer->source.size && is_space(lexer, lexer->source.data[lexer->position]))
        lexer->position++;
    lexer->token = (hone_token){.offset = lexer->position};
    if (lexer->position == lexer->source.size) {
        end_token(lexer, HONE_TOKEN_END, lexer->position);
        return;
    }
    char c = lexer->source.data[lexer->position];
    if (c == '\n')
        end_token(lexer, HONE_TOKEN_SYMBOL, lexer->position + 1);
    else if (is_digit(c))
        read_number(lexer);
    else if (starts_name(c))
        read_name(lexer);
    else if (c == '"' || c == '\'')
        read_string(lexer);
    else
        read_symbol(lexer);
}

bool hone_lexer_is(const hone_lexer *lexer, const char *symbol_or_name)
{
    hone_token_kind kind = lexer->token.kind;
    return (kind == HONE_TOKEN_NAME || kind == HONE_TOKEN_SYMBOL) && hone_view_is(lexer->token.text, symbol_or_name);
}

bool hone_lexer_accept(hone_lexer *lexer, const char *symbol_or_name)
{
    if (!hone_lexer_is(lexer, symbol_or_name)) return false;
    hone_lexer_next(lexer);
    return true;
}

static hone_scalar name_literal(hone_view name)
{
    if (hone_view_is(name, "true") || hone_view_is(name, "True")) return hone_scalar_bool(true);
    if (hone_view_is(name, "false") || hone_view_is(name, "False")) return hone_scalar_bool(false);
    if (hone_view_is(name, "none") || hone_view_is(name, "None")) return (hone_scalar){.kind = HONE_SCALAR_NONE};
    return hone_scalar_text(name);
}

static bool negative_literal(hone_lexer *lexer, hone_scalar *out)
{
    hone_lexer ahead = *lexer;
    ahead.err = NULL;
    hone_lexer_next(&ahead);
    if (ahead.token.kind != HONE_TOKEN_INTEGER && ahead.token.kind != HONE_TOKEN_FLOAT) return false;
    hone_scalar_apply(HONE_OPERATION_NEGATE, &ahead.token.scalar, &ahead.token.scalar, out);
    hone_lexer_next(lexer);
    hone_lexer_next(lexer);
    return true;
}

bool hone_lexer_literal(hone_lexer *lexer, hone_scalar *out)
{
    switch (lexer->token.kind) {
    case HONE_TOKEN_INTEGER:
    case HONE_TOKEN_FLOAT:
    case HONE_TOKEN_STRING:
        *out = lexer->token.scalar;
        break;
    case HONE_TOKEN_NAME:
        *out = name_literal(lexer->token.text);
        break;
    default:
        return hone_lexer_is(lexer, "-") && negative_literal(lexer, out);
    }
    hone_lexer_next(lexer);
    return true;
}

hone_status hone_lexer_fail(const hone_lexer *lexer, hone_error *err, const char *place, const char *expected)
{
    const hone_token *token = &lexer->token;
    if (token->kind == HONE_TOKEN_ERROR)
        return hone_fail(err, lexer->status, place, "offset %zu: %s", token->offset, lexer->problem);
    if (token->kind == HONE_TOKEN_END || hone_lexer_is(lexer, "\n"))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, place, "offset %zu: expected %s, found the end%s", token->offset, expected,
            token->kind == HONE_TOKEN_END ? "" : " of the line");
    int size = token->text.size > 40 ? 40 : (int)token->text.size;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, place, "offset %zu: expected %s, found '%.*s'", token->offset, expected, size,
        token->text.data);
}
