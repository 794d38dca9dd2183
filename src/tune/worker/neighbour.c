// Verifies a candidate beside other plans of its kernel, for the call of an earlier request to this process: what
// prepare keeps outside of its plan may be overwritten by the latest plan, and what release frees may be in use by all
// plans.
#include "tune/worker/session.h"

#include "base/error.h"

// False: the kernel does not support that call, which is allowed. The message is dropped: kernels write one all the
// same.
static bool prepare_neighbour(const hone_runner *runner, const hone_call *call, hone_plan *out)
{
    const hone_kernel *kernel = &runner->kernel;
    hone_error unheard = {.message = ""};
    *out = runner->plan;
    out->call = call;
    out->state = NULL;
    if (kernel->supports != NULL && !kernel->supports(kernel, call, &unheard)) return false;
    return hone_platform_prepare(runner->instance, out, &out->state, &out->scratch_bytes, &unheard) == HONE_OK;
}

static hone_failure verify(hone_runner *runner, const char *when, double *out_max_error, hone_error *err)
{
    double error = 0;
    const hone_failure failure = hone_runner_verify(runner, &error, err);
    if (error > *out_max_error) *out_max_error = error;
    if (failure != HONE_FAILURE_NONE)
        hone_fail_prefix(
            err, HONE_KERNEL_FAILED, "after %s, for %.80s", when, hone_call_text(runner->session->neighbour));
    return failure;
}

// As many plans as may fill a table that a kernel keeps its plans in, if preparing them takes next to no time.
enum { MOST_NEIGHBOURS = 66 };
static const uint64_t neighbours_ns = 1000 * 1000;

hone_failure hone_runner_verify_beside(hone_runner *runner, double *out_max_error, hone_error *err)
{
    hone_plan others[MOST_NEIGHBOURS];
    size_t count = 1;
    const uint64_t start = hone_os_now_ns();
    const hone_call *call = runner->session->neighbour;
    if (call == NULL || !prepare_neighbour(runner, call, &others[0])) return HONE_FAILURE_NONE;
    const bool is_quick = hone_os_now_ns() - start < neighbours_ns / 10;
    hone_failure failure = verify(runner, "another plan was prepared", out_max_error, err);
    const uint64_t until = is_quick ? hone_os_now_ns() + neighbours_ns : 0;
    while (failure == HONE_FAILURE_NONE && count < MOST_NEIGHBOURS && hone_os_now_ns() < until &&
           prepare_neighbour(runner, call, &others[count]))
        count++;
    if (failure == HONE_FAILURE_NONE && count > 1)
        failure = verify(runner, "many other plans were prepared", out_max_error, err);
    for (size_t i = 0; i < count; i++)
        hone_platform_release(runner->instance, &runner->kernel, others[i].state);
    return failure == HONE_FAILURE_NONE ? verify(runner, "other plans were released", out_max_error, err) : failure;
}

void hone_session_keep_neighbour(hone_session *session)
{
    hone_call_release(&session->neighbour);
    session->neighbour = hone_call_retain(session->blind);
}
