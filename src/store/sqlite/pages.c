// The records on the pages of a SQLite file that SQLite itself cannot open any more. Each page is read for itself,
// whatever the tree above it says, so that damage costs the records of its own page and no others.
//
// Source: "Database File Format", sqlite.org/fileformat2.html: the header in 1.3, the list of free pages in 1.5, pages
// and cells in 1.6, the format of a record in 2.1. Every number that is read is checked before it is used: a size
// against the file, a page against the count of pages, a cell against its page. Cost: one read of the file, and of
// overflow pages once more.
#include "store/sqlite/pages.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "store.sqlite.pages";

enum {
    FILE_HEADER_SIZE = 100,
    LEAST_PAGE = 512,
    USUAL_PAGE = 4096, // what SQLite makes where nothing else is asked for
    MOST_PAGE = 65536,
    RECORD_LIMIT = 64 << 20,
    INTERIOR_INDEX = 2,
    LEAF_INDEX = 10,
    LEAF_TABLE = 13,
};

typedef struct file {
    FILE *stream;
    size_t page_size, usable; // bytes of a page, and of them SQLite's
    uint32_t count;           // of pages, numbered from 1
    uint32_t first_free, free_count;
    bool *is_free;
    unsigned char *page, *next; // the one that is looked at, and one that a record goes on on
    hone_buffer payload, texts; // of one record
} file;

// Bytes that may end anywhere.
typedef struct span {
    const unsigned char *at, *end;
} span;

// Numbers -------------------------------------------------------------------------------------------------------------

static uint32_t big_16(const unsigned char *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t big_32(const unsigned char *at)
{
    return big_16(at) << 16 | big_16(at + 2);
}

// Two's complement, of up to 8 bytes.
static int64_t big_signed(const unsigned char *at, size_t size)
{
    uint64_t value = size > 0 && at[0] >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

// Seven bits a byte, the high bit says that more come; the ninth byte has eight (1.6, "varint").
static bool take_varint(span *from, uint64_t *out)
{
    uint64_t value = 0;
    for (int i = 0; i < 9 && from->at < from->end; i++) {
        const unsigned char byte = *from->at++;
        if (i == 8) {
            *out = value << 8 | byte;
            return true;
        }
        value = value << 7 | (byte & 0x7f);
        if (byte >= 0x80) continue;
        *out = value;
        return true;
    }
    return false;
}

// The file ------------------------------------------------------------------------------------------------------------

static bool read_page(const file *f, uint32_t number, unsigned char *out)
{
    if (number == 0 || number > f->count) return false;
    if (fseeko(f->stream, (off_t)(number - 1) * (off_t)f->page_size, SEEK_SET) != 0) return false;
    return fread(out, 1, f->page_size, f->stream) == f->page_size;
}

static hone_status read_header(file *f, const char *path, hone_error *err)
{
    static const char magic[] = "SQLite format 3";
    unsigned char header[FILE_HEADER_SIZE];
    if (fread(header, 1, sizeof header, f->stream) != sizeof header || memcmp(header, magic, sizeof magic) != 0)
        return hone_fail(err, HONE_CORRUPT, where, "%s: it is not an SQLite file", path);
    const size_t size = big_16(header + 16) == 1 ? MOST_PAGE : big_16(header + 16);
    if (size < LEAST_PAGE || (size & (size - 1)) != 0 || header[20] > 32)
        return hone_fail(err, HONE_CORRUPT, where, "%s: its pages cannot have %zu bytes", path, size);
    f->page_size = size;
    f->usable = size - header[20];
    f->first_free = big_32(header + 32);
    f->free_count = big_32(header + 36);
    return HONE_OK;
}

static hone_status count_pages(file *f, const char *path, hone_error *err)
{
    if (fseeko(f->stream, 0, SEEK_END) != 0 || ftello(f->stream) < 0)
        return hone_fail_system(err, HONE_IO, where, errno, "%s: its size cannot be told", path);
    const uint64_t count = (uint64_t)ftello(f->stream) / f->page_size;
    f->count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    return HONE_OK;
}

static bool mark_free(file *f, uint32_t number)
{
    if (number == 0 || number > f->count || f->is_free[number - 1]) return false;
    f->is_free[number - 1] = true;
    return true;
}

// A list of trunk pages that list leaf pages (1.5). False when it is not as SQLite makes it.
//
//     trunk: | next trunk, 4 bytes | count of leaves, 4 bytes | leaf 1, 4 bytes | leaf 2 | ...
static bool find_free(file *f)
{
    uint32_t found = 0;
    for (uint32_t trunk = f->first_free; trunk != 0; trunk = big_32(f->page)) {
        if (!mark_free(f, trunk) || !read_page(f, trunk, f->page)) return false;
        const uint32_t leaves = big_32(f->page + 4);
        if (leaves > f->usable / 4 - 2) return false;
        for (uint32_t i = 0; i < leaves; i++)
            if (!mark_free(f, big_32(f->page + 8 + i * 4))) return false;
        found += 1 + leaves;
    }
    return found == f->free_count;
}

static hone_status open_file(
    file *f, const char *path, hone_pages which, const hone_allocator *allocator, hone_error *err)
{
    hone_buffer_init(&f->payload, *allocator);
    hone_buffer_init(&f->texts, *allocator);
    f->stream = fopen(path, "rb");
    if (f->stream == NULL) return hone_fail_system(err, HONE_IO, where, errno, "%s: it cannot be read", path);
    f->page_size = f->usable = USUAL_PAGE;
    hone_status status = read_header(f, path, err);
    if (status == HONE_OK || which == HONE_PAGES_ALL) status = count_pages(f, path, err);
    if (status != HONE_OK) return status;
    f->page = hone_alloc(allocator, f->page_size);
    f->next = hone_alloc(allocator, f->page_size);
    f->is_free = hone_alloc_array(allocator, f->count, sizeof *f->is_free);
    if (f->page == NULL || f->next == NULL || f->is_free == NULL) return hone_fail_memory(err, where);
    if (which == HONE_PAGES_ALL || find_free(f)) return HONE_OK;
    return hone_fail(err, HONE_CORRUPT, where, "%s: its list of free pages is damaged", path);
}

static void close_file(file *f, const hone_allocator *allocator)
{
    if (f->stream != NULL) fclose(f->stream);
    hone_free(allocator, f->page);
    hone_free(allocator, f->next);
    hone_free(allocator, f->is_free);
    hone_buffer_deinit(&f->payload);
    hone_buffer_deinit(&f->texts);
}

// Records -------------------------------------------------------------------------------------------------------------

// How many bytes of a record stand on its own page: X, M and K of 1.6, with U usable bytes. The fractions are the file
// format's: at least four cells of an index fit a page, and what overflows fills whole pages where it can.
static size_t local_size(const file *f, bool is_of_table, uint64_t size)
{
    hone_assert(f->usable >= LEAST_PAGE - 32);
    const size_t most = is_of_table ? f->usable - 35 : (f->usable - 12) * 64 / 255 - 23;
    const size_t least = (f->usable - 12) * 32 / 255 - 23;
    if (size <= most) return (size_t)size;
    const size_t local = least + (size_t)((size - least) % (f->usable - 4));
    return local <= most ? local : least;
}

// The rest of a record, page after page. A ring of pages ends with the record's size.
static bool take_overflow(file *f, uint32_t number, size_t rest)
{
    while (rest > 0) {
        const size_t size = rest < f->usable - 4 ? rest : f->usable - 4;
        if (!read_page(f, number, f->next)) return false;
        hone_buffer_append(&f->payload, (const char *)f->next + 4, size);
        number = big_32(f->next);
        rest -= size;
    }
    return true;
}

static bool take_payload(file *f, span *cell, bool is_of_table, uint64_t size)
{
    hone_buffer_clear(&f->payload);
    if (size > RECORD_LIMIT || size > (uint64_t)f->count * f->page_size) return false;
    const size_t local = local_size(f, is_of_table, size), rest = (size_t)size - local;
    if ((size_t)(cell->end - cell->at) < local + (rest > 0 ? 4 : 0)) return false;
    hone_buffer_append(&f->payload, (const char *)cell->at, local);
    return rest == 0 || take_overflow(f, big_32(cell->at + local), rest);
}

// Bytes of a serial type (2.1): numbers by a table, then texts and blobs of (type - 12) / 2 bytes. 10 and 11 are never
// written.
static size_t size_of_type(uint64_t type)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
    if (type < sizeof sizes / sizeof *sizes) return sizes[type];
    return (size_t)((type - 12) / 2);
}

// Texts are copied, so that each ends with a NUL; where they lie is known when all are there.
static bool take_cell(file *f, uint64_t type, const unsigned char *at, hone_cell *out)
{
    *out = (hone_cell){.size = size_of_type(type)};
    if (type == 0) return true;
    if (type == 7) {
        const int64_t bits = big_signed(at, out->size);
        out->kind = HONE_CELL_REAL;
        memcpy(&out->as.real, &bits, sizeof bits);
    } else if (type < 10) {
        out->kind = HONE_CELL_INTEGER;
        out->as.integer = type >= 8 ? (int64_t)type - 8 : big_signed(at, out->size);
    } else {
        if (type < 12 || type % 2 == 0) return false; // hone writes no blobs
        out->kind = HONE_CELL_TEXT;
        hone_buffer_append(&f->texts, (const char *)at, out->size);
        hone_buffer_char(&f->texts, '\0');
        return true;
    }
    out->size = 0;
    return true;
}

static void point_at_texts(file *f, hone_page_record *out)
{
    const char *text = f->texts.data;
    for (size_t i = 0; i < out->count; i++) {
        if (out->cells[i].kind != HONE_CELL_TEXT) continue;
        out->cells[i].as.text = text;
        text += out->cells[i].size + 1;
    }
}

// A header of types, and then the values. False for what cannot be a record.
static bool take_record(file *f, hone_page_record *out)
{
    span head = {(const unsigned char *)f->payload.data, NULL};
    uint64_t head_size, type;
    head.end = head.at + f->payload.size;
    const span all = head;
    if (f->payload.size == 0 || !take_varint(&head, &head_size) || head_size > f->payload.size) return false;
    span body = {all.at + head_size, all.end};
    head.end = body.at;
    hone_buffer_clear(&f->texts);
    out->count = 0;
    while (head.at < head.end) {
        if (out->count == HONE_PAGE_CELLS || !take_varint(&head, &type)) return false;
        if (size_of_type(type) > (size_t)(body.end - body.at)) return false;
        if (!take_cell(f, type, body.at, &out->cells[out->count++])) return false;
        body.at += size_of_type(type);
    }
    point_at_texts(f, out);
    return !f->texts.failed;
}

// Pages ---------------------------------------------------------------------------------------------------------------

static bool take_table_cell(file *f, unsigned kind, size_t offset, hone_page_record *out)
{
    span cell = {f->page + offset, f->page + f->usable};
    uint64_t size, number = 0;
    out->is_of_table = kind == LEAF_TABLE;
    if (kind == INTERIOR_INDEX) cell.at += 4; // the page below it
    if (cell.at >= cell.end || !take_varint(&cell, &size)) return false;
    if (out->is_of_table && !take_varint(&cell, &number)) return false;
    out->number = (int64_t)number;
    return take_payload(f, &cell, out->is_of_table, size) && !f->payload.failed && take_record(f, out);
}

// False when visit ended it.
static bool visit_page(file *f, uint32_t number, bool (*visit)(void *ctx, const hone_page_record *record), void *ctx)
{
    const size_t begin = number == 1 ? FILE_HEADER_SIZE : 0;
    const unsigned char *head = f->page + begin;
    const unsigned kind = head[0];
    if (kind != INTERIOR_INDEX && kind != LEAF_INDEX && kind != LEAF_TABLE) return true;
    const size_t pointers = begin + (kind == INTERIOR_INDEX ? 12 : 8);
    const size_t count = big_16(head + 3);
    for (size_t i = 0; i < count && pointers + i * 2 + 2 <= f->usable; i++) {
        const size_t offset = big_16(f->page + pointers + i * 2);
        hone_page_record record;
        if (offset >= f->usable || !take_table_cell(f, kind, offset, &record)) continue;
        if (!visit(ctx, &record)) return false;
    }
    return true;
}

hone_status hone_pages_read(
    const char *path,
    hone_pages which,
    const hone_allocator *allocator,
    bool (*visit)(void *ctx, const hone_page_record *record),
    void *ctx,
    hone_error *err)
{
    file f = {.stream = NULL};
    hone_status status = open_file(&f, path, which, allocator, err);
    for (uint32_t number = 1; status == HONE_OK && number <= f.count; number++) {
        if (f.is_free[number - 1] || !read_page(&f, number, f.page)) continue;
        if (!visit_page(&f, number, visit, ctx)) break;
        if (f.payload.failed || f.texts.failed) status = hone_fail_memory(err, where);
    }
    close_file(&f, allocator);
    return status;
}
