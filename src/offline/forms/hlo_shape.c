#include "base/number.h"
#include "call/call.h"
#include "offline/forms/hlo_proto.h"
#include "offline/forms/wire.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE_TYPE = 2, SHAPE_DIMENSION = 3, LITERAL_SHAPE = 1 };
enum { DIMS_MAX = 32, TYPE_SIZE = DIMS_MAX * 21 + 16 };

typedef struct shape {
    const hone_dtype_info *dtype; // NULL: a tuple, a token, an element type that hone does not know
    int64_t dims[DIMS_MAX];
    size_t ndim;
    bool odd; // more dims than any array of hone's
} shape;

static const hone_dtype_info *dtype_of(uint64_t element_type)
{
    for (int id = 0; id < HONE_DTYPE_COUNT; id++) {
        const hone_dtype_info *info = hone_dtype_info_of((hone_dtype_id)id);
        if (info->xla >= 0 && (uint64_t)info->xla == element_type) return info;
    }
    return NULL;
}

static void read_dims(hone_view packed, shape *out)
{
    hone_cursor c = cursor_of(packed);
    uint64_t dim;
    while (wire_varint(&c, &dim)) {
        out->odd |= out->ndim == DIMS_MAX;
        if (!out->odd) out->dims[out->ndim++] = (int64_t)dim;
    }
}

static void read_shape(hone_view message, shape *out)
{
    hone_cursor c = cursor_of(message);
    hone_wire_field field;
    *out = (shape){0};
    while (wire_next(&c, &field)) {
        if (field.number == SHAPE_TYPE) out->dtype = dtype_of(field.integer);
        if (field.number == SHAPE_DIMENSION) read_dims(field.bytes, out);
    }
}

hone_view hone_hlo_proto_type(hone_arena *arena, hone_view message)
{
    char text[TYPE_SIZE] = "()";
    shape s;
    read_shape(message, &s);
    size_t size = strlen(text);
    if (s.dtype != NULL && !s.odd) {
        size = (size_t)snprintf(text, sizeof text, "%s[", s.dtype->xla_name);
        for (size_t i = 0; i < s.ndim; i++)
            size += (size_t)snprintf(text + size, sizeof text - size, "%s%lld", i ? "," : "", (long long)s.dims[i]);
        text[size++] = ']';
    }
    return (hone_view){hone_arena_text(arena, text, size), size};
}

// Where a LiteralProto holds elements of a type: numbers as varints, or their bytes.
typedef struct element_field {
    hone_dtype_id dtype;
    uint32_t number;
    bool varint;
} element_field;

static const element_field element_fields[] = {
    {HONE_BOOL, 2, true}, {HONE_U8, 3, false},   {HONE_I32, 4, true},   {HONE_I64, 5, true},   {HONE_U32, 6, true},
    {HONE_U64, 7, true},  {HONE_F32, 8, false},  {HONE_F64, 9, false},  {HONE_F16, 11, false}, {HONE_BF16, 13, false},
    {HONE_I8, 15, false}, {HONE_U16, 16, false}, {HONE_I16, 17, false},
};

static const element_field *find_element_field(hone_dtype_id dtype)
{
    for (size_t i = 0; i < sizeof element_fields / sizeof element_fields[0]; i++)
        if (element_fields[i].dtype == dtype) return &element_fields[i];
    return NULL;
}

// One element in text; 0: there are more, or none.
static size_t print_element(const element_field *element, hone_view bytes, char out[HONE_NUMBER_SIZE])
{
    const hone_dtype_info *info = hone_dtype_info_of(element->dtype);
    hone_cursor c = cursor_of(bytes);
    uint64_t value;
    if (element->varint) {
        if (!wire_varint(&c, &value) || c.at < c.end) return 0;
        return (size_t)snprintf(out, HONE_NUMBER_SIZE, "%lld", (long long)value);
    }
    char copy[8] = {0}; // aligned as a number is
    if (bytes.size != info->bits / 8u || bytes.size > sizeof copy) return 0;
    memcpy(copy, bytes.data, bytes.size);
    hone_number_print(hone_element_load(element->dtype, copy, 0), out);
    return strlen(out);
}

hone_view hone_hlo_proto_literal(hone_arena *arena, hone_view literal)
{
    hone_cursor c = cursor_of(literal);
    hone_wire_field field;
    shape s = {0};
    const element_field *element = NULL;
    while (wire_next(&c, &field)) {
        if (field.number == LITERAL_SHAPE && field.type == WIRE_BYTES) {
            read_shape(field.bytes, &s);
            element = s.dtype != NULL && s.ndim == 0 ? find_element_field(s.dtype->id) : NULL;
        }
        if (element == NULL || field.number != element->number) continue;
        char text[HONE_NUMBER_SIZE];
        size_t size = print_element(element, field.bytes, text);
        return (hone_view){size > 0 ? hone_arena_text(arena, text, size) : "", size};
    }
    return (hone_view){"", 0};
}
