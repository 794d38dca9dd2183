// Blocks, arrays, arenas and buffers, also when memory runs out.
#include "base/buffer.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Counts live bytes by the sizes that it is told, and fails when `left` reaches zero.
typedef struct counting {
    int64_t live;
    int64_t left;
} counting;

static void *count_reallocate(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    counting *c = ctx;
    if (new_size == 0) {
        c->live -= (int64_t)old_size;
        free(ptr);
        return NULL;
    }
    if (c->left == 0) return NULL;
    c->left--;
    void *block = realloc(ptr, new_size);
    assert_non_null(block);
    if (new_size > old_size) memset((char *)block + old_size, 0xa5, new_size - old_size);
    c->live += (int64_t)new_size - (int64_t)old_size;
    return block;
}

static hone_allocator counted(counting *c)
{
    return (hone_allocator){c, count_reallocate};
}

static void blocks_are_zero_aligned_and_freed_by_their_size(void **state)
{
    (void)state;
    counting c = {0, -1};
    hone_allocator a = counted(&c);
    char *block = hone_alloc(&a, 100);
    assert_int_equal((uintptr_t)block % 16, 0);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(block[i], 0);
    block[99] = 'x';
    block = hone_resize(&a, block, 300);
    assert_int_equal(block[99], 'x');
    for (size_t i = 100; i < 300; i++)
        assert_int_equal(block[i], 0);
    hone_free(&a, block);
    hone_free(&a, NULL);
    void *empty = hone_alloc(&a, 0);
    assert_non_null(empty);
    hone_free(&a, empty);
    assert_int_equal(c.live, 0);
}

static void sizes_that_overflow_are_no_memory(void **state)
{
    (void)state;
    hone_allocator a = hone_allocator_system();
    assert_null(hone_alloc(&a, SIZE_MAX - 3));
    assert_null(hone_alloc_array(&a, SIZE_MAX / 2, 3));
    assert_null(hone_copy_text(&a, "x", SIZE_MAX));
    hone_arena arena = {.allocator = a};
    assert_null(hone_arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(hone_arena_alloc(&arena, SIZE_MAX - 40));
    assert_null(arena.chunks);
}

static void growing_keeps_the_array_when_memory_is_short(void **state)
{
    (void)state;
    counting c = {0, 1};
    hone_allocator a = counted(&c);
    int *array = NULL;
    size_t capacity = 0;
    assert_true(hone_grow(&a, &array, &capacity, 1, sizeof *array));
    assert_int_equal(capacity, 8);
    array[7] = 42;
    int *before = array;
    assert_false(hone_grow(&a, &array, &capacity, 9, sizeof *array));
    assert_ptr_equal(array, before);
    assert_int_equal(capacity, 8);
    assert_int_equal(array[7], 42);
    assert_false(hone_grow(&a, &array, &capacity, SIZE_MAX / 2, sizeof *array));
    hone_free(&a, array);
    assert_int_equal(c.live, 0);
}

static void an_arena_gives_small_and_large_blocks_and_dies_whole(void **state)
{
    (void)state;
    counting c = {0, -1};
    hone_arena arena = {.allocator = counted(&c)};
    char *first = hone_arena_text(&arena, "abc", 3);
    memset(hone_arena_alloc(&arena, 100000), 1, 100000);
    char *second = hone_arena_text(&arena, "def", 3);
    assert_string_equal(first, "abc");
    assert_string_equal(second, "def");
    assert_ptr_equal(second, first + 16); // the large block did not cost the small chunk its rest
    for (int i = 0; i < 1000; i++) {
        char *block = hone_arena_alloc(&arena, 33);
        assert_int_equal((uintptr_t)block % 16, 0);
        assert_int_equal(block[32], 0);
        memset(block, 0xff, 33);
    }
    hone_arena_destroy(&arena);
    assert_int_equal(c.live, 0);
    hone_arena_destroy(&arena);
}

static void a_slab_gives_zeroed_lines_again_and_dies_whole(void **state)
{
    (void)state;
    enum { COUNT = 1000, SIZE = 3 * HONE_SLAB_ALIGN };
    counting c = {0, -1};
    hone_slab slab = {.allocator = counted(&c), .size = SIZE};
    static char *blocks[COUNT];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            static const char zeros[SIZE];
            blocks[i] = hone_slab_take(&slab);
            assert_int_equal((uintptr_t)blocks[i] % HONE_SLAB_ALIGN, 0);
            assert_memory_equal(blocks[i], zeros, SIZE);
            memset(blocks[i], i % 255 + 1, SIZE);
        }
        for (int i = 0; i < COUNT; i++)
            for (int at = 0; at < SIZE; at++)
                assert_int_equal((unsigned char)blocks[i][at], i % 255 + 1); // no two share a byte
        const int64_t bytes = c.live;
        assert_true(bytes < (int64_t)COUNT * SIZE * 3 / 2); // the second round takes what the first gave back
        for (int i = 0; i < COUNT; i++)
            hone_slab_give_back(&slab, blocks[i]);
        assert_int_equal(c.live, bytes);
    }
    hone_slab_deinit(&slab);
    assert_int_equal(c.live, 0);
    hone_slab_deinit(&slab);
}

static void a_slab_that_found_no_memory_goes_on_when_there_is_some(void **state)
{
    (void)state;
    counting c = {0, 0};
    hone_slab slab = {.allocator = counted(&c), .size = HONE_SLAB_ALIGN};
    assert_null(hone_slab_take(&slab));
    c.left = -1;
    assert_non_null(hone_slab_take(&slab));
    hone_slab_deinit(&slab);
    assert_int_equal(c.live, 0);
}

static void a_buffer_grows_and_hands_its_text_over(void **state)
{
    (void)state;
    counting c = {0, -1};
    hone_buffer buffer;
    hone_buffer_init(&buffer, counted(&c));
    assert_string_equal(hone_buffer_string(&buffer), "");
    for (int i = 0; i < 100; i++)
        hone_buffer_format(&buffer, "%d,", i);
    hone_buffer_char(&buffer, '!');
    assert_int_equal(buffer.size, 291);
    char *text = hone_buffer_take(&buffer);
    assert_int_equal(strlen(text), 291);
    hone_free(&buffer.allocator, text);
    assert_int_equal(buffer.size, 0);
    char *empty = hone_buffer_take(&buffer);
    assert_string_equal(empty, "");
    hone_free(&buffer.allocator, empty);
    hone_buffer_deinit(&buffer);
    assert_int_equal(c.live, 0);
}

static void a_buffer_that_found_no_memory_stays_failed_and_gives_nothing(void **state)
{
    (void)state;
    counting c = {0, 1};
    hone_buffer buffer;
    hone_buffer_init(&buffer, counted(&c));
    hone_buffer_text(&buffer, "short");
    hone_buffer_text(&buffer, "far longer than the first block of the buffer");
    assert_true(buffer.failed);
    hone_buffer_text(&buffer, "x");
    assert_string_equal(hone_buffer_string(&buffer), "short");
    assert_null(hone_buffer_take(&buffer));
    assert_int_equal(c.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zero_aligned_and_freed_by_their_size),
        cmocka_unit_test(sizes_that_overflow_are_no_memory),
        cmocka_unit_test(growing_keeps_the_array_when_memory_is_short),
        cmocka_unit_test(an_arena_gives_small_and_large_blocks_and_dies_whole),
        cmocka_unit_test(a_slab_gives_zeroed_lines_again_and_dies_whole),
        cmocka_unit_test(a_slab_that_found_no_memory_goes_on_when_there_is_some),
        cmocka_unit_test(a_buffer_grows_and_hands_its_text_over),
        cmocka_unit_test(a_buffer_that_found_no_memory_stays_failed_and_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
