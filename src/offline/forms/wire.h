// The wire format of protocol buffers, field by field: https://protobuf.dev/programming-guides/encoding/
#ifndef HONE_OFFLINE_FORMS_WIRE_H
#define HONE_OFFLINE_FORMS_WIRE_H

#include "offline/cursor.h"

typedef enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 } wire_type;

typedef struct wire_field {
    uint64_t number;
    wire_type type;
    uint64_t integer; // of a varint
    hone_view bytes;  // what the field holds: of a varint its own bytes
    bool clipped;     // the message ends before the field does
} wire_field;

// Reads a varint; false when it does not end within ten bytes or before the cursor's end.
static inline bool wire_varint(cursor *c, uint64_t *out)
{
    if (c->at < c->end && (unsigned char)*c->at < 0x80) { // most are small
        *out = (unsigned char)*c->at++;
        return true;
    }
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint64_t byte = (unsigned char)*c->at++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

static inline bool wire_take(cursor *c, uint64_t size, wire_field *out)
{
    size_t left = (size_t)(c->end - c->at);
    out->clipped = size > left;
    out->bytes = (hone_view){c->at, out->clipped ? left : (size_t)size};
    c->at += out->bytes.size;
    return true;
}

// What a field of a type holds; the cursor stands behind its tag.
static inline bool wire_value(cursor *c, wire_field *out)
{
    const char *value = c->at;
    uint64_t size;
    switch (out->type) {
    case WIRE_BYTES:
        return wire_varint(c, &size) && wire_take(c, size, out);
    case WIRE_VARINT:
        if (!wire_varint(c, &out->integer)) return false;
        out->bytes = view_between(value, c->at);
        return true;
    case WIRE_64:
        return wire_take(c, 8, out);
    case WIRE_32:
        return wire_take(c, 4, out);
    default: // groups, which nobody writes any more, and what is not defined
        return false;
    }
}

// The next field of the message. False at its end (the cursor stands there), and before what is no field.
static inline bool wire_next(cursor *c, wire_field *out)
{
    const char *start = c->at;
    uint64_t tag;
    if (!wire_varint(c, &tag)) return false;
    out->number = tag >> 3;
    out->type = (wire_type)(tag & 7);
    out->integer = 0;
    out->bytes = (hone_view){NULL, 0};
    out->clipped = false;
    bool sound = out->number > 0 && wire_value(c, out);
    if (!sound) c->at = start;
    return sound;
}

#endif
