// Results of tuning as documents: written, read, merged, stored, and as an HTML report.
#ifndef HONE_RESULT_H
#define HONE_RESULT_H

#include "hone/store.h"
#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// The result document (formats.md); free with hone_text_release.
HONE_API HONE_MUST_CHECK hone_status hone_result_json(const hone_result *result, char **out_text, hone_error *err);
// One self-contained HTML page: every config that was tried as a point, the
// best so far, parameters, the finals, kernels with their reasons, the environment. The configs that were tried are known for
// results of hone_tune and hone_tune_recorded, not for one that was parsed. Free with hone_text_release.
HONE_API HONE_MUST_CHECK hone_status hone_result_report(const hone_result *result, char **out_text, hone_error *err);
// Each entry is checked as an import checks it: spec and call have its key, and its kernel, where rt has it registered,
// has its config. HONE_CORRUPT with the entry and what is wrong. rt may be NULL.
HONE_API HONE_MUST_CHECK hone_status
hone_result_parse(hone_runtime *rt, const char *json, size_t size, hone_result **out, hone_error *err);
// The entries of both; of two for one call and regime the one that is kept when b is merged into a (docs/store.md).
// The results are of one device, else HONE_INVALID_ARGUMENT.
HONE_API HONE_MUST_CHECK hone_status
hone_result_merge(const hone_result *a, const hone_result *b, hone_result **out, hone_error *err);
// HONE_OK, or the status of the last of its calls that failed.
HONE_API hone_status hone_result_status(const hone_result *result);
// One transaction.
HONE_API HONE_MUST_CHECK hone_status hone_result_store(const hone_result *result, hone_store *store, hone_error *err);

#ifdef __cplusplus
}
#endif
#endif
