#include "platforms/triton/metadata.h"

#include "base/error.h"
#include "base/json.h"

#include <string.h>

static const char where[] = "triton.metadata";

enum { MAX_WARPS = 32, MAX_CLUSTER = 16, MAX_SHARED = 1 << 24, THREADS_OF_A_WARP = 32 };

static hone_status refuse(hone_error *err, const char *field, const char *expected)
{
    return hone_fail(err, HONE_CORRUPT, where, "Triton's metadata: '%s' must be %s", field, expected);
}

static hone_status read_text(const json_t *object, const char *field, char *out, size_t size, hone_error *err)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_string(value) || json_string_length(value) == 0 || json_string_length(value) >= size)
        return refuse(err, field, "a text that is neither empty nor long");
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return HONE_OK;
}

// Reads a field; if it is missing its value is `otherwise`, or -1 makes that an error.
static hone_status read_number(
    const json_t *object,
    const char *field,
    int64_t otherwise,
    int64_t least,
    int64_t most,
    int64_t *out,
    hone_error *err)
{
    const json_t *value = json_object_get(object, field);
    *out = otherwise;
    if (value == NULL && otherwise >= 0) return HONE_OK;
    if (json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= most) {
        *out = json_integer_value(value);
        return HONE_OK;
    }
    return hone_fail(
        err, HONE_CORRUPT, where, "Triton's metadata: '%s' must be an integer from %lld to %lld", field,
        (long long)least, (long long)most);
}

static hone_status read_target(const json_t *root, hone_triton_metadata *out, hone_error *err)
{
    const json_t *target = json_object_get(root, "target");
    int64_t warp = 0, arch = 0;
    char backend[32];
    if (!json_is_object(target)) return refuse(err, "target", "an object");
    hone_status status = read_text(target, "backend", backend, sizeof backend, err);
    if (status == HONE_OK && strcmp(backend, "cuda") != 0)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "was compiled by Triton for backend '%s'; hone launches those of 'cuda'",
            backend);
    if (status == HONE_OK) status = read_number(target, "arch", -1, 50, 999, &arch, err);
    if (status == HONE_OK) status = read_number(target, "warp_size", THREADS_OF_A_WARP, 32, 32, &warp, err);
    out->capability = (int)arch;
    return status;
}

// The pointers after the arguments have changed in two versions.
static hone_status read_version(const json_t *root, hone_triton_metadata *out, hone_error *err)
{
    hone_status status = read_text(root, "triton_version", out->version, sizeof out->version, err);
    if (status != HONE_OK) return status;
    int major = 0, minor = 0;
    const char *at = out->version;
    for (; *at >= '0' && *at <= '9' && major < 1000; at++)
        major = 10 * major + (*at - '0');
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9' && minor < 1000; at++)
            minor = 10 * minor + (*at - '0');
    if (major < 3)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "was compiled by Triton %s; hone launches what 3.0 and later compile",
            out->version);
    if (major > 3)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "was compiled by Triton %s; this version of hone knows how to launch what Triton 3 compiles", out->version);
    out->trailing = minor >= 5 ? 2 : minor >= 3 ? 1 : 0;
    return HONE_OK;
}

static hone_status read_scratch(const json_t *root, hone_triton_metadata *out, hone_error *err)
{
    int64_t size = 0, align = 0, profile = 0;
    hone_status status = read_number(root, "global_scratch_size", 0, 0, INT32_MAX, &size, err);
    if (status == HONE_OK) status = read_number(root, "global_scratch_align", 1, 0, 4096, &align, err);
    if (status == HONE_OK) status = read_number(root, "profile_scratch_size", 0, 0, INT32_MAX, &profile, err);
    if (status != HONE_OK) return status;
    if (profile > 0)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "was compiled to be profiled: compile it without instrumentation");
    if (size > 0 && out->trailing == 0) return refuse(err, "global_scratch_size", "0 before Triton 3.3");
    out->scratch_bytes = (uint64_t)size;
    out->scratch_align = align > 0 ? (uint64_t)align : 1;
    return HONE_OK;
}

// Before 3.5 the cluster has a separate field with the same meaning.
static hone_status read_shape(const json_t *root, hone_triton_metadata *out, hone_error *err)
{
    int64_t warps = 0, shared = 0, blocks = 0;
    hone_status status = read_number(root, "num_warps", -1, 1, MAX_WARPS, &warps, err);
    if (status == HONE_OK) status = read_number(root, "shared", -1, 0, MAX_SHARED, &shared, err);
    if (status == HONE_OK) status = read_number(root, "num_ctas", 1, 1, MAX_CLUSTER, &blocks, err);
    out->threads = (uint32_t)warps * THREADS_OF_A_WARP;
    out->shared_bytes = (uint32_t)shared;
    out->blocks = (uint32_t)blocks;
    return status;
}

static hone_status read_descriptor(const json_t *object, hone_triton_descriptor *out, hone_error *err)
{
    enum { LARGEST_SWIZZLE = 3, LARGEST_BOX = 256 };
    const json_t *box = json_object_get(object, "block_size");
    int64_t swizzle = 0;
    if (json_is_true(json_object_get(object, "fp4_padded")) || json_is_true(json_object_get(object, "is_im2col")))
        return hone_fail(
            err, HONE_INCOMPATIBLE, where,
            "takes a tensor descriptor of 4 bit elements or of im2col from the host; hone makes those of tiles: "
            "make it in the kernel (tl.make_tensor_descriptor), or take pointers");
    hone_status status = read_number(object, "swizzle", -1, 0, LARGEST_SWIZZLE, &swizzle, err);
    if (status != HONE_OK) return status;
    out->swizzle = swizzle == 0 ? 0 : 16u << swizzle;
    out->rank = (uint32_t)json_array_size(box);
    if (out->rank < 1 || out->rank > HONE_MAP_RANK) return refuse(err, "block_size", "a list of 1 to 5 numbers");
    for (uint32_t i = 0; i < out->rank; i++) {
        const json_int_t size = json_integer_value(json_array_get(box, i));
        if (size < 1 || size > LARGEST_BOX) return refuse(err, "block_size", "a list of numbers from 1 to 256");
        out->box[i] = (uint32_t)size;
    }
    return HONE_OK;
}

static hone_status read_descriptors(const json_t *root, hone_triton_metadata *out, hone_error *err)
{
    const json_t *list = json_object_get(root, "tensordesc_meta");
    hone_status status = HONE_OK;
    if (json_array_size(list) > HONE_TRITON_DESCRIPTORS)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "takes %zu tensor descriptors; hone passes at most %d",
            json_array_size(list), HONE_TRITON_DESCRIPTORS);
    out->descriptor_count = (uint32_t)json_array_size(list);
    for (uint32_t i = 0; i < out->descriptor_count && status == HONE_OK; i++)
        status = read_descriptor(json_array_get(list, i), &out->descriptors[i], err);
    return status;
}

static hone_status read_all(const json_t *root, hone_triton_metadata *out, hone_error *err)
{
    if (!json_is_object(root)) return hone_fail(err, HONE_CORRUPT, where, "Triton's metadata must be an object");
    hone_status status = read_text(root, "name", out->name, sizeof out->name, err);
    if (status == HONE_OK) status = read_target(root, out, err);
    if (status == HONE_OK) status = read_version(root, out, err);
    if (status == HONE_OK) status = read_shape(root, out, err);
    if (status == HONE_OK) status = read_scratch(root, out, err);
    if (status == HONE_OK) status = read_descriptors(root, out, err);
    out->cooperative = json_is_true(json_object_get(root, "launch_cooperative_grid"));
    out->programmatic = json_is_true(json_object_get(root, "launch_pdl"));
    return status;
}

hone_status hone_triton_metadata_read(const char *text, hone_triton_metadata *out, hone_error *err)
{
    json_t *root = NULL;
    memset(out, 0, sizeof *out);
    hone_status status = hone_json_parse(text, strlen(text), &root, err);
    if (status == HONE_OK) status = read_all(root, out, err);
    json_decref(root);
    return status;
}
