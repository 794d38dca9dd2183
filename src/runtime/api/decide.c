// hone_decide: what the chain answers, without running it.
#include "base/error.h"
#include "base/structs.h"
#include "runtime/api/api.h"
#include "runtime/links/follow.h"

static const char where[] = "decide";

static hone_status decide_call_known(const hone_op *op, const hone_call *call, hone_decision *out, hone_error *err)
{
    if (op == NULL || call == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the operation, the call and out must not be NULL");
    hone_request request;
    hone_runtime_take_up(op->rt);
    hone_status status = hone_request_init(&request, op, call, hone_thread_self.context, err);
    hone_decision decision = {0};
    if (status == HONE_OK) status = hone_request_decide(&request, &decision, NULL, err);
    if (status == HONE_OK) hone_runtime_stand_by(&request, &decision);
    if (status == HONE_OK) *out = decision;
    hone_request_deinit(&request);
    return status;
}

hone_status hone_decide_call_sized(
    const hone_op *op, const hone_call *call, hone_decision *out, size_t size, hone_error *err)
{
    hone_decision known;
    hone_status status = decide_call_known(op, call, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}

static hone_status decide_known(
    const hone_op *op, const hone_value *args, size_t count, hone_decision *out, hone_error *err)
{
    if (op == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the operation is NULL");
    hone_call *call = NULL;
    hone_status status = hone_call_bind(op->rt->allocator, op->algorithm->signature, args, count, false, &call, err);
    if (status == HONE_OK) status = hone_decide_call(op, call, out, err);
    hone_call_release(&call);
    return status;
}

hone_status hone_decide_sized(
    const hone_op *op, const hone_value *args, size_t count, hone_decision *out, size_t size, hone_error *err)
{
    hone_decision known;
    hone_status status = decide_known(op, args, count, out != NULL ? &known : NULL, err);
    if (status == HONE_OK && out != NULL) hone_struct_give(out, size, &known, sizeof known);
    return status;
}
