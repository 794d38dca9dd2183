// What `hone space` looks at: a space with its constraints, or one whose valid configs are those that a file records.
#ifndef HONE_CLI_SPACE_SOURCE_H
#define HONE_CLI_SPACE_SOURCE_H

#include "cli.h"
#include "recorded/recorded.h"

typedef struct cli_space_source {
    hone_space *space;
    hone_bound_space *bound;
    hone_recorded *recorded; // NULL: the constraints say what is valid
} cli_space_source;

// Reads hone's text, Kernel Tuner's T1 JSON, or a recorded space, plain or gzipped. Prints what failed; close also
// after that.
int cli_space_open(cli_space_source *source, const char *path);
void cli_space_close(cli_space_source *source);

// The number of valid configs lies between the two, which are equal when it is known.
hone_status cli_space_bounds(const cli_space_source *source, uint64_t *out_low, uint64_t *out_high, hone_error *err);
hone_status cli_space_at(const cli_space_source *source, uint64_t rank, hone_config *out, hone_error *err);
hone_status cli_space_rank(const cli_space_source *source, const hone_config *config, uint64_t *out, hone_error *err);

typedef bool cli_space_visit(void *ctx, const hone_config *config);
hone_status cli_space_list(const cli_space_source *source, cli_space_visit *visit, void *ctx, hone_error *err);
hone_status cli_space_sample(
    const cli_space_source *source, uint64_t seed, size_t wanted, cli_space_visit *visit, void *ctx, hone_error *err);
hone_status cli_space_neighbours(
    const cli_space_source *source,
    const hone_config *config,
    hone_neighbourhood which,
    cli_space_visit *visit,
    void *ctx,
    hone_error *err);

#endif
