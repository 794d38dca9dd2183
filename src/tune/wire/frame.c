#include "tune/wire/frame.h"

#include "base/assert.h"
#include "base/error.h"

#include <string.h>

enum { HEADER_SIZE = 17 }; // drawn in frame.h

static const char where[] = "tune.wire";
static const uint32_t null_text = UINT32_MAX;
static const uint64_t stop_period_ns = 100000000;

void hone_wire_put(hone_buffer *out, const void *bytes, size_t size)
{
    hone_buffer_append(out, bytes, size);
}

void hone_wire_put_u8(hone_buffer *out, uint8_t value)
{
    hone_buffer_append(out, &value, sizeof value);
}

void hone_wire_put_u32(hone_buffer *out, uint32_t value)
{
    hone_buffer_append(out, &value, sizeof value);
}

void hone_wire_put_u64(hone_buffer *out, uint64_t value)
{
    hone_buffer_append(out, &value, sizeof value);
}

void hone_wire_put_i64(hone_buffer *out, int64_t value)
{
    hone_buffer_append(out, &value, sizeof value);
}

void hone_wire_put_f64(hone_buffer *out, double value)
{
    hone_buffer_append(out, &value, sizeof value);
}

void hone_wire_put_text(hone_buffer *out, const char *text)
{
    if (text == NULL) {
        hone_wire_put_u32(out, null_text);
        return;
    }
    size_t size = strlen(text);
    if (size >= null_text) size = null_text - 1;
    hone_wire_put_u32(out, (uint32_t)size);
    hone_buffer_append(out, text, size);
}

void hone_wire_get(hone_wire_reader *reader, void *out, size_t size)
{
    hone_assert(reader->position <= reader->size);
    if (reader->failed || size > reader->size - reader->position) {
        reader->failed = true;
        memset(out, 0, size);
        return;
    }
    memcpy(out, reader->data + reader->position, size);
    reader->position += size;
}

uint8_t hone_wire_get_u8(hone_wire_reader *reader)
{
    uint8_t value;
    hone_wire_get(reader, &value, sizeof value);
    return value;
}

uint32_t hone_wire_get_u32(hone_wire_reader *reader)
{
    uint32_t value;
    hone_wire_get(reader, &value, sizeof value);
    return value;
}

uint64_t hone_wire_get_u64(hone_wire_reader *reader)
{
    uint64_t value;
    hone_wire_get(reader, &value, sizeof value);
    return value;
}

int64_t hone_wire_get_i64(hone_wire_reader *reader)
{
    int64_t value;
    hone_wire_get(reader, &value, sizeof value);
    return value;
}

double hone_wire_get_f64(hone_wire_reader *reader)
{
    double value;
    hone_wire_get(reader, &value, sizeof value);
    return value;
}

const char *hone_wire_get_text(hone_wire_reader *reader)
{
    uint32_t size = hone_wire_get_u32(reader);
    if (reader->failed || size == null_text) return NULL;
    if (size > reader->size - reader->position) {
        reader->failed = true;
        return NULL;
    }
    hone_assert(reader->arena != NULL);
    const char *text = hone_arena_text(reader->arena, reader->data + reader->position, size);
    if (text == NULL) reader->failed = reader->out_of_memory = true;
    reader->position += size;
    return text;
}

hone_status hone_wire_check(const hone_wire_reader *reader, hone_error *err)
{
    if (!reader->failed) return HONE_OK;
    if (reader->out_of_memory) return hone_fail_memory(err, where);
    return hone_fail(err, HONE_IO, where, "a message ended early: do library and hone-worker differ in version?");
}

hone_status hone_frame_write(int fd, uint8_t kind, uint64_t token, const hone_buffer *payload, uint64_t deadline_ns)
{
    if (payload->failed) return HONE_OUT_OF_MEMORY;
    char header[HEADER_SIZE];
    uint64_t size = payload->size;
    hone_assert(fd >= 0 && kind != 0);
    memcpy(header, &kind, 1);
    memcpy(header + 1, &token, sizeof token);
    memcpy(header + 9, &size, sizeof size);
    hone_status status = hone_fd_write(fd, header, sizeof header, deadline_ns);
    if (status != HONE_OK || size == 0) return status;
    return hone_fd_write(fd, payload->data, payload->size, deadline_ns);
}

// Waits for the first byte in short steps. One byte has either come or not, so nothing is lost between steps.
static hone_status wait_first(int fd, uint8_t *out, uint64_t deadline_ns, const hone_stop *stop)
{
    for (;;) {
        if (stop != NULL && stop->ask(stop->ctx)) return HONE_CANCELLED;
        uint64_t now = hone_os_now_ns();
        if (deadline_ns != 0 && now >= deadline_ns) return HONE_BUSY;
        uint64_t until = stop != NULL ? now + stop_period_ns : deadline_ns;
        if (deadline_ns != 0 && deadline_ns < until) until = deadline_ns;
        hone_status status = hone_fd_read(fd, out, 1, until);
        if (status != HONE_BUSY) return status;
    }
}

static bool make_room(hone_buffer *payload, size_t size)
{
    static const char zeros[4096];
    hone_buffer_clear(payload);
    for (size_t left = size; left > 0;) {
        size_t piece = left < sizeof zeros ? left : sizeof zeros;
        hone_buffer_append(payload, zeros, piece);
        left -= piece;
    }
    return !payload->failed;
}

hone_status hone_frame_read(
    int fd, uint8_t *out_kind, uint64_t *token, hone_buffer *payload, uint64_t deadline_ns, const hone_stop *stop)
{
    uint64_t size, came;
    hone_assert(fd >= 0);
    hone_status status = wait_first(fd, out_kind, deadline_ns, stop);
    if (status == HONE_OK) status = hone_fd_read(fd, &came, sizeof came, deadline_ns);
    if (status == HONE_OK && *token != 0 && came != *token) status = HONE_IO;
    if (status == HONE_OK) status = hone_fd_read(fd, &size, sizeof size, deadline_ns);
    if (status != HONE_OK) return status;
    *token = came;
    if (size > HONE_FRAME_LIMIT) return HONE_IO;
    if (!make_room(payload, (size_t)size)) return HONE_OUT_OF_MEMORY;
    return size == 0 ? HONE_OK : hone_fd_read(fd, payload->data, (size_t)size, deadline_ns);
}
