// Hashes: SHA-256 (nettle) where a key is written down, XXH3 (xxHash) in tables.
#ifndef HONE_BASE_HASH_H
#define HONE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HONE_KEY_SIZE = 17, HONE_SHA256_HEX_SIZE = 65 };

// The first 16 lower-case hex digits of SHA-256 over text, NUL-terminated: the call key.
void hone_hash_key(const void *text, size_t size, char out_key[HONE_KEY_SIZE]);
// Whether text has the form of one: 16 lower-case hex digits. NULL has not.
bool hone_is_key(const char *text);
// All 64 digits.
void hone_hash_sha256(const void *text, size_t size, char out_hex[HONE_SHA256_HEX_SIZE]);
// A digest by the algorithm of that name, "sha256" or "sha512", in base64 with its padding. False: there is no such one.
enum { HONE_HASH_BASE64_SIZE = 89 };
bool hone_hash_base64(const char *algorithm, const void *bytes, size_t size, char out[HONE_HASH_BASE64_SIZE]);
// XXH3, 64 bits.
uint64_t hone_hash64(const void *bytes, size_t size);
// A number for what was hashed so far and for what comes now.
uint64_t hone_hash64_add(uint64_t so_far, const void *bytes, size_t size);

// Another hash, for tables of names: most of those have at most 16 bytes, which it takes as two numbers that may
// overlap. Reading and mixing are wyhash's (Wang Yi; the first two constants are of its default secret), the last
// constant is XXH3's PRIME_MX2.
static inline uint64_t hone_hash_name(const char *name, size_t size)
{
    uint64_t low = 0, high = 0;
    uint32_t first, last;
    if (size > 16) return hone_hash64(name, size);
    if (size >= 8) {
        memcpy(&low, name, sizeof low);
        memcpy(&high, name + size - sizeof high, sizeof high);
    } else if (size >= 4) {
        memcpy(&first, name, sizeof first);
        memcpy(&last, name + size - sizeof last, sizeof last);
        low = (uint64_t)first << 32 | last;
    } else {
        for (size_t i = 0; i < size; i++)
            low = low << 8 | (unsigned char)name[i];
    }
    // The upper half of a product mixes what its lower half only moves up; the sum keeps names apart whose one half
    // makes it zero.
    __extension__ unsigned __int128 product =
        (unsigned __int128)(low ^ UINT64_C(0xa0761d6478bd642f)) * (high ^ UINT64_C(0xe7037ed1a0b428db));
    return ((uint64_t)product ^ (uint64_t)(product >> 64)) + low + high * UINT64_C(0x9fb21c651e98df25) + size;
}

#endif
