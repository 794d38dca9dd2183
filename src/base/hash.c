// Keys that are written down are cut from SHA-256 (FIPS 180-4), so that nobody can make two calls of one key on
// purpose, and so that they mean the same on every machine and in every version. In tables a hash lives as long as its
// process, and XXH3 is many times faster.
#include "base/hash.h"
#include "base/hash_wide.h"

#include "base/assert.h"

#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char digits[] = "0123456789abcdef";

static void write_hex(const uint8_t *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = '\0';
}

static void digest(const void *text, size_t size, uint8_t out[SHA256_DIGEST_SIZE])
{
    struct sha256_ctx state;
    sha256_init(&state);
    sha256_update(&state, size, text);
    sha256_digest(&state, SHA256_DIGEST_SIZE, out);
}

void hone_hash_key(const void *text, size_t size, char out_key[HONE_KEY_SIZE])
{
    uint8_t bytes[SHA256_DIGEST_SIZE];
    hone_assert(text != NULL || size == 0);
    digest(text, size, bytes);
    write_hex(bytes, (HONE_KEY_SIZE - 1) / 2, out_key);
}

void hone_hash_sha256(const void *text, size_t size, char out_hex[HONE_SHA256_HEX_SIZE])
{
    uint8_t bytes[SHA256_DIGEST_SIZE];
    digest(text, size, bytes);
    write_hex(bytes, SHA256_DIGEST_SIZE, out_hex);
}

bool hone_hash_base64(const char *algorithm, const void *bytes, size_t size, char out[HONE_HASH_BASE64_SIZE])
{
    uint8_t made[SHA512_DIGEST_SIZE];
    size_t made_size = SHA256_DIGEST_SIZE;
    struct sha512_ctx state;
    if (strcmp(algorithm, "sha256") == 0) {
        digest(bytes, size, made);
    } else if (strcmp(algorithm, "sha512") == 0) {
        made_size = SHA512_DIGEST_SIZE;
        sha512_init(&state);
        sha512_update(&state, size, bytes);
        sha512_digest(&state, made_size, made);
    } else {
        return false;
    }
    base64_encode_raw(out, made_size, made);
    out[BASE64_ENCODE_RAW_LENGTH(made_size)] = '\0';
    return true;
}

bool hone_is_key(const char *text)
{
    return text != NULL && strlen(text) == HONE_KEY_SIZE - 1 && strspn(text, digits) == HONE_KEY_SIZE - 1;
}

// xxHash takes the vectors of what it is compiled for, SSE2 here: wide ones hash twice as much in a second, and give
// the same number. Small inputs are not worth the question.
uint64_t hone_hash64(const void *bytes, size_t size)
{
    enum { WIDE_SIZE = 4096 };
#if defined(__x86_64__)
    if (size >= WIDE_SIZE && __builtin_cpu_supports("avx512f")) return hone_hash64_avx512(bytes, size);
    if (size >= WIDE_SIZE && __builtin_cpu_supports("avx2")) return hone_hash64_avx2(bytes, size);
#endif
    return XXH3_64bits(bytes, size);
}

uint64_t hone_hash64_add(uint64_t so_far, const void *bytes, size_t size)
{
    const uint64_t both[] = {so_far, hone_hash64(bytes, size)};
    return hone_hash64(both, sizeof both);
}
