// The layouts of wgmma.cuh on the CPU: tiles are laid out as kernels do, read as the tensor cores are said to (PTX
// ISA, "Matrix Descriptor" and "Canonical Layouts", 128-byte swizzle), and the sums are put where the kernel puts them.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define __device__ static inline
#define HONE_LAYOUTS_ALONE
#include "kernels/common/wgmma.cuh"

enum {
    DEPTH = 64,
    ROWS = 64,
    COLUMNS = 256,
    STEP = 16,
    THREADS = 128,
    SHARED = 1 << 17,
    TILE_A = 2048,
    TILE_B = 32768
};

static int16_t shared[SHARED / 2];
static int16_t a[ROWS][DEPTH], b[DEPTH][COLUMNS];
static int32_t c[ROWS][COLUMNS];

static void write_chunk(unsigned address, const int16_t *from, int stride)
{
    assert_int_equal(address % 16, 0);
    for (int i = 0; i < 8; i++)
        shared[address / 2 + (unsigned)i] = from[i * stride];
}

// An element of shared memory at a logical address: the hardware exchanges bits 4 to 6 by bits 7 to 9.
static int32_t read_swizzled(unsigned address)
{
    address ^= (address >> 7 & 7) << 4;
    assert_true(address + 2 <= SHARED);
    return shared[address / 2];
}

typedef struct operand {
    unsigned start, leading, stride;
} operand;

static operand read_descriptor(unsigned long long bits)
{
    assert_int_equal(bits >> 62, 1);                   // 128 bytes
    assert_int_equal(bits & 0x3fffc000c000c000ull, 0); // what nothing stands in, and the base offset
    return (operand){
        (unsigned)(bits & 0x3fff) << 4, (unsigned)(bits >> 16 & 0x3fff) << 4, (unsigned)(bits >> 32 & 0x3fff) << 4};
}

// Element k of row or column `at`, for lines along k: atoms of 8 lines lie `stride` apart.
static int32_t read_along_k(operand o, int at, int k)
{
    return read_swizzled(o.start + (unsigned)(at / 8) * o.stride + (unsigned)(at % 8) * 128 + (unsigned)k * 2);
}

// For lines along n: atoms of 8 lines lie `stride` apart, parts of 64 columns `leading`.
static int32_t read_along_n(operand o, int n, int k)
{
    return read_swizzled(
        o.start + (unsigned)(n / 64) * o.leading + (unsigned)(k / 8) * o.stride + (unsigned)(k % 8) * 128 +
        (unsigned)(n % 64) * 2);
}

static int setup(void **state)
{
    (void)state;
    memset(shared, 0x55, sizeof shared);
    for (int k = 0; k < DEPTH; k++) {
        for (int row = 0; row < ROWS; row++)
            a[row][k] = (int16_t)((row * 31 + k * 7) % 127 - 63);
        for (int column = 0; column < COLUMNS; column++)
            b[k][column] = (int16_t)((column * 17 + k * 29) % 113 - 56);
    }
    for (int row = 0; row < ROWS; row++)
        for (int at = 0; at < DEPTH / 8; at++)
            write_chunk(TILE_A + (unsigned)place_along_k(row, at), &a[row][at * 8], 1);
    return 0;
}

// One warpgroup's product of a whole stage, and its sums written as the kernel writes them.
static void multiply_and_store(int columns, bool along_k)
{
    memset(c, 0x55, sizeof c);
    for (int thread = 0; thread < THREADS; thread++)
        for (int i = 0; i < columns / 2; i++) {
            const int row = row_of_sum(thread, i), column = column_of_sum(thread, i);
            int32_t sum = 0;
            for (int k = 0; k < DEPTH; k++) {
                const operand left = read_descriptor(describe_along_k(TILE_A, (unsigned)k / STEP));
                const operand right = read_descriptor(
                    along_k ? describe_along_k(TILE_B, (unsigned)k / STEP)
                            : describe_along_n(TILE_B, (unsigned)k / STEP, DEPTH));
                sum += read_along_k(left, row, k % STEP) *
                       (along_k ? read_along_k(right, column, k % STEP) : read_along_n(right, column, k % STEP));
            }
            assert_int_equal(c[row][column], 0x55555555); // nobody else's
            c[row][column] = sum;
        }
}

static void assert_is_the_product(int columns)
{
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < columns; column++) {
            int32_t sum = 0;
            for (int k = 0; k < DEPTH; k++)
                sum += a[row][k] * b[k][column];
            assert_int_equal(c[row][column], sum);
        }
}

static void a_tile_with_lines_along_n_gives_the_product(void **state)
{
    (void)state;
    for (int columns = 64; columns <= COLUMNS; columns *= 2) {
        for (int k = 0; k < DEPTH; k++)
            for (int at = 0; at < columns / 8; at++)
                write_chunk(TILE_B + (unsigned)place_along_n(k, at, DEPTH), &b[k][at * 8], 1);
        multiply_and_store(columns, false);
        assert_is_the_product(columns);
    }
}

static void a_tile_with_lines_along_k_gives_the_product(void **state)
{
    (void)state;
    for (int columns = 64; columns <= COLUMNS; columns *= 2) {
        for (int column = 0; column < columns; column++)
            for (int at = 0; at < DEPTH / 8; at++)
                write_chunk(TILE_B + (unsigned)place_along_k(column, at), &b[at * 8][column], COLUMNS);
        multiply_and_store(columns, true);
        assert_is_the_product(columns);
    }
}

// The numbers that CuTe writes for the same layouts, whose kernel has run on an H200.
static void descriptors_are_those_of_cute(void **state)
{
    (void)state;
    assert_true(describe_along_k(0, 0) == 0x4000004000010000ull);
    assert_true(describe_along_n(0, 0, DEPTH) == 0x4000004002000000ull);
    assert_true(describe_along_k(0, 3) == 0x4000004000010000ull + 6);
    assert_true(describe_along_n(0, 3, DEPTH) == 0x4000004002000000ull + 384);
}

// Attention describes a tile once and moves on from there, up to the end of shared memory.
static void an_operand_that_is_moved_is_the_one_there(void **state)
{
    (void)state;
    enum { KEYS = 176, LAST_TILE = (227 << 10) / ATOM_BYTES * ATOM_BYTES - KEYS * LINE_BYTES };
    for (unsigned tile = 0; tile <= LAST_TILE; tile += ATOM_BYTES) {
        for (unsigned step = 0; step < 4; step++)
            assert_true(move(describe_along_k(tile, 0), step * 32) == describe_along_k(tile, step));
        for (unsigned step = 0; step < KEYS / 16; step++)
            assert_true(
                move(describe_along_n(tile, 0, KEYS), step * 16 * LINE_BYTES) == describe_along_n(tile, step, KEYS));
        assert_true(
            move(describe_along_k(tile, 0), KEYS * LINE_BYTES) == describe_along_k(tile + KEYS * LINE_BYTES, 0));
    }
}

// Eight neighbouring threads write one line, or eight lines of one chunk are read at a time: 32 banks of 4 bytes.
static void eight_lines_of_one_chunk_meet_in_no_bank(void **state)
{
    (void)state;
    for (int at = 0; at < 8; at++) {
        unsigned banks = 0;
        for (int row = 0; row < 8; row++)
            banks |= 1u << place_along_k(row, at) % 128 / 16;
        assert_int_equal(banks, 0xff);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_tile_with_lines_along_n_gives_the_product, setup),
        cmocka_unit_test_setup(a_tile_with_lines_along_k_gives_the_product, setup),
        cmocka_unit_test(an_operand_that_is_moved_is_the_one_there),
        cmocka_unit_test(descriptors_are_those_of_cute),
        cmocka_unit_test(eight_lines_of_one_chunk_meet_in_no_bank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
