// The kernels of an operation that are other libraries' work, and with which config each is at its best.
#ifndef HONE_BENCH_PEERS_H
#define HONE_BENCH_PEERS_H

#include <hone/hone.h>

enum { PEERS_MOST = 8, PEER_CONFIG_SIZE = 256 };

typedef struct bench_peer {
    char kernel[HONE_NAME_SIZE];
    char config[PEER_CONFIG_SIZE]; // JSON; "": the kernel's own heuristic
} bench_peer;

// The kernels of an algorithm that are another library's, or composed of such, as their names say: each with its best
// config of the contest that the result tells of, if it came to be measured there. Some of them may not be able to run
// the call. Returns how many.
size_t peers_find(hone_runtime *rt, const char *algorithm, const hone_result *result, bench_peer out[PEERS_MOST]);
// Whether the library of a kernel runs below the machine's instructions: such a peer is left out, which is said once.
bool peer_runs_below(const char *kernel);
// How many threads a config asks for; 1 when it says nothing of them.
int peer_threads(const char *config_json);

#endif
