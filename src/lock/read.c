// Reading a lock file: every line is checked, then the whole against its hash. A failure names the line.
#include "lock/lock.h"

#include "base/error.h"
#include "base/hash.h"
#include "os/os.h"
#include "os/plain_file.h"

#include <stdlib.h>
#include <string.h>

static const char where[] = "lock.read";
static const char magic[] = "hone.lock ";

typedef struct reader {
    const char *name;         // of the file
    const char *line, *after; // the current line, and what follows its end
    size_t size;              // of the current line, without its newline
    const char *end;
    uint32_t number; // of the current line, from 1
    hone_lock *lock;
    int format;            // of the file
    hone_buffer fields[8]; // unescaped: ALGORITHM VERSION KEY DEVICE PLATFORM KERNEL REVISION CALL
    hone_buffer scratch;
    hone_error *err;
} reader;

enum { ALGORITHM, VERSION, KEY, DEVICE, PLATFORM, KERNEL, REVISION, CALL, FIELDS };

static bool next_line(reader *r)
{
    if (r->after == r->end) return false;
    r->line = r->after;
    const char *newline = memchr(r->line, '\n', (size_t)(r->end - r->line));
    r->size = (size_t)((newline != NULL ? newline : r->end) - r->line);
    r->after = newline != NULL ? newline + 1 : r->end;
    r->number++;
    return true;
}

// "FILE:7: " before an error message.
static hone_status fail_line(const reader *r, hone_status status)
{
    return hone_fail_prefix(r->err, status, "%s:%u", r->name, r->number);
}

// A piece of the line, for messages: what cannot be printed is escaped, what is long is cut.
static const char *shown(reader *r, const char *text, size_t size)
{
    hone_buffer_clear(&r->scratch);
    hone_lock_escape(&r->scratch, text, size > 60 ? 60 : size, "");
    if (size > 60) hone_buffer_text(&r->scratch, "...");
    return hone_buffer_string(&r->scratch);
}

static hone_status fail_expected(reader *r, const char *what, const char *text, size_t size, const char *expected)
{
    hone_fail(r->err, HONE_CORRUPT, where, "%s is '%s', expected %s", what, shown(r, text, size), expected);
    return fail_line(r, HONE_CORRUPT);
}

// Header --------------------------------------------------------------------------------------------------------------

// "hone.lock 2 sha256:HEX", or 1. *out_hash has HONE_SHA256_HEX_SIZE - 1 digits.
static hone_status read_header(reader *r, const char **out_hash)
{
    static const char expected[] = "'hone.lock 2 sha256:' and 64 hex digits: is this a lock file?";
    static const char seal[] = " sha256:";
    const size_t digits = HONE_SHA256_HEX_SIZE - 1, head = sizeof magic - 1;
    if (!next_line(r)) {
        hone_fail(r->err, HONE_CORRUPT, where, "%s is empty, expected %s", r->name, expected);
        return HONE_CORRUPT;
    }
    if (r->size > 0 && r->line[r->size - 1] == '\r') {
        hone_fail(
            r->err, HONE_CORRUPT, where,
            "its lines end with CR LF, expected LF: put 'hone.lock -text' into .gitattributes and check it out anew");
        return fail_line(r, HONE_CORRUPT);
    }
    if (r->size < head || memcmp(r->line, magic, head) != 0)
        return fail_expected(r, "the first line", r->line, r->size, expected);
    const char *rest = r->line + head;
    size_t size = r->size - head;
    size_t version = 0;
    while (version < size && rest[version] >= '0' && rest[version] <= '9')
        version++;
    bool known = version == 1 && rest[0] >= '1' && rest[0] <= '0' + HONE_LOCK_FORMAT;
    if (version > 0 && !known) {
        hone_fail(
            r->err, HONE_INCOMPATIBLE, where, "its format is %.*s and this hone knows %d: use the newer hone",
            (int)(version > 20 ? 20 : version), rest, (int)HONE_LOCK_FORMAT);
        return fail_line(r, HONE_INCOMPATIBLE);
    }
    if (!known || size != sizeof seal + digits || memcmp(rest + 1, seal, sizeof seal - 1) != 0)
        return fail_expected(r, "the first line", r->line, r->size, expected);
    r->format = rest[0] - '0';
    *out_hash = rest + sizeof seal;
    return HONE_OK;
}

static hone_status check_hash(reader *r, const char *body, const char *hash)
{
    char found[HONE_SHA256_HEX_SIZE];
    hone_hash_sha256(body, (size_t)(r->end - body), found);
    if (memcmp(found, hash, sizeof found - 1) == 0) return HONE_OK;
    return hone_fail(
        r->err, HONE_CORRUPT, where,
        "%s: its lines do not match the hash in its first line: it was edited, merged or cut; review it, then "
        "accept it with hone lock --reseal, or replace it with hone lock",
        r->name);
}

// Lines ---------------------------------------------------------------------------------------------------------------

// The next field of the line, up to a space; *at moves behind it and the spaces that follow.
static size_t take_field(const reader *r, const char **at, const char **out)
{
    const char *end = r->line + r->size;
    *out = *at;
    const char *stop = memchr(*at, ' ', (size_t)(end - *at));
    size_t size = (size_t)((stop != NULL ? stop : end) - *at);
    for (*at += size; *at < end && **at == ' ';)
        ++*at;
    return size;
}

static hone_status keep_field(reader *r, int field, const char *what, const char *text, size_t size)
{
    hone_buffer *out = &r->fields[field];
    hone_buffer_clear(out);
    if (!hone_lock_unescape(out, text, size))
        return fail_expected(r, what, text, size, "each '%' to begin an escape, two upper-case hex digits, not %00");
    return out->failed ? hone_fail_memory(r->err, where) : HONE_OK;
}

// "A@vB" or "A/B" into two fields. The separator stands in neither, or only in the second.
static hone_status split_field(
    reader *r, const char *what, const char *text, size_t size, const char *separator, int first, const char *expected)
{
    const char *at = memmem(text, size, separator, strlen(separator));
    if (at == NULL || at == text) return fail_expected(r, what, text, size, expected);
    hone_status status = keep_field(r, first, what, text, (size_t)(at - text));
    at += strlen(separator);
    return status == HONE_OK ? keep_field(r, first + 1, what, at, size - (size_t)(at - text)) : status;
}

static hone_status check_bytes(reader *r)
{
    for (size_t i = 0; i < r->size; i++) {
        unsigned char byte = (unsigned char)r->line[i];
        if (byte >= ' ' && byte != 0x7f) continue;
        bool carriage = byte == '\r' && i + 1 == r->size;
        hone_fail(
            r->err, HONE_CORRUPT, where, "byte 0x%02x in column %zu%s", byte, i + 1,
            carriage ? ": a line ends in a newline alone; in .gitattributes, hone.lock -text keeps git from changing it"
                     : ", where only printable text is allowed");
        return fail_line(r, HONE_CORRUPT);
    }
    return HONE_OK;
}

static hone_status check_conflict(reader *r)
{
    static const char *const marks[] = {"<<<<<<<", "=======", ">>>>>>>", "|||||||"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (r->size < 7 || memcmp(r->line, marks[i], 7) != 0) continue;
        hone_fail(
            r->err, HONE_CORRUPT, where,
            "'%s' marks a conflict of two versions: keep the right lines and remove the marks, then hone lock --reseal",
            marks[i]);
        return fail_line(r, HONE_CORRUPT);
    }
    return HONE_OK;
}

static hone_status read_config(reader *r, const char *at, const char *end, json_t *config)
{
    while (at < end) {
        const char *token;
        size_t size = take_field(r, &at, &token);
        hone_status status = hone_lock_config_read(config, &r->scratch, token, size, r->err);
        if (status != HONE_OK) return fail_line(r, status);
    }
    return HONE_OK;
}

static hone_status add_line(reader *r, const json_t *config, bool has_call, bool has_revision)
{
    const hone_lock_line line = {
        .algorithm = hone_buffer_string(&r->fields[ALGORITHM]),
        .version = hone_buffer_string(&r->fields[VERSION]),
        .key = hone_buffer_string(&r->fields[KEY]),
        .device = hone_buffer_string(&r->fields[DEVICE]),
        .platform = hone_buffer_string(&r->fields[PLATFORM]),
        .kernel = hone_buffer_string(&r->fields[KERNEL]),
        .call = has_call ? hone_buffer_string(&r->fields[CALL]) : NULL,
        .revision = has_revision ? hone_buffer_string(&r->fields[REVISION]) : NULL,
        .number = r->number,
    };
    hone_status status = hone_lock_line_check(&line, where, r->err);
    if (status == HONE_INVALID_ARGUMENT && r->err != NULL) r->err->status = HONE_CORRUPT;
    if (status != HONE_OK) return fail_line(r, HONE_CORRUPT);
    return hone_lock_append(r->lock, &line, config, r->err);
}

// "PLATFORM/KERNEL@REVISION". A line may leave the revision out, as those of format 1 all do.
static hone_status read_kernel(reader *r, const char *field, size_t size, bool *out_has_revision)
{
    static const char what[] = "the fourth field";
    const char *slash = memchr(field, '/', size), *end = field + size;
    const char *mark = r->format == 1 || slash == NULL ? NULL : memchr(slash, '@', (size_t)(end - slash));
    *out_has_revision = mark != NULL;
    hone_status status = split_field(
        r, what, field, (size_t)((mark != NULL ? mark : end) - field), "/", PLATFORM,
        "PLATFORM/KERNEL@REVISION, as in native/avx512@1");
    if (status != HONE_OK || mark == NULL) return status;
    return keep_field(r, REVISION, what, mark + 1, (size_t)(end - mark - 1));
}

// The four leading fields; *out_config is where the config begins.
static hone_status read_fields(reader *r, const char **out_config, bool *out_has_revision)
{
    const char *at = r->line, *field;
    size_t size = take_field(r, &at, &field);
    hone_status status =
        split_field(r, "the first field", field, size, "@v", ALGORITHM, "ALGORITHM@vVERSION, as in rms_norm@v1");
    size = take_field(r, &at, &field);
    if (status == HONE_OK) status = keep_field(r, KEY, "the key", field, size);
    size = take_field(r, &at, &field);
    if (status == HONE_OK) status = keep_field(r, DEVICE, "the device", field, size);
    size = take_field(r, &at, &field);
    if (status == HONE_OK) status = read_kernel(r, field, size, out_has_revision);
    *out_config = at;
    return status;
}

// What stands behind the first '#', which no field has; the line ends before it.
static hone_status read_call(reader *r, bool *out_has)
{
    const char *mark = memchr(r->line, '#', r->size), *end = r->line + r->size;
    *out_has = mark != NULL;
    if (mark == NULL) return HONE_OK;
    const char *call = mark + 1 < end && mark[1] == ' ' ? mark + 2 : mark + 1;
    hone_status status = keep_field(r, CALL, "the call", call, (size_t)(end - call));
    r->size = (size_t)(mark - r->line);
    while (r->size > 0 && r->line[r->size - 1] == ' ')
        r->size--;
    return status;
}

static hone_status read_line(reader *r)
{
    const char *config_text;
    bool has_call, has_revision = false;
    hone_status status = check_bytes(r);
    if (status == HONE_OK) status = check_conflict(r);
    if (status != HONE_OK || r->size == 0 || r->line[0] == '#') return status; // an empty line, or a comment
    status = read_call(r, &has_call);
    if (status == HONE_OK) status = read_fields(r, &config_text, &has_revision);
    if (status != HONE_OK) return status;
    json_t *config = json_object();
    if (config == NULL) return hone_fail_memory(r->err, where);
    status = read_config(r, config_text, r->line + r->size, config);
    if (status == HONE_OK) status = add_line(r, config, has_call, has_revision);
    json_decref(config);
    return status;
}

static int compare_lines(const void *a, const void *b)
{
    const hone_lock_line *first = *(hone_lock_line *const *)a, *second = *(hone_lock_line *const *)b;
    int order = hone_lock_line_compare(first, second);
    return order != 0 ? order : (first->number > second->number) - (first->number < second->number);
}

// Files are written sorted; one that was merged or edited by hand need not be. Of equal keys the earlier line stands
// first, so that the message names the later one as the second.
static hone_status sort_lines(reader *r)
{
    hone_lock *lock = r->lock;
    if (lock->count > 1) qsort(lock->lines, lock->count, sizeof *lock->lines, compare_lines);
    for (size_t i = 1; i < lock->count; i++) {
        const hone_lock_line *a = lock->lines[i - 1], *b = lock->lines[i];
        if (hone_lock_line_compare(a, b) != 0) continue;
        return hone_fail(
            r->err, HONE_CORRUPT, where, "%s:%u: a second choice for %s@v%s %s, which line %u has: keep one of them",
            r->name, b->number, b->algorithm, b->version, b->key, a->number);
    }
    return HONE_OK;
}

static hone_status read_all(reader *r, unsigned flags)
{
    const char *hash = NULL;
    hone_status status = read_header(r, &hash);
    const char *body = r->after;
    while (status == HONE_OK && next_line(r))
        status = read_line(r);
    if (status == HONE_OK) status = sort_lines(r);
    if (status == HONE_OK && (flags & HONE_LOCK_UNSEALED) == 0) status = check_hash(r, body, hash);
    return status;
}

hone_status hone_lock_parse(
    hone_allocator allocator,
    const char *name,
    const char *text,
    size_t size,
    unsigned flags,
    hone_lock **out,
    hone_error *err)
{
    *out = NULL;
    reader r = {.name = name, .after = text, .end = text + size, .err = err};
    hone_status status = hone_lock_create(allocator, &r.lock, err);
    if (status != HONE_OK) return status;
    allocator = r.lock->arena.allocator;
    for (int i = 0; i < FIELDS; i++)
        hone_buffer_init(&r.fields[i], allocator);
    hone_buffer_init(&r.scratch, allocator);
    status = read_all(&r, flags);
    for (int i = 0; i < FIELDS; i++)
        hone_buffer_deinit(&r.fields[i]);
    hone_buffer_deinit(&r.scratch);
    if (status == HONE_OK)
        *out = r.lock;
    else
        hone_lock_release(&r.lock);
    return status;
}

hone_status hone_lock_read(hone_allocator allocator, const char *path, unsigned flags, hone_lock **out, hone_error *err)
{
    if (out == NULL || path == NULL || path[0] == '\0')
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL, or the path missing");
    *out = NULL;
    if ((flags & ~(unsigned)HONE_LOCK_UNSEALED) != 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "flags is 0x%x, expected a set of HONE_LOCK_*", flags);
    allocator = hone_allocator_given(allocator);
    hone_buffer text;
    hone_buffer_init(&text, allocator);
    hone_status status = hone_os_read_plain_file(path, HONE_LOCK_BYTES, &text, err);
    if (status == HONE_OK)
        status = hone_lock_parse(allocator, path, hone_buffer_string(&text), text.size, flags, out, err);
    hone_buffer_deinit(&text);
    return status;
}
