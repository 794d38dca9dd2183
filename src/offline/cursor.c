#include "offline/cursor.h"

enum {
    N = BYTE_NAME,
    S = BYTE_STRING,
    B = BYTE_BRACKET,
    T = BYTE_TYPE,
    M = BYTE_STATEMENT,
};

// clang-format off
const unsigned char hone_byte_classes[256] = {
    ['a'] = N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
    ['A'] = N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
    ['0'] = N, N, N, N, N, N, N, N, N, N,
    ['_'] = N, ['.'] = N, ['-'] = N, ['$'] = N,
    [128] = N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
            N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
            N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
            N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N,
    ['\\'] = S,
    ['"'] = S | B | T | M,
    ['\n'] = S | T | M,
    ['('] = B | T | M, ['['] = B | T | M, ['{'] = B | T | M,
    [')'] = B | T | M, [']'] = B | M, ['}'] = B | M,
    ['<'] = T | M, ['>'] = T | M,
    [','] = T, [' '] = T,
    ['%'] = M, ['@'] = M, [':'] = M,
};
// clang-format on
