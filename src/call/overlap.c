// Do two views share a byte? Exact for strided views, so that two halves of one matrix's columns may be
// argument and result, although their address ranges interleave.
//
// Both views' bytes meet where sum(stride * i) over both, each i in its range, plus a byte within an element,
// makes up the distance between them: a bounded sum of multiples, solved from the largest stride down. Strides of
// real tensors nest, so that each step leaves one or two choices; a search that outgrows its budget says "they meet".
// The question is NumPy's (numpy.shares_memory), which solves it as a bounded Diophantine equation; in general it
// is NP-complete, hence the budget.
#include "call/call.h"

#include "base/assert.h"

enum { MAX_TERMS = 2 * HONE_MAX_RANK, SEARCH_BUDGET = 4096 };

typedef struct term {
    int64_t stride, reach; // bytes; reach = stride * (largest i)
} term;

typedef struct search {
    term terms[MAX_TERMS]; // by falling stride, all positive
    int count;
    int64_t rest; // bytes of both elements, less two: what no stride has to make up
    int budget;
} search;

static void add_term(search *s, int64_t stride, int64_t steps)
{
    hone_assert(stride >= 0 && steps > 0 && s->count < MAX_TERMS);
    if (stride == 0) return;
    int at = 0;
    while (at < s->count && s->terms[at].stride > stride)
        at++;
    if (at < s->count && s->terms[at].stride == stride) {
        s->terms[at].reach += stride * steps;
        return;
    }
    for (int i = s->count++; i > at; i--)
        s->terms[i] = s->terms[i - 1];
    s->terms[at] = (term){stride, stride * steps};
}

static void add_tensor(search *s, const hone_tensor *tensor, int64_t size)
{
    int64_t strides[HONE_MAX_RANK];
    hone_tensor_strides(tensor, strides);
    for (int32_t i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] > 1) // the stride of a dim of size 1 may be anything
            add_term(s, (strides[i] < 0 ? -strides[i] : strides[i]) * size, tensor->shape[i] - 1);
    s->rest += size - 1;
}

// Whether the terms from `level` on can make a number in [target - rest, target].
static bool reachable(search *s, int level, int64_t target)
{
    if (target < 0 || --s->budget < 0) return target >= 0;
    int64_t reach = s->rest;
    for (int i = level; i < s->count; i++)
        reach += s->terms[i].reach;
    if (target > reach) return false;
    if (level == s->count) return true;
    const term t = s->terms[level];
    const int64_t below = reach - t.reach; // what the smaller terms can still make up
    int64_t most = target / t.stride * t.stride;
    for (int64_t taken = most < t.reach ? most : t.reach; taken >= 0 && target - taken <= below; taken -= t.stride)
        if (reachable(s, level + 1, target - taken)) return true;
    return false;
}

bool hone_tensors_overlap(const hone_tensor *a, const hone_tensor *b)
{
    int64_t a_bytes, a_below, b_bytes, b_below;
    if (hone_tensor_span(a, &a_bytes, &a_below) != HONE_OK || hone_tensor_span(b, &b_bytes, &b_below) != HONE_OK)
        return true;
    if (a->data == NULL || b->data == NULL || a_bytes == 0 || b_bytes == 0) return false;
    // A handle is no address: how far two lie apart says nothing.
    if (a->data != b->data && hone_device_has_handles(a->device.type)) return false;
    const uint64_t a_low = (uint64_t)(uintptr_t)hone_tensor_data(a) - (uint64_t)a_below;
    const uint64_t b_low = (uint64_t)(uintptr_t)hone_tensor_data(b) - (uint64_t)b_below;
    if (a_low >= b_low + (uint64_t)b_bytes || b_low >= a_low + (uint64_t)a_bytes) return false;
    if (a->dtype.bits < 8 || b->dtype.bits < 8) return true;
    // a_low + i * a + byte = b_low + (last - j) * b + byte: counting b from its end turns every sign positive.
    search s = {.budget = SEARCH_BUDGET};
    add_tensor(&s, a, a->dtype.bits / 8);
    add_tensor(&s, b, b->dtype.bits / 8);
    return reachable(&s, 0, (int64_t)(b_low - a_low) + b_bytes - 1);
}
