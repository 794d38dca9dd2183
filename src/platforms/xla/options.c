// CompileOptionsProto of XLA, written by hand: a handful of fields of protocol buffers' wire format.
//   executable_build_options (3) { num_replicas (4) = 1, num_partitions (5) = 1 }, without which a plugin aborts
//   compile_portable_executable (4): for whichever device it is run on
//   env_option_overrides (7), a map: each { key (1), value (2) { string (1) | bool (2) | int64 (3) | double (4) } }
#include "platforms/xla/instance.h"

#include "base/error.h"
#include "base/scalar.h"
#include "registry/origin.h"

#include <string.h>

static const char where[] = "xla.options";

enum { WIRE_VARINT = 0, WIRE_DOUBLE = 1, WIRE_BYTES = 2 };

static void put_varint(hone_buffer *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        hone_buffer_char(out, (char)(unsigned char)(value | 0x80));
    hone_buffer_char(out, (char)(unsigned char)value);
}

static void put_tag(hone_buffer *out, unsigned field, unsigned wire)
{
    put_varint(out, (uint64_t)field << 3 | wire);
}

static void put_bytes(hone_buffer *out, unsigned field, const void *bytes, size_t size)
{
    put_tag(out, field, WIRE_BYTES);
    put_varint(out, size);
    hone_buffer_append(out, bytes, size);
}

static void put_value(hone_buffer *out, const hone_scalar *value)
{
    if (value->kind == HONE_SCALAR_TEXT) {
        put_bytes(out, 1, value->as.text.data, value->as.text.size);
    } else if (value->kind == HONE_SCALAR_FLOAT) {
        put_tag(out, 4, WIRE_DOUBLE);
        hone_buffer_append(out, &value->as.f64, sizeof value->as.f64);
    } else {
        put_tag(out, value->kind == HONE_SCALAR_BOOL ? 2 : 3, WIRE_VARINT);
        put_varint(out, (uint64_t)value->as.i64);
    }
}

static void put_option(void *ctx, hone_view name, const hone_scalar *value)
{
    hone_buffer *out = ctx, entry, inner;
    hone_buffer_init(&entry, out->allocator);
    hone_buffer_init(&inner, out->allocator);
    put_value(&inner, value);
    put_bytes(&entry, 1, name.data, name.size);
    put_bytes(&entry, 2, hone_buffer_string(&inner), inner.size);
    put_bytes(out, 7, hone_buffer_string(&entry), entry.size);
    if (entry.failed || inner.failed) out->failed = true;
    hone_buffer_deinit(&entry);
    hone_buffer_deinit(&inner);
}

hone_status hone_xla_options(
    const hone_allocator *allocator, const hone_plan *plan, bool portable, hone_buffer *out, hone_error *err)
{
    static const char one_device[] = {4 << 3, 1, 5 << 3, 1};
    hone_status status = HONE_OK;
    put_bytes(out, 3, one_device, sizeof one_device);
    if (portable) {
        put_tag(out, 4, WIRE_VARINT);
        put_varint(out, 1);
    }
    const char *options = hone_code_of_plan(plan)->options;
    if (options != NULL) status = hone_launch_pairs(allocator, plan, "options", options, put_option, out, err);
    return status == HONE_OK && out->failed ? hone_fail_memory(err, where) : status;
}
