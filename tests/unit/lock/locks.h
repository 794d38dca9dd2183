// Lock files of the tests: lines in short, texts sealed on the spot.
#ifndef HONE_TESTS_LOCK_LOCKS_H
#define HONE_TESTS_LOCK_LOCKS_H

#include "base/hash.h"
#include "lock/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEY_A "0123456789abcdef"
#define KEY_B "fedcba9876543210"

static inline hone_lock_line line_of(const char *key, const char *device, const char *kernel, const char *config)
{
    return (hone_lock_line){
        .algorithm = "norm",
        .version = "1",
        .key = key,
        .device = device,
        .platform = "native",
        .kernel = kernel,
        .config = config,
        .call = "norm(f32[4])",
    };
}

static inline hone_lock *new_lock(void)
{
    hone_lock *lock = NULL;
    hone_error err;
    if (hone_lock_create(hone_allocator_system(), &lock, &err) != HONE_OK) fail_msg("%s", err.message);
    return lock;
}

static inline void put_line(hone_lock *lock, hone_lock_line line)
{
    hone_error err;
    if (hone_lock_put(lock, &line, &err) != HONE_OK) fail_msg("%s", err.message);
}

// The caller frees it.
static inline char *text_of(const hone_lock *lock)
{
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    hone_lock_text(lock, &text);
    assert_false(text.failed);
    char *copy = strdup(hone_buffer_string(&text));
    hone_buffer_deinit(&text);
    assert_non_null(copy);
    return copy;
}

// A header whose hash is right, and the body. The caller frees it.
static inline char *sealed(const char *body)
{
    char hash[HONE_SHA256_HEX_SIZE];
    const size_t size = strlen(body) + 200;
    char *text = malloc(size);
    if (text == NULL) abort();
    hone_hash_sha256(body, strlen(body), hash);
    snprintf(text, size, "hone.lock 1 sha256:%s\n%s", hash, body);
    return text;
}

static inline hone_status parse_text(const char *text, unsigned flags, hone_lock **out, hone_error *err)
{
    return hone_lock_parse(hone_allocator_system(), "hone.lock", text, strlen(text), flags, out, err);
}

static inline hone_lock *parsed(const char *text)
{
    hone_lock *lock = NULL;
    hone_error err;
    if (parse_text(text, 0, &lock, &err) != HONE_OK) fail_msg("%s", err.message);
    return lock;
}

#endif
