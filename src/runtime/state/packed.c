#include "runtime/state/packed.h"

// Odd pseudo-random numbers: splitmix64 of their index. Source: G. L. Steele, D. Lea and C. H. Flood, "Fast splittable
// pseudorandom number generators", 2014.
#define STEP(place)    (((place) + 1) * 0x9e3779b97f4a7c15ull)
#define MIX_1(z)       (((z) ^ ((z) >> 30)) * 0xbf58476d1ce4e5b9ull)
#define MIX_2(z)       (((z) ^ ((z) >> 27)) * 0x94d049bb133111ebull)
#define SALT(place)    ((MIX_2(MIX_1(STEP(place))) ^ MIX_2(MIX_1(STEP(place))) >> 31) | 1)
#define SALTS_4(from)  SALT((from) + 0ull), SALT((from) + 1ull), SALT((from) + 2ull), SALT((from) + 3ull)
#define SALTS_16(from) SALTS_4((from) + 0ull), SALTS_4((from) + 4ull), SALTS_4((from) + 8ull), SALTS_4((from) + 12ull)
#define SALTS_64(from)                                                                                                 \
    SALTS_16((from) + 0ull), SALTS_16((from) + 16ull), SALTS_16((from) + 32ull), SALTS_16((from) + 48ull)

const uint64_t hone_packed_salt[HONE_PACKED_WORDS] = {SALTS_64(0), SALTS_64(64), SALTS_64(128)};

// The flags for data that is absent or not aligned to 16 bytes.
static uint64_t alignment(const hone_tensor *tensor, uint64_t address)
{
    if (tensor->data != NULL && (address & 15) == 0) return 0;
    uint64_t class = tensor->data == NULL ? 7 : (uint64_t)__builtin_ctzll(address);
    return HONE_PACKED_UNALIGNED | class << 9;
}

// The device follows the dims if it is not the CPU, and the strides if they are not row-major.
static bool add_tensor(hone_packing *to, const hone_tensor *tensor)
{
    static const hone_device cpu = {HONE_DEVICE_CPU, 0};
    if (tensor == NULL || (uint32_t)tensor->ndim > HONE_MAX_RANK) return false;
    if (tensor->ndim > 0 && tensor->shape == NULL) return false;
    bool elsewhere = memcmp(&tensor->device, &cpu, sizeof cpu) != 0;
    bool strided = tensor->strides != NULL && !hone_packed_dense(tensor);
    uint64_t address = hone_packed_address(tensor), device;
    uint64_t head = hone_packed_head(tensor) | alignment(tensor, address) | (elsewhere ? HONE_PACKED_ELSEWHERE : 0) |
                    (strided ? HONE_PACKED_STRIDED : 0);
    hone_packing_add_address(to, address);
    hone_packing_add_tensor(to, head, tensor->shape);
    memcpy(&device, &tensor->device, sizeof device);
    if (elsewhere) hone_packing_add(to, device);
    for (int32_t i = 0; strided && i < tensor->ndim; i++)
        hone_packing_add(to, (uint64_t)tensor->strides[i]);
    return true;
}

// A string takes at most `room` words.
static bool add_string(hone_packing *to, size_t room, const char *string)
{
    if (string == NULL) return false;
    size_t size = strnlen(string, 8 * room);
    if (1 + (size + 7) / 8 > room) return false;
    hone_packing_add(to, HONE_PACKED_STRING | size);
    for (size_t done = 0; done < size; done += 8) {
        uint64_t word = 0;
        memcpy(&word, string + done, size - done < 8 ? size - done : 8);
        hone_packing_add(to, word);
    }
    return true;
}

bool hone_pack(hone_packed *packed, uint64_t head, const hone_value *values, size_t count, uint64_t ignored)
{
    hone_packing to = {packed, 0, 0, 0};
    hone_packing_add(&to, head);
    for (size_t i = 0; i < count; i++) {
        const hone_value *value = &values[i];
        bool ignore = (ignored >> i & 1) != 0;
        size_t room = HONE_PACKED_WORDS - to.words;
        if (room < 2 * HONE_MAX_RANK + 2 || to.tensors == HONE_PACKED_TENSORS) return false;
        if (hone_packed_is_scalar(value))
            hone_packing_add_scalar(&to, value, ignore);
        else if (
            value->tag == HONE_VALUE_TENSOR
                ? !add_tensor(&to, value->as.tensor)
                : value->tag != HONE_VALUE_STRING || ignore || !add_string(&to, room, value->as.string))
            return false;
    }
    hone_packing_end(&to);
    return true;
}
