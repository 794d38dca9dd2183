// The blocked matrix product of all instruction sets: the loops, the threads and the packing order are here, in plain
// C; an instruction set provides its micro-kernels and packers in a table.
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

// Rows are prefetched together: that many steps prefetch a cache line of each.
enum { HONE_FETCH_BYTES = 64 }; // of a cache line

// The least multiple of a step that is at least a: the padded size of tiles and panels. step > 0.
static inline int64_t hone_gemm_round_up(int64_t a, int64_t step)
{
    return (a + step - 1) / step * step;
}

// The work of a micro-kernel: c[0..rows)[0..columns) (+)= A tile * B panel. A word is one float, two bf16 or 16-bit
// integers that are adjacent in k, four 8-bit integers, or one double; sums have the same size. Strides and depth are
// in words.
typedef struct hone_gemm_tile {
    const void *a;    // word p of row i at a[p * rows + i]; in place p words behind byte i * a_stride
    int64_t a_stride; // in place, bytes
    bool a_is_cut;    // in place: of the last word only the first half exists
    const void *b;    // words of columns at b[p * b_step + j]
    int64_t b_step, depth;
    void *c;
    int64_t c_stride;
    int64_t columns; // 1 to nr; the last vector may be partial
    bool accumulate; // add to c; else overwrite it
    // If the set rounds, and these sums are complete: receives the rounded sums, and c is not written. NULL: c is
    // written.
    void *result;
    int64_t result_stride; // elements
    // The data that are packed next: as many rows as a line has words (HONE_FETCH_BYTES / lane) are prefetched to the
    // second-level cache, one line of one row per step, and fetch_step bytes further on in each row after that many
    // steps.
    const char *fetch;
    int64_t fetch_stride, fetch_step;
} hone_gemm_tile;

// A strip of a matrix to pack: `count` (at most width) lines of depth words become dst[p * width + i], i < width; lines
// from count on are zero. size is in elements of k, of which a word may hold several; missing elements are zero.
typedef struct hone_gemm_strip {
    const void *data; // the first element
    int64_t stride;   // elements from one row of the source to the next
    hone_dtype_id dtype;
    int64_t count, width;
    int64_t size, depth; // words of depth after those of size are also zero, if the set has a depth_unit
    void *out;
} hone_gemm_strip;

// An instruction set.
typedef struct hone_gemm_set {
    int32_t vector; // words
    int32_t lane;   // bytes of a word, and of a sum: 4, or 8 for f64
    int32_t word;   // elements of k in a word: 1, 2 for pairs, 4 for 8-bit integers
    // Tiles of rows begin at multiples of row_unit, and the depth of a block is a multiple of depth_unit words; 0 means
    // 1.
    int32_t row_unit, depth_unit;
    bool whole_tiles; // tiles of sums are written completely, even after the product's last row and column
    bool rounds;      // a tile's sums can be rounded when they are stored
    void (*tile)(const hone_gemm_tile *tile, int32_t rows);
    void (*tile_in_place)(const hone_gemm_tile *tile, int32_t rows); // at most 9 rows; NULL: a is always packed
    void (*pack_a)(const hone_gemm_strip *strip);                    // in the set's own order; NULL: pack_lines
    void (*pack_lines)(const hone_gemm_strip *strip);   // line i is row i of the source, along which k increases
    void (*pack_columns)(const hone_gemm_strip *strip); // line i is column i: k increases down the rows
    void (*narrow)(
        const float *from, void *to, hone_dtype_id dtype, int64_t count); // f32 to f16 or bf16; of whole tiles f32, too
    hone_matmul_finish *finish;        // of sums, before they are narrowed: of integers to floats
    void (*begin)(void), (*end)(void); // of a worker's part: thread state; may be NULL
} hone_gemm_set;

// Blocking, from a config.
typedef struct hone_gemm_blocking {
    int32_t mr, nr;
    int64_t mc, nc, kc;
    bool pack_a, pack_b; // false: f32 and f64 only, and for b [k, n]: micro-kernels read the matrix as it lies
    int32_t threads;
} hone_gemm_blocking;

// Bytes of scratch memory for a run of this product, of all workers together.
size_t hone_gemm_scratch(const hone_gemm_set *set, const hone_gemm_blocking *blocking, const hone_matmul *product);

// A digest of what is run: blockings of one set that cut this product into the same blocks have the same digest. 0:
// nothing is run.
uint64_t hone_gemm_digest(const hone_gemm_set *set, const hone_gemm_blocking *blocking, const hone_matmul *product);

// Returns: HONE_OK; HONE_OUT_OF_MEMORY.
hone_status hone_gemm_run(
    const hone_gemm_set *set,
    const hone_gemm_blocking *blocking,
    const hone_matmul *product,
    const hone_plan *plan,
    const hone_execution *execution);

#endif
