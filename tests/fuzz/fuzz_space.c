// Spaces: hone's text, or a T1 document when the input starts with '{'. What is accepted must agree with itself:
// enumerating, counting, checking, sampling, and configs written and read back.
#include "space/space.h"

#include <stdlib.h>
#include <string.h>

enum { CARTESIAN_MAX = 5000, TEXT_SIZE = 1 << 16, SAMPLE = 8 };

typedef struct visit {
    const hone_space *space;
    const hone_bound_space *bound;
    uint64_t count;
} visit;

static bool equal(const hone_config *a, const hone_config *b)
{
    return a->count == b->count && memcmp(a->values, b->values, a->count * sizeof *a->values) == 0;
}

static bool check_config(void *ctx, const hone_config *config)
{
    visit *v = ctx;
    static char text[TEXT_SIZE];
    hone_config back;
    if (hone_bound_space_check(v->bound, config, NULL) != HONE_OK) abort();
    if (v->count++ % 16 != 0) return true;
    if (hone_config_text(v->space, config, text, sizeof text) < sizeof text &&
        (hone_config_from_text(v->space, text, &back, NULL) != HONE_OK || !equal(config, &back)))
        abort();
    size_t size = hone_config_json(v->space, config, text, sizeof text);
    if (size < sizeof text &&
        (hone_config_from_json(v->space, text, size, &back, NULL) != HONE_OK || !equal(config, &back)))
        abort();
    return true;
}

static bool check_neighbour(void *ctx, const hone_config *config)
{
    visit *v = ctx;
    if (hone_bound_space_check(v->bound, config, NULL) != HONE_OK) abort();
    return ++v->count < 1000;
}

// A rank leads to a config and back, and its neighbours are valid.
static void use_ranks(const hone_bound_space *bound, uint64_t count)
{
    hone_config config;
    visit v = {NULL, bound, 0};
    uint64_t back, ranks[] = {0, count / 2, count - 1, count};
    for (size_t i = 0; i < 4; i++) {
        hone_status status = hone_bound_space_at(bound, ranks[i], &config, NULL);
        if (status != (ranks[i] < count ? HONE_OK : HONE_NOT_FOUND)) abort();
        if (status != HONE_OK) continue;
        if (hone_bound_space_rank(bound, &config, &back, NULL) != HONE_OK || back != ranks[i]) abort();
        // A neighbour that cannot be evaluated fails it.
        (void)!hone_bound_space_neighbours(bound, &config, HONE_NEIGHBOURS_HAMMING, check_neighbour, &v, NULL);
    }
}

static void use(const hone_space *space, const hone_bound_space *bound)
{
    visit v = {space, bound, 0};
    uint64_t count;
    size_t sampled;
    hone_config configs[SAMPLE];
    hone_error err;
    if (hone_bound_space_enumerate(bound, check_config, &v, &err) != HONE_OK) return;
    if (hone_bound_space_count(bound, &count, &err) == HONE_OK && count != v.count) abort();
    if (v.count > 0) use_ranks(bound, v.count);
    if (hone_bound_space_sample(bound, v.count, SAMPLE, configs, &sampled, &err) != HONE_OK) return;
    if (sampled != (v.count < SAMPLE ? v.count : SAMPLE)) abort();
    for (size_t i = 0; i < sampled; i++)
        if (hone_bound_space_check(bound, &configs[i], NULL) != HONE_OK) abort();
    hone_status status = hone_bound_space_default(bound, &configs[0], &err);
    if (status != (v.count == 0 ? HONE_NOT_FOUND : HONE_OK)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_space *space = NULL;
    hone_bound_space *bound = NULL;
    hone_error err = {0};
    hone_device_info device = {.struct_size = sizeof device, .threads = 2, .l1_bytes = 32768, .l2_bytes = 1 << 20};
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    hone_status status = text[0] == '{' ? hone_space_parse_t1(hone_allocator_system(), text, size, &space, &err)
                                        : hone_space_parse(hone_allocator_system(), text, &space, &err);
    if (status != HONE_OK && (space != NULL || err.status != status)) abort();
    if (status == HONE_OK && hone_space_bind(space, NULL, &device, &bound, &err) == HONE_OK &&
        hone_space_cartesian(space) <= CARTESIAN_MAX)
        use(space, bound);
    hone_bound_space_release(&bound);
    hone_space_release(&space);
    free(text);
    return 0;
}
