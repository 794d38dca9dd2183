#include "runtime/links/trust.h"

#include "base/error.h"
#include "config/chain.h"
#include "os/os.h"
#include "registry/origin.h"
#include "runtime/links/verified.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

static const hone_pack_kernel *pack_of(const hone_kernel_ref *kernel)
{
    return kernel->kernel.code != NULL ? kernel->kernel.code->pack : NULL;
}

// Whether the kernel is the reference of an algorithm that its own pack, or the program, brought: it then defines what
// is correct. For an algorithm of the library or of another pack it is not the reference, whatever its pack declares.
static bool is_own_reference(const hone_kernel_ref *kernel)
{
    const hone_algorithm_entry *entry = kernel->algorithm;
    const char *name = entry->algorithm.reference_kernel;
    size_t count = 0;
    if (!kernel->kernel.is_reference || entry->builtin) return false;
    if (pack_of(kernel) == NULL) return true;
    if (entry->algorithm.reference != NULL || name == NULL || strcmp(name, kernel->kernel.name) != 0) return false;
    const hone_kernel_ref *const *kernels = hone_registry_list(entry, &count);
    for (size_t i = 0; i < count; i++)
        if (kernels[i]->order < kernel->order && strcmp(kernels[i]->kernel.name, name) == 0) return false;
    return true;
}

// If an algorithm of the program has no reference, its own kernels define what is correct.
static bool is_last_word(const hone_kernel_ref *kernel)
{
    const hone_algorithm_entry *entry = kernel->algorithm;
    return !entry->builtin && pack_of(kernel) == NULL && entry->algorithm.reference == NULL &&
           entry->algorithm.reference_kernel == NULL;
}

// The command's option for loading the kernel: " --pack 'FOLDER'" or " --program 'LIBRARY'". Empty if there is none: a
// function of the program itself is in no library that the command could load.
static void tell_origin(const hone_kernel_ref *kernel, char *out, size_t size)
{
    const hone_pack_kernel *pack = pack_of(kernel);
    char library[1024], own[1024];
    int written = 0;
    if (pack != NULL)
        written = snprintf(out, size, " --pack '%s'", pack->folder);
    else if (
        hone_os_object_path((const void *)(uintptr_t)kernel->kernel.run, library, sizeof library) &&
        hone_os_own_path(own, sizeof own) && strcmp(library, own) != 0 && strstr(library, ".so") != NULL)
        written = snprintf(out, size, " --program '%s'", library);
    if (written <= 0 || (size_t)written >= size) out[0] = '\0'; // a truncated path would name another file
}

static hone_status say_unverified(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_error *reason, hone_error *why)
{
    const hone_pack_kernel *pack = pack_of(kernel);
    // A function of a program without a revision is verified by contests only for its own process.
    const char *when = hone_request_knows_code(kernel)
                           ? "was never verified for this call"
                           : "was not verified for this call in this process, and has no revision to know it by";
    char origin[300];
    tell_origin(kernel, origin, sizeof origin);
    return hone_fail(
        why, HONE_NOT_FOUND, where,
        "%s%s%s %s: hone tune%s '%.300s' does; HONE_UNVERIFIED=allow takes it as it is (%.200s)", kernel->kernel.name,
        pack != NULL ? " of pack " : "", pack != NULL ? pack->pack : "", when, origin, hone_call_text(request->call),
        reason->message);
}

hone_status hone_request_trusts(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_config *config, hone_error *why)
{
    hone_error reason = {.message = ""};
    hone_status status = hone_kernel_was_right(request->rt, kernel, NULL, why);
    if (status != HONE_OK || kernel->builtin || request->rt->allows_unverified) return status;
    if (is_own_reference(kernel) || is_last_word(kernel)) return HONE_OK;
    status = hone_request_verify(request, kernel, config, true, &reason);
    if (status == HONE_NOT_FOUND) return say_unverified(request, kernel, &reason, why);
    if (status != HONE_OK) *why = reason;
    return status;
}

// A contest has verified the kernel for the bucket's own call, but not for every other call that is rounded to it.
static hone_status check_exact(
    const hone_request *request, const hone_kernel_ref *kernel, const hone_decision *decision, hone_error *why)
{
    hone_status status = HONE_OK;
    const bool is_exact = !decision->bucketed || strcmp(decision->key, hone_call_key(request->call)) == 0;
    if (is_exact || request->rt->allows_unverified) return HONE_OK;
    status = hone_request_verify(request, kernel, &decision->config, false, why);
    // Until this is known the bucket's answer is used, if nothing may run now.
    return status == HONE_NOT_FOUND ? HONE_OK : status;
}

hone_status hone_request_still_trusts(const hone_request *request, const hone_decision *decision, hone_error *why)
{
    const hone_kernel_ref *kernel = hone_decision_kernel(request->op->algorithm, decision);
    hone_status status = HONE_OK;
    if (kernel == NULL || kernel->builtin || kernel->kernel.is_reference) return HONE_OK;
    const bool is_named = decision->source == HONE_SOURCE_OVERRIDE || decision->source == HONE_SOURCE_MEMORY;
    if (!decision->verified && is_named) return HONE_OK; // the user's explicit choice
    if (!decision->verified) status = hone_request_trusts(request, kernel, &decision->config, why);
    if (status == HONE_OK) status = hone_kernel_was_right(request->rt, kernel, decision->config_json, why);
    if (status == HONE_OK && decision->verified) status = check_exact(request, kernel, decision, why);
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY) why->status = status = HONE_NOT_FOUND;
    return status;
}

void hone_request_warn(const hone_request *request, const hone_kernel_ref *kernel, const hone_decision *decision)
{
    hone_error why = {.message = ""};
    const bool is_named = hone_source_is(decision->source, HONE_LINK_NAMED) ||
                          (decision->source == HONE_SOURCE_MEMORY && !decision->verified);
    // A frozen program uses its lock file only.
    if (!is_named || kernel == NULL || hone_request_policy(request) == HONE_POLICY_FROZEN) return;
    if (hone_kernel_was_right(request->rt, kernel, NULL, &why) != HONE_KERNEL_FAILED) return;
    hone_log_write(
        &request->rt->log, HONE_LOG_WARNING, "%s: the %s names a kernel that was found wrong, and is followed: %s",
        hone_call_text(request->call), hone_source_name(decision->source), why.message);
}
