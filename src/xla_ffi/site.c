#include "xla_ffi/site.h"

#include "xla_ffi/host.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "xla.call";

__attribute__((format(printf, 2, 3))) static hone_status fail(hone_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->status = HONE_INVALID_ARGUMENT;
    err->system_code = 0;
    err->where = where;
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return HONE_INVALID_ARGUMENT;
}

static hone_status fail_memory(hone_error *err)
{
    fail(err, "out of memory");
    return err->status = HONE_OUT_OF_MEMORY;
}

// --- attributes, as they come and as they are kept

static size_t scalar_size(int dtype)
{
    static const uint8_t sizes[] = {
        [XLA_FFI_PRED] = 1, [XLA_FFI_S8] = 1,  [XLA_FFI_S16] = 2, [XLA_FFI_S32] = 4,
        [XLA_FFI_S64] = 8,  [XLA_FFI_F32] = 4, [XLA_FFI_F64] = 8,
    };
    return dtype >= 0 && (size_t)dtype < sizeof sizes ? sizes[dtype] : 0;
}

// A view of one attribute; a value without data is of a kind that no attribute of hone has.
static hone_xla_attribute view(const xla_ffi_attributes *attributes, int64_t i)
{
    hone_xla_attribute out = {.type = attributes->types[i], .name = *attributes->names[i]};
    if (out.type == XLA_FFI_STRING) {
        out.value = *(const xla_ffi_text *)attributes->values[i];
    } else if (out.type == XLA_FFI_SCALAR) {
        const xla_ffi_scalar *scalar = attributes->values[i];
        out.dtype = scalar->dtype;
        out.value = (xla_ffi_text){scalar->value, scalar_size(scalar->dtype)};
    }
    return out;
}

static bool same_text(xla_ffi_text a, xla_ffi_text b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static bool is(xla_ffi_text text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static bool answers(const hone_xla_site *site, const xla_ffi_attributes *attributes)
{
    if ((size_t)attributes->size != site->attribute_count) return false;
    for (size_t i = 0; i < site->attribute_count; i++) {
        const hone_xla_attribute *kept = &site->attributes[i], came = view(attributes, (int64_t)i);
        if (kept->type != came.type || kept->dtype != came.dtype || !same_text(kept->value, came.value)) return false;
        if (!same_text(kept->name, came.name)) return false;
    }
    return true;
}

static bool copy_text(xla_ffi_text *text)
{
    char *copy = malloc(text->size + 1);
    if (copy == NULL) return false;
    if (text->size > 0) memcpy(copy, text->data, text->size);
    copy[text->size] = '\0';
    text->data = copy;
    return true;
}

static hone_status copy_attributes(const xla_ffi_attributes *from, hone_xla_site *site, hone_error *err)
{
    if (from->size < 0 || from->size > HONE_XLA_VALUES)
        return fail(err, "hone_call has %lld attributes; at most %d are read", (long long)from->size, HONE_XLA_VALUES);
    for (int64_t i = 0; i < from->size; i++) {
        hone_xla_attribute kept = view(from, i);
        if (kept.value.data == NULL || (kept.type == XLA_FFI_SCALAR && kept.value.size == 0))
            return fail(
                err, "hone_call: attribute %.*s is neither a string nor a scalar of bool, int or float",
                (int)kept.name.size, kept.name.data);
        if (!copy_text(&kept.name)) return fail_memory(err);
        if (!copy_text(&kept.value)) {
            free((void *)(uintptr_t)kept.name.data);
            return fail_memory(err);
        }
        site->attributes[site->attribute_count++] = kept;
    }
    return HONE_OK;
}

static void destroy(hone_xla_site *site)
{
    for (size_t i = 0; i < site->attribute_count; i++) {
        free((void *)(uintptr_t)site->attributes[i].name.data);
        free((void *)(uintptr_t)site->attributes[i].value.data);
    }
    free(site);
}

// --- what they say

static const hone_xla_attribute *find(const hone_xla_site *site, const char *name)
{
    for (size_t i = 0; i < site->attribute_count; i++)
        if (is(site->attributes[i].name, name)) return &site->attributes[i];
    return NULL;
}

static int64_t integer_of(const hone_xla_attribute *attribute)
{
    int64_t value = 0;
    int32_t i32;
    int16_t i16;
    switch (attribute->dtype) {
    case XLA_FFI_S64:
        memcpy(&value, attribute->value.data, sizeof value);
        return value;
    case XLA_FFI_S32:
        memcpy(&i32, attribute->value.data, sizeof i32);
        return i32;
    case XLA_FFI_S16:
        memcpy(&i16, attribute->value.data, sizeof i16);
        return i16;
    case XLA_FFI_S8:
        return (signed char)attribute->value.data[0];
    default:
        return attribute->value.data[0] != 0;
    }
}

static double float_of(const hone_xla_attribute *attribute)
{
    double f64;
    float f32;
    if (attribute->dtype == XLA_FFI_F64) {
        memcpy(&f64, attribute->value.data, sizeof f64);
        return f64;
    }
    if (attribute->dtype == XLA_FFI_F32) {
        memcpy(&f32, attribute->value.data, sizeof f32);
        return (double)f32;
    }
    return (double)integer_of(attribute);
}

static hone_status read_value(
    const hone_xla_attribute *attribute,
    const hone_parameter *parameter,
    const char *name,
    hone_value *out,
    hone_error *err)
{
    bool string = attribute->type == XLA_FFI_STRING, floating = attribute->dtype >= XLA_FFI_F32;
    bool boolean = !string && attribute->dtype == XLA_FFI_PRED;
    switch (parameter->kind) {
    case HONE_KIND_STRING:
        *out = hone_of_string(attribute->value.data);
        if (string) return HONE_OK;
        break;
    case HONE_KIND_BOOL:
        *out = hone_of_bool(attribute->value.data[0] != 0);
        if (boolean) return HONE_OK;
        break;
    case HONE_KIND_INT:
        *out = hone_of_int(string || floating ? 0 : integer_of(attribute));
        if (!string && !floating && !boolean) return HONE_OK;
        break;
    case HONE_KIND_FLOAT:
        *out = hone_of_float(string ? 0 : float_of(attribute));
        if (!string && !boolean) return HONE_OK;
        break;
    default:
        return fail(err, "%s: %s is an array, and came as an attribute", name, parameter->name);
    }
    return fail(err, "%s: attribute %s is of another kind than %s", name, parameter->name, parameter->type_text);
}

static hone_status read_scalars(hone_xla_site *site, const hone_signature *signature, hone_error *err)
{
    const char *name = hone_signature_name(signature);
    for (size_t i = 0; i < site->attribute_count; i++) {
        const hone_xla_attribute *attribute = &site->attributes[i];
        if (strncmp(attribute->name.data, "hone_", 5) == 0) continue;
        int index = hone_signature_find(signature, attribute->name.data);
        if (index < 0)
            return fail(
                err, "%s has no parameter %s; it is %s", name, attribute->name.data, hone_signature_text(signature));
        const hone_parameter *parameter = hone_signature_parameter(signature, (size_t)index);
        hone_status status = read_value(attribute, parameter, name, &site->values[index], err);
        if (status != HONE_OK) return status;
    }
    return HONE_OK;
}

static bool is_given(const hone_xla_attribute *given, size_t tensor)
{
    return given == NULL || (tensor < 64 && integer_of(given) >> tensor & 1);
}

// Where tensors go, and the defaults of scalars: first the arrays of the call, then its results, wherever they stand in the signature.
static hone_status lay_out(hone_xla_site *site, const hone_signature *signature, hone_error *err)
{
    const hone_xla_attribute *given = find(site, "hone_given");
    size_t seen = 0;
    site->count = hone_signature_count(signature);
    if (site->count > HONE_XLA_VALUES)
        return fail(err, "%s has more than %d values", hone_signature_name(signature), HONE_XLA_VALUES);
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < site->count; i++) {
            const hone_parameter *parameter = hone_signature_parameter(signature, i);
            if (parameter->is_result != (pass == 1)) continue;
            const bool is_tensor = parameter->kind == HONE_KIND_TENSOR;
            site->values[i] = is_tensor ? hone_of_none() : parameter->default_value;
            if (!is_tensor || (!parameter->is_result && !is_given(given, seen++))) continue;
            if (site->parameter_count + site->result_count == HONE_XLA_TENSORS)
                return fail(err, "%s has more than %d arrays", hone_signature_name(signature), HONE_XLA_TENSORS);
            site->tensors[site->parameter_count + site->result_count] = (uint8_t)i;
            if (parameter->is_result)
                site->result_count++;
            else
                site->parameter_count++;
        }
    }
    const hone_xla_attribute *sliced = find(site, "hone_sliced");
    site->sliced = sliced != NULL ? (uint64_t)integer_of(sliced) : 0;
    if (site->sliced >> site->parameter_count != 0)
        return fail(
            err, "hone_call: hone_sliced is %#llx, and %s gets %zu arrays here: it has a bit for each that is a stack",
            (unsigned long long)site->sliced, hone_signature_name(signature), site->parameter_count);
    return read_scalars(site, signature, err);
}

static hone_status resolve(hone_xla_site *site, hone_error *err)
{
    char name[HONE_NAME_SIZE + 20];
    const hone_xla_attribute *algorithm = find(site, "hone_algorithm"), *version = find(site, "hone_version"),
                             *context = find(site, "hone_context");
    bool named = algorithm != NULL && algorithm->type == XLA_FFI_STRING && algorithm->value.size < HONE_NAME_SIZE;
    if (!named)
        return fail(err, "hone_call: the attribute hone_algorithm, a string, names the algorithm; it is missing");
    bool versioned = version != NULL && version->type == XLA_FFI_STRING && version->value.size < 16;
    snprintf(
        name, sizeof name, "%s%s%s", algorithm->value.data, versioned ? "@v" : "",
        versioned ? version->value.data : "");
    hone_status status = hone_op_get(site->rt, name, &site->op, err);
    if (status != HONE_OK) return status;
    status = lay_out(site, hone_op_signature(site->op), err);
    bool numbered = context != NULL && context->type == XLA_FFI_SCALAR;
    if (status != HONE_OK) return status;
    return hone_xla_context(site->rt, numbered ? (uint64_t)integer_of(context) : 0, &site->context, err);
}

// --- finding

enum { SLOTS = 4096 };

// XLA keeps the attributes of a call site where they are, so that their address finds the site at once; what is found
// is compared, since a program that is gone may have left its address to another.
static _Atomic(const hone_xla_site *) slots[SLOTS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static hone_xla_site *sites;

// Written before the first site is published.
static hone_dtype dtypes[XLA_FFI_DATA_TYPES];

hone_dtype hone_xla_dtype(int xla)
{
    return xla >= 0 && xla < XLA_FFI_DATA_TYPES ? dtypes[xla] : (hone_dtype){0, 0, 0};
}

// XLA does not pack what is smaller than a byte, and hone does.
static void fill_dtypes(void)
{
    for (int id = 0; id < HONE_DTYPE_COUNT; id++) {
        const hone_dtype_info *info = hone_dtype_info_of((hone_dtype_id)id);
        if (info->bits >= 8 && info->xla > 0 && info->xla < XLA_FFI_DATA_TYPES) dtypes[info->xla] = info->dtype;
    }
}

static hone_status make(hone_runtime *rt, const xla_ffi_attributes *attributes, hone_xla_site **out, hone_error *err)
{
    hone_xla_site *site = calloc(1, sizeof *site);
    if (site == NULL) return fail_memory(err);
    if (sites == NULL) fill_dtypes();
    site->rt = rt;
    hone_status status = copy_attributes(attributes, site, err);
    if (status == HONE_OK) status = resolve(site, err);
    if (status == HONE_OK)
        *out = site;
    else
        destroy(site);
    return status;
}

static hone_status find_slowly(const xla_ffi_attributes *attributes, const hone_xla_site **out, hone_error *err)
{
    hone_status status = HONE_OK;
    hone_runtime *rt = hone_xla_runtime(err);
    if (rt == NULL) return err->status;
    pthread_mutex_lock(&mutex);
    hone_xla_site *site = sites;
    while (site != NULL && !(site->rt == rt && answers(site, attributes)))
        site = site->next;
    if (site == NULL) {
        status = make(rt, attributes, &site, err);
        if (status == HONE_OK) {
            site->next = sites;
            sites = site;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (status == HONE_OK) *out = site;
    return status;
}

hone_status hone_xla_site_find(const xla_ffi_attributes *attributes, const hone_xla_site **out, hone_error *err)
{
    uint64_t address = (uint64_t)(uintptr_t)attributes->values;
    _Atomic(const hone_xla_site *) *slot = &slots[(address * 0x9e3779b97f4a7c15ull) >> 52];
    const hone_xla_site *site = atomic_load_explicit(slot, memory_order_acquire);
    if (site == NULL || site->rt != hone_xla_runtime_now() || !answers(site, attributes)) {
        hone_status status = find_slowly(attributes, &site, err);
        if (status != HONE_OK) return status;
        atomic_store_explicit(slot, site, memory_order_release);
    }
    *out = site;
    return HONE_OK;
}
