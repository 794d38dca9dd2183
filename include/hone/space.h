// Spaces: the parameters of a kernel, their values, and the constraints between them.
//
//   block_m: 16..128 *2 default 32
//   layout: row | col
//   where block_m * block_n <= device.l1_bytes / 4
// docs/spaces.md has the language. Expressions may use the space's parameters, the call's dims and scalars,
// and device.threads, device.l1_bytes, ... (0 where the device does not say). A parameter hides a dim of its name.
//
// A config is valid when every constraint is true for it. Constraints are evaluated as soon as the last parameter
// that they read is set, in the order of the text, and so are the parts joined by `and`: one that is false refuses the
// config whatever the rest says. A constraint that cannot be evaluated (division by zero, overflow, a type that does not
// fit) is an error of the space: the function that meets it returns HONE_INVALID_ARGUMENT with the constraint and the
// config; write `b != 0 and a % b == 0` to avoid it.
// At most 32 parameters; 65,536 values of a range, 4,096 of a list.
#ifndef HONE_SPACE_H
#define HONE_SPACE_H

#include "hone/config.h"
#include "hone/device.h"
#include "hone/signature.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hone_space hone_space;

// Parses text. NULL or "" is the space with no parameters and one config. Immutable, any thread.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT with line, offset and what was expected; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_space_parse(hone_allocator allocator, const char *text, hone_space **out, hone_error *err);
// Reads a Kernel Tuner T1 document (JSON with ConfigurationSpace, TuningParameters, Conditions). Values may be a list
// or the text of a Python list; "/" is Python's; conditions read only parameters. Returns as hone_space_parse.
HONE_API HONE_MUST_CHECK hone_status
hone_space_parse_t1(hone_allocator allocator, const char *json, size_t size, hone_space **out, hone_error *err);
HONE_API void hone_space_release(hone_space **space);

HONE_API size_t hone_space_parameters(const hone_space *space);
HONE_API const char *hone_space_parameter_name(const hone_space *space, size_t index);
// Values of one parameter.
HONE_API size_t hone_space_values(const hone_space *space, size_t index);
// One of them as JSON text: 128, "row", true. value < hone_space_values. Borrowed from the space.
HONE_API const char *hone_space_value_json(const hone_space *space, size_t index, size_t value);
// The product of the numbers of values, without regard to constraints; UINT64_MAX on overflow.
HONE_API uint64_t hone_space_cartesian(const hone_space *space);

// A space with a call's dims and scalars and a device's limits filled in: what can be enumerated.
//   call, device  NULL when the constraints use neither; borrowed only for this call
// Returns: HONE_OK; HONE_INVALID_ARGUMENT for an unknown name, an overflow or a division by zero in
// an expression without parameters.
typedef struct hone_bound_space hone_bound_space;
HONE_API HONE_MUST_CHECK hone_status hone_space_bind(
    const hone_space *space,
    const hone_call *call,
    const hone_device_info *device,
    hone_bound_space **out,
    hone_error *err);
HONE_API void hone_bound_space_release(hone_bound_space **space);
// Calls visit for each valid config in the order of the text (last parameter fastest) until it returns false. config is
// borrowed for the visit. After a failure some configs may have been visited. Any thread, several at once: a bound
// space never changes.
HONE_API HONE_MUST_CHECK hone_status hone_bound_space_enumerate(
    const hone_bound_space *space, bool (*visit)(void *ctx, const hone_config *config), void *ctx, hone_error *err);
// Certain bounds of the number of valid configs: equal when it is known. UINT64_MAX: that many or more. Nothing is
// enumerated: parameters that no constraint connects are counted apart, and beginnings that leave the same choices only
// once, so that 10^12 configs take as long as a thousand. It is not known where the constraints connect more than 32 MiB
// can hold. The bounds are kept with the bound space.
// Returns: HONE_OK; HONE_INVALID_ARGUMENT for a constraint that cannot be evaluated; HONE_OUT_OF_MEMORY.
HONE_API HONE_MUST_CHECK hone_status
hone_bound_space_bounds(const hone_bound_space *space, uint64_t *out_low, uint64_t *out_high, hone_error *err);
// Every valid config of a space that can be counted has a rank below their number: the config of a rank, and the rank
// of a config. The numbering is fixed for a bound space; it is not always the order of enumerating.
// Returns: as hone_bound_space_bounds; HONE_UNSUPPORTED where their number is not known, and from 2^64 configs on; at: HONE_NOT_FOUND for a rank that is
// too large; rank: HONE_INVALID_ARGUMENT as hone_bound_space_check.
HONE_API HONE_MUST_CHECK hone_status
hone_bound_space_at(const hone_bound_space *space, uint64_t rank, hone_config *out_config, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status
hone_bound_space_rank(const hone_bound_space *space, const hone_config *config, uint64_t *out_rank, hone_error *err);
// Up to count distinct valid configs, uniformly, in random order, the same for the same seed; *out_count is how many:
// fewer than count when there are no more. By rank where configs have one (a larger sample then begins with the smaller
// one of the same seed); else by drawing until the constraints hold, at most 4,000,000 times, and when that finds too
// little by enumerating through a reservoir. Of a space with more than 10^7 values to try for that, what was drawn is
// all there is;
// HONE_UNSUPPORTED when that is nothing. Takes seconds at most.
HONE_API HONE_MUST_CHECK hone_status hone_bound_space_sample(
    const hone_bound_space *space,
    uint64_t seed,
    size_t count,
    hone_config *out_configs,
    size_t *out_count,
    hone_error *err);
// Calls visit for each valid config that differs from config in one parameter, until it returns false: parameters in
// their order, values in theirs. config must be of the space's values; the constraints may refuse it.
//   HAMMING   the parameter has any other value
//   ADJACENT  the value before or after its own in its list
// Nothing is enumerated: it takes as long as testing each neighbour. config is borrowed for the visit.
typedef enum hone_neighbourhood { HONE_NEIGHBOURS_HAMMING = 0, HONE_NEIGHBOURS_ADJACENT = 1 } hone_neighbourhood;
HONE_API HONE_MUST_CHECK hone_status hone_bound_space_neighbours(
    const hone_bound_space *space,
    const hone_config *config,
    hone_neighbourhood which,
    bool (*visit)(void *ctx, const hone_config *config),
    void *ctx,
    hone_error *err);
// The config of the defaults ("default LITERAL", else a parameter's first value); when the constraints
// refuse it, the first valid config. HONE_NOT_FOUND when the space is empty for this call; HONE_UNSUPPORTED when
// 20,000,000 values tried in the order of the text gave no valid config.
HONE_API HONE_MUST_CHECK hone_status
hone_bound_space_default(const hone_bound_space *space, hone_config *out_config, hone_error *err);
// HONE_OK when config is one of the space's and every constraint holds; else HONE_INVALID_ARGUMENT with the reason.
HONE_API HONE_MUST_CHECK hone_status
hone_bound_space_check(const hone_bound_space *space, const hone_config *config, hone_error *err);

// A config as text, "block_m=32 layout=row", and as a JSON object, {"block_m":32,"layout":"row"}, and back.
// Writers put at most size bytes with a NUL and return the bytes that the whole takes without it.
HONE_API size_t hone_config_text(const hone_space *space, const hone_config *config, char *out, size_t size);
HONE_API size_t hone_config_json(const hone_space *space, const hone_config *config, char *out, size_t size);
// Readers expect every parameter, and nothing else. HONE_INVALID_ARGUMENT names the parameter and its values.
HONE_API HONE_MUST_CHECK hone_status
hone_config_from_text(const hone_space *space, const char *text, hone_config *out_config, hone_error *err);
HONE_API HONE_MUST_CHECK hone_status
hone_config_from_json(const hone_space *space, const char *json, size_t size, hone_config *out_config, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
