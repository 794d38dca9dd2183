#include "peers.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool peer_is(const char *kernel)
{
    static const char *const marks[] = {"openblas", "onednn", "libxsmm", "composed"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strstr(kernel, marks[i]) != NULL) return true;
    return false;
}

static bool read_peer(const json_t *kernel, bench_peer *out)
{
    const char *name = json_string_value(json_object_get(kernel, "kernel"));
    const json_t *config = json_object_get(kernel, "config");
    if (name == NULL || !peer_is(name) || !json_is_object(config)) return false;
    if (!json_is_number(json_object_get(kernel, "time_ns"))) return false;
    char *text = json_dumps(config, JSON_COMPACT);
    bool fits = text != NULL && strlen(text) < sizeof out->config;
    snprintf(out->kernel, sizeof out->kernel, "%s", name);
    snprintf(out->config, sizeof out->config, "%s", fits ? text : "");
    free(text);
    return fits;
}

size_t peers_of_result(const hone_result *result, bench_peer out[PEERS_MOST])
{
    char *text = NULL;
    size_t count = 0, i;
    json_t *kernel;
    if (hone_result_json(result, &text, NULL) != HONE_OK) return 0;
    json_t *document = json_loads(text, 0, NULL);
    hone_text_free(text);
    const json_t *entry = json_array_get(json_object_get(document, "entries"), 0);
    json_t *kernels = json_object_get(json_object_get(entry, "evidence"), "kernels");
    json_array_foreach(kernels, i, kernel) if (count < PEERS_MOST && read_peer(kernel, &out[count])) count++;
    json_decref(document);
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
