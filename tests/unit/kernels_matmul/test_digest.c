// Digests of blockings: equal ones run the very same tiles.
#include "base/hash.h"
#include "kernels/matmul/gemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MOST = 4096 };

// What was run, in whatever order: a sum over the tiles.
static _Atomic uint64_t tiles_run;

static void note_tile(const hone_gemm_tile *tile, int32_t rows)
{
    const int64_t is[] = {(int64_t)(intptr_t)tile->c, rows, tile->columns, tile->depth, tile->accumulate};
    atomic_fetch_add(&tiles_run, hone_hash64(is, sizeof is));
}

static void pack_nothing(const hone_gemm_strip *strip)
{
    (void)strip;
}

static const hone_gemm_set noting = {
    .vector = 1,
    .lane = sizeof(float),
    .word = 1,
    .tile = note_tile,
    .tile_in_place = note_tile,
    .pack_lines = pack_nothing,
    .pack_columns = pack_nothing,
};

static float memory[1 << 16];

static hone_matmul product_of(int64_t m, int64_t n, int64_t k)
{
    return (hone_matmul){
        .m = m,
        .n = n,
        .k = k,
        .a_stride = k,
        .b_stride = n,
        .c_stride = n,
        .dtype = HONE_F32,
        .operands = HONE_F32,
        .a = memory,
        .b = memory,
        .c = memory};
}

static uint64_t run_of(const hone_gemm_blocking *blocking, const hone_matmul *product)
{
    atomic_store(&tiles_run, 0);
    assert_int_equal(hone_gemm_run(&noting, blocking, product, NULL, NULL), HONE_OK);
    return atomic_load(&tiles_run);
}

typedef struct looked {
    uint64_t digests[MOST], runs[MOST];
    size_t configs, count;
} looked;

static void look(looked *all, const hone_gemm_blocking *blocking, const hone_matmul *product)
{
    uint64_t digest = hone_gemm_digest(&noting, blocking, product), run = run_of(blocking, product);
    all->configs++;
    for (size_t i = 0; i < all->count; i++) {
        if (all->digests[i] != digest) continue;
        assert_int_equal(all->runs[i], run);
        return;
    }
    assert_true(all->count < MOST);
    all->digests[all->count] = digest;
    all->runs[all->count++] = run;
}

static void look_at_all(looked *all, const hone_matmul *product, bool pack)
{
    static const int32_t mr[] = {4, 6, 9, 14}, nr[] = {8, 48};
    static const int64_t mc[] = {12, 56, 224}, kc[] = {16, 128, 512};
    all->configs = all->count = 0;
    for (size_t i = 0; i < 4 * 2 * 3 * 3 * 3; i++) {
        const hone_gemm_blocking blocking = {
            .mr = mr[i % 4],
            .nr = nr[i / 4 % 2],
            .mc = mc[i / 8 % 3],
            .kc = kc[i / 24 % 3],
            .threads = 1 << i / 72,
            .nc = 4096,
            .pack_a = pack,
            .pack_b = pack};
        look(all, &blocking, product);
    }
}

static void equal_digests_run_the_same_tiles(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},     {9, 48, 16},   {31, 33, 63},
                                        {100, 15, 65}, {230, 70, 20}, {57, 8, 600}};
    static looked all;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int pack = 0; pack < 2; pack++) {
            const hone_matmul product = product_of(shapes[i][0], shapes[i][1], shapes[i][2]);
            look_at_all(&all, &product, pack == 1);
            assert_true(all.count < all.configs);
        }
}

static void a_product_of_one_tile_has_one_digest_for_each_width(void **state)
{
    (void)state;
    static looked all;
    const hone_matmul product = product_of(4, 8, 16);
    for (int64_t kc = 16; kc <= 512; kc *= 2)
        for (int64_t mc = 56; mc <= 448; mc *= 2) {
            const hone_gemm_blocking blocking = {
                .mr = 9, .nr = 48, .mc = mc, .kc = kc, .nc = 4096, .pack_a = true, .pack_b = true, .threads = 1};
            look(&all, &blocking, &product);
        }
    assert_int_equal(all.count, 1);
}

static void nothing_that_is_run_has_no_digest(void **state)
{
    (void)state;
    const hone_gemm_blocking blocking = {.mr = 4, .nr = 8, .mc = 12, .kc = 16, .nc = 4096, .threads = 1};
    const hone_matmul product = product_of(0, 8, 16);
    assert_int_equal(hone_gemm_digest(&noting, &blocking, &product), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_digests_run_the_same_tiles),
        cmocka_unit_test(a_product_of_one_tile_has_one_digest_for_each_width),
        cmocka_unit_test(nothing_that_is_run_has_no_digest),
    };
    return cmocka_run_group_tests_name("kernels_digest", tests, NULL, NULL);
}
