// The HONE_* variables, each read once, at open. An invalid value is refused by name.
#include "runtime/state/runtime.h"

#include "base/error.h"
#include "platforms/platform.h"
#include "registry/names.h"
#include "store/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "runtime.open";

static hone_status fail_value(hone_error *err, const char *name, const char *value, const char *expected)
{
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is '%s', expected %s", name, value, expected);
}

static hone_status read_policy(hone_runtime *rt, const char *value, hone_error *err)
{
    if (rt->policy != HONE_POLICY_DEFAULT) return HONE_OK;
    if (hone_policy_parse(value, &rt->policy, NULL) == HONE_OK && rt->policy != HONE_POLICY_DEFAULT) return HONE_OK;
    return fail_value(err, "HONE_POLICY", value, "tune, heuristic, fail or frozen");
}

static hone_status read_record(hone_runtime *rt, const char *value, hone_error *err)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return fail_value(err, "HONE_RECORD", value, "0 or 1");
    atomic_store(&rt->recording, value[0] == '1');
    return HONE_OK;
}

// Only workers use the variable. An empty value counts as unset.
static hone_status check_confine(hone_runtime *rt, const char *value, hone_error *err)
{
    (void)rt;
    if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0) return HONE_OK;
    return fail_value(err, "HONE_WORKER_CONFINE", value, "on or off");
}

static hone_status read_provenance(hone_runtime *rt, const char *value, hone_error *err)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return fail_value(err, "HONE_PROVENANCE", value, "0 or 1");
    rt->says_who = rt->says_who || value[0] == '1';
    return HONE_OK;
}

static hone_status read_stable(hone_runtime *rt, const char *value, hone_error *err)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) return fail_value(err, "HONE_STABLE", value, "0 or 1");
    rt->stable = rt->stable || value[0] == '1';
    return HONE_OK;
}

static hone_status read_regime(hone_runtime *rt, const char *value, hone_error *err)
{
    hone_regime regime = HONE_WARM;
    if (!hone_regime_by_name(value, &regime) || hone_regime_is_stable(regime))
        return fail_value(err, "HONE_REGIME", value, "warm, cold, graph or eager");
    if (rt->regime == HONE_WARM) rt->regime = regime;
    return HONE_OK;
}

static hone_status read_unverified(hone_runtime *rt, const char *value, hone_error *err)
{
    if (strcmp(value, "allow") != 0 && strcmp(value, "refuse") != 0)
        return fail_value(err, "HONE_UNVERIFIED", value, "allow or refuse");
    rt->allows_unverified = rt->allows_unverified || strcmp(value, "allow") == 0;
    return HONE_OK;
}

static hone_status read_log(hone_runtime *rt, const char *value, hone_error *err)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        rt->log.level = i;
        return HONE_OK;
    }
    return fail_value(err, "HONE_LOG", value, "error, warning, info or debug");
}

static hone_status keep_text(hone_runtime *rt, char **to, const char *text, hone_error *err)
{
    *to = hone_copy_text(&rt->allocator, text, strlen(text));
    return *to != NULL ? HONE_OK : hone_fail_memory(err, where);
}

static hone_status keep_device_locks(hone_runtime *rt, const char *name, const char *value, hone_error *err)
{
    if (value[0] == '/' || strcmp(value, "none") == 0) return keep_text(rt, &rt->device_locks, value, err);
    return fail_value(err, name, value, "an absolute path of a folder, or none");
}

// Only platforms and workers use the variable.
static hone_status check_compile_cache(hone_runtime *rt, const char *value, hone_error *err)
{
    (void)rt;
    if (value[0] == '/' || strcmp(value, "none") == 0) return HONE_OK;
    return fail_value(err, "HONE_COMPILE_CACHE", value, "an absolute path of a folder, or none");
}

static hone_status read_device_locks(hone_runtime *rt, const char *value, hone_error *err)
{
    return rt->device_locks != NULL ? HONE_OK : keep_device_locks(rt, "HONE_DEVICE_LOCKS", value, err);
}

static bool copy_part(char *out, size_t size, const char *text, size_t length)
{
    if (length == 0 || length >= size) return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return true;
}

static bool parse_rule(const char *text, size_t length, hone_rule *rule)
{
    const char *equals = memchr(text, '=', length);
    if (equals == NULL) {
        memcpy(rule->algorithm, "*", 2);
        return copy_part(rule->kernel, sizeof rule->kernel, text, length);
    }
    size_t head = (size_t)(equals - text);
    if (!copy_part(rule->algorithm, sizeof rule->algorithm, text, head)) return false;
    // The registry has algorithms' names in lower case.
    for (char *letter = rule->algorithm; *letter != '\0'; letter++)
        if (*letter >= 'A' && *letter <= 'Z') *letter = (char)(*letter - 'A' + 'a');
    return copy_part(rule->kernel, sizeof rule->kernel, equals + 1, length - head - 1);
}

// Whether a rule of HONE_FORCE lacks its algorithm, which it needs: there is no kernel of all algorithms.
static bool is_bare(const hone_rule *rule)
{
    return strcmp(rule->algorithm, "*") == 0;
}

static hone_status read_rules(
    hone_runtime *rt, hone_rules *rules, const char *name, const char *value, bool bare, hone_error *err)
{
    size_t capacity = 0;
    for (const char *at = value; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (!hone_grow(&rt->allocator, &rules->rules, &capacity, rules->count + 1, sizeof *rules->rules))
            return hone_fail_memory(err, where);
        hone_rule *rule = &rules->rules[rules->count];
        if (!parse_rule(at, length, rule) || (!bare && is_bare(rule)))
            return fail_value(
                err, name, value,
                bare ? "ALGORITHM=KERNEL or KERNEL, separated by commas" : "ALGORITHM=KERNEL, separated by commas");
        rules->count++;
        at += length;
        if (*at == ',') at++;
    }
    return HONE_OK;
}

static hone_status read_force(hone_runtime *rt, const char *value, hone_error *err)
{
    return read_rules(rt, &rt->force, "HONE_FORCE", value, false, err);
}

static hone_status read_deny(hone_runtime *rt, const char *value, hone_error *err)
{
    return read_rules(rt, &rt->deny, "HONE_DENY", value, true, err);
}

// Records a reason for platforms that are not named, so that they are not opened.
static hone_status read_platforms(hone_runtime *rt, const char *value, hone_error *err)
{
    bool named[HONE_PLATFORM_COUNT] = {false};
    for (const char *at = value; *at != '\0';) {
        size_t length = strcspn(at, ",");
        char name[32];
        hone_platform platform;
        if (!copy_part(name, sizeof name, at, length) || hone_platform_parse(name, &platform, NULL) != HONE_OK ||
            platform >= HONE_PLATFORM_COUNT)
            return fail_value(
                err, "HONE_PLATFORMS", value, "names of platforms, separated by commas (hone devices lists them)");
        named[platform] = true;
        rt->platforms_asked |= 1u << platform;
        at += length;
        if (*at == ',') at++;
    }
    // A named platform may run on the devices of another one.
    for (int platform = HONE_PLATFORM_NONE + 1; platform < HONE_PLATFORM_COUNT; platform++)
        if (named[platform]) named[hone_platform_home((hone_platform)platform)] = true;
    for (int platform = HONE_PLATFORM_NONE + 1; platform < HONE_PLATFORM_COUNT; platform++) {
        static const char reason[] = "HONE_PLATFORMS does not name it";
        if (named[platform]) continue;
        if (platform == (int)hone_platform_host()) {
            char words[96];
            snprintf(
                words, sizeof words, "a list with %s in it: it is the platform of the CPU",
                hone_platform_name((hone_platform)platform));
            return fail_value(err, "HONE_PLATFORMS", value, words);
        }
        rt->reasons[platform] = hone_copy_text(&rt->allocator, reason, sizeof reason - 1);
        if (rt->reasons[platform] == NULL) return hone_fail_memory(err, where);
    }
    return HONE_OK;
}

// Makes the path absolute, since the program may be in another folder when it ends.
static hone_status read_stats(hone_runtime *rt, const char *value, hone_error *err)
{
    char folder[4096], whole[4096];
    const bool is_device = hone_os_is_special(value) && !hone_os_is_folder(value);
    if (strcmp(value, "0") == 0) return HONE_OK;
    if (strcmp(value, "1") == 0 || is_device) return keep_text(rt, &rt->stats_to, value, err);
    if (hone_os_real_path(value, whole, sizeof whole)) return keep_text(rt, &rt->stats_to, whole, err);
    const char *slash = strrchr(value, '/'), *name = slash != NULL ? slash + 1 : value;
    if (name[0] == '\0' || !hone_os_folder_of(value, folder, sizeof folder) ||
        !hone_os_real_path(folder, whole, sizeof whole) || strlen(whole) + 2 + strlen(name) > sizeof whole)
        return fail_value(err, "HONE_STATS", value, "0, 1, a folder, or a file in a folder that is there");
    strcat(strcat(whole, "/"), name);
    return keep_text(rt, &rt->stats_to, whole, err);
}

static hone_status read_pack_path(hone_runtime *rt, const char *value, hone_error *err)
{
    return keep_text(rt, &rt->pack_path, value, err);
}

static const struct {
    const char *name;
    hone_status (*read)(hone_runtime *rt, const char *value, hone_error *err);
} variables[] = {
    {"HONE_POLICY", read_policy},
    {"HONE_RECORD", read_record},
    {"HONE_WORKER_CONFINE", check_confine},
    {"HONE_COMPILE_CACHE", check_compile_cache},
    {"HONE_LOG", read_log},
    {"HONE_FORCE", read_force},
    {"HONE_DENY", read_deny},
    {"HONE_PLATFORMS", read_platforms},
    {"HONE_DEVICE_LOCKS", read_device_locks},
    {"HONE_PROVENANCE", read_provenance},
    {"HONE_STABLE", read_stable},
    {"HONE_REGIME", read_regime},
    {"HONE_UNVERIFIED", read_unverified},
    {"HONE_PACK_PATH", read_pack_path},
    {"HONE_STATS", read_stats},
};

// The folder of the user's caches: $XDG_CACHE_HOME, else ~/.cache. False if there is neither, if it is not a path, or
// if it does not fit.
static bool cache_folder(char *out, size_t size)
{
    const char *cache = hone_os_variable("XDG_CACHE_HOME");
    const char *home = hone_os_variable("HOME");
    int length = 0;
    if (cache != NULL && cache[0] == '/')
        length = snprintf(out, size, "%s", cache);
    else if (home != NULL && home[0] == '/')
        length = snprintf(out, size, "%s/.cache", home);
    return length > 0 && (size_t)length < size;
}

void hone_default_store_url(char *out, size_t size)
{
    char caches[4096];
    if (!cache_folder(caches, sizeof caches) || !hone_store_default_url(caches, out, size)) out[0] = '\0';
}

// Refuses invalid options, as invalid variables are refused.
static hone_status check_options(const hone_runtime_options *options, hone_error *err)
{
    static const unsigned flags = HONE_RUNTIME_NO_BUILTINS | HONE_RUNTIME_NO_ENVIRONMENT | HONE_RUNTIME_ZYGOTE |
                                  HONE_RUNTIME_PROVENANCE | HONE_RUNTIME_KEEP_IN_MEMORY | HONE_RUNTIME_STABLE |
                                  HONE_RUNTIME_UNVERIFIED;
    if (options->policy < HONE_POLICY_DEFAULT || options->policy > HONE_POLICY_FROZEN)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "options.policy is %d, expected HONE_POLICY_TUNE, _HEURISTIC, _FAIL, _FROZEN or _DEFAULT",
            (int)options->policy);
    if ((options->flags & ~flags) != 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "options.flags is 0x%x, expected a set of HONE_RUNTIME_* flags",
            options->flags);
    if (options->regime < HONE_WARM || options->regime >= HONE_REGIME_COUNT || hone_regime_is_stable(options->regime))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "options.regime is %d, expected HONE_WARM, HONE_COLD, HONE_GRAPH or HONE_EAGER; HONE_RUNTIME_STABLE asks "
            "for "
            "stable decisions",
            (int)options->regime);
    if (options->threads < 0)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "options.threads is %d, expected 0 (all usable ones) or more",
            (int)options->threads);
    if (options->log_level < 0 || options->log_level > 3)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "options.log_level is %d, expected 0 to 3", options->log_level);
    return HONE_OK;
}

static hone_status choose_system_store(hone_runtime *rt, const char *url, bool environment, hone_error *err)
{
    if (url == NULL && environment) url = hone_os_variable("HONE_SYSTEM_STORE");
    if (url == NULL || url[0] == '\0' || strcmp(url, "none") == 0) return HONE_OK;
    return keep_text(rt, &rt->system_store.url, url, err);
}

// Chooses the folder for the copy of a store on a server: the given one, none, or by default the folder of the user's
// caches.
static hone_status choose_copies(hone_runtime *rt, bool environment, hone_error *err)
{
    char folder[4096];
    const char *given = environment ? hone_os_variable("HONE_STORE_COPY") : NULL;
    const hone_store_ops *kind = rt->store.url != NULL ? hone_store_ops_of(rt->store.url) : NULL;
    if (kind == NULL || !kind->on_server || (given != NULL && strcmp(given, "none") == 0)) return HONE_OK;
    if (given != NULL && given[0] != '\0') {
        if (given[0] != '/') return fail_value(err, "HONE_STORE_COPY", given, "an absolute path of a folder, or none");
        return keep_text(rt, &rt->store.copies, given, err);
    }
    if (!cache_folder(folder, sizeof folder)) return HONE_OK;
    strncat(folder, "/hone/copies", sizeof folder - strlen(folder) - 1);
    return keep_text(rt, &rt->store.copies, folder, err);
}

static hone_status choose_store(hone_runtime *rt, const char *url, bool environment, hone_error *err)
{
    char fallback[4096] = "";
    if (url == NULL && environment) url = hone_os_variable("HONE_STORE");
    if (url == NULL) {
        hone_default_store_url(fallback, sizeof fallback);
        url = fallback;
    }
    if (url[0] == '\0' || strcmp(url, "none") == 0) return HONE_OK;
    return keep_text(rt, &rt->store.url, url, err);
}

// Warns of lines without a revision, as in older files: they are followed whatever the code of their kernel is now.
static void warn_of_unknown_code(const hone_runtime *rt)
{
    size_t unknown = 0;
    for (size_t i = 0; i < hone_lock_size(rt->lock); i++)
        unknown += hone_lock_at(rt->lock, i)->revision == NULL;
    if (unknown > 0)
        hone_log_write(
            &rt->log, HONE_LOG_WARNING,
            "%s: %zu of %zu lines name no revision of their kernel, and are followed whether its code has changed or "
            "not: hone lock writes them",
            rt->lock_path, unknown, hone_lock_size(rt->lock));
}

// A lock file means that the user wants every choice pinned, so one that cannot be read is an error.
static hone_status read_lock(hone_runtime *rt, const char *path, bool environment, hone_error *err)
{
    bool named = path == NULL && environment;
    if (named) path = hone_os_variable("HONE_LOCK");
    if (path == NULL || path[0] == '\0' || strcmp(path, "none") == 0) return HONE_OK;
    hone_status status = keep_text(rt, &rt->lock_path, path, err);
    if (status != HONE_OK) return status;
    status = hone_lock_read(rt->allocator, path, 0, &rt->lock, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, named ? "HONE_LOCK" : "options.lock_file");
    warn_of_unknown_code(rt);
    return HONE_OK;
}

hone_status hone_runtime_read_environment(hone_runtime *rt, const hone_runtime_options *options, hone_error *err)
{
    hone_status checked = check_options(options, err);
    if (checked != HONE_OK) return checked;
    bool environment = (options->flags & HONE_RUNTIME_NO_ENVIRONMENT) == 0;
    rt->says_who = (options->flags & HONE_RUNTIME_PROVENANCE) != 0;
    rt->stable = (options->flags & HONE_RUNTIME_STABLE) != 0;
    rt->regime = options->regime;
    rt->keeps_in_memory = (options->flags & HONE_RUNTIME_KEEP_IN_MEMORY) != 0;
    rt->allows_unverified = (options->flags & HONE_RUNTIME_UNVERIFIED) != 0;
    if (options->device_locks != NULL)
        checked = keep_device_locks(rt, "options.device_locks", options->device_locks, err);
    if (checked != HONE_OK) return checked;
    for (size_t i = 0; environment && i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = hone_os_variable(variables[i].name);
        if (value == NULL || value[0] == '\0') continue;
        hone_status status = variables[i].read(rt, value, err);
        if (status != HONE_OK) return status;
    }
    if (options->log_level != 0) rt->log.level = options->log_level;
    if (rt->policy == HONE_POLICY_DEFAULT) rt->policy = HONE_POLICY_HEURISTIC;
    hone_status status = choose_store(rt, options->store, environment, err);
    if (status == HONE_OK) status = choose_copies(rt, environment, err);
    if (status == HONE_OK) status = choose_system_store(rt, options->system_store, environment, err);
    return status == HONE_OK ? read_lock(rt, options->lock_file, environment, err) : status;
}

bool hone_rules_match(const hone_rules *rules, const char *algorithm, const char *kernel)
{
    for (size_t i = 0; i < rules->count; i++) {
        const hone_rule *rule = &rules->rules[i];
        if (strcmp(rule->kernel, kernel) != 0) continue;
        if (strcmp(rule->algorithm, "*") == 0 || strcmp(rule->algorithm, algorithm) == 0) return true;
    }
    return false;
}

const char *hone_rules_kernel(const hone_rules *rules, const char *algorithm)
{
    for (size_t i = rules->count; i > 0; i--)
        if (strcmp(rules->rules[i - 1].algorithm, algorithm) == 0) return rules->rules[i - 1].kernel;
    return NULL;
}

static bool has_kernel(const hone_algorithm_entry *algorithm, const char *name)
{
    size_t count;
    const hone_kernel_ref *const *kernels = hone_registry_list(algorithm, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(kernels[i]->kernel.name, name) == 0) return true;
    return false;
}

static bool has_kernel_anywhere(hone_registry *registry, const char *name)
{
    size_t count;
    const hone_algorithm_entry *const *all = hone_registry_all(registry, &count);
    for (size_t i = 0; i < count; i++)
        if (has_kernel(all[i], name)) return true;
    return false;
}

// Rules match names without a version: softmax@v1 matches nothing.
static const hone_algorithm_entry *find_operation(hone_runtime *rt, const hone_rule *rule)
{
    const hone_algorithm_entry *found = hone_registry_find(rt->registry, rule->algorithm, NULL);
    return found != NULL && strcmp(found->name, rule->algorithm) == 0 ? found : NULL;
}

static void tell_operation(hone_runtime *rt, const char *variable, const hone_rule *rule)
{
    hone_log_write(
        &rt->log, HONE_LOG_WARNING, "%s: '%s=%s' does nothing: there is no operation '%s' (hone list)", variable,
        rule->algorithm, rule->kernel, rule->algorithm);
}

// Reports rules that match no operation or no kernel. A kernel that HONE_FORCE names but that does not exist is also an
// error of each call of its operation.
void hone_runtime_tell_rules(hone_runtime *rt)
{
    if (rt->force.count + rt->deny.count == 0 || atomic_exchange(&rt->told_rules, true)) return;
    for (size_t i = 0; i < rt->force.count; i++)
        if (find_operation(rt, &rt->force.rules[i]) == NULL) tell_operation(rt, "HONE_FORCE", &rt->force.rules[i]);
    for (size_t i = 0; i < rt->deny.count; i++) {
        const hone_rule *rule = &rt->deny.rules[i];
        const hone_algorithm_entry *algorithm = is_bare(rule) ? NULL : find_operation(rt, rule);
        if (!is_bare(rule) && algorithm == NULL)
            tell_operation(rt, "HONE_DENY", rule);
        else if (
            algorithm != NULL ? !has_kernel(algorithm, rule->kernel) : !has_kernel_anywhere(rt->registry, rule->kernel))
            hone_log_write(
                &rt->log, HONE_LOG_WARNING, "HONE_DENY: '%s' does nothing: no kernel%s%s has that name (hone list)",
                rule->kernel, algorithm != NULL ? " of " : "", algorithm != NULL ? algorithm->name : "");
    }
}
