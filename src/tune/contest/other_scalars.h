// Finds which other scalars a candidate can be verified with: the kernel's conditions must accept them, and the config
// must be in the kernel's space for them.
#ifndef HONE_TUNE_CONTEST_OTHER_SCALARS_H
#define HONE_TUNE_CONTEST_OTHER_SCALARS_H

#include "call/call.h"
#include "tune/contest/question.h"

// The call with each change of its scalars, made when it is first needed.
typedef struct hone_other_scalars {
    bool made;
    hone_call *calls[HONE_SCALAR_CHANGES]; // NULL: the signature refuses the change, or there is nothing to change
} hone_other_scalars;

void hone_other_scalars_deinit(hone_other_scalars *others);
// Whether the kernel takes a call with this config. call NULL: no.
bool hone_kernel_takes_config(
    const hone_kernel_ref *kernel, const hone_call *call, const hone_device_info *device, const hone_config *config);
// A bit for each change of scalars that the kernel is verified with for this config: the first that it takes of "floats
// and switches", "floats" and "switches", and the change of signs if it takes that.
uint8_t hone_other_scalars_for(
    hone_other_scalars *others,
    const hone_question *question,
    const hone_kernel_ref *kernel,
    const hone_config *config);

#endif
