// Which arrays of a program are the arguments of a call: a search without a solver, for there are few of both.
//
// Operands of a call of a function are exact: the arguments in order, those that must be there first. Else the arrays that the operations under a label read are a set, and every assignment of them to
// the required parameters is tried, count^parameters of them; those that use most arrays first, because a call uses
// what it reads. The visitor judges. VISITS_MAX bounds it: eight arrays for four parameters are 4096 ways.
#include "offline/operands.h"

#include "base/assert.h"
#include "base/number.h"
#include "hone/describe.h"
#include "offline/cursor.h"

enum { ARRAYS_MAX = 16, PARAMETERS_MAX = 64, VISITS_MAX = 4096 };
enum { AXES = 4 }; // that vmap maps at

static const hone_dtype_info *dtype_by_name(hone_view name, bool mlir)
{
    for (int id = 0; id < HONE_DTYPE_COUNT; id++) {
        const hone_dtype_info *info = hone_dtype_info_of((hone_dtype_id)id);
        const char *known = mlir ? info->mlir_name : info->xla_name;
        if (known != NULL && hone_view_is(name, known)) return info;
    }
    return NULL;
}

static bool add_dim(hone_array *out, hone_view digits)
{
    int64_t dim;
    if (out->ndim == HONE_MAX_RANK || !hone_integer_parse(digits.data, digits.size, &dim) || dim < 0) return false;
    out->dims[out->ndim++] = dim;
    return true;
}

// "2x3xf32", and whatever layout follows a comma.
static bool read_mlir(hone_cursor c, hone_array *out)
{
    for (;;) {
        hone_view digits = {c.at, 0};
        while (c.at < c.end && *c.at >= '0' && *c.at <= '9')
            c.at++, digits.size++;
        if (digits.size == 0 || !accept(&c, "x")) break;
        if (!add_dim(out, digits)) return false;
    }
    const char *start = c.at;
    while (c.at < c.end && *c.at != '>' && *c.at != ',' && *c.at != '<')
        c.at++;
    const hone_dtype_info *info = dtype_by_name(view_between(start, c.at), true);
    if (info != NULL) out->dtype = info->dtype;
    return info != NULL;
}

// "f32[2,3]{1,0}"
static bool read_xla(hone_cursor c, hone_array *out)
{
    hone_view name = take_name(&c);
    const hone_dtype_info *info = dtype_by_name(name, false);
    if (info == NULL || !accept(&c, "[")) return false;
    out->dtype = info->dtype;
    while (c.at < c.end && *c.at != ']') {
        const char *start = c.at;
        while (c.at < c.end && *c.at != ',' && *c.at != ']')
            c.at++;
        if (!add_dim(out, view_between(start, c.at))) return false;
        accept(&c, ",");
    }
    return peek(&c) == ']';
}

bool hone_array_read(hone_view type, hone_array *out)
{
    *out = (hone_array){0};
    hone_cursor c = cursor_of(type);
    return accept(&c, "tensor<") ? read_mlir(c, out) : read_xla(c, out);
}

static bool same_array(const hone_array *a, const hone_array *b)
{
    return memcmp(&a->dtype, &b->dtype, sizeof a->dtype) == 0 && a->ndim == b->ndim &&
           memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

static void remove_dim(hone_array *array, int32_t axis)
{
    hone_assert(axis < array->ndim);
    for (int32_t i = axis; i + 1 < array->ndim; i++)
        array->dims[i] = array->dims[i + 1];
    array->dims[--array->ndim] = 0;
}

static int64_t elements(const int64_t *dims, int32_t ndim)
{
    int64_t product = 1;
    for (int32_t i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(product, dims[i], &product)) return -1;
    return product;
}

// The dims of the tensor in order, with at most `batches` others between them.
static bool has_dims(const hone_array *array, const hone_tensor *tensor, uint32_t batches)
{
    int32_t next = 0;
    if (array->ndim > tensor->ndim + (int32_t)batches) return false;
    for (int32_t i = 0; i < array->ndim && next < tensor->ndim; i++)
        next += array->dims[i] == tensor->shape[next];
    return next == tensor->ndim;
}

int hone_operands_find(const hone_operands *operands, const hone_tensor *tensor, uint32_t batches)
{
    int best = HONE_OPERANDS_NONE;
    for (uint32_t i = 0; i < operands->count; i++) {
        hone_view type = operands->types[i];
        bool mlir = type.size > 0 && type.data[type.size - 1] == '>';
        hone_array array;
        if (!hone_array_read(type, &array)) continue;
        if (has_dims(&array, tensor, batches)) return (int)i;
        bool reshaped = !mlir && elements(array.dims, array.ndim) == elements(tensor->shape, tensor->ndim);
        if (reshaped && best == HONE_OPERANDS_NONE) best = HONE_OPERANDS_RESHAPED + (int)i;
    }
    return best;
}

// One way to read a program's arrays as a call's: vmap has put dims in that the call did not have.
typedef struct reading {
    hone_array arrays[HONE_TYPES_MAX];
    size_t count;
    bool exact;
} reading;

// A search for arguments.
typedef struct search {
    const hone_signature *signature;
    hone_arguments_visit *visit;
    void *ctx;
    hone_value values[PARAMETERS_MAX];
    hone_tensor tensors[PARAMETERS_MAX];
    size_t count;
    size_t required[PARAMETERS_MAX]; // parameters that are tensors
    size_t required_count;
    const reading *reading; // at hand
    int budget;
} search;

static void sort_parameters(search *s)
{
    s->count = hone_signature_count(s->signature);
    if (s->count > PARAMETERS_MAX) s->count = 0; // no signature is that long
    for (size_t i = 0; i < s->count; i++) {
        const hone_parameter *p = hone_signature_parameter(s->signature, i);
        s->values[i] = hone_of_none();
        if (p->kind == HONE_KIND_TENSOR && !p->is_result && !p->nullable) s->required[s->required_count++] = i;
    }
}

static void set(search *s, size_t parameter, hone_array *array)
{
    hone_assert(parameter < s->count);
    s->tensors[parameter] =
        (hone_tensor){.device = {HONE_DEVICE_CPU, 0}, .ndim = array->ndim, .dtype = array->dtype, .shape = array->dims};
    s->values[parameter] = hone_of_tensor(&s->tensors[parameter]);
}

static bool offer(search *s)
{
    return s->budget-- > 0 && s->visit(s->ctx, s->values, s->count, s->reading->arrays, s->reading->count);
}

static bool try_exact(search *s, reading *r)
{
    if (r->count < s->required_count) return false;
    for (size_t i = 0; i < s->required_count; i++)
        set(s, s->required[i], &r->arrays[i]);
    return offer(s);
}

static size_t power(size_t base, size_t exponent)
{
    size_t result = 1;
    for (size_t i = 0; i < exponent && result <= VISITS_MAX; i++)
        result *= base;
    return result;
}

// All ways to give the required parameters one of the distinct arrays each; those that use as many of them as
// can be come first.
static bool try_all(search *s, reading *r)
{
    size_t ways = power(r->count, s->required_count),
           most = r->count < s->required_count ? r->count : s->required_count;
    if (ways > VISITS_MAX) ways = VISITS_MAX;
    for (size_t level = most; level > 0; level--) {
        for (size_t way = 0; way < ways && s->budget > 0; way++) {
            uint32_t used = 0;
            size_t code = way;
            for (size_t i = s->required_count; i-- > 0; code /= r->count) { // the last parameter changes fastest
                set(s, s->required[i], &r->arrays[code % r->count]);
                used |= 1u << (code % r->count);
            }
            if ((size_t)__builtin_popcount(used) != level) continue;
            if (offer(s)) return true;
        }
    }
    return false;
}

static void keep_distinct(reading *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++) {
        size_t k = 0;
        while (k < kept && !same_array(&r->arrays[k], &r->arrays[i]))
            k++;
        if (k == kept && kept < ARRAYS_MAX) r->arrays[kept++] = r->arrays[i];
    }
    r->count = kept;
}

// Adds a view's arrays with `batches` dims taken out at axis; scalars are no arrays.
static void add_view(const hone_operands *view, uint32_t batches, int32_t axis, reading *out)
{
    for (uint32_t i = 0; i < view->count && out->count < HONE_TYPES_MAX; i++) {
        hone_array *array = &out->arrays[out->count];
        if (!hone_array_read(view->types[i], array)) continue;
        array->source = i;
        for (uint32_t b = 0; b < batches && array->ndim > axis; b++)
            remove_dim(array, axis);
        out->count += array->ndim > 0;
    }
}

// Where vmap did not map every argument, some arrays have its dims and others do not: behind those without them stand
// all as they are.
static void read_view(const hone_operands *view, uint32_t batches, int32_t axis, reading *out)
{
    out->count = 0;
    out->exact = view->exact;
    add_view(view, batches, axis, out);
    if (batches > 0 && !view->exact) add_view(view, 0, 0, out);
}

static bool try_reading(search *s, reading *r)
{
    s->reading = r;
    if (!r->exact) keep_distinct(r);
    const bool ended = r->exact ? try_exact(s, r) : r->count > 0 && try_all(s, r);
    s->reading = NULL;
    return ended;
}

// With `batches` dims less at an axis, which is of all arrays the same.
static bool try_batches(search *s, const hone_found *found, uint32_t batches, int32_t axis)
{
    reading r;
    for (uint32_t v = 0; v < found->view_count; v++) {
        read_view(&found->views[v], batches, axis, &r);
        if (try_reading(s, &r)) return true;
    }
    return false;
}

// vmap may map each argument at another axis, and some at none.
static bool try_mixed_axes(search *s, const hone_found *found, uint32_t batches)
{
    reading r;
    for (uint32_t v = 0; v < found->view_count; v++) {
        r = (reading){.exact = false};
        for (int32_t axis = 0; axis < AXES; axis++)
            add_view(&found->views[v], batches, axis, &r);
        add_view(&found->views[v], 0, 0, &r);
        if (try_reading(s, &r)) return true;
    }
    return false;
}

bool hone_arguments_try(
    const hone_signature *signature, const hone_found *found, bool exhaustive, hone_arguments_visit *visit, void *ctx)
{
    search s = {.signature = signature, .visit = visit, .ctx = ctx, .budget = VISITS_MAX};
    sort_parameters(&s);
    if (s.required_count == 0) return false;
    const uint32_t most = found->vmaps < HONE_MAX_RANK ? found->vmaps : 0;
    for (uint32_t batches = most;; batches--) { // fewer: some mapped no argument, or stand in a path twice
        if (try_batches(&s, found, batches, 0)) return true;
        if (batches == 0) break;
    }
    for (int32_t axis = 1; exhaustive && most > 0 && axis < AXES; axis++)
        if (try_batches(&s, found, most, axis)) return true;
    return exhaustive && most > 0 && try_mixed_axes(&s, found, most);
}
