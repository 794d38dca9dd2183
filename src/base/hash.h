// Hashes: SHA-256 (nettle) where a key is written down, XXH3 (xxHash) in tables.
#ifndef HONE_BASE_HASH_H
#define HONE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HONE_KEY_SIZE = 17, HONE_SHA256_HEX_SIZE = 65 };

// The first 16 lower-case hex digits of SHA-256 over text, NUL-terminated: the call key.
void hone_hash_key(const void *text, size_t size, char out_key[HONE_KEY_SIZE]);
// Whether text has the form of one: 16 lower-case hex digits. NULL has not.
bool hone_is_key(const char *text);
// All 64 digits.
void hone_hash_sha256(const void *text, size_t size, char out_hex[HONE_SHA256_HEX_SIZE]);
// XXH3, 64 bits.
uint64_t hone_hash64(const void *bytes, size_t size);

#endif
