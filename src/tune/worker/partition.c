// A call can be cut along a dim if every tensor that has the dim has it alone, and once: then a part is a view of each
// tensor with that axis cut, and nothing is copied. Dims that are cut together (rows of a and of out) form a group,
// with the greatest common divisor of their sizes as the number of pieces. Parts are numbered in a mixed base, with a
// digit for each group. A group that leaves some result uncut is not used: two of its parts would write the same
// elements.
#include "tune/worker/partition.h"

#include "base/assert.h"
#include "call/signature.h"

#include <string.h>

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// How a dim's name occurs in a shape: not at all, alone and once, or in another way.
typedef enum standing { ABSENT, BARE, TANGLED } standing;

typedef struct mention {
    uint32_t slot;
    bool found;
} mention;

static void note_slot(void *ctx, uint32_t number)
{
    mention *m = ctx;
    if (number == m->slot) m->found = true;
}

static standing find_in_dims(const hone_shape_pattern *in, uint32_t wanted, uint32_t *out_dim)
{
    standing found = ABSENT;
    for (uint32_t i = 0; i < in->count; i++) {
        if (in->dims[i].expression == NULL && in->dims[i].slot == wanted) {
            if (found == BARE) return TANGLED; // twice, as in T[n, n]
            found = BARE;
            *out_dim = i;
        } else if (in->dims[i].expression != NULL) {
            mention m = {wanted, false};
            hone_expression_slots(in->dims[i].expression, note_slot, &m);
            if (m.found) return TANGLED;
        }
    }
    return found;
}

static standing find_in_shape(const hone_shape_pattern *in, uint32_t wanted, uint32_t *out_dim)
{
    uint32_t unused;
    for (const hone_shape_pattern *s = in->otherwise; s != NULL; s = s->otherwise)
        if (find_in_dims(s, wanted, &unused) != ABSENT) return TANGLED;
    standing found = find_in_dims(in, wanted, out_dim);
    return found == BARE && in->otherwise != NULL ? TANGLED : found;
}

static bool add_axis(hone_part_group *group, uint32_t value, int32_t axis, int64_t size)
{
    if (group->axes == HONE_MAX_PART_AXES) return false;
    group->axis[group->axes++] = (hone_part_axis){value, axis, size};
    group->count = group->count == 0 ? size : gcd(group->count, size);
    return true;
}

// Cuts every tensor along a named dim.
static bool add_name(hone_part_group *group, const hone_call *call, hone_view name)
{
    const hone_signature *signature = hone_call_signature(call);
    int number = hone_signature_slot(signature, name);
    if (number < 0) return false;
    for (uint32_t i = 0; i < signature->count; i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        const hone_shape_pattern *of = signature->parameters[i].shape;
        uint32_t place = 0;
        if (tensor == NULL || of == NULL) continue;
        standing found = find_in_shape(of, (uint32_t)number, &place);
        if (found == TANGLED) return false;
        if (found == ABSENT) continue;
        int32_t axis = tensor->ndim - (int32_t)of->count + (int32_t)place;
        if (axis < 0 || !add_axis(group, i, axis, tensor->shape[axis])) return false;
    }
    return true;
}

// The leading dims are the same for every "..."; the largest of them is cut.
static int32_t largest_leading(const hone_tensor *tensor, uint32_t named)
{
    int32_t best = -1;
    for (int32_t axis = 0; axis < tensor->ndim - (int32_t)named; axis++)
        if (best < 0 || tensor->shape[axis] > tensor->shape[best]) best = axis;
    return best;
}

// Whether all forms of a shape that depends on a condition have "..." and as many dims after it.
static bool leads_everywhere(const hone_shape_pattern *of)
{
    for (const hone_shape_pattern *s = of->otherwise; s != NULL; s = s->otherwise)
        if (s->ellipsis != of->ellipsis || s->count != of->count) return false;
    return true;
}

static bool add_leading(hone_part_group *group, const hone_call *call)
{
    const hone_signature *signature = hone_call_signature(call);
    for (uint32_t i = 0; i < signature->count; i++) {
        const hone_tensor *tensor = hone_call_tensor(call, i);
        const hone_shape_pattern *of = signature->parameters[i].shape;
        if (tensor == NULL || of == NULL) continue;
        if (!leads_everywhere(of)) return false;
        if (!of->ellipsis) continue;
        int32_t axis = largest_leading(tensor, of->count);
        if (axis < 0 || !add_axis(group, i, axis, tensor->shape[axis])) return false;
    }
    return true;
}

static bool add_group(hone_part_group *group, const hone_call *call, hone_view names)
{
    memset(group, 0, sizeof *group);
    while (names.size > 0) {
        const char *colon = memchr(names.data, ':', names.size);
        hone_view name = {names.data, colon != NULL ? (size_t)(colon - names.data) : names.size};
        bool added = hone_view_is(name, "...") ? add_leading(group, call) : add_name(group, call, name);
        if (!added) return false;
        size_t eaten = name.size + (colon != NULL ? 1 : 0);
        names = (hone_view){names.data + eaten, names.size - eaten};
    }
    for (uint32_t i = 0; i < group->axes; i++)
        if (group->count > 0) group->axis[i].size /= group->count;
    return group->count > 1;
}

// A part must cut every result, else two parts would write the same elements.
static bool cuts_results(const hone_part_group *group, const hone_signature *signature)
{
    for (uint32_t i = 0; i < signature->count; i++) {
        bool cut = !signature->parameters[i].shown.is_result;
        for (uint32_t a = 0; a < group->axes && !cut; a++)
            cut = group->axis[a].value == i;
        if (!cut) return false;
    }
    return true;
}

void hone_parting_find(const char *independent, const hone_call *call, hone_parting *out)
{
    out->groups = 0;
    out->count = 1;
    const char *at = independent != NULL ? independent : "";
    while (*(at += strspn(at, " ,")) != '\0' && out->groups < HONE_MAX_PART_GROUPS) {
        hone_view names = {at, strcspn(at, " ,")};
        hone_part_group *group = &out->group[out->groups];
        if (add_group(group, call, names) && cuts_results(group, hone_call_signature(call))) {
            out->groups++;
            out->count *= (uint64_t)group->count;
        }
        at += names.size;
    }
}

// The largest divisor of count that is at most `most`.
static int64_t divisor_within(int64_t count, uint64_t most)
{
    int64_t pieces = count < (int64_t)most ? count : (int64_t)most;
    while (count % pieces != 0)
        pieces--;
    return pieces;
}

void hone_parting_coarsen(hone_parting *parting, uint64_t most)
{
    hone_assert(most >= 1);
    parting->count = 1;
    for (uint32_t g = 0; g < parting->groups; g++) {
        hone_part_group *group = &parting->group[g];
        const int64_t pieces = divisor_within(group->count, most / parting->count);
        for (uint32_t a = 0; a < group->axes; a++)
            group->axis[a].size *= group->count / pieces;
        group->count = pieces;
        parting->count *= (uint64_t)pieces;
    }
}

uint64_t hone_part_of(const hone_parting *parting, uint32_t value, const hone_tensor *whole, int64_t index)
{
    int64_t at[HONE_MAX_RANK] = {0};
    uint64_t part = 0, step = 1;
    for (int32_t axis = whole->ndim - 1; axis >= 0; axis--) {
        at[axis] = index % whole->shape[axis];
        index /= whole->shape[axis];
    }
    for (uint32_t g = 0; g < parting->groups; g++) {
        const hone_part_group *group = &parting->group[g];
        uint32_t a = 0;
        while (a < group->axes && group->axis[a].value != value)
            a++;
        hone_assert(a < group->axes); // every group cuts every result
        part += step * (uint64_t)(at[group->axis[a].axis] / group->axis[a].size);
        step *= (uint64_t)group->count;
    }
    hone_assert(part < parting->count);
    return part;
}

void hone_part_view(
    const hone_parting *parting,
    uint64_t part,
    uint32_t value,
    const hone_tensor *whole,
    int64_t *dims,
    int64_t *strides,
    hone_tensor *out)
{
    hone_assert(part < parting->count);
    hone_tensor_strides(whole, strides);
    memcpy(dims, whole->shape, (size_t)whole->ndim * sizeof *dims);
    *out = *whole;
    out->shape = dims;
    out->strides = strides;
    for (uint32_t g = 0; g < parting->groups; g++) {
        const hone_part_group *group = &parting->group[g];
        int64_t piece = (int64_t)(part % (uint64_t)group->count);
        part /= (uint64_t)group->count;
        for (uint32_t a = 0; a < group->axes; a++) {
            const hone_part_axis *axis = &group->axis[a];
            if (axis->value != value) continue;
            int64_t elements = piece * axis->size * strides[axis->axis];
            dims[axis->axis] = axis->size;
            out->data = (char *)out->data + elements * (int64_t)whole->dtype.bits / 8;
        }
    }
}
