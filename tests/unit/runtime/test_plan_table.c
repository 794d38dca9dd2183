// The plan table by itself: the hash is a filter, and a plan answers only for the very words that it was made for.
#include "runtime/state/plan_table.h"

#include "runtime/state/epoch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNT = 40, WORDS = 6 };

// Holds a reference that nobody gives back: the table never frees it.
static hone_plan_entry *make_entry(uint64_t hash, uint64_t last)
{
    hone_plan_entry *entry = aligned_alloc(64, (sizeof *entry + 63) / 64 * 64);
    assert_non_null(entry);
    memset(entry, 0, sizeof *entry);
    entry->hash = hash;
    entry->words = WORDS;
    entry->word = entry->near;
    for (uint64_t i = 0; i < WORDS; i++)
        entry->near[i] = i;
    entry->near[WORDS - 1] = last;
    entry->bytes = sizeof *entry;
    atomic_init(&entry->references, 1);
    return entry;
}

static hone_packed packed_of(const hone_plan_entry *entry)
{
    hone_packed packed = {.words = entry->words, .hash = entry->hash};
    memcpy(packed.word, entry->word, entry->words * sizeof packed.word[0]);
    return packed;
}

typedef struct ground {
    hone_plan_table table;
    hone_plan_entry *entries[COUNT];
} ground;

static int setup(void **state)
{
    static ground g;
    memset(&g, 0, sizeof g);
    *state = &g;
    return hone_plan_table_init(&g.table, hone_allocator_system(), 1 << 20, NULL) == HONE_OK ? 0 : -1;
}

static int teardown(void **state)
{
    ground *g = *state;
    hone_plan_table_deinit(&g->table);
    for (size_t i = 0; i < COUNT; i++)
        free(g->entries[i]);
    return 0;
}

static void publish(ground *g, size_t at, uint64_t hash, uint64_t last)
{
    g->entries[at] = make_entry(hash, last);
    assert_int_equal(hone_plan_table_publish(&g->table, g->entries[at], NULL), HONE_OK);
}

static void calls_of_one_hash_get_each_its_own_plan(void **state)
{
    ground *g = *state;
    for (size_t i = 0; i < COUNT; i++)
        publish(g, i, 0x1235, 1000 + i);
    assert_int_equal(g->table.live, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const hone_packed packed = packed_of(g->entries[i]);
        assert_ptr_equal(hone_plan_table_find(&g->table, &packed), g->entries[i]);
    }
}

static void a_call_of_a_known_hash_and_other_words_has_no_plan(void **state)
{
    ground *g = *state;
    publish(g, 0, 0x1235, 7);
    for (size_t i = 0; i < WORDS; i++)
        for (uint32_t bit = 0; bit < 64; bit++) {
            hone_packed packed = packed_of(g->entries[0]);
            packed.word[i] ^= (uint64_t)1 << bit;
            assert_null(hone_plan_table_find(&g->table, &packed));
        }
}

// Zeros stand behind the last word, so that a longer call may end as a shorter one.
static void a_call_of_more_or_fewer_words_has_no_plan(void **state)
{
    ground *g = *state;
    publish(g, 0, 0x1235, 7);
    hone_packed longer = packed_of(g->entries[0]), shorter = longer;
    longer.words++;
    shorter.words--;
    assert_null(hone_plan_table_find(&g->table, &longer));
    assert_null(hone_plan_table_find(&g->table, &shorter));
}

static void a_plan_replaces_that_of_the_same_words_alone(void **state)
{
    ground *g = *state;
    publish(g, 0, 0x1235, 7);
    publish(g, 1, 0x1235, 8);
    publish(g, 2, 0x1235, 7);
    const hone_packed first = packed_of(g->entries[0]), second = packed_of(g->entries[1]);
    assert_int_equal(g->table.live, 2);
    assert_ptr_equal(hone_plan_table_find(&g->table, &first), g->entries[2]);
    assert_ptr_equal(hone_plan_table_find(&g->table, &second), g->entries[1]);
}

static void a_string_is_packed_while_there_is_room_for_its_words(void **state)
{
    (void)state;
    enum { MOST = 8 * HONE_PACKED_WORDS };
    static char text[MOST + 16];
    static hone_packed packed;
    for (size_t size = 0; size < MOST + 8; size++) {
        memset(text, 'x', size);
        text[size] = '\0';
        const hone_value value = hone_of_string(text);
        const bool fits =
            2 + (size + 7) / 8 <= HONE_PACKED_WORDS; // the head of the call, that of the string, its bytes
        assert_int_equal(hone_pack(&packed, 7, &value, 1, 0), fits);
    }
}

static void readers_take_no_fence_where_the_kernel_makes_them_for_the_writer(void **state)
{
    (void)state;
    assert_non_null(hone_epoch_register());
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (commands < 0 || (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) skip();
#ifndef __SANITIZE_THREAD__
    assert_false(atomic_load(&hone_epoch_fences));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_of_one_hash_get_each_its_own_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_of_a_known_hash_and_other_words_has_no_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_of_more_or_fewer_words_has_no_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plan_replaces_that_of_the_same_words_alone, setup, teardown),
        cmocka_unit_test(a_string_is_packed_while_there_is_room_for_its_words),
        cmocka_unit_test(readers_take_no_fence_where_the_kernel_makes_them_for_the_writer),
    };
    return cmocka_run_group_tests_name("runtime_plan_table", tests, NULL, NULL);
}
