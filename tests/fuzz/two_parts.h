// Inputs of two parts: a signature on the first line, and what is read by it behind the newline.
#ifndef HONE_FUZZ_TWO_PARTS_H
#define HONE_FUZZ_TWO_PARTS_H

#include "hone/hone.h"

#include <stdlib.h>
#include <string.h>

typedef struct two_parts {
    hone_signature *signature; // NULL: the first line is none
    char *text;                // NUL-terminated copy of all
    const char *rest;
    size_t rest_size;
} two_parts;

static inline void two_parts_open(two_parts *parts, const uint8_t *data, size_t size)
{
    memset(parts, 0, sizeof *parts);
    parts->text = malloc(size + 1);
    if (parts->text == NULL) return;
    if (size > 0) memcpy(parts->text, data, size);
    parts->text[size] = '\0';
    char *newline = memchr(parts->text, '\n', size);
    parts->rest = newline == NULL ? parts->text + size : newline + 1;
    parts->rest_size = size - (size_t)(parts->rest - parts->text);
    if (newline != NULL) *newline = '\0';
    hone_error err = {0};
    hone_status status = hone_signature_parse(hone_allocator_system(), parts->text, &parts->signature, &err);
    if ((status == HONE_OK) != (parts->signature != NULL) || err.status != status) abort();
}

static inline void two_parts_close(two_parts *parts)
{
    hone_signature_release(&parts->signature);
    free(parts->text);
}

// The spec of a call reads back to the same spec and key.
static inline void check_spec(hone_signature *signature, const hone_call *call)
{
    const char *spec = hone_call_spec(call);
    hone_call *again = NULL;
    hone_error err;
    if (hone_call_from_spec(hone_allocator_system(), signature, spec, strlen(spec), &again, &err) != HONE_OK) abort();
    if (strcmp(hone_call_spec(again), spec) != 0 || strcmp(hone_call_key(again), hone_call_key(call)) != 0) abort();
    hone_call_release(&again);
}

#endif
