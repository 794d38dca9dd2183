// Compares the texts of a pack's kernel with the signature of its algorithm, and refuses texts that can fit no call.
//
// There is no call yet. Each text is read with the names of the signature, and every value counts as 1. So what is
// refused is wrong for all calls (an unknown name, text where a number belongs, a result that is never written), and
// checks that depend on values happen when a plan is made: nothing that some call could run is refused.
#include "platforms/shared/launch_reader.h"

#include "base/error.h"
#include "call/call.h"
#include "platforms/platform.h"
#include "space/term.h"

static const char where[] = "platforms.fit";

static void drop(void *ctx, hone_view name, const hone_scalar *value)
{
    (void)ctx;
    (void)name;
    (void)value;
}

static hone_status check_condition(hone_launch_reader *r, const char *text, hone_error *err)
{
    hone_scalar value;
    if (text == NULL) return HONE_OK;
    hone_launch_start(r, "condition", text, err);
    hone_status status = hone_launch_term(r, &value, err);
    return status == HONE_OK && !hone_launch_at_end(r) ? hone_launch_expected(r, "the end", err) : status;
}

// The platform's own rules, else its home's. A platform without rules has no launches, or its sources bound them.
static const hone_launch_rules *rules_of(hone_platform platform)
{
    enum { MOST = INT32_MAX };
    static const hone_launch_rules none = {
        {MOST, MOST, MOST}, {MOST, MOST, MOST}, {MOST, MOST, MOST}, MOST, .has_local = false};
    const hone_launch_rules *own = hone_platform_ops_of(platform)->launch;
    const hone_launch_rules *home = hone_platform_ops_of(hone_platform_home(platform))->launch;
    if (own != NULL) return own;
    return home != NULL ? home : &none;
}

static hone_status check_launch(hone_launch_reader *r, hone_platform platform, const hone_code *code, hone_error *err)
{
    hone_launch launch;
    const hone_launch_rules *most = rules_of(platform);
    hone_status status = hone_launch_extent(r, "grid", code->grid, most->grid, launch.grid, err);
    if (status == HONE_OK) status = hone_launch_extent(r, "block", code->block, most->block, launch.block, err);
    if (status == HONE_OK) status = hone_launch_extent(r, "cluster", code->cluster, most->cluster, launch.cluster, err);
    if (status == HONE_OK) status = hone_launch_shared(r, code->shared, &launch.shared_bytes, err);
    if (status == HONE_OK && code->constants != NULL)
        status = hone_launch_read_pairs(r, "constants", code->constants, drop, NULL, err);
    return status == HONE_OK ? check_condition(r, code->condition, err) : status;
}

static bool is_written(const hone_argument *argument)
{
    return argument->kind == HONE_ARGUMENT_TENSOR || argument->kind == HONE_ARGUMENT_RETURNED ||
           argument->kind == HONE_ARGUMENT_MAP;
}

// A result that is in no list is never written. Modules return their results.
static hone_status check_results(
    const hone_signature *signature, const hone_argument *arguments, uint32_t count, hone_error *err)
{
    for (size_t i = 0; i < hone_signature_count(signature); i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        bool listed = !parameter->is_result || parameter->nullable;
        for (uint32_t j = 0; j < count; j++)
            listed = listed || (is_written(&arguments[j]) && arguments[j].value == i);
        if (!listed)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "arguments: the result '%s' is not listed", parameter->name);
    }
    return HONE_OK;
}

static hone_status check_texts(
    hone_launch_reader *r,
    const hone_pack_kernel *kernel,
    const hone_code *code,
    hone_argument arguments[HONE_MAX_ARGUMENTS],
    uint32_t *out_count,
    hone_error *err)
{
    size_t bytes = 0;
    const bool is_module = hone_platform_facts_of(kernel->platform)->is_module;
    hone_status status = hone_launch_list(r, code->arguments, arguments, out_count, err);
    if (status == HONE_OK && !is_module) status = check_results(r->scope.signature, arguments, *out_count, err);
    if (status == HONE_OK && code->scratch != NULL)
        status = hone_launch_scratch_of(r, code->scratch, arguments, *out_count, &bytes, NULL, err);
    return status == HONE_OK ? check_launch(r, kernel->platform, code, err) : status;
}

hone_status hone_platform_fits(
    const hone_pack_kernel *kernel, const hone_pack_variant *variant, const hone_signature *signature, hone_error *err)
{
    const hone_allocator allocator = hone_allocator_system();
    const hone_platform_ops *ops = hone_platform_ops_of(kernel->platform);
    hone_argument arguments[HONE_MAX_ARGUMENTS];
    uint32_t count = 0;
    hone_launch_reader r;
    if (variant->code.arguments == NULL) return HONE_OK; // a function of a library
    hone_launch_open_names(&r, &allocator, kernel, &variant->code, signature);
    r.has_local = rules_of(kernel->platform)->has_local;
    r.has_maps = rules_of(kernel->platform)->has_maps;
    r.has_values = rules_of(kernel->platform)->has_values;
    hone_status status = check_texts(&r, kernel, &variant->code, arguments, &count, err);
    hone_launch_close(&r);
    if (status != HONE_OK || ops == NULL || ops->fits == NULL) return status;
    return ops->fits(variant, arguments, count, err);
}
