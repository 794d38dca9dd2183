// The wire format of protocol buffers, field by field: https://protobuf.dev/programming-guides/encoding/
#ifndef HONE_OFFLINE_FORMS_WIRE_H
#define HONE_OFFLINE_FORMS_WIRE_H

#include "offline/cursor.h"

typedef enum hone_wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 } hone_wire_type;

typedef struct hone_wire_field {
    uint64_t number;
    hone_wire_type type;
    uint64_t integer; // of a varint
    hone_view bytes;  // what the field holds: of a varint its own bytes
    bool clipped;     // the message ends before the field does
} hone_wire_field;

// Behind a varint of any size; NULL: it does not end within ten bytes, or before the end.
static inline const char *wire_behind_long(const char *at, const char *end, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
        uint64_t byte = (unsigned char)*at++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return at;
        }
    }
    return NULL;
}

// The same. Nearly all have a byte or two, and whoever asks asks again at once.
__attribute__((always_inline)) static inline const char *wire_behind(const char *at, const char *end, uint64_t *out)
{
    if (end - at < 2) return wire_behind_long(at, end, out);
    unsigned low = (unsigned char)at[0], high = (unsigned char)at[1];
    if (low < 0x80) {
        *out = low;
        return at + 1;
    }
    if (high >= 0x80) return wire_behind_long(at, end, out);
    *out = (low & 0x7f) | high << 7;
    return at + 2;
}

// Reads a varint; false when it does not end within ten bytes or before the cursor's end.
static inline bool wire_varint(hone_cursor *c, uint64_t *out)
{
    const char *behind = wire_behind(c->at, c->end, out);
    if (behind != NULL) c->at = behind;
    return behind != NULL;
}

// The next field of the message. False at its end (the cursor stands there), before what is no field, and before
// groups, which nobody writes any more.
__attribute__((always_inline)) static inline bool wire_next(hone_cursor *c, hone_wire_field *out)
{
    const char *end = c->end;
    uint64_t tag, integer = 0, size;
    const char *at = wire_behind(c->at, end, &tag), *start = at;
    if (at == NULL || tag >> 3 == 0) return false;
    switch (tag & 7) {
    case WIRE_BYTES:
        at = start = wire_behind(at, end, &size);
        break;
    case WIRE_VARINT:
        at = wire_behind(at, end, &integer);
        size = at != NULL ? (uint64_t)(at - start) : 0;
        break;
    case WIRE_64:
        size = 8;
        break;
    case WIRE_32:
        size = 4;
        break;
    default:
        return false;
    }
    if (at == NULL) return false;
    uint64_t left = (uint64_t)(end - start);
    bool clipped = size > left;
    *out = (hone_wire_field){
        .number = tag >> 3,
        .type = (hone_wire_type)(tag & 7),
        .integer = integer,
        .bytes = {start, (size_t)(clipped ? left : size)},
        .clipped = clipped,
    };
    c->at = start + out->bytes.size;
    return true;
}

#endif
