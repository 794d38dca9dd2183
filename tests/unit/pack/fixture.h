// A pack in a folder of its own, written by the test.
#ifndef HONE_TESTS_PACK_FIXTURE_H
#define HONE_TESTS_PACK_FIXTURE_H

#include "base/hash.h"
#include "pack/pack.h"
#include "platforms/platform.h"
#include "temporary_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    temporary_folder folder;
    hone_kernel_pack *pack;
    hone_error err;
} fixture;

static inline void fixture_open(fixture *f)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(temporary_folder_make(&f->folder), 0);
}

static inline void fixture_close(fixture *f)
{
    hone_pack_close(&f->pack);
    temporary_folder_remove(&f->folder);
}

static inline void fixture_write(const fixture *f, const char *name, const char *text)
{
    char path[TEMPORARY_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", f->folder.path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// Replaces each '%' by the digest of "code\n", which is what the file a.c has.
static inline void fixture_pack(const fixture *f, const char *json)
{
    char digest[HONE_SHA256_HEX_SIZE], text[8192];
    size_t size = 0;
    hone_hash_sha256("code\n", 5, digest);
    for (; *json != '\0'; json++) {
        assert_true(size + sizeof digest < sizeof text);
        if (*json == '%') {
            memcpy(text + size, digest, sizeof digest - 1);
            size += sizeof digest - 1;
        } else {
            text[size++] = *json == '\'' ? '"' : *json;
        }
    }
    text[size] = '\0';
    fixture_write(f, "a.c", "code\n");
    fixture_write(f, "pack.json", text);
}

static inline hone_status fixture_read_with(fixture *f, const hone_allocator *allocator, hone_pack_judge *judge)
{
    const hone_pack_platforms platforms = {.find = hone_platform_facts_of, .judge = judge};
    hone_pack_close(&f->pack);
    return hone_pack_open(allocator, f->folder.path, &platforms, &f->pack, &f->err);
}

static inline hone_status fixture_read(fixture *f)
{
    hone_allocator allocator = hone_allocator_system();
    return fixture_read_with(f, &allocator, NULL);
}

static inline const hone_pack_kernel *fixture_kernel(const fixture *f, size_t index)
{
    assert_true(index < hone_pack_size(f->pack));
    return hone_pack_kernel_at(f->pack, index)->code->pack;
}

// A pack of one kernel with further fields, and why it was refused; NULL: it was not.
static inline const char *fixture_refusal(fixture *f, const char *more)
{
    char json[4096];
    snprintf(
        json, sizeof json,
        "{'hone_pack': 1, 'name': 'p', 'kernels': [{'algorithm': 'saxpy', 'name': 'k', 'platform': 'native', "
        "'backend': 'cpu'%s}]}",
        more);
    fixture_pack(f, json);
    assert_int_equal(fixture_read(f), HONE_OK);
    return fixture_kernel(f, 0)->refusal;
}

#endif
