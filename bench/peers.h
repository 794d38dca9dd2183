// The kernels of an operation that are other libraries' work, and with which config each is at its best.
#ifndef HONE_BENCH_PEERS_H
#define HONE_BENCH_PEERS_H

#include <hone/hone.h>

enum { PEERS_MOST = 8, PEER_CONFIG_SIZE = 256 };

typedef struct bench_peer {
    char kernel[HONE_NAME_SIZE];
    char config[PEER_CONFIG_SIZE]; // JSON
} bench_peer;

// Whether a kernel is another library's, or composed of such: its name says so.
bool peer_is(const char *kernel);
// The peers that a contest measured, each with its best config there. Returns how many.
size_t peers_of_result(const hone_result *result, bench_peer out[PEERS_MOST]);
// How many threads a config asks for; 1 when it says nothing of them.
int peer_threads(const char *config_json);

#endif
