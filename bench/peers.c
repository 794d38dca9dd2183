#include "peers.h"

#include "kernels/rivals/core.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_peer(const char *kernel)
{
    static const char *const marks[] = {"openblas", "onednn", "libxsmm"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strstr(kernel, marks[i]) != NULL) return true;
    return false;
}

// Whether its library runs below the machine's instructions, which is said once: nothing is compared with it then.
bool peer_runs_below(const char *kernel)
{
    static hone_rival_facts facts[HONE_RIVAL_FACTS];
    static bool below[HONE_RIVAL_FACTS];
    static size_t count;
    char text[256];
    hone_os_cpu cpu;
    if (count == 0) {
        hone_os_cpu_read(&cpu);
        count = hone_rival_facts_read(facts);
        for (size_t i = 0; i < count; i++) {
            below[i] = hone_rival_facts_tell(&facts[i], hone_isa_of_features(cpu.features), text, sizeof text);
            fprintf(stderr, "%s%s\n", text, below[i] ? ": left out" : "");
        }
    }
    for (size_t i = 0; i < count; i++)
        if (strncmp(kernel, facts[i].name, strlen(facts[i].name)) == 0) return below[i];
    return false;
}

// kernels: of a result document's evidence.
static void read_config(const json_t *kernels, bench_peer *peer)
{
    size_t i;
    json_t *kernel;
    json_array_foreach(kernels, i, kernel)
    {
        const char *name = json_string_value(json_object_get(kernel, "kernel"));
        const json_t *config = json_object_get(kernel, "config");
        if (name == NULL || strcmp(name, peer->kernel) != 0 || !json_is_object(config)) continue;
        char *text = json_dumps(config, JSON_COMPACT);
        if (text != NULL && strlen(text) < sizeof peer->config) snprintf(peer->config, sizeof peer->config, "%s", text);
        free(text);
    }
}

static json_t *read_document(const hone_result *result)
{
    char *text = NULL;
    if (hone_result_json(result, &text, NULL) != HONE_OK) return NULL;
    json_t *document = json_loads(text, 0, NULL);
    hone_text_release(&text);
    return document;
}

size_t peers_find(hone_runtime *rt, const char *algorithm, const hone_result *result, bench_peer out[PEERS_MOST])
{
    const hone_kernel_ref **kernels = NULL;
    size_t kernel_count = 0, count = 0;
    if (hone_registry_kernels(rt, algorithm, &kernels, &kernel_count, NULL) != HONE_OK) return 0;
    json_t *document = read_document(result);
    const json_t *entry = json_array_get(json_object_get(document, "entries"), 0);
    const json_t *measured = json_object_get(json_object_get(entry, "evidence"), "kernels");
    for (size_t i = 0; i < kernel_count && count < PEERS_MOST; i++) {
        const char *name = hone_kernel_of(kernels[i])->name;
        if (!is_peer(name) || peer_runs_below(name)) continue;
        bench_peer *peer = &out[count++];
        snprintf(peer->kernel, sizeof peer->kernel, "%s", name);
        peer->config[0] = '\0';
        read_config(measured, peer);
    }
    json_decref(document);
    hone_kernels_release(&kernels);
    return count;
}

int peer_threads(const char *config_json)
{
    json_t *config = json_loads(config_json, 0, NULL);
    const json_t *threads = json_object_get(config, "threads");
    int count = json_is_integer(threads) ? (int)json_integer_value(threads) : 1;
    json_decref(config);
    return count;
}
