// Compares several choices for one call.
#include "base/error.h"
#include "base/structs.h"
#include "runtime/api/api.h"
#include "space/space.h"
#include "tune/tuner.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "tune.compare";
static const double default_seconds = 3, default_candidate_seconds = 60;

static hone_status measure(
    const hone_op *op,
    const hone_request *request,
    const hone_choice *choices,
    size_t count,
    const hone_tune_options *options,
    hone_compared *out,
    hone_error *err)
{
    hone_tune_environment environment;
    hone_permit permit;
    hone_runtime *rt = op->rt;
    const hone_permit_environment permits = hone_runtime_permit_environment(rt);
    hone_status status = hone_runtime_contest_environment(rt, request->device, false, &environment, err);
    if (status == HONE_OK)
        status = hone_permit_begin_device(&permit, &permits, request->device, request->call, options, err);
    if (status != HONE_OK) return status;
    const hone_contest_request asked = {&environment, op->algorithm, request->call, options};
    hone_thread_self.depth++;
    status = hone_comparison_run(&asked, choices, count, out, err);
    hone_thread_self.depth--;
    hone_permit_end_measuring(&permit);
    return status;
}

static hone_status check_choices(const hone_choice *choices, size_t count, hone_error *err)
{
    if (count < 2 || count > HONE_MOST_COMPARED)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%zu choices, expected 2 to %d", count, HONE_MOST_COMPARED);
    for (size_t i = 0; i < count; i++) {
        if (choices[i].kernel == NULL)
            return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the kernel of choice %zu is NULL", i + 1);
        for (size_t j = 0; j < i; j++) {
            char config[256];
            if (choices[i].kernel != choices[j].kernel || !hone_config_equal(&choices[i].config, &choices[j].config))
                continue;
            hone_config_text(choices[i].kernel->space, &choices[i].config, config, sizeof config);
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "choices %zu and %zu are the same, %s %s: give each once", j + 1,
                i + 1, choices[i].kernel->kernel.name, config);
        }
    }
    return HONE_OK;
}

static hone_status compare_known(
    const hone_op *op,
    const hone_call *call,
    const hone_choice *choices,
    size_t count,
    const hone_tune_options *options,
    hone_compared *out,
    hone_error *err)
{
    hone_tune_options read;
    hone_request request;
    hone_status status = check_choices(choices, count, err);
    if (status == HONE_OK) status = hone_tune_options_read(op->rt, options, &read, err);
    if (status != HONE_OK) return status;
    if (read.seconds == 0) read.seconds = default_seconds;
    // The default limit does not account for the reference's time, which the first choice's time includes.
    if (read.candidate_seconds == 0) read.candidate_seconds = default_candidate_seconds;
    // These options would exclude a choice, and earlier results must not decide.
    read.kernel = read.platform = NULL;
    read.fresh = read.keep_existing = false;
    read.no_store = true;
    status = hone_request_init(&request, op, call, NULL, err);
    if (status == HONE_OK) status = measure(op, &request, choices, count, &read, out, err);
    hone_request_deinit(&request);
    return status;
}

hone_status hone_compare_sized(
    const hone_op *op,
    const hone_call *call,
    const hone_choice *choices,
    size_t count,
    const hone_tune_options *options,
    hone_compared *out,
    size_t size,
    hone_error *err)
{
    if (op == NULL || call == NULL || choices == NULL || out == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the operation, the call, the choices and out must not be NULL");
    hone_compared *known = hone_alloc_array(&op->rt->allocator, HONE_MOST_COMPARED, sizeof *known);
    if (known == NULL) return hone_fail_memory(err, where);
    const hone_status status = compare_known(op, call, choices, count, options, known, err);
    for (size_t i = 0; status == HONE_OK && i < count; i++)
        hone_struct_give((char *)out + i * size, size, &known[i], sizeof known[i]);
    hone_free(&op->rt->allocator, known);
    return status;
}
