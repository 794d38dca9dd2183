// What may be wrong on a machine, one check after the other.
#ifndef HONE_RUNTIME_DOCTOR_DOCTOR_H
#define HONE_RUNTIME_DOCTOR_DOCTOR_H

#include "os/conditions.h"
#include "runtime/api/api.h"

// What checks share.
typedef struct hone_doctor_round {
    hone_runtime *rt;
    const char *lock_file; // NULL: none is named
    bool watched;          // seen holds the influence of other work on the machine
    hone_os_disturbance seen;
} hone_doctor_round;

typedef struct hone_doctor_check {
    bool ok;
    char detail[1000];
    const char *advice; // NULL: none needed
} hone_doctor_check;

// Checks of files (files.c).
void hone_doctor_store(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_damage(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_system_store(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_file_system(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_lock(hone_doctor_round *round, hone_doctor_check *out);

// Checks of external influences on times (machine.c).
void hone_doctor_governor(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_frequency(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_pinning(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_throttling(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_load(hone_doctor_round *round, hone_doctor_check *out);
void hone_doctor_contests(hone_doctor_round *round, hone_doctor_check *out);

#endif
