// One line of a vector file: what is registered, what is asked, and what the original answered.
#ifndef VECTORS_REGISTRY_SCENARIO_H
#define VECTORS_REGISTRY_SCENARIO_H

#include "base/json.h"
#include "registry/registry.h"

// A kernel as the file has it. Texts are borrowed from the JSON.
typedef struct spec {
    const char *algorithm, *platform, *backend;
    char lower[HONE_NAME_SIZE]; // the algorithm's name as it is compared
    char id[32];
    long long priority;
    bool valid; // its platform and backend are names that hone knows
} spec;

enum { MOST_SPECS = 256 };

typedef struct scenario {
    const json_t *json;
    const char *tag, *defect_reason; // "" when there is none
    bool defect;
    const char *algorithm, *platform, *backend; // the query; platform and backend may be NULL
    char lower[HONE_NAME_SIZE];
    const char *default_backend;
    spec specs[MOST_SPECS];
    size_t count;
} scenario;

// What the registry has to answer.
typedef struct answer {
    hone_status status;
    const char *id; // of HONE_OK; borrowed from the scenario
} answer;

// False with a word in *out_why when the line is none.
bool scenario_read(const json_t *json, scenario *out, const char **out_why);
// What hone has to answer: the original's own answer, or, where that is marked as a defect, what the rules say.
answer scenario_expected(const scenario *from);
// True when the scenario is about registering one kernel twice, which hone refuses.
bool scenario_refuses_duplicates(const scenario *from);

#endif
