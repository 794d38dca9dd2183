// The life of a space, and what can be asked of one without binding it.
#include "space/space.h"

#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t device_threads(const hone_device_info *device)
{
    return device->threads;
}

static int64_t device_l1_bytes(const hone_device_info *device)
{
    return device->l1_bytes;
}

static int64_t device_l2_bytes(const hone_device_info *device)
{
    return device->l2_bytes;
}

static int64_t device_l3_bytes(const hone_device_info *device)
{
    return device->l3_bytes;
}

static int64_t device_memory_bytes(const hone_device_info *device)
{
    return device->memory_bytes;
}

static int64_t device_smem_bytes(const hone_device_info *device)
{
    return device->smem_bytes;
}

static int64_t device_sms(const hone_device_info *device)
{
    return device->sms;
}

static int64_t device_capability(const hone_device_info *device)
{
    return device->capability;
}

const hone_space_device_limit hone_space_device_limits[] = {
    {"device.threads", device_threads},
    {"device.l1_bytes", device_l1_bytes},
    {"device.l2_bytes", device_l2_bytes},
    {"device.l3_bytes", device_l3_bytes},
    {"device.sms", device_sms},
    {"device.smem_bytes", device_smem_bytes},
    {"device.memory_bytes", device_memory_bytes},
    {"device.capability", device_capability},
};
const size_t hone_space_device_limit_count = sizeof hone_space_device_limits / sizeof *hone_space_device_limits;
const char hone_space_device_limit_names[] = "threads, l1_bytes, l2_bytes, l3_bytes, memory_bytes, smem_bytes, sms, "
                                             "capability";

hone_space *hone_space_retain(hone_space *space)
{
    if (space == NULL) return NULL;
    atomic_fetch_add_explicit(&space->references, 1, memory_order_relaxed);
    return space;
}

void hone_space_release(hone_space **space)
{
    if (space == NULL || *space == NULL) return;
    hone_space *dying = *space;
    *space = NULL;
    if (atomic_fetch_sub_explicit(&dying->references, 1, memory_order_acq_rel) != 1) return;
    hone_allocator allocator = dying->allocator;
    hone_arena_destroy(&dying->arena);
    hone_free(&allocator, dying);
}

size_t hone_space_parameters(const hone_space *space)
{
    return space != NULL ? space->parameter_count : 0;
}

const char *hone_space_parameter_name(const hone_space *space, size_t index)
{
    return space != NULL && index < space->parameter_count ? space->parameters[index].name : NULL;
}

size_t hone_space_values(const hone_space *space, size_t index)
{
    return space != NULL && index < space->parameter_count ? space->parameters[index].count : 0;
}

const char *hone_space_value_text(const hone_space *space, size_t index, size_t position)
{
    return space->parameters[index].values[position].text;
}

const char *hone_space_value_json(const hone_space *space, size_t index, size_t position)
{
    if (position >= hone_space_values(space, index)) return NULL;
    return space->parameters[index].values[position].json;
}

uint64_t hone_space_cartesian(const hone_space *space)
{
    if (space == NULL) return 0;
    uint64_t product = 1;
    for (size_t i = 0; i < space->parameter_count; i++)
        if (__builtin_mul_overflow(product, (uint64_t)space->parameters[i].count, &product)) return UINT64_MAX;
    return product;
}

int64_t hone_space_find_value(const hone_space_parameter *parameter, const hone_scalar *scalar)
{
    bool truth = scalar->kind == HONE_SCALAR_BOOL;
    for (size_t i = 0; i < parameter->count; i++) {
        const hone_scalar *value = &parameter->values[i].scalar;
        if ((value->kind == HONE_SCALAR_BOOL) == truth && hone_scalar_equal(value, scalar)) return (int64_t)i;
    }
    return -1;
}

int64_t hone_space_find_number(const hone_space_parameter *parameter, int64_t number)
{
    if (!parameter->integers) return number >= 0 && (uint64_t)number < parameter->count ? number : -1;
    for (size_t i = 0; i < parameter->count; i++)
        if (parameter->values[i].scalar.as.i64 == number) return (int64_t)i;
    return -1;
}

int64_t hone_space_number(const hone_space_parameter *parameter, size_t position)
{
    return parameter->integers ? parameter->values[position].scalar.as.i64 : (int64_t)position;
}

int hone_space_find_parameter(const hone_space *space, hone_view name)
{
    for (size_t i = 0; i < space->parameter_count; i++)
        if (hone_view_is(name, space->parameters[i].name)) return (int)i;
    return -1;
}

void hone_space_describe(const hone_scalar *value, char *out, size_t size)
{
    char digits[HONE_NUMBER_SIZE];
    switch (value->kind) {
    case HONE_SCALAR_BOOL:
        snprintf(out, size, "%s", value->as.i64 != 0 ? "true" : "false");
        return;
    case HONE_SCALAR_INT:
        snprintf(out, size, "%" PRId64, value->as.i64);
        return;
    case HONE_SCALAR_FLOAT:
        snprintf(out, size, "%s", hone_number_print(value->as.f64, digits));
        return;
    case HONE_SCALAR_TEXT:
        snprintf(out, size, "'%.*s'", value->as.text.size > 60 ? 60 : (int)value->as.text.size, value->as.text.data);
        return;
    default:
        snprintf(out, size, "none");
    }
}

void hone_space_list_values(const hone_space_parameter *parameter, char *out, size_t size)
{
    size_t used = 0,
           shown = parameter->count < HONE_SPACE_MESSAGE_VALUES ? parameter->count : HONE_SPACE_MESSAGE_VALUES;
    if (size > 0) out[0] = '\0';
    for (size_t i = 0; i < shown && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%.60s", i == 0 ? "" : ", ", parameter->values[i].text);
    if (shown < parameter->count && used < size)
        snprintf(out + used, size - used, ", ... (%zu values)", parameter->count);
}
