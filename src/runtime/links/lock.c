// The link of the lock file. Under the policy frozen it decides alone, so a line that cannot be followed, or a call
// without a line, is an error that says what to do; under other policies the chain continues.
#include "base/error.h"
#include "base/text.h"
#include "runtime/links/links.h"
#include "runtime/links/nearest.h"

#include <stdio.h>
#include <string.h>

static const char where[] = "decide";

// HONE_OK if the line's call text, if it has one, is the call's: 64-bit keys can collide. The texts of one call may
// differ in scalars that do not matter.
static hone_status check_call(
    const hone_request *request, const hone_call *call, const hone_lock_line *line, hone_error *why)
{
    if (line->call == NULL || strcmp(line->call, hone_call_text(call)) == 0) return HONE_OK;
    hone_call *locked = NULL;
    hone_error reason = {.message = ""};
    hone_status status =
        hone_call_parse(request->rt->allocator, request->op->algorithm->signature, line->call, &locked, &reason);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(why, where);
    if (status != HONE_OK)
        status = hone_fail(why, HONE_INCOMPATIBLE, where, "its call text is invalid: %s", reason.message);
    else if (strcmp(hone_call_spec(locked), hone_call_spec(call)) != 0)
        status = hone_fail(
            why, HONE_INCOMPATIBLE, where, "its call text is %s, with the key %s", line->call, hone_call_key(locked));
    hone_call_release(&locked);
    return status;
}

// The line was written for one revision of the kernel; a line without a revision is followed by the kernel's name
// alone.
static hone_status check_revision(const hone_lock_line *line, const hone_kernel_ref *kernel, hone_error *why)
{
    const char *now = kernel->kernel.revision;
    if (line->revision == NULL || strcmp(line->revision, now) == 0) return HONE_OK;
    return hone_fail(
        why, HONE_INCOMPATIBLE, where,
        "the code of kernel %s was revision %.70s when it was locked, and is %.70s now (tune the call again, then hone "
        "lock pins its choice)",
        line->kernel, line->revision, now);
}

static hone_status read_choice(
    const hone_request *request, const hone_lock_line *line, hone_decision *out, hone_error *why)
{
    hone_platform platform;
    hone_config config;
    if (hone_platform_parse(line->platform, &platform, why) != HONE_OK) return HONE_INCOMPATIBLE;
    const hone_kernel_ref *kernel =
        hone_kernel_for_device(request->op->algorithm, line->kernel, platform, request->device);
    if (kernel == NULL)
        return hone_fail(
            why, HONE_INCOMPATIBLE, where, "kernel %s is not registered (hone list %s)", line->kernel, line->algorithm);
    hone_status status = check_revision(line, kernel, why);
    if (status == HONE_OK)
        status = hone_config_from_json(kernel->space, line->config, strlen(line->config), &config, why);
    if (status != HONE_OK) return status;
    memset(out, 0, sizeof *out);
    hone_decision_fill(out, kernel, &config, line->key);
    return hone_request_accept(request, out, why);
}

// The decision of a line. On failure, the reason why it cannot be followed, with the line's number.
static hone_status follow(
    const hone_request *request, const hone_call *call, const hone_lock_line *line, hone_decision *out, hone_error *why)
{
    hone_error reason = {.message = ""};
    hone_status status = check_call(request, call, line, &reason);
    if (status == HONE_OK) status = read_choice(request, line, out, &reason);
    if (status == HONE_OK) return HONE_OK;
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(why, where);
    return hone_fail(
        why, HONE_INCOMPATIBLE, where, "%s:%u pins %s@v%s %s to %s/%s%s%.200s, which cannot be followed: %s",
        request->rt->lock_path, line->number, line->algorithm, line->version, line->key, line->platform, line->kernel,
        line->config_text[0] == '\0' ? "" : " ", line->config_text, reason.message);
}

static void add_neighbours(const hone_neighbours *nearest, hone_buffer *out)
{
    for (size_t i = 0; i < nearest->count; i++) {
        const hone_neighbour *row = &nearest->rows[i];
        hone_buffer_format(out, "%sline %u (", i == 0 ? "; the nearest: " : ", ", row->line);
        for (const char *at = row->differs; *at != '\0'; at++)
            hone_buffer_text(out, *at == '\n' ? "; " : (char[]){*at, '\0'});
        hone_buffer_char(out, ')');
    }
}

// A miss under the policy frozen: reports the key, and the nearest lines.
static hone_status fail_missing(const hone_request *request, hone_error *why)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    hone_runtime *rt = request->rt;
    const hone_store_key key = hone_request_key(request, request->call);
    hone_neighbours nearest;
    hone_buffer text;
    hone_buffer_init(&text, rt->allocator);
    hone_nearest_locked(rt->lock, rt->allocator, algorithm->signature, &key, &nearest);
    add_neighbours(&nearest, &text);
    hone_fail(
        why, HONE_NOT_FOUND, where,
        "%s has no line for key %s on this device (tune the call, then hone lock adds its line)%s", rt->lock_path,
        key.key, hone_buffer_string(&text));
    hone_buffer_deinit(&text);
    return HONE_NOT_FOUND;
}

// A line that cannot be followed ends the chain under the policy frozen. Otherwise the chain continues and logs this,
// once for each such line in a row.
static hone_status pass_by_line(
    const hone_request *request, const hone_lock_line *line, hone_status status, hone_error *why)
{
    if (status == HONE_OUT_OF_MEMORY || hone_request_policy(request) == HONE_POLICY_FROZEN) return status;
    if (!request->explaining && atomic_exchange(&request->rt->told_lock_line, line->number) != line->number)
        hone_log_write(
            &request->rt->log, HONE_LOG_WARNING, "going on without the lock file's answer: %s", why->message);
    why->status = HONE_NOT_FOUND;
    return HONE_NOT_FOUND;
}

hone_status hone_request_from_lock(const hone_request *request, hone_decision *out, hone_error *why)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    const hone_lock *lock = request->rt->lock;
    if (lock == NULL) return hone_fail(why, HONE_NOT_FOUND, where, "there is no lock file (HONE_LOCK names one)");
    const hone_stand_ins *stand_ins = &request->stand_ins;
    const hone_lock_line *line = NULL;
    hone_status status = HONE_NOT_FOUND;
    for (size_t i = 0; i < stand_ins->count && status == HONE_NOT_FOUND; i++) {
        line = hone_lock_find(
            lock, algorithm->name, algorithm->version, hone_call_key(stand_ins->calls[i]),
            request->device->fingerprint);
        if (line == NULL) continue;
        status = follow(request, stand_ins->calls[i], line, out, why);
        out->bucketed = i >= stand_ins->exact;
    }
    if (status == HONE_OK) return HONE_OK;
    if (status != HONE_NOT_FOUND) return pass_by_line(request, line, status, why);
    if (hone_request_policy(request) == HONE_POLICY_FROZEN) return fail_missing(request, why);
    return hone_fail(why, HONE_NOT_FOUND, where, "no line for this key");
}
