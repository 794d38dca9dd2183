// Reads the parameters of a compiled module: a plugin only reports the results, and accepts any buffer of the right
// size for an argument. So the shapes are read from the compiled program, an HloModuleProtoWithConfig in the wire
// format of protocol buffers:
//   hlo_module (1) . host_program_shape (4) . parameters (1), each { element_type (2), dimensions (3) }
#include "platforms/xla/instance.h"

#include "base/error.h"

#include <string.h>

static const char where[] = "xla.program";

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct message {
    const unsigned char *at, *end;
    bool broken;
} message;

typedef struct field {
    uint64_t number;
    unsigned wire;
    uint64_t value; // VARINT
    message bytes;  // BYTES
} field;

static uint64_t read_varint(message *m)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
        unsigned char byte = *m->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    m->broken = true;
    return 0;
}

static void skip(message *m, uint64_t size)
{
    if (size > (uint64_t)(m->end - m->at)) {
        m->broken = true;
        size = (uint64_t)(m->end - m->at);
    }
    m->at += size;
}

// False at the end, and if the bytes are not a valid message.
static bool next_field(message *m, field *out)
{
    if (m->at >= m->end || m->broken) return false;
    uint64_t tag = read_varint(m);
    *out = (field){.number = tag >> 3, .wire = tag & 7};
    switch (out->wire) {
    case WIRE_VARINT:
        out->value = read_varint(m);
        break;
    case WIRE_64:
        skip(m, 8);
        break;
    case WIRE_32:
        skip(m, 4);
        break;
    case WIRE_BYTES: {
        uint64_t size = read_varint(m);
        out->bytes.at = m->at;
        skip(m, size);
        out->bytes.end = m->at;
        break;
    }
    default:
        m->broken = true;
    }
    return !m->broken;
}

// Finds a nested message by its field numbers: 1, 4 is field 4 of the message in field 1.
static bool find_message(message m, const uint64_t *numbers, size_t count, message *out)
{
    field f;
    while (count > 0 && next_field(&m, &f)) {
        if (f.number != numbers[0] || f.wire != WIRE_BYTES) continue;
        m = f.bytes;
        numbers++;
        count--;
    }
    *out = m;
    return count == 0;
}

static bool put_dimension(hone_xla_shape *shape, uint64_t size)
{
    if (shape->rank == HONE_MAX_RANK || size > INT64_MAX) return false;
    shape->dims[shape->rank++] = (int64_t)size;
    return true;
}

// Dimensions are packed, or each in a separate field.
static bool read_shape(message m, hone_xla_shape *out)
{
    field f;
    memset(out, 0, sizeof *out);
    while (next_field(&m, &f)) {
        if (f.number == 2 && f.wire == WIRE_VARINT) out->type = f.value < 1000 ? (int)f.value : -1;
        if (f.number != 3) continue;
        if (f.wire == WIRE_VARINT && !put_dimension(out, f.value)) return false;
        while (f.wire == WIRE_BYTES && f.bytes.at < f.bytes.end)
            if (!put_dimension(out, read_varint(&f.bytes)) || f.bytes.broken) return false;
    }
    return !m.broken;
}

hone_status hone_xla_read_parameters(
    const char *bytes, size_t size, hone_xla_shape *out, size_t capacity, size_t *out_count, hone_error *err)
{
    static const uint64_t program_shape[] = {1, 4};
    const unsigned char *begin = (const unsigned char *)bytes;
    message m = {.at = begin, .end = begin + size};
    field f;
    *out_count = 0;
    if (!find_message(m, program_shape, 2, &m))
        return hone_fail(err, HONE_CORRUPT, where, "the plugin's program has no shape of its own");
    while (next_field(&m, &f)) {
        if (f.number != 1 || f.wire != WIRE_BYTES) continue;
        if (*out_count == capacity || !read_shape(f.bytes, &out[(*out_count)++])) m.broken = true;
    }
    return m.broken ? hone_fail(err, HONE_CORRUPT, where, "the plugin's program cannot be read") : HONE_OK;
}
