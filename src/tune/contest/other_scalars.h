// Which other scalars a candidate can be verified with: the kernel's own conditions say, and its config must be one of
// them.
#ifndef HONE_TUNE_CONTEST_OTHER_SCALARS_H
#define HONE_TUNE_CONTEST_OTHER_SCALARS_H

#include "call/call.h"
#include "tune/contest/question.h"

// The call with each change, made when it is first asked for.
typedef struct hone_other_scalars {
    bool made;
    hone_call *calls[HONE_SCALAR_CHANGES]; // NULL: the signature refuses it, or there is nothing to change
} hone_other_scalars;

void hone_other_scalars_deinit(hone_other_scalars *others);
// Whether the kernel takes a call with this config. call NULL: no.
bool hone_kernel_takes_config(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, const hone_config *config);
// A bit for each change that the kernel is verified with for this config: the first of both kinds, floats or switches that it
// takes, and signs, where it takes them.
uint8_t hone_other_scalars_for(
    hone_other_scalars *others,
    const hone_question *question,
    const hone_kernel_ref *kernel,
    const hone_config *config);

#endif
