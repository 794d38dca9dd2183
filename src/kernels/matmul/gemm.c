#include "kernels/matmul/gemm.h"

#include "base/assert.h"
#include "base/hash.h"
#include "kernels/common/half.h"
#include "kernels/common/scratch.h"

#include <stdatomic.h>

enum {
    KEPT = 1 << 20, // bytes of a that stay packed: half of a second-level cache
    SLACK = 64,     // words after a packed block, since packers store whole vectors
    PACKED_ROWS = 8 // of a [k, n] matrix, which are packed together
};

// One run, which its workers share.
typedef struct gemm_job {
    const hone_gemm_set *set;
    const hone_gemm_blocking *blocking;
    const hone_matmul *product;
    const hone_execution *execution;
    int64_t ways, grid_rows, grid_columns; // workers: parts of the batch, and of each of its products
    atomic_bool failed;
} gemm_job;

// One worker's part of c, [rows) x [columns), and its memory.
typedef struct gemm_part {
    const gemm_job *job;
    const hone_matmul *product; // of a batch, the current product
    int64_t row_begin, row_end, column_begin, column_end;
    char *a, *b, *c; // packed blocks; c: sums that are still to be narrowed
    int64_t c_stride;
} gemm_part;

// The block that is packed while micro-kernels run.
typedef struct gemm_block {
    int64_t row, rows, column, columns;
    int64_t depth, k_begin;   // words, elements
    bool first, last;         // whether it is the first (c is overwritten) or last (c is complete) block of k
    bool packs;               // b's panels are packed at their first use
    int64_t next_row, next_k; // of a: the next rows to be packed; next_row is the part's end if there are none
} gemm_block;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// The start of piece `index` of `count` if pieces begin at multiples of a unit; columns at multiples of nr.
static int64_t unit_piece(int64_t total, int64_t unit, int64_t index, int64_t count)
{
    return smaller(total, hone_matmul_piece(divide_up(total, unit), index, count) * unit);
}

// The size of the largest piece, with a partial last unit counted as whole.
static int64_t largest_piece(int64_t total, int64_t unit, int64_t count)
{
    return divide_up(divide_up(total, unit), count) * unit;
}

static int64_t row_unit(const hone_gemm_set *set)
{
    return set->row_unit > 0 ? set->row_unit : 1;
}

static int64_t depth_unit(const hone_gemm_set *set)
{
    return set->depth_unit > 0 ? set->depth_unit : 1;
}

// The most rows of any worker.
static int64_t part_rows(const gemm_job *job)
{
    return largest_piece(job->product->m, row_unit(job->set), job->grid_rows);
}

// The widest block of any worker.
static int64_t block_rows(const gemm_job *job)
{
    return smaller(job->blocking->mc, part_rows(job));
}

static int64_t block_columns(const gemm_job *job)
{
    int64_t nr = job->blocking->nr;
    int64_t part = largest_piece(job->product->n, nr, job->grid_columns);
    return smaller(hone_gemm_round_up(job->blocking->nc, nr), part);
}

static int64_t k_blocks(const gemm_job *job)
{
    return divide_up(job->product->k, job->blocking->kc);
}

static int64_t block_words(const gemm_job *job)
{
    return largest_piece(divide_up(job->product->k, job->set->word), depth_unit(job->set), k_blocks(job));
}

// Whether the sums are the results, and are computed in c.
static bool sums_in_place(const gemm_job *job)
{
    const hone_dtype_id dtype = job->product->dtype;
    return !job->set->whole_tiles && (dtype == HONE_F32 || dtype == HONE_F64);
}

// Bytes of that many words, or sums.
static int64_t words_size(const gemm_job *job, int64_t words)
{
    return words * job->set->lane;
}

// The number of rows of sums that are narrowed: one tile's if k is one block, else all of the worker's rows, panel by
// panel.
static int64_t sum_rows(const gemm_job *job)
{
    if (sums_in_place(job)) return 0;
    return k_blocks(job) == 1 ? job->blocking->mr : part_rows(job);
}

static int64_t sums_stride(const gemm_job *job)
{
    return sums_in_place(job) ? job->product->c_stride : job->blocking->nr;
}

static int64_t sums_columns(const gemm_job *job)
{
    return k_blocks(job) == 1 ? job->blocking->nr : block_columns(job);
}

static int64_t all_words(const gemm_job *job)
{
    return hone_gemm_round_up(divide_up(job->product->k, job->set->word), depth_unit(job->set));
}

// Whether all of a worker's a stays packed after its first columns.
static bool keeps_a(const gemm_job *job)
{
    return part_rows(job) <= job->blocking->mc && words_size(job, part_rows(job) * all_words(job)) <= KEPT;
}

static size_t a_words(const gemm_job *job)
{
    if (!job->blocking->pack_a) return 0;
    int64_t words = keeps_a(job) ? all_words(job) : block_words(job);
    return (size_t)hone_gemm_round_up(block_rows(job) * words + SLACK, SLACK);
}

// Whether panels of b are packed at their first use, instead of before the first product.
static bool packs_panels(const gemm_job *job)
{
    return job->blocking->pack_b && job->product->transpose_b;
}

// Whether no panel is used again: then all are packed to the same memory, which stays in the first caches.
static bool keeps_one_panel(const gemm_job *job)
{
    return packs_panels(job) && part_rows(job) <= job->blocking->mc;
}

static size_t b_words(const gemm_job *job)
{
    if (!job->blocking->pack_b) return 0;
    int64_t columns = keeps_one_panel(job) ? job->blocking->nr : block_columns(job);
    return (size_t)hone_gemm_round_up(columns * block_words(job) + SLACK, SLACK);
}

static size_t piece_bytes(const gemm_job *job)
{
    return (a_words(job) + b_words(job) + (size_t)(sum_rows(job) * sums_columns(job))) * (size_t)job->set->lane;
}

static char *a_of(const gemm_part *part, const gemm_block *block)
{
    const gemm_job *job = part->job;
    return keeps_a(job) ? part->a + words_size(job, block_rows(job) * (block->k_begin / job->set->word)) : part->a;
}

static void pack_a(const gemm_part *part, const gemm_block *block, int64_t tiles)
{
    const hone_matmul *product = part->product;
    const hone_gemm_set *set = part->job->set;
    int64_t size = hone_element_size(product->operands);
    for (int64_t t = 0; t < tiles; t++) {
        int64_t row = unit_piece(block->rows, row_unit(set), t, tiles);
        int64_t rows = unit_piece(block->rows, row_unit(set), t + 1, tiles) - row;
        int64_t from = (block->row + row) * product->a_stride + block->k_begin;
        hone_gemm_strip strip = {
            .data = (const char *)product->a + from * size,
            .stride = product->a_stride,
            .dtype = product->operands,
            .count = rows,
            .width = rows,
            .size = smaller(block->depth * set->word, product->k - block->k_begin),
            .depth = block->depth,
            .out = a_of(part, block) + words_size(part->job, row * block->depth),
        };
        (set->pack_a != NULL ? set->pack_a : set->pack_lines)(&strip);
    }
}

static char *panel_of(const gemm_part *part, const gemm_block *block, int64_t column)
{
    return keeps_one_panel(part->job) ? part->b : part->b + words_size(part->job, column * block->depth);
}

static void pack_panel(const gemm_part *part, const gemm_block *block, int64_t column, int64_t word, int64_t words)
{
    hone_assert(part->b != NULL && column % part->job->blocking->nr == 0); // panels are adjacent
    const hone_matmul *product = part->product;
    const hone_gemm_set *set = part->job->set;
    int64_t nr = part->job->blocking->nr, stride = product->b_stride;
    int64_t j = block->column + column, p = block->k_begin + word * set->word;
    int64_t from = product->transpose_b ? j * stride + p : p * stride + j;
    hone_gemm_strip strip = {
        .data = (const char *)product->b + from * hone_element_size(product->operands),
        .stride = stride,
        .dtype = product->operands,
        .count = smaller(nr, block->columns - column),
        .width = nr,
        .size = smaller(words * set->word, product->k - p),
        .depth = words,
        .out = panel_of(part, block, column) + words_size(part->job, word * nr),
    };
    (product->transpose_b ? set->pack_lines : set->pack_columns)(&strip);
}

// For a [k, n] matrix, a few rows are read from end to end, since reading down one panel's columns would touch a new
// page at every step (measured at 4096 x 4096: 17 GB/s, 6 GB/s down the columns). A panel of a [n, k] matrix is packed
// at its first use.
static void pack_rows_of_b(const gemm_part *part, const gemm_block *block)
{
    for (int64_t word = 0; word < block->depth; word += PACKED_ROWS)
        for (int64_t column = 0; column < block->columns; column += part->job->blocking->nr)
            pack_panel(part, block, column, word, smaller(PACKED_ROWS, block->depth - word));
}

// Sets where rows of A are read, from row `from` of the block on: packed, or in place.
static void place_a(const gemm_part *part, const gemm_block *block, int64_t from, hone_gemm_tile *tile)
{
    const hone_matmul *product = part->product;
    const int64_t size = hone_element_size(product->operands);
    if (part->job->blocking->pack_a)
        tile->a = a_of(part, block) + words_size(part->job, from * block->depth);
    else
        tile->a = (const char *)product->a + ((block->row + from) * product->a_stride + block->k_begin) * size;
    tile->a_stride = product->a_stride * size;
    tile->a_is_cut = block->k_begin + block->depth * part->job->set->word > product->k;
}

// Sets where a panel of B is read: packed, or in place.
static void place_b(const gemm_part *part, const gemm_block *block, int64_t column, hone_gemm_tile *tile)
{
    const hone_matmul *product = part->product;
    if (part->job->blocking->pack_b) {
        tile->b = panel_of(part, block, column);
        tile->b_step = part->job->blocking->nr;
    } else {
        tile->b = (const char *)product->b +
                  words_size(part->job, block->k_begin * product->b_stride + block->column + column);
        tile->b_step = product->b_stride;
    }
}

// The place of the sums of row `row` and of the block's column `column`.
static void *place_c(const gemm_part *part, const gemm_block *block, int64_t row, int64_t column)
{
    const hone_matmul *product = part->product;
    const gemm_job *job = part->job;
    if (sums_in_place(job))
        return (char *)product->c + words_size(job, row * product->c_stride + block->column + column);
    if (k_blocks(job) == 1) return part->c;
    return part->c + words_size(job, column * sum_rows(job) + (row - part->row_begin) * part->c_stride);
}

// The place of the result of row `row` and of the block's column `column`.
static char *result_at(const gemm_part *part, const gemm_block *block, int64_t row, int64_t column)
{
    const hone_matmul *product = part->product;
    return (char *)product->c + (row * product->c_stride + block->column + column) * hone_element_size(product->dtype);
}

// Sums are written to c while they are in the first-level cache.
static void narrow_tile(
    const gemm_part *part,
    const gemm_block *block,
    const hone_gemm_tile *tile,
    int64_t row,
    int64_t rows,
    int64_t column)
{
    const hone_matmul *product = part->product;
    const int64_t size = hone_element_size(product->dtype);
    char *to = result_at(part, block, row, column);
    for (int64_t i = 0; i < rows; i++, to += product->c_stride * size)
        part->job->set->narrow((const float *)tile->c + i * tile->c_stride, to, product->dtype, tile->columns);
}

// Sums become results while they are in the first-level cache.
static void finish_tile(
    const gemm_part *part,
    const gemm_block *block,
    const hone_gemm_tile *tile,
    int64_t row,
    int64_t rows,
    int64_t column)
{
    for (int64_t i = 0; i < rows; i++)
        part->job->set->finish(
            part->product, (char *)tile->c + words_size(part->job, i * tile->c_stride), row + i, block->column + column,
            tile->columns);
}

// Prefetches the cache lines of the result while the tile is multiplied.
static void fetch_result(const gemm_part *part, const gemm_block *block, int64_t row, int64_t rows, int64_t column)
{
    const hone_matmul *product = part->product;
    const int64_t size = hone_element_size(product->dtype);
    const char *c = result_at(part, block, row, column);
    for (int64_t i = 0; i < rows; i++)
        __builtin_prefetch(c + i * product->c_stride * size, 1);
}

// Fetching ------------------------------------------------------------------------------------------------------------

static int64_t fetched_rows(const gemm_part *part)
{
    return HONE_FETCH_BYTES / part->job->set->lane;
}

// If there is nothing to prefetch, the same line is prefetched each time.
static void fetch_nothing(hone_gemm_tile *tile)
{
    tile->fetch = (const char *)tile->a;
    tile->fetch_stride = tile->fetch_step = 0;
}

static void fetch_rows(const gemm_part *part, hone_gemm_tile *tile, const void *data, int64_t offset, int64_t stride)
{
    int64_t size = hone_element_size(part->product->operands);
    tile->fetch = (const char *)data + offset * size;
    tile->fetch_stride = stride * size;
    tile->fetch_step = fetched_rows(part) * part->job->set->word * size;
}

// Prefetches the next panel of a transposed b while this one is multiplied, then the next rows of a.
static void choose_fetch(
    const gemm_part *part, const gemm_block *block, int64_t column, int64_t t, hone_gemm_tile *tile)
{
    const hone_matmul *product = part->product;
    const int64_t rows = fetched_rows(part);
    int64_t nr = part->job->blocking->nr, line = t * rows;
    if (block->packs && line < nr && column + nr + line + rows <= block->columns) {
        int64_t j = block->column + column + nr + line;
        fetch_rows(part, tile, product->b, j * product->b_stride + block->k_begin, product->b_stride);
    } else if (column + nr >= block->columns && block->next_row + line + rows <= part->row_end) {
        int64_t i = block->next_row + line;
        fetch_rows(part, tile, product->a, i * product->a_stride + block->next_k, product->a_stride);
    } else {
        fetch_nothing(tile);
    }
}

// Multiplying ---------------------------------------------------------------------------------------------------------

static void multiply_panel(const gemm_part *part, const gemm_block *block, int64_t column, int64_t tiles)
{
    hone_gemm_tile tile = {
        .depth = block->depth,
        .c_stride = part->c_stride,
        .result_stride = part->product->c_stride,
        .accumulate = !block->first,
        .columns = smaller(part->job->blocking->nr, block->columns - column),
    };
    const hone_gemm_set *set = part->job->set;
    void (*multiply)(const hone_gemm_tile *, int32_t) = part->job->blocking->pack_a ? set->tile : set->tile_in_place;
    const bool finishes = block->last && hone_matmul_has_epilogue(part->product);
    const bool narrows = block->last && !sums_in_place(part->job), rounds = narrows && !finishes && set->rounds;
    place_b(part, block, column, &tile);
    for (int64_t t = 0, from = 0, rows; t < tiles; t++, from += rows) {
        rows = unit_piece(block->rows, row_unit(set), t + 1, tiles) - from;
        place_a(part, block, from, &tile);
        tile.c = place_c(part, block, block->row + from, column);
        choose_fetch(part, block, column, t, &tile);
        tile.result = rounds ? result_at(part, block, block->row + from, column) : NULL;
        if (narrows) fetch_result(part, block, block->row + from, rows, column);
        multiply(&tile, (int32_t)rows);
        if (finishes) finish_tile(part, block, &tile, block->row + from, rows, column);
        if (narrows && !rounds) narrow_tile(part, block, &tile, block->row + from, rows, column);
    }
}

static void multiply_block(const gemm_part *part, const gemm_block *block, int64_t tiles)
{
    for (int64_t column = 0; column < block->columns; column += part->job->blocking->nr) {
        if (block->packs) pack_panel(part, block, column, 0, block->depth);
        multiply_panel(part, block, column, tiles);
    }
}

// Multiplies all row blocks by one block of B.
static void multiply_rows(const gemm_part *part, gemm_block *block)
{
    int64_t total = part->row_end - part->row_begin, count = divide_up(total, part->job->blocking->mc);
    int64_t unit = row_unit(part->job->set);
    for (int64_t i = 0; i < count; i++) {
        block->row = part->row_begin + unit_piece(total, unit, i, count);
        block->rows = part->row_begin + unit_piece(total, unit, i + 1, count) - block->row;
        block->packs = i == 0 && packs_panels(part->job);
        bool ends = i == count - 1;
        block->next_row = !ends ? block->row + block->rows : block->last ? part->row_end : part->row_begin;
        block->next_k = block->k_begin + (ends ? block->depth * part->job->set->word : 0);
        int64_t tiles = divide_up(block->rows, part->job->blocking->mr);
        bool stands = keeps_a(part->job) && block->column > part->column_begin;
        if (part->job->blocking->pack_a && !stands) pack_a(part, block, tiles);
        multiply_block(part, block, tiles);
    }
}

static void multiply_columns(const gemm_part *part, gemm_block *block)
{
    const gemm_job *job = part->job;
    int64_t word = job->set->word, unit = depth_unit(job->set), count = k_blocks(job);
    int64_t words = all_words(job);
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = unit_piece(words, unit, i, count);
        block->k_begin = begin * word;
        block->depth = unit_piece(words, unit, i + 1, count) - begin;
        block->first = i == 0;
        block->last = i == count - 1;
        if (job->blocking->pack_b && !packs_panels(job)) pack_rows_of_b(part, block);
        multiply_rows(part, block);
    }
}

static void multiply_part(gemm_part *part)
{
    const gemm_job *job = part->job;
    int64_t nr = job->blocking->nr, total = part->column_end - part->column_begin;
    int64_t count = divide_up(total, block_columns(job));
    for (int64_t i = 0; i < count; i++) {
        gemm_block block = {.column = part->column_begin + unit_piece(total, nr, i, count)};
        block.columns = part->column_begin + unit_piece(total, nr, i + 1, count) - block.column;
        multiply_columns(part, &block);
    }
}

// Computes the same part of each product of a worker's share of the batch.
static void multiply_share(gemm_part *part, int64_t way)
{
    const gemm_job *job = part->job;
    const int64_t batch = hone_matmul_batch(job->product);
    for (int64_t i = hone_matmul_piece(batch, way, job->ways); i < hone_matmul_piece(batch, way + 1, job->ways); i++) {
        const hone_matmul one = hone_matmul_at(job->product, i);
        part->product = &one;
        multiply_part(part);
    }
}

static int64_t workers(const gemm_job *job)
{
    return job->ways * job->grid_rows * job->grid_columns;
}

static void work(void *ctx, int64_t index)
{
    gemm_job *job = ctx;
    const hone_matmul *product = job->product;
    int64_t way = index % job->ways, place = index / job->ways;
    int64_t row = place / job->grid_columns, column = place % job->grid_columns, nr = job->blocking->nr;
    int64_t unit = row_unit(job->set);
    size_t bytes = piece_bytes(job);
    char *memory = bytes > 0 ? hone_scratch_piece(job->execution, index, workers(job), bytes) : NULL;
    if (bytes > 0 && memory == NULL) {
        atomic_store_explicit(&job->failed, true, memory_order_relaxed);
        return;
    }
    char *packed_b = memory != NULL ? memory + words_size(job, (int64_t)a_words(job)) : NULL,
         *sums = memory != NULL ? packed_b + words_size(job, (int64_t)b_words(job)) : NULL;
    gemm_part part = {
        .job = job,
        .product = product,
        .row_begin = unit_piece(product->m, unit, row, job->grid_rows),
        .row_end = unit_piece(product->m, unit, row + 1, job->grid_rows),
        .column_begin = unit_piece(product->n, nr, column, job->grid_columns),
        .column_end = unit_piece(product->n, nr, column + 1, job->grid_columns),
        .a = memory,
        .b = packed_b,
        .c = sums,
        .c_stride = sums_stride(job),
    };
    if (job->set->begin != NULL) job->set->begin();
    if (product->leading == 0)
        multiply_part(&part);
    else
        multiply_share(&part, way);
    if (job->set->end != NULL) job->set->end();
}

// The cost of the largest part of a grid, in multiply-adds per step of k: packing an element costs as much as about
// sixteen, reading one in place a quarter of that. A part of height x width multiplies height * width and reads height
// + width, which several parts read again: a square grid shares most, while a grid along m packs b once for each
// thread. Every grid of threads is tried, that is, their divisors: at most `threads` steps per run. Whole products of a
// batch are one part each as long as there are enough of them.
static int64_t grid_cost(const gemm_job *job, int64_t ways, int64_t rows, int64_t columns)
{
    const hone_gemm_blocking *blocking = job->blocking;
    const int64_t packed = 16, in_place = 4, nr = blocking->nr, n = job->product->n;
    int64_t height = largest_piece(job->product->m, row_unit(job->set), rows);
    int64_t width = smaller(n, largest_piece(n, nr, columns));
    return divide_up(hone_matmul_batch(job->product), ways) *
           (height * width + height * (blocking->pack_a ? packed : in_place) +
            width * (blocking->pack_b ? packed : in_place));
}

// Splits each product over that many workers; returns the cost, or `best` if no grid costs less.
static int64_t choose_parts(gemm_job *job, int64_t ways, int64_t workers_of_one, int64_t best)
{
    int64_t m = job->product->m, n = job->product->n;
    for (int64_t rows = 1; rows <= workers_of_one; rows++) {
        int64_t columns = workers_of_one / rows;
        bool fits = rows <= divide_up(m, row_unit(job->set)) && columns <= divide_up(n, job->blocking->nr);
        if (rows * columns != workers_of_one || !fits) continue;
        int64_t cost = grid_cost(job, ways, rows, columns);
        if (cost >= best) continue;
        best = cost;
        job->ways = ways;
        job->grid_rows = rows;
        job->grid_columns = columns;
    }
    return best;
}

// Splits c over the workers so that the worker with the largest part ends as early as possible.
static void choose_grid(gemm_job *job)
{
    const int64_t threads = job->blocking->threads, batch = hone_matmul_batch(job->product);
    int64_t best = INT64_MAX;
    job->ways = job->grid_rows = job->grid_columns = 1;
    for (int64_t ways = smaller(threads, batch); ways > 0; ways--)
        if (threads % ways == 0) best = choose_parts(job, ways, threads / ways, best);
    if (best == INT64_MAX) job->ways = smaller(threads, batch); // more threads than parts
}

size_t hone_gemm_scratch(const hone_gemm_set *set, const hone_gemm_blocking *blocking, const hone_matmul *product)
{
    if (!hone_matmul_has_terms(product)) return 0;
    gemm_job job = {.set = set, .blocking = blocking, .product = product};
    choose_grid(&job);
    return (size_t)workers(&job) * (piece_bytes(&job) + 64);
}

// The numbers of blocks and tiles in a part of that many rows, which determine their sizes.
static void describe_rows(const gemm_job *job, int64_t rows, int64_t out[3])
{
    int64_t blocks = divide_up(rows, job->blocking->mc), mr = job->blocking->mr, unit = row_unit(job->set);
    out[0] = blocks;
    out[1] = divide_up(divide_up(rows, unit) / blocks * unit, mr);
    out[2] = divide_up(largest_piece(rows, unit, blocks), mr);
}

uint64_t hone_gemm_digest(const hone_gemm_set *set, const hone_gemm_blocking *blocking, const hone_matmul *product)
{
    if (!hone_matmul_has_terms(product)) return 0;
    gemm_job job = {.set = set, .blocking = blocking, .product = product};
    choose_grid(&job);
    struct {
        int64_t grid[3], nr, columns, k_blocks, bytes, rows[2][3];
    } is = {
        .grid = {job.ways, job.grid_rows, job.grid_columns},
        .nr = blocking->nr,
        .columns = block_columns(&job),
        .k_blocks = k_blocks(&job),
        .bytes = (int64_t)piece_bytes(&job),
    };
    const int64_t unit = row_unit(set);
    describe_rows(&job, divide_up(product->m, unit) / job.grid_rows * unit, is.rows[0]);
    describe_rows(&job, part_rows(&job), is.rows[1]);
    return hone_hash64(&is, sizeof is);
}

hone_status hone_gemm_run(
    const hone_gemm_set *set,
    const hone_gemm_blocking *blocking,
    const hone_matmul *product,
    const hone_plan *plan,
    const hone_execution *execution)
{
    if (hone_matmul_is_done(product)) return HONE_OK;
    gemm_job job = {.set = set, .blocking = blocking, .product = product, .execution = execution};
    hone_assert(set->tile_in_place != NULL || blocking->pack_a);
    hone_assert(set->finish != NULL || !hone_matmul_has_epilogue(product));
    hone_assert(blocking->mr > 0 && blocking->nr > 0 && blocking->mc > 0 && blocking->nc > 0 && blocking->kc > 0);
    choose_grid(&job);
    const int64_t count = workers(&job);
    if (count == 1)
        work(&job, 0);
    else
        hone_plan_parallel_for(plan, execution, (int32_t)count, count, work, &job);
    return atomic_load_explicit(&job.failed, memory_order_relaxed) ? HONE_OUT_OF_MEMORY : HONE_OK;
}
