// The tables of results: what they say of what was measured, and of what was not.
#include "hone/hone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// What the tables ask of the rest of the command: a machine without peaks and without libraries.
#include "../../../cli/result.c"

volatile int cli_cancel;

void cli_no_memory(void)
{
    abort();
}

int cli_exit_code(hone_status status)
{
    return status == HONE_OK ? EXIT_DONE : EXIT_WORLD;
}

int cli_fail(const hone_error *err)
{
    fail_msg("%s", err->message);
    return EXIT_WORLD;
}

const hone_device_info *cli_cpu(hone_cli *cli)
{
    static const hone_device_info cpu = {.struct_size = sizeof cpu, .platform = HONE_NATIVE, .backend = HONE_CPU};
    (void)cli;
    return &cpu;
}

double cli_peak(hone_cli *cli, cli_peak_kind kind, double seen)
{
    (void)cli, (void)kind, (void)seen;
    return 0;
}

const char *cli_peak_lacks(cli_peak_kind kind)
{
    (void)kind;
    return "";
}

bool cli_library_is_below(hone_cli *cli, const char *kernel)
{
    (void)cli, (void)kernel;
    return false;
}

void cli_print_libraries(hone_cli *cli)
{
    (void)cli;
}

char *cli_time_text(double nanoseconds, char out[32])
{
    out[0] = '\0';
    if (nanoseconds > 0) snprintf(out, 32, "%.0f ns", nanoseconds);
    return out;
}

// The tables of a document, as they are printed.
static void print_document(const char *document, char *out, size_t size)
{
    hone_cli cli = {.count = 0};
    hone_result *result = NULL;
    hone_error err;
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    if (hone_runtime_open(NULL, &cli.rt, &err) != HONE_OK ||
        hone_result_parse(cli.rt, document, strlen(document), &result, &err) != HONE_OK)
        fail_msg("%s", err.message);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    const int code = cli_print_result(&cli, result);
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    assert_int_equal(code, EXIT_DONE);
    rewind(file);
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
    hone_result_release(&result);
    hone_runtime_close(&cli.rt);
}

static void assert_says(const char *whole, const char *part)
{
    if (strstr(whole, part) == NULL) fail_msg("'%s' not in:\n%s", part, whole);
}

// An entry's head, with what its evidence says beside the time.
#define DOCUMENT(evidence)                                                                                             \
    "{\"hone_result\":1,\"device\":\"cpu|here\",\"entries\":[{\"algorithm\":\"rms_norm\",\"version\":\"1\","           \
    "\"key\":\"a8c0fb7fbf00c2c6\",\"call\":\"rms_norm(f32[4,256], f32[256])\",\"kernel\":\"quick\","                   \
    "\"platform\":\"native\",\"config\":{},\"source\":\"autotune\",\"evidence\":{\"time_ns\":100,\"low_ns\":90,"       \
    "\"high_ns\":110,\"samples\":1,\"verified_against\":\"reference\"," evidence "}}]}"
#define QUICK                                                                                                          \
    "{\"kernel\":\"quick\",\"platform\":\"native\",\"config\":{},\"time_ns\":100,\"low_ns\":100,\"high_ns\":100,"      \
    "\"samples\":1,\"tried\":1}"
#define NEVER                                                                                                          \
    "{\"kernel\":\"never\",\"platform\":\"native\",\"config\":null,\"time_ns\":null,\"tried\":0,\"rejected\":{}}"
#define LIBRARY(name, samples)                                                                                         \
    "{\"kernel\":\"" name "\",\"platform\":\"native\",\"config\":{},\"time_ns\":200,\"low_ns\":190,\"high_ns\":210,"   \
    "\"samples\":" samples ",\"tried\":1}"
#define WHY "1 of 2 kernels was never tried, 38 % of the samples were disturbed; try --seconds 30"

static void an_undecided_contest_is_noted_below_its_table(void **state)
{
    (void)state;
    char text[4096];
    print_document(DOCUMENT("\"undecided\":\"" WHY "\",\"kernels\":[" QUICK "," NEVER "]"), text, sizeof text);
    assert_says(text, "\n  undecided: " WHY "\n");
    assert_true(strstr(text, "undecided") > strstr(text, "measured, "));
}

static void an_earlier_undecided_contest_is_reported(void **state)
{
    (void)state;
    char text[4096];
    print_document(DOCUMENT("\"undecided\":\"" WHY "\""), text, sizeof text);
    assert_says(text, "decided already");
    assert_says(text, "\n  undecided: " WHY "\n");
}

static void a_decided_contest_is_not_called_undecided(void **state)
{
    (void)state;
    char text[4096];
    print_document(DOCUMENT("\"kernels\":[" QUICK "]"), text, sizeof text);
    assert_null(strstr(text, "undecided"));
}

static void a_kernel_that_was_never_tried_has_no_time_and_no_ratio(void **state)
{
    (void)state;
    char text[4096];
    print_document(DOCUMENT("\"runner_up\":\"never\",\"kernels\":[" QUICK "," NEVER "]"), text, sizeof text);
    assert_says(text, "  never tried: never: the time or the evaluations were spent before its turn\n");
    assert_says(text, "; too few samples (0) to compare with never");
    assert_null(strstr(text, "as fast as never"));
    assert_null(strstr(text, "slower"));
}

static void the_best_library_is_compared_where_both_sides_have_ten_samples(void **state)
{
    static const struct {
        const char *samples; // of the choice; a later field of a name counts
        const char *library, *says;
    } cases[] = {
        {"10", LIBRARY("numpy_openblas", "9"),
         "; too few samples (9) to compare with the best library, numpy_openblas;"},
        {"9", LIBRARY("onednn", "10"), "; too few samples (9) to compare with the best library, onednn;"},
        {"10", LIBRARY("scipy_openblas", "10"),
         "; 2.00 times as fast as the best library, scipy_openblas (95 % 1.73 to 2.33);"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char document[2048], text[4096];
        snprintf(
            document, sizeof document, DOCUMENT("\"samples\":%s,\"kernels\":[" QUICK ",%s]"), cases[i].samples,
            cases[i].library);
        print_document(document, text, sizeof text);
        assert_says(text, cases[i].says);
        assert_int_equal(strstr(text, "times as fast as the best library") != NULL, i == 2);
    }
}

static void the_default_is_compared_where_both_sides_have_ten_samples(void **state)
{
    static const char *const cases[][2] = {
        {"\"default_time_ns\":100,\"samples\":9,\"default_samples\":9", "; it is the default;"},
        {"\"default_time_ns\":300,\"samples\":10,\"default_samples\":9",
         "; too few samples (9) to compare with the default;"},
        {"\"default_time_ns\":300,\"samples\":9,\"default_samples\":10",
         "; too few samples (9) to compare with the default;"},
        {"\"default_time_ns\":300,\"samples\":10,\"default_samples\":10", ", 3.00 times as fast as the default;"},
        {"\"default_time_ns\":300,\"samples\":10",
         ", 3.00 times as fast as the default;"}, // as earlier versions told it
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char document[2048], text[4096];
        snprintf(document, sizeof document, DOCUMENT("%s,\"kernels\":[" QUICK "]"), cases[i][0]);
        print_document(document, text, sizeof text);
        assert_says(text, cases[i][1]);
    }
}

static void one_sample_has_no_spread(void **state)
{
    (void)state;
    char text[4096];
    print_document(DOCUMENT("\"kernels\":[" QUICK "]"), text, sizeof text);
    const char *row = strstr(text, "\n* quick");
    assert_non_null(row);
    const char *dash = strstr(row, " -  "), *end = strchr(row + 1, '\n');
    assert_true(dash != NULL && dash < end);
    assert_null(strstr(text, "0.0 %"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undecided_contest_is_noted_below_its_table),
        cmocka_unit_test(an_earlier_undecided_contest_is_reported),
        cmocka_unit_test(a_decided_contest_is_not_called_undecided),
        cmocka_unit_test(a_kernel_that_was_never_tried_has_no_time_and_no_ratio),
        cmocka_unit_test(the_best_library_is_compared_where_both_sides_have_ten_samples),
        cmocka_unit_test(the_default_is_compared_where_both_sides_have_ten_samples),
        cmocka_unit_test(one_sample_has_no_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
