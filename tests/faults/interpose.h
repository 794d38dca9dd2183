// System calls that fail on demand. The functions in interpose.c stand in the program, before those of the C library,
// for hone as for SQLite.
#ifndef HONE_TESTS_FAULTS_INTERPOSE_H
#define HONE_TESTS_FAULTS_INTERPOSE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct faults {
    long long left;        // calls until one fails; negative: none does
    int code;              // errno of the one that fails
    bool every_write;      // every write and every growing fails with code: a full disk
    long long syncs;       // calls of fsync and fdatasync so far
    long file_system;      // what statfs says; 0: the truth
    long long clock_shift; // seconds that CLOCK_REALTIME is wrong by
    bool clock_stands;     // every clock says what it said when this was set
    char failed[32];       // the name of the call that failed
} faults;

extern faults faults_now;

#endif
