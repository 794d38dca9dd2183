// The text of a lock file. The header's hash is over all that follows it.
#include "lock/lock.h"

#include "base/error.h"
#include "base/hash.h"
#include "os/os.h"

#include <string.h>

static const char where[] = "lock.write";

static const char note[] =
    "# One choice a line: ALGORITHM@vVERSION KEY DEVICE PLATFORM/KERNEL@REVISION PARAMETER=VALUE...  # CALL\n"
    "# hone lock writes this file, hone lock --check compares it with the store; after an edit: hone lock --reseal\n";

void hone_lock_put_text(const hone_lock_line *line, hone_buffer *out)
{
    hone_lock_escape(out, line->algorithm, strlen(line->algorithm), "@");
    hone_buffer_text(out, "@v");
    hone_lock_escape(out, line->version, strlen(line->version), "@");
    hone_buffer_format(out, " %s ", line->key);
    hone_lock_escape(out, line->device, strlen(line->device), "");
    hone_buffer_char(out, ' ');
    hone_lock_escape(out, line->platform, strlen(line->platform), "");
    hone_buffer_char(out, '/');
    hone_lock_escape(out, line->kernel, strlen(line->kernel), "@");
    if (line->revision != NULL) {
        hone_buffer_char(out, '@');
        hone_lock_escape(out, line->revision, strlen(line->revision), "");
    }
    if (line->config_text[0] != '\0') hone_buffer_char(out, ' ');
    hone_buffer_text(out, line->config_text);
    if (line->call != NULL && line->call[0] != '\0') {
        hone_buffer_text(out, "  # ");
        hone_lock_escape_call(out, line->call);
    }
    hone_buffer_char(out, '\n');
}

size_t hone_lock_line_text(const hone_lock_line *line, char *out, size_t size)
{
    hone_buffer text;
    if (out == NULL) size = 0;
    if (size > 0) out[0] = '\0';
    if (line == NULL || line->config_text == NULL) return 0;
    hone_buffer_init(&text, hone_allocator_system());
    hone_lock_put_text(line, &text);
    const size_t length = text.failed ? 0 : text.size;
    if (size > 0) snprintf(out, size, "%.*s", (int)length, hone_buffer_string(&text));
    hone_buffer_deinit(&text);
    return length;
}

void hone_lock_text(const hone_lock *lock, hone_buffer *out)
{
    char hash[HONE_SHA256_HEX_SIZE];
    hone_buffer body;
    hone_buffer_init(&body, out->allocator);
    hone_buffer_text(&body, note);
    for (size_t i = 0; i < lock->count; i++)
        hone_lock_put_text(lock->lines[i], &body);
    hone_hash_sha256(hone_buffer_string(&body), body.size, hash);
    hone_buffer_format(out, "hone.lock %d sha256:%s\n", (int)HONE_LOCK_FORMAT, hash);
    hone_buffer_append(out, hone_buffer_string(&body), body.size);
    out->failed = out->failed || body.failed;
    hone_buffer_deinit(&body);
}

hone_status hone_lock_write(const hone_lock *lock, const char *path, hone_error *err)
{
    if (lock == NULL || path == NULL || path[0] == '\0')
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the lock is NULL, or the path missing");
    hone_buffer text;
    hone_buffer_init(&text, lock->arena.allocator);
    hone_lock_text(lock, &text);
    hone_status status = text.failed ? hone_fail_memory(err, where) : HONE_OK;
    if (status == HONE_OK && text.size > HONE_LOCK_BYTES)
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%s would have %zu bytes, and lock files of at most %d are read", path,
            text.size, (int)HONE_LOCK_BYTES);
    if (status == HONE_OK) status = hone_os_replace_file(path, hone_buffer_string(&text), text.size, err);
    hone_buffer_deinit(&text);
    return status;
}
