// Operations by their names.
#include "base/error.h"
#include "runtime/api/api.h"

static const char where[] = "op.get";

// Returns the one hone_op of an algorithm and version, which is created at the first request.
static hone_op *find_op(hone_runtime *rt, const hone_algorithm_entry *algorithm)
{
    for (hone_op *op = rt->ops; op != NULL; op = op->next)
        if (op->algorithm == algorithm) return op;
    return NULL;
}

static uint64_t ignored_parameters(const hone_signature *signature)
{
    uint64_t ignored = 0;
    for (size_t i = 0; i < hone_signature_count(signature) && i < 64; i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        if (parameter->kind != HONE_KIND_TENSOR && parameter->role == HONE_ROLE_IGNORE) ignored |= 1ull << i;
    }
    return ignored;
}

static hone_op *make_op(hone_runtime *rt, const hone_algorithm_entry *algorithm)
{
    hone_op *op = hone_alloc(&rt->allocator, sizeof *op);
    if (op == NULL) return NULL;
    op->head = ++rt->op_count;
    op->ignored = ignored_parameters(algorithm->signature);
    op->count = hone_signature_count(algorithm->signature);
    op->table = &rt->plans;
    op->rt = rt;
    op->algorithm = algorithm;
    op->next = rt->ops;
    rt->ops = op;
    return op;
}

hone_status hone_op_get(hone_runtime *rt, const char *name, const hone_op **out, hone_error *err)
{
    if (rt == NULL || name == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime, the name and out must not be NULL");
    }
    *out = NULL;
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, name, NULL);
    if (algorithm == NULL) return hone_registry_fail_unknown(rt->registry, name, err);
    hone_status status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    hone_mutex_lock(&rt->mutex);
    hone_op *op = find_op(rt, algorithm);
    if (op == NULL) op = make_op(rt, algorithm);
    hone_mutex_unlock(&rt->mutex);
    if (op == NULL) return hone_fail_memory(err, where);
    *out = op;
    return HONE_OK;
}

const hone_op *hone_op_find(hone_runtime *rt, const char *name, hone_error *err)
{
    const hone_op *op = NULL;
    return hone_op_get(rt, name, &op, err) == HONE_OK ? op : NULL;
}

hone_signature *hone_op_signature(const hone_op *op)
{
    return op != NULL ? op->algorithm->signature : NULL;
}

const char *hone_op_independent(const hone_op *op)
{
    return op != NULL ? op->algorithm->algorithm.independent : NULL;
}

const char *hone_op_name(const hone_op *op)
{
    return op != NULL ? op->algorithm->name : NULL;
}

const hone_algorithm *hone_op_algorithm(const hone_op *op)
{
    return op != NULL ? &op->algorithm->algorithm : NULL;
}
