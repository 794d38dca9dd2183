// Products of tiles on AMX: one instruction multiplies 16 rows of 16 words by 16 words of 16 columns and adds the
// products to 16 x 16 sums. The including file provides the vectors of AVX-512, WORD (elements in a word), AMX_DOT (the
// instruction), and
//
//   vec line(strip, row, k)     the words of a row from element k on; those after the strip's end are zero
//   vec column(strip, k, from)  the words of 16 columns from `from` on, of the rows from k on
//
// Eight registers are tiles of 1 KiB: four hold sums, two hold words of a, two hold words of b. All tiles are whole, so
// one configuration serves a worker for its whole run: packers pad with zeros, and sums after the product's last row or
// column are computed and ignored.
#ifndef HONE_KERNELS_MATMUL_AMX_H
#define HONE_KERNELS_MATMUL_AMX_H

#include "kernels/matmul/tile.h"

enum { LINE = 16 }; // a line of a tile: words, and its rows

// The operand of LDTILECFG. Source: Intel's architecture manual, volume 1, chapter 18.
typedef struct shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16]; // of a row
    uint8_t rows[16];
} shapes;

// Prevents reordering: the compiler does not know that tiles are loaded from memory and stored to it.
HONE_INLINE void order_memory(void)
{
    __asm__ volatile("" ::: "memory");
}

static void begin(void)
{
    static const shapes whole = {
        .palette = 1,
        .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .rows = {LINE, LINE, LINE, LINE, LINE, LINE, LINE, LINE},
    };
    _tile_loadconfig(&whole);
}

static void end(void)
{
    _tile_release();
}

// Tiles 0 to 3: sums, 4 and 5: b, 6 and 7: a.
HONE_INLINE void load_sums(const float *c, size_t stride, int rows, int columns)
{
    _tile_loadd(0, c, stride);
    if (columns > 1) _tile_loadd(1, c + LINE, stride);
    if (rows < 2) return;
    c += LINE * stride / sizeof *c;
    _tile_loadd(2, c, stride);
    if (columns > 1) _tile_loadd(3, c + LINE, stride);
}

HONE_INLINE void store_sums(float *c, size_t stride, int rows, int columns)
{
    _tile_stored(0, c, stride);
    if (columns > 1) _tile_stored(1, c + LINE, stride);
    if (rows < 2) return;
    c += LINE * stride / sizeof *c;
    _tile_stored(2, c, stride);
    if (columns > 1) _tile_stored(3, c + LINE, stride);
}

HONE_INLINE void clear_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

// Words of a pass the first cache by, in which the panel of b stays.
HONE_INLINE void add_products(
    const float *first, const float *second, const float *b, size_t b_stride, int rows, int columns)
{
    _tile_loadd(4, b, b_stride);
    _tile_stream_loadd(6, first, 64);
    AMX_DOT(0, 6, 4);
    if (columns > 1) {
        _tile_loadd(5, b + LINE, b_stride);
        AMX_DOT(1, 6, 5);
    }
    if (rows < 2) return;
    _tile_stream_loadd(7, second, 64);
    AMX_DOT(2, 7, 4);
    if (columns > 1) AMX_DOT(3, 7, 5);
}

HONE_INLINE void multiply(const hone_gemm_tile *tile, int rows, int columns)
{
    const float *first = tile->a, *second = first + tile->depth * LINE, *b = tile->b;
    const size_t b_stride = (size_t)tile->b_step * sizeof(float), c_stride = (size_t)tile->c_stride * sizeof(float);
    const char *fetch = tile->fetch;
    order_memory();
    if (tile->accumulate)
        load_sums(tile->c, c_stride, rows, columns);
    else
        clear_sums();
    for (int64_t p = 0; p < tile->depth; p += LINE) {
        add_products(first, second, b, b_stride, rows, columns);
        first += LINE * LINE;
        second += LINE * LINE;
        b += LINE * tile->b_step;
        if (tile->fetch_step == 0) continue;
        for (int i = 0; i < LINE; i++)
            __builtin_prefetch(fetch + i * tile->fetch_stride, 0, 2);
        fetch += tile->fetch_step;
    }
    store_sums(tile->c, c_stride, rows, columns);
    order_memory();
}

static void tile(const hone_gemm_tile *work, int32_t rows)
{
    if (rows > LINE && work->columns > LINE)
        multiply(work, 2, 2);
    else if (rows > LINE)
        multiply(work, 2, 1);
    else if (work->columns > LINE)
        multiply(work, 1, 2);
    else
        multiply(work, 1, 1);
}

// Packing -------------------------------------------------------------------------------------------------------------

// Stores tiles of a one after another, in the order of k: 16 rows of 16 words each.
static void rows_of_a(const hone_gemm_strip *strip)
{
    float *out = strip->out;
    for (int64_t row = 0; row < strip->count; row += LINE)
        for (int64_t k = 0; k < strip->depth * WORD; k += LINE * WORD)
            for (int64_t i = row; i < row + LINE; i++, out += LINE)
                vec_store(out, HONE_F32, 0, i < strip->count ? line(strip, i, k) : vec_set(0.0f));
}

// Zeroes the words after those that pack_lines fills.
HONE_INLINE void clear_rest(const hone_gemm_strip *strip)
{
    const int64_t words = (strip->size + WORD - 1) / WORD;
    memset(
        (float *)strip->out + words * strip->width, 0, (size_t)((strip->depth - words) * strip->width) * sizeof(float));
}

// Prefetches the rows that are packed next: each may be on another page.
static void columns(const hone_gemm_strip *strip)
{
    float *out = strip->out;
    const int64_t row = strip->stride * (int64_t)sizeof(float) / WORD;
    const char *below = (const char *)strip->data + strip->depth * WORD * row;
    for (int64_t k = 0; k < strip->depth * WORD; k++)
        __builtin_prefetch(below + k * row, 0, 2);
    for (int64_t k = 0; k < strip->depth * WORD; k += WORD, out += strip->width)
        for (int64_t from = 0; from < strip->width; from += LINE)
            vec_store(out, HONE_F32, from, column(strip, k, from));
}

#endif
