// The blocked matrix product that all instruction sets share: the loops, the threads and the packing order are here,
// in plain C; an instruction set brings its micro-kernels and packers in a table.
//
//   for each thread's part of c            hone_gemm_run
//     for columns in steps of nc           B block: depth x nc words, packed in panels of nr columns
//       for k in steps of kc
//         for rows in steps of mc          A block: mc x depth words, packed in tiles of at most mr rows
//           for each panel, for each tile  one micro-kernel: c tile += A tile * B panel, all in registers
//
// After Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.
#ifndef HONE_KERNELS_MATMUL_GEMM_H
#define HONE_KERNELS_MATMUL_GEMM_H

#include "kernels/matmul/matmul.h"

// Rows that are fetched side by side: as many steps take a line of each.
enum { HONE_FETCH_BYTES = 64 }; // of a cache line

// The least multiple of a step that is no smaller: what tiles and panels fill up. step > 0.
static inline int64_t hone_gemm_round_up(int64_t a, int64_t step)
{
    return (a + step - 1) / step * step;
}

// What a micro-kernel computes: c[0..rows)[0..columns) (+)= A tile * B panel. A word is one float, two bf16 or integers of 16
// bits that follow each other in k, four integers of 8 bits, or one double; sums are as long. Strides and depth count words.
typedef struct hone_gemm_tile {
    const void *a;    // word p of row i at a[p * rows + i]; in place p words behind byte i * a_stride
    int64_t a_stride; // in place, bytes
    bool a_is_cut;    // in place: of the last word the first half alone is there
    const void *b;    // words of columns at b[p * b_step + j]
    int64_t b_step, depth;
    void *c;
    int64_t c_stride;
    int64_t columns; // 1 to nr; the last vector may be cut
    bool accumulate; // add to c; else overwrite it
    // Where the set rounds, and these sums are complete: what they are rounded to goes there, and c is not written. NULL: to c.
    void *result;
    int64_t result_stride; // elements
    // What is packed soon: as many rows as a line has words (HONE_FETCH_BYTES / lane) are fetched towards the second cache,
    // a line of one of them each step, fetch_step bytes further on in each after as many steps.
    const char *fetch;
    int64_t fetch_stride, fetch_step;
} hone_gemm_tile;

// A strip of a matrix to pack: `count` (at most width) lines of depth words become dst[p * width + i], i < width; lines
// from count on are zero. size is in elements of k, of which a word may hold several; missing ones are zero.
typedef struct hone_gemm_strip {
    const void *data; // the first element
    int64_t stride;   // elements from one row of the source to the next
    hone_dtype_id dtype;
    int64_t count, width;
    int64_t size, depth; // words of depth behind those of size are zero too, where the set has a depth_unit
    void *out;
} hone_gemm_strip;

// An instruction set.
typedef struct hone_gemm_set {
    int32_t vector; // words
    int32_t lane;   // bytes of a word, and of a sum: 4, or 8 of f64
    int32_t word;   // elements of k in a word: 1, 2 of pairs, 4 of integers of 8 bits
    // Tiles of rows begin at multiples of row_unit, and a block is a multiple of depth_unit words deep; 0 is 1.
    int32_t row_unit, depth_unit;
    bool whole_tiles; // all of a tile of sums is written, also what lies behind the product's last row and column
    bool rounds;      // a tile's sums can be rounded as they are stored
    void (*tile)(const hone_gemm_tile *tile, int32_t rows);
    void (*tile_in_place)(const hone_gemm_tile *tile, int32_t rows); // at most 9 rows; NULL: a is always packed
    void (*pack_a)(const hone_gemm_strip *strip);                    // in an order of the set's own; NULL: pack_lines
    void (*pack_lines)(const hone_gemm_strip *strip);                // line i is row i of the source: k runs along it
    void (*pack_columns)(const hone_gemm_strip *strip);              // line i is column i: k runs down the rows
    void (*narrow)(
        const float *from, void *to, hone_dtype_id dtype, int64_t count); // f32 to f16 or bf16; of whole tiles f32, too
    hone_matmul_finish *finish;        // of sums, before they are narrowed: of integers to floats
    void (*begin)(void), (*end)(void); // of a worker's part: state of the thread; may be NULL
} hone_gemm_set;

// Blocking, as a config gives it.
typedef struct hone_gemm_blocking {
    int32_t mr, nr;
    int64_t mc, nc, kc;
    bool pack_a, pack_b; // false: f32 and f64 only, and for b [k, n]: micro-kernels read the matrix as it lies
    int32_t threads;
} hone_gemm_blocking;

// Bytes of scratch that a run of this product takes, all workers together.
size_t hone_gemm_scratch(const hone_gemm_set *set, const hone_gemm_blocking *blocking, const hone_matmul *product);

// What is run, as a number: blockings of one set that cut this product into the same blocks have the same. 0: nothing
// is.
uint64_t hone_gemm_digest(const hone_gemm_set *set, const hone_gemm_blocking *blocking, const hone_matmul *product);

// Returns: HONE_OK; HONE_OUT_OF_MEMORY.
hone_status hone_gemm_run(
    const hone_gemm_set *set,
    const hone_gemm_blocking *blocking,
    const hone_matmul *product,
    const hone_plan *plan,
    const hone_execution *execution);

#endif
