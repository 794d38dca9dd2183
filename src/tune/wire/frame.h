// Bytes between processes: values one after the other in the machine's own byte order (both ends are the same machine
// and the same library), in frames of a kind and a size. A reader that runs past the end fails and stays failed, so
// that a message is read without a check per field, and `failed` is checked once at the end.
#ifndef HONE_TUNE_WIRE_FRAME_H
#define HONE_TUNE_WIRE_FRAME_H

#include "base/memory.h"
#include "os/os.h"

void hone_wire_put(hone_buffer *out, const void *bytes, size_t size);
void hone_wire_put_u8(hone_buffer *out, uint8_t value);
void hone_wire_put_u32(hone_buffer *out, uint32_t value);
void hone_wire_put_u64(hone_buffer *out, uint64_t value);
void hone_wire_put_i64(hone_buffer *out, int64_t value);
void hone_wire_put_f64(hone_buffer *out, double value);
void hone_wire_put_text(hone_buffer *out, const char *text); // NULL stays NULL

typedef struct hone_wire_reader {
    const char *data;
    size_t size, position;
    hone_arena *arena; // texts are copied here
    bool failed;       // the message ended early, or there was no memory
    bool out_of_memory;
} hone_wire_reader;

void hone_wire_get(hone_wire_reader *reader, void *out, size_t size);
uint8_t hone_wire_get_u8(hone_wire_reader *reader);
uint32_t hone_wire_get_u32(hone_wire_reader *reader);
uint64_t hone_wire_get_u64(hone_wire_reader *reader);
int64_t hone_wire_get_i64(hone_wire_reader *reader);
double hone_wire_get_f64(hone_wire_reader *reader);
const char *hone_wire_get_text(hone_wire_reader *reader); // NULL after a failure

// The status of a reader: HONE_IO or HONE_OUT_OF_MEMORY with a message; HONE_OK when it did not fail.
hone_status hone_wire_check(const hone_wire_reader *reader, hone_error *err);

// A frame, in the machine's byte order:
//
//     0      1               9               17
//     | kind | token, 8 bytes | size, 8 bytes | size bytes ...
//
// An answer repeats the token of its question, so that bytes that a candidate writes to the same descriptor are not
// taken for an answer. Nothing marks a frame's end, so a reader that stopped in the middle of a frame cannot find the
// next one: the process at the other end is ended.
enum { HONE_FRAME_LIMIT = 64 << 20 };

hone_status hone_frame_write(int fd, uint8_t kind, uint64_t token, const hone_buffer *payload, uint64_t deadline_ns);
// Called ten times a second while nothing has arrived; true stops waiting.
typedef struct hone_stop {
    bool (*ask)(void *ctx);
    void *ctx;
} hone_stop;

// Replaces the contents of payload. stop may be NULL.
//   token  in: the expected one, 0: any; out: the one that came. Another one than expected is HONE_IO.
// Returns: HONE_OK; HONE_BUSY (the deadline passed); HONE_CANCELLED; HONE_IO (the other end is closed, or sends no
// frames); HONE_OUT_OF_MEMORY.
hone_status hone_frame_read(
    int fd, uint8_t *out_kind, uint64_t *token, hone_buffer *payload, uint64_t deadline_ns, const hone_stop *stop);

#endif
