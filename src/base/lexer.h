// The one tokenizer of hone's little languages: signatures, spaces, call text, expressions.
#ifndef HONE_BASE_LEXER_H
#define HONE_BASE_LEXER_H

#include "base/memory.h"
#include "base/scalar.h"

typedef enum hone_token_kind {
    HONE_TOKEN_END,
    HONE_TOKEN_NAME,    // letters, digits, '_', bytes >= 0x80; no digit first
    HONE_TOKEN_INTEGER, // no sign; value in scalar
    HONE_TOKEN_FLOAT,
    HONE_TOKEN_STRING, // '...' or "..."; without the quotes in scalar, escapes resolved into the lexer's arena
    HONE_TOKEN_SYMBOL, // an operator or punctuation mark, the longest that fits; "..", "..." and "->" among them
    HONE_TOKEN_ERROR   // and from then on nothing else
} hone_token_kind;

typedef struct hone_token {
    hone_token_kind kind;
    hone_view text;     // the bytes in the source
    hone_scalar scalar; // INTEGER, FLOAT, STRING
    size_t offset;      // from the start of the source, bytes
} hone_token;

// May be copied to look ahead: put the copy back to return.
typedef struct hone_lexer {
    hone_view source;
    size_t position;  // behind the current token
    hone_token token; // the current one
    hone_arena *arena;
    bool newline_ends;   // newlines are tokens, SYMBOL "\n" (spaces, whose lines end statements); set it after init
    hone_error *err;     // filled at the first HONE_TOKEN_ERROR; may be NULL
    hone_status status;  // of that error; HONE_OK before
    const char *problem; // and its words; static
} hone_lexer;

// Starts at the first token.
//   source, arena  borrowed; names, and strings without escapes, are views of source
void hone_lexer_init(hone_lexer *lexer, hone_view source, hone_arena *arena, hone_error *err);
void hone_lexer_next(hone_lexer *lexer);
// Whether the current token is this name or symbol (never a string of that text).
bool hone_lexer_is(const hone_lexer *lexer, const char *symbol_or_name);
bool hone_lexer_accept(hone_lexer *lexer, const char *symbol_or_name); // true: it was there and is eaten
// Reads a literal: ["-"] number, string, true, false, none (also as Python writes them), or a name, which gives its
// text. False, with nothing eaten, when there is none.
bool hone_lexer_literal(hone_lexer *lexer, hone_scalar *out);
// Fails with "offset 12: expected WHAT, found ')'", or with the tokenizer's own words when it stands at an error.
//   where     static
//   expected  what should stand here, as people say it: "a dtype", "',' or ')'"
hone_status hone_lexer_fail(const hone_lexer *lexer, hone_error *err, const char *where, const char *expected);

#endif
