// Kernels that differ in instruction set alone, such as avx512, avx2 and portable of one source, share a search: what is the
// best config of one is nearly always a good one of the others, and a search for each would take the time of all others.
//
// The fastest of a family so far searches. What its configs take is told to the others' searches in proportion to the
// defaults, so that whoever overtakes it goes on from there. The others try its best config where they may win by it.
#ifndef HONE_TUNE_CONTEST_FAMILY_H
#define HONE_TUNE_CONTEST_FAMILY_H

#include "tune/contest/field.h"
#include "tune/contest/standings.h"

// Whether two kernels are of one family: functions of the host with one space and one heuristic that need other instruction
// sets.
bool hone_family_has_both(const hone_kernel *a, const hone_kernel *b);
// Fills in each contestant's family.
void hone_family_find(hone_field *field);
// Whether another one of its family searches in its place, by whose configs it can be told what its own would take.
bool hone_family_follows(const hone_field *field, const hone_standings *standings, const hone_contestant *contestant);
// Tells the searches of the others what a config took, where the defaults of both are known.
void hone_family_tell(
    const hone_field *field,
    const hone_standings *standings,
    uint32_t kernel,
    const hone_config *config,
    double time_ns);
// The next kernel that is to try the best config of its family's fastest, and the config. False: none may win by it.
bool hone_family_next(
    hone_field *field, const hone_standings *standings, uint32_t *out_kernel, hone_config *out_config);

#endif
