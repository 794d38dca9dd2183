// The words of an enum: a table at its numbers, which writers and readers both walk.
#ifndef HONE_BASE_ENUM_H
#define HONE_BASE_ENUM_H

#include "hone/status.h"

typedef struct hone_enum {
    const char *const *words; // at their numbers
    int first, count;         // words that are read: first to count - 1; those before are only written
    const char *unknown;      // what stands for a number without a word: "unknown policy"
} hone_enum;

// Static text. The number may be any: one of a damaged record has no word.
const char *hone_enum_word(const hone_enum *words, int number);
// The number of a word; -1: none has it. word may be NULL.
int hone_enum_find(const hone_enum *words, const char *word);
// HONE_INVALID_ARGUMENT with every word that is read. where: the operation that was given the word, which may be NULL.
hone_status hone_enum_refuse(const hone_enum *words, const char *where, const char *word, hone_error *err);

#endif
