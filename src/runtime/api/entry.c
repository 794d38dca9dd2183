#include "runtime/api/entry.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

hone_status hone_entry_split_name(
    const char *algorithm, const char *version, char name[HONE_NAME_SIZE], char out_version[16], hone_error *err)
{
    const char *at = strstr(algorithm, "@v");
    size_t size = at != NULL ? (size_t)(at - algorithm) : strlen(algorithm);
    const char *from = version != NULL ? version : at != NULL ? at + 2 : "1";
    if (size == 0 || size >= HONE_NAME_SIZE || strlen(from) >= 16)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "cache", "'%.80s' is not an algorithm name", algorithm);
    memcpy(name, algorithm, size);
    name[size] = '\0';
    snprintf(out_version, 16, "%s", from);
    return HONE_OK;
}

hone_status hone_entry_read_config(const hone_kernel_ref *kernel, const char *text, hone_config *out, hone_error *err)
{
    if (text == NULL || text[0] == '\0') return HONE_OK;
    if (text[0] == '{') return hone_config_from_json(kernel->space, text, strlen(text), out, err);
    return hone_config_from_text(kernel->space, text, out, err);
}

const hone_kernel_ref *hone_entry_kernel(
    const hone_algorithm_entry *algorithm, const char *name, hone_platform platform, const char *text)
{
    const hone_kernel_ref *first = hone_kernel_by_name(algorithm, name, platform);
    hone_config config;
    for (const hone_kernel_ref *one = first; one != NULL; one = hone_kernel_after(algorithm, one, platform))
        if (hone_entry_read_config(one, text, &config, NULL) == HONE_OK) return one;
    return first;
}

static hone_status read_entry(
    hone_runtime *rt, const hone_entry *entry, hone_source source, hone_decision *out, hone_error *err)
{
    char name[HONE_NAME_SIZE], version[16];
    if (entry->algorithm == NULL || entry->key == NULL || entry->kernel == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "overlay.create", "an entry needs an algorithm, a key and a kernel");
    if (!hone_is_key(entry->key))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "overlay.create", "the key is '%.40s', expected 16 lower-case hex digits",
            entry->key);
    hone_status status = hone_entry_split_name(entry->algorithm, entry->version, name, version, err);
    if (status != HONE_OK) return status;
    const hone_algorithm_entry *algorithm = hone_registry_find(rt->registry, name, version);
    if (algorithm == NULL) {
        char full[HONE_NAME_SIZE + 20];
        strcpy(stpcpy(stpcpy(full, name), "@v"), version);
        return hone_registry_fail_unknown(rt->registry, full, err);
    }
    const hone_kernel_ref *kernel = hone_entry_kernel(algorithm, entry->kernel, entry->platform, entry->config);
    if (kernel == NULL)
        return hone_fail(
            err, HONE_NOT_FOUND, "overlay.create", "%s has no kernel %s (hone list %s shows them)", name, entry->kernel,
            name);
    hone_config config = {0};
    status = hone_entry_read_config(kernel, entry->config, &config, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "the config for kernel %s", entry->kernel);
    memset(out, 0, sizeof *out);
    hone_decision_fill(out, kernel, &config, entry->key);
    out->source = source;
    return HONE_OK;
}

hone_status hone_entry_decision(
    hone_runtime *rt, const hone_entry *entry, hone_source source, hone_decision *out, hone_error *err)
{
    hone_registry_reader reader;
    hone_registry_enter(rt->registry, &reader);
    hone_status status = read_entry(rt, entry, source, out, err);
    hone_registry_leave(&reader);
    return status;
}
