// The grammar of labels, alone and in the texts that carry them.
#include "offline/label.h"

#include "hone/offline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct expected {
    const char *text;
    int kind; // -1: no label
    const char *label, *operation, *version, *key;
} expected;

static const expected cases[] = {
    {"jit(f)/ejkernel_ops#flash_attention@v2:ff12428fdc7ea53d/reshape\"", HONE_LABEL_HASH,
     "ejkernel_ops#flash_attention@v2:ff12428fdc7ea53d", "flash_attention", "2", "ff12428fdc7ea53d"},
    {"transpose(jvp(ejkernel_ops#a@v1:0123456789abcdef))/mul\"", HONE_LABEL_HASH, "ejkernel_ops#a@v1:0123456789abcdef",
     "a", "1", "0123456789abcdef"},
    {"ejkernel_ops#flash_attention.v1:0123456789abcdef\"", HONE_LABEL_HASH,
     "ejkernel_ops#flash_attention.v1:0123456789abcdef", "flash_attention", "1", "0123456789abcdef"},
    {"ejkernel_ops#my.mod.Op@v0:0123456789abcdef", HONE_LABEL_HASH, "ejkernel_ops#my.mod.Op@v0:0123456789abcdef",
     "my.mod.Op", "0", "0123456789abcdef"},
    {"ejkernel_ops#x@v1.2-rc_3:ffffffffffffffff", HONE_LABEL_HASH, "ejkernel_ops#x@v1.2-rc_3:ffffffffffffffff", "x",
     "1.2-rc_3", "ffffffffffffffff"},
    {"ejkernel_ops#n@m@v1:0000000000000000", HONE_LABEL_HASH, "ejkernel_ops#n@m@v1:0000000000000000", "n@m", "1",
     "0000000000000000"},
    {"ejkernel_ops#a b@v1:0000000000000000", HONE_LABEL_HASH, "ejkernel_ops#a b@v1:0000000000000000", "a b", "1",
     "0000000000000000"}, // ejkernel itself finds neither this one
    {"ejkernel_ops#\xc3\xb6@v1:0000000000000000", HONE_LABEL_HASH, "ejkernel_ops#\xc3\xb6@v1:0000000000000000",
     "\xc3\xb6", "1", "0000000000000000"}, // nor this one
    {"custom#conv@v2:abcd1234ef567890", HONE_LABEL_HASH, "custom#conv@v2:abcd1234ef567890", "conv", "2",
     "abcd1234ef567890"},
    {"hone#rms_norm.v1:0123456789abcdef/x\"", HONE_LABEL_HONE, "hone#rms_norm.v1:0123456789abcdef", "rms_norm", "1",
     "0123456789abcdef"},
    {"jit(f)/jvp(ejkernel_ops#rwkv4\"", HONE_LABEL_CUT, "ejkernel_ops#rwkv4", "rwkv4", "", ""},
    {"a/ejkernel_ops#rwkv4/dynamic_slice\"", HONE_LABEL_CUT, "ejkernel_ops#rwkv4", "rwkv4", "", ""},
    {"ejkernel_ops#rwkv4;jit(f)/x\"", HONE_LABEL_CUT, "ejkernel_ops#rwkv4", "rwkv4", "", ""},
    {"ejkernel_ops#a@v1:0123456789abcdef0\"", -1, NULL, NULL, NULL, NULL}, // 17 digits are no key
    {"ejkernel_ops#a@v1:0123456789abcdefg\"", -1, NULL, NULL, NULL, NULL},
    {"ejkernel_ops#a@v1:0123456789abcdeg\"", -1, NULL, NULL, NULL, NULL},
    {"ejkernel_ops#a@v1:0123456789ABCDEF\"", -1, NULL, NULL, NULL, NULL},
    {"ejkernel_ops#a@v1:0123\"", -1, NULL, NULL, NULL, NULL},
    {"ejkernel_ops#@v1:0123456789abcdef\"", -1, NULL, NULL, NULL, NULL},
    {"#a@v1:0123456789abcdef\"", -1, NULL, NULL, NULL, NULL},
    {"loc(#loc12) %0#1, %1#2\n", -1, NULL, NULL, NULL, NULL},
    {"ejkernel_ops#cut_by_the_end", -1, NULL, NULL, NULL, NULL},
    {"", -1, NULL, NULL, NULL, NULL},
};

static void assert_view(hone_view view, const char *text)
{
    assert_int_equal(view.size, strlen(text));
    if (view.size > 0) assert_memory_equal(view.data, text, view.size);
}

static void labels_are_distinguished_from_similar_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const expected *e = &cases[i];
        hone_label_walk walk = hone_label_walk_of(hone_view_of(e->text));
        hone_label label;
        bool found = hone_label_next(&walk, &label);
        if (found != (e->kind >= 0)) fail_msg("%s", e->text);
        if (!found) continue;
        assert_int_equal(label.kind, e->kind);
        assert_view(label.text, e->label);
        assert_view(label.operation, e->operation);
        assert_view(label.version, e->version);
        assert_view(label.key, e->key);
        assert_false(hone_label_next(&walk, &label));
    }
}

static void count_bytes(void *ctx, const char *label, size_t size)
{
    (void)label;
    *(size_t *)ctx += size;
}

static void every_occurrence_is_visited(void **state)
{
    (void)state;
    static const char text[] =
        "#loc1 = loc(\"jit(f)/ejkernel_ops#a@v1:0123456789abcdef/x\"(#loc))\n"
        "#loc2 = loc(\"vmap(ejkernel_ops#a@v1:0123456789abcdef)/ejkernel_ops#b@v2:fedcba9876543210/y\")\n"
        "metadata={op_name=\"jit(f)/ejkernel_ops#a\"}\n";
    size_t bytes = 0;
    assert_int_equal(hone_labels_scan(text, strlen(text), count_bytes, &bytes), 4);
    assert_int_equal(bytes, 3 * 34 + 14);
    assert_int_equal(hone_labels_scan(text, strlen(text), NULL, NULL), 4);
    assert_int_equal(hone_labels_scan("", 0, NULL, NULL), 0);
}

static const struct {
    const char *text, *json, *operation, *version;
} payloads[] = {
    // MLIR text
    {"loc(\"f/ejkernel_ops:{\\22args\\22:[],\\22kwargs\\22:{\\22s\\22:\\22a\\5C\\22}\\22},\\22op_id\\22:\\22x@v3\\22}/"
     "mul\")",
     "{\"args\":[],\"kwargs\":{\"s\":\"a\\\"}\"},\"op_id\":\"x@v3\"}", "x", "3"},
    // HLO text, which has cut it
    {"op_name=\"f/ejkernel_ops:{\\\"args\\\":[],\\\"cfg\\\":\\\"N(p=\\'a\\')\\\",\\\"op_id\\\":\\\"x\" b=1",
     "{\"args\":[],\"cfg\":\"N(p='a')\",\"op_id\":\"x\"}", "x", ""},
    {"op_name=\"f/ejkernel_ops:{\\\"args\\\":[{\\\"op_id\\\":\\\"no\\\"}],\\\"op_id\\\":\\\"x/reduce;f/y\"",
     "{\"args\":[{\"op_id\":\"no\"}],\"op_id\":\"x\"}", "x", ""},
    // the payload itself
    {"ejkernel_ops:{\"args\":[],\"op_id\":\"x@v3\"}", "{\"args\":[],\"op_id\":\"x@v3\"}", "x", "3"},
};

static void a_payload_is_read_whole_or_cut_and_out_of_every_escape(void **state)
{
    (void)state;
    hone_arena arena = {.allocator = hone_allocator_system()};
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        hone_label_walk walk = hone_label_walk_of(hone_view_of(payloads[i].text));
        hone_label label;
        assert_true(hone_label_next(&walk, &label));
        assert_int_equal(label.kind, HONE_LABEL_JSON);
        assert_view(label.operation, payloads[i].operation);
        assert_view(label.version, payloads[i].version);
        assert_string_equal(hone_label_json(&arena, &label), payloads[i].json);
    }
    hone_arena_destroy(&arena);
}

static void a_payload_without_an_operation_is_none_and_costs_no_second_look(void **state)
{
    (void)state;
    // Each mark would scan to the end again: a hundred thousand of them must not take a hundred thousand scans.
    enum { COUNT = 100000 };
    char *text = malloc(COUNT * 6 + 1);
    assert_non_null(text);
    for (size_t i = 0; i < COUNT; i++)
        memcpy(text + 6 * i, "_ops:{", 6);
    assert_int_equal(hone_labels_scan(text, COUNT * 6, NULL, NULL), 0);
    free(text);
}

static void escapes_are_undone(void **state)
{
    (void)state;
    hone_arena arena = {.allocator = hone_allocator_system()};
    size_t size;
    assert_string_equal(
        hone_unescape_mlir(&arena, hone_view_of("a\\22b\\5Cc\\\\d\\\"e\\C3\\A4"), &size), "a\"b\\c\\d\"e\xc3\xa4");
    assert_int_equal(size, 11);
    assert_string_equal(
        hone_unescape_mlir(&arena, hone_view_of("\\20\\0Ab\\F0\\9f\\5"), &size), " \nb\xf0\x9f"
                                                                                 "5");
    assert_string_equal(
        hone_unescape_hlo(&arena, hone_view_of("a\\\"b\\'c\\\\d\\ne\\303\\244\\t"), &size), "a\"b'c\\d\ne\xc3\xa4\t");
    assert_string_equal(
        hone_unescape_hlo(&arena, hone_view_of("\\1012\\7.\\08"), &size), "A2\a.\0008"); // three digits at most
    assert_int_equal(size, 6);
    assert_string_equal(hone_unescape_mlir(&arena, hone_view_of("end\\"), &size), "end\\");
    assert_string_equal(hone_unescape_hlo(&arena, hone_view_of("end\\"), &size), "end\\");
    hone_arena_destroy(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_distinguished_from_similar_text),
        cmocka_unit_test(every_occurrence_is_visited),
        cmocka_unit_test(a_payload_is_read_whole_or_cut_and_out_of_every_escape),
        cmocka_unit_test(a_payload_without_an_operation_is_none_and_costs_no_second_look),
        cmocka_unit_test(escapes_are_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
