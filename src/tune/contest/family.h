// Kernels that differ in instruction set alone, such as avx512, avx2 and portable of one source, share a search: the
// best config of one is nearly always a good one for the others, and a search for each would take the time of all other
// kernels.
//
// The fastest kernel of a family so far does the searching. The times of its configs are reported to the searches of
// the others, scaled by the ratio of the defaults, so that a kernel that becomes the fastest continues from there. The
// others try its best config if they may win by it.
#ifndef HONE_TUNE_CONTEST_FAMILY_H
#define HONE_TUNE_CONTEST_FAMILY_H

#include "tune/contest/field.h"
#include "tune/contest/standings.h"

// Whether two kernels are of one family: functions of the host with one space and one heuristic that need different
// instruction sets.
bool hone_family_has_both(const hone_kernel *a, const hone_kernel *b);
// Fills in each contestant's family.
void hone_family_find(hone_field *field);
// Whether another kernel of its family searches instead of this one. The defaults of both have times, by which the
// times of this kernel's configs are estimated.
bool hone_family_follows(const hone_field *field, const hone_standings *standings, const hone_contestant *contestant);
// Reports the time of a config to the searches of the others in the family, if the times of both defaults are known.
void hone_family_tell(
    const hone_field *field,
    const hone_standings *standings,
    uint32_t kernel,
    const hone_config *config,
    double time_ns);
// Finds the next kernel that is to try the best config of its family's fastest, and the config. False: no kernel may
// win by it.
bool hone_family_next(
    hone_field *field, const hone_standings *standings, uint32_t *out_kernel, hone_config *out_config);

#endif
