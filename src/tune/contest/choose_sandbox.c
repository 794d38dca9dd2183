// Chooses where a contest's candidates run: the best of the sandboxes that can serve it.
#include "tune/contest/contest.h"

#include "base/error.h"
#include "registry/names.h"

#include <stdio.h>

static const char where[] = "tune.choose_sandbox";

// A spawned worker knows only what the library itself registers, and code that can be sent to it.
bool hone_kernel_is_hosts(const hone_algorithm_entry *algorithm, const hone_kernel_ref *kernel)
{
    return !hone_message_is_told(algorithm) || (!kernel->builtin && !hone_message_is_content(&kernel->kernel));
}

static bool is_hosts(const hone_question *question, const hone_contestant *contestant)
{
    return hone_kernel_is_hosts(question->algorithm, contestant->ref);
}

static bool any_hosts(const hone_question *question, const hone_field *field)
{
    for (size_t i = 0; i < field->count; i++)
        if (field->contestants[i].space != NULL && is_hosts(question, &field->contestants[i])) return true;
    return false;
}

// Whether a function that runs for every candidate is one of an interpreter.
static bool all_need_interpreter(const hone_question *question, const hone_field *field)
{
    if (hone_reference_is_interpreted(question->algorithm)) return true;
    const hone_contestant *standard = hone_field_default(field);
    return hone_regime_is_stable(question->options.regime) && standard != NULL &&
           hone_kernel_is_interpreted(standard->ref);
}

static bool one_needs_interpreter(const hone_field *field)
{
    for (size_t i = 0; i < field->count; i++)
        if (field->contestants[i].space != NULL && hone_kernel_is_interpreted(field->contestants[i].ref)) return true;
    return false;
}

// Leaves out a kernel because of an error that the program can fix, and logs a warning at once.
//   kernel  index of a contestant
static void leave_out(const hone_question *question, hone_field *field, size_t kernel, const char *reason)
{
    char words[400];
    snprintf(words, sizeof words, "it %s", reason);
    hone_field_warn_left_out(field, question, kernel, words);
    hone_field_exclude(field, kernel, reason);
}

static void exclude_hosts(const hone_question *question, hone_field *field)
{
    for (size_t i = 0; i < field->count; i++)
        if (field->contestants[i].space != NULL && is_hosts(question, &field->contestants[i]))
            leave_out(
                question, field, i,
                "is a function of this program, which has threads and cannot isolate it: open the runtime with "
                "HONE_RUNTIME_ZYGOTE while there is one thread, or consent with HONE_ISOLATION_IN_PROCESS");
}

// Excludes kernels that point to memory that the zygote does not have: it was forked when the runtime opened.
static void exclude_loose(const hone_question *question, hone_field *field)
{
    for (size_t i = 0; i < field->count; i++) {
        const hone_contestant *contestant = &field->contestants[i];
        const hone_kernel *kernel = &contestant->ref->kernel;
        const bool is_sent = contestant->space != NULL && !contestant->ref->builtin && !hone_message_is_content(kernel);
        const char *what = is_sent ? hone_message_loose_part(kernel) : NULL;
        char reason[256];
        if (what == NULL) continue;
        snprintf(
            reason, sizeof reason,
            "has a %s into memory that the isolating process never saw: let it point to static data of the program or "
            "a library, or tune with HONE_ISOLATION_IN_PROCESS",
            what);
        leave_out(question, field, i, reason);
    }
}

// Lists the sandboxes that could serve this contest, best first.
static uint32_t list_sandboxes(const hone_question *question, hone_field *field, hone_sandbox_kind out[3])
{
    uint32_t count = 0;
    if (question->options.isolation == HONE_ISOLATION_IN_PROCESS) {
        out[count++] = HONE_SANDBOX_HERE;
        return count;
    }
    if (!any_hosts(question, field)) out[count++] = HONE_SANDBOX_SPAWN;
    if (question->environment->zygote != NULL && hone_zygote_alive(question->environment->zygote))
        out[count++] = HONE_SANDBOX_ZYGOTE;
    if (hone_os_thread_count() == 1) out[count++] = HONE_SANDBOX_FORK;
    if (count > 0) return count;
    exclude_hosts(question, field);
    if (hone_field_has_anybody(field)) out[count++] = HONE_SANDBOX_SPAWN;
    return count;
}

// Whether another sandbox may work after this one failed.
static bool may_another_serve(hone_status status)
{
    return status == HONE_UNAVAILABLE || status == HONE_UNSUPPORTED || status == HONE_INCOMPATIBLE || status == HONE_IO;
}

hone_status hone_contest_choose_sandbox(
    hone_trials *trials, hone_field *field, const hone_question *question, hone_error *err)
{
    hone_sandbox_kind kinds[3];
    hone_error first = {0};
    uint32_t count = list_sandboxes(question, field, kinds);
    for (uint32_t i = 0; i < count; i++) {
        hone_error why = {0};
        hone_status status = hone_sandbox_init(&trials->sandbox, question->environment, kinds[i], &why);
        trials->has_sandbox = true;
        trials->sandbox.interpreted = kinds[i] == HONE_SANDBOX_SPAWN && all_need_interpreter(question, field);
        trials->sandbox.splits =
            kinds[i] == HONE_SANDBOX_SPAWN && !trials->sandbox.interpreted && one_needs_interpreter(field);
        if (status == HONE_OK) status = hone_trials_open(trials, &why);
        if (status == HONE_OK && kinds[i] == HONE_SANDBOX_ZYGOTE) exclude_loose(question, field);
        if (status == HONE_OK) return HONE_OK;
        // If no sandbox works, the error of the best one is reported.
        if (i == 0 || !may_another_serve(status)) first = why;
        if (!may_another_serve(status) || i + 1 == count) break;
        hone_sandbox_deinit(&trials->sandbox);
        trials->has_sandbox = false;
    }
    if (count > 0) return hone_fail(err, first.status, where, "%s", first.message);
    return HONE_OK; // no kernel competes any more
}
