// What Triton's JSON means for a launch, by its version.
#include "base/buffer.h"
#include "os/os.h"
#include "platforms/triton/metadata.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TARGET "\"target\":{\"backend\":\"cuda\",\"arch\":90}"
#define SHAPE  "\"num_warps\":8,\"shared\":1000"

static hone_triton_metadata metadata;
static hone_error err;

static hone_status read_version(const char *version, const char *more)
{
    char text[512];
    snprintf(text, sizeof text, "{\"name\":\"f\",\"triton_version\":\"%s\"," TARGET "," SHAPE "%s}", version, more);
    return hone_triton_metadata_read(text, &metadata, &err);
}

static void assert_refused(const char *text, const char *words)
{
    assert_int_not_equal(hone_triton_metadata_read(text, &metadata, &err), HONE_OK);
    if (strstr(err.message, words) == NULL) fail_msg("'%s' is not in: %s", words, err.message);
}

static void what_triton_3_9_writes_is_read(void **state)
{
    (void)state;
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    assert_int_equal(hone_os_read_file(HONE_TEST_DATA "/unit/triton/data/vadd.json", 1 << 20, &text, NULL), HONE_OK);
    assert_int_equal(hone_triton_metadata_read(hone_buffer_string(&text), &metadata, &err), HONE_OK);
    hone_buffer_deinit(&text);
    assert_string_equal(metadata.name, "vadd");
    assert_string_equal(metadata.version, "3.9.0");
    assert_int_equal(metadata.threads, 64);
    assert_int_equal(metadata.shared_bytes, 0);
    assert_int_equal(metadata.blocks, 1);
    assert_int_equal(metadata.capability, 90);
    assert_int_equal(metadata.trailing, 2);
    assert_false(metadata.cooperative || metadata.programmatic);
}

static void the_version_says_which_pointers_stand_behind_the_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        unsigned trailing;
    } rows[] = {{"3.0.0", 0}, {"3.2.0", 0},  {"3.3.0", 1},      {"3.4.1", 1},
                {"3.5.0", 2}, {"3.10.0", 2}, {"3.6.0+git12", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(read_version(rows[i].version, ""), HONE_OK);
        assert_int_equal(metadata.trailing, rows[i].trailing);
        assert_int_equal(metadata.threads, 256);
        assert_int_equal(metadata.shared_bytes, 1000);
    }
    assert_int_equal(read_version("2.1.0", ""), HONE_INCOMPATIBLE);
    assert_int_equal(read_version("4.0.0", ""), HONE_INCOMPATIBLE);
    assert_int_equal(read_version("weekly", ""), HONE_INCOMPATIBLE);
}

static void clusters_scratch_and_flags_are_read(void **state)
{
    (void)state;
    assert_int_equal(
        read_version(
            "3.4.0", ",\"num_ctas\":2,\"global_scratch_size\":384,\"global_scratch_align\":128,\"launch_pdl\":true,"
                     "\"launch_cooperative_grid\":true,\"maxnreg\":null"),
        HONE_OK);
    assert_int_equal(metadata.blocks, 2);
    assert_int_equal(metadata.scratch_bytes, 384);
    assert_int_equal(metadata.scratch_align, 128);
    assert_true(metadata.programmatic && metadata.cooperative);
}

static void descriptors_are_read_with_their_boxes(void **state)
{
    (void)state;
    assert_int_equal(
        read_version(
            "3.9.0",
            ",\"tensordesc_meta\":[{\"swizzle\":3,\"elem_size\":2,\"block_size\":[128,64],\"fp4_padded\":false},"
            "{\"swizzle\":0,\"block_size\":[1,1,256]}]"),
        HONE_OK);
    assert_int_equal(metadata.descriptor_count, 2);
    assert_int_equal(metadata.descriptors[0].swizzle, 128);
    assert_int_equal(metadata.descriptors[0].rank, 2);
    assert_int_equal(metadata.descriptors[0].box[0], 128);
    assert_int_equal(metadata.descriptors[0].box[1], 64);
    assert_int_equal(metadata.descriptors[1].swizzle, 0);
    assert_int_equal(metadata.descriptors[1].box[2], 256);
    static const struct {
        const char *meta, *words;
    } wrong[] = {
        {"[{}]", "'swizzle'"},
        {"[{\"swizzle\":4,\"block_size\":[1]}]", "'swizzle' must be an integer from 0 to 3"},
        {"[{\"swizzle\":0}]", "'block_size' must be a list of 1 to 5 numbers"},
        {"[{\"swizzle\":0,\"block_size\":[1,1,1,1,1,1]}]", "a list of 1 to 5 numbers"},
        {"[{\"swizzle\":0,\"block_size\":[512]}]", "numbers from 1 to 256"},
        {"[{\"swizzle\":0,\"block_size\":[1],\"fp4_padded\":true}]", "4 bit elements"},
        {"[{\"swizzle\":0,\"block_size\":[1],\"is_im2col\":true}]", "im2col"},
        {"[1,2,3,4,5,6,7,8,9]", "takes 9 tensor descriptors; hone passes at most 8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char more[128];
        snprintf(more, sizeof more, ",\"tensordesc_meta\":%s", wrong[i].meta);
        assert_int_not_equal(read_version("3.9.0", more), HONE_OK);
        if (strstr(err.message, wrong[i].words) == NULL) fail_msg("'%s' is not in: %s", wrong[i].words, err.message);
    }
}

static void code_that_cannot_be_launched_is_refused_with_a_reason(void **state)
{
    (void)state;
    assert_refused("[]", "must be an object");
    assert_refused("{", "line 1");
    assert_refused("{\"name\":\"\"}", "'name'");
    assert_refused("{\"name\":\"f\"}", "'target'");
    assert_refused("{\"name\":\"f\",\"target\":{\"backend\":\"hip\",\"arch\":\"gfx942\"}}", "backend 'hip'");
    assert_refused("{\"name\":\"f\"," TARGET "}", "'triton_version'");
    assert_refused("{\"name\":\"f\",\"triton_version\":\"3.9.0\"," TARGET ",\"shared\":0}", "'num_warps'");
    assert_refused("{\"name\":\"f\",\"triton_version\":\"3.9.0\"," TARGET ",\"num_warps\":99,\"shared\":0}", "1 to 32");
    assert_int_equal(read_version("3.9.0", ",\"profile_scratch_size\":8"), HONE_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "profiled"));
    assert_int_equal(read_version("3.1.0", ",\"global_scratch_size\":8"), HONE_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_triton_3_9_writes_is_read),
        cmocka_unit_test(the_version_says_which_pointers_stand_behind_the_arguments),
        cmocka_unit_test(descriptors_are_read_with_their_boxes),
        cmocka_unit_test(clusters_scratch_and_flags_are_read),
        cmocka_unit_test(code_that_cannot_be_launched_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
