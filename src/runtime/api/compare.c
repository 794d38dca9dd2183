// Choices for one call against each other: hone_plan_compare, and what `hone bench --choice` asks.
#include "base/error.h"
#include "base/structs.h"
#include "runtime/api/api.h"
#include "space/space.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "tune.compare";
static const double default_seconds = 3;

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
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            char config[256];
            if (choices[i].kernel != choices[j].kernel || !hone_config_equal(&choices[i].config, &choices[j].config))
                continue;
            hone_config_text(choices[i].kernel->space, &choices[i].config, config, sizeof config);
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "choices %zu and %zu are the same, %s %s: give each once", j + 1,
                i + 1, choices[i].kernel->kernel.name, config);
        }
    return HONE_OK;
}

hone_status hone_runtime_compare(
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
    // They would shut out a choice, and nothing that was found before decides.
    read.kernel = read.platform = NULL;
    read.fresh = read.keep_existing = false;
    read.no_store = true;
    status = hone_request_init(&request, op, call, NULL, err);
    if (status == HONE_OK) status = measure(op, &request, choices, count, &read, out, err);
    hone_request_deinit(&request);
    return status;
}

static hone_choice choice_of(const hone_plan_entry *entry)
{
    hone_choice choice = {.kernel = entry->kernel};
    choice.config.count = (uint32_t)hone_space_parameters(entry->kernel->space);
    memcpy(choice.config.values, entry->config, choice.config.count * sizeof choice.config.values[0]);
    return choice;
}

static hone_status compare_plans(
    const hone_plan *a, const hone_plan *b, const hone_tune_options *options, hone_compared *out, hone_error *err)
{
    if (a == NULL || b == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the plans and out must not be NULL");
    const hone_plan_entry *first = (const hone_plan_entry *)a, *second = (const hone_plan_entry *)b;
    if (first->rt != second->rt)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the plans are of two runtimes, expected of one");
    if (strcmp(hone_call_spec(first->call), hone_call_spec(second->call)) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the plans are for %s and for %s, expected for one call",
            hone_call_text(first->call), hone_call_text(second->call));
    const hone_op *op = NULL;
    const hone_choice choices[2] = {choice_of(first), choice_of(second)};
    const hone_algorithm_entry *algorithm = first->kernel->algorithm;
    char name[HONE_NAME_SIZE + 20];
    snprintf(name, sizeof name, "%s@v%s", algorithm->name, algorithm->version);
    hone_status status = hone_op_get(first->rt, name, &op, err);
    return status == HONE_OK ? hone_runtime_compare(op, first->call, choices, 2, options, out, err) : status;
}

hone_status hone_plan_compare_sized(
    const hone_plan *a,
    const hone_plan *b,
    const hone_tune_options *options,
    hone_compared out[2],
    size_t size,
    hone_error *err)
{
    hone_compared known[2];
    hone_status status = compare_plans(a, b, options, out != NULL ? known : NULL, err);
    for (size_t i = 0; i < 2 && status == HONE_OK; i++)
        hone_struct_give((unsigned char *)out + i * size, size, &known[i], sizeof known[i]);
    return status;
}
