// The shortest time in which a run of a call is possible, by what it must read, write and compute and by what the
// device can do at best. A run that is measured as shorter cannot have done the work.
//
//     floor = max over levels ((bytes - what the levels before hold) / a level's peak, operations / their peak) / margin
//
// Bytes are those that any implementation moves: those of the algorithm's model, and at most the bytes of the
// arguments. Without a model only the bytes of the results count, because an algorithm may not read all of its inputs.
// What the nearer levels can hold may stay there from run to run, under a cold regime too: results are written into
// them. Operations are the model's.
//
// Peaks are an upper bound already (worker/peaks.c; for GPUs, from their clocks and widths). The margin of 2 on a
// processor is for what reading does not show, such as stores that run beside loads, and Strassen's products.
// docs/benchmarks.md ("The floor") shows how near the best kernels come to the bound.
#ifndef HONE_TUNE_CONTEST_FLOOR_H
#define HONE_TUNE_CONTEST_FLOOR_H

#include "hone/kernel.h"
#include "tune/wire/message.h"

typedef struct hone_floor {
    double ns;     // 0: there is no floor
    double amount; // bytes or operations that take this time
    double rate;   // bytes or operations per second at best
    double margin;
    const char *at;    // "L3", "memory", "arithmetic"; static
    const char *lacks; // why there is no floor; static
    bool is_measured;  // by a worker; else computed from clock and width
    bool is_of_operations;
} hone_floor;

// Whether the peaks of a device are measured by a worker; else hone_peaks_of_gpu has those that are known.
bool hone_floor_is_measured_on(const hone_device_info *device);
hone_peaks hone_peaks_of_gpu(const hone_device_info *device);
// Raises each figure of peaks to that of more.
void hone_peaks_add(hone_peaks *peaks, const hone_peaks *more);

// The least that an implementation of the algorithm moves and computes for this call.
hone_cost hone_floor_cost(const hone_algorithm *algorithm, const hone_call *call);
// What the call moves and computes, and what the device does at best; for reports. False: not both are known.
typedef struct hone_roofline {
    hone_cost cost;
    double operations;         // per second, for numbers of the width that the call may compute with
    double bytes[HONE_LEVELS]; // per second; 0: not known
} hone_roofline;
bool hone_roofline_of(
    const hone_algorithm *algorithm, const hone_call *call, const hone_peaks *peaks, hone_roofline *out);
const char *hone_level_name(hone_memory_level level); // "L1" ... "memory"
hone_floor hone_floor_of(
    const hone_algorithm *algorithm, const hone_call *call, const hone_device_info *device, const hone_peaks *peaks);
bool hone_floor_is_broken(const hone_floor *floor, double time_ns);
// "14 ns for 8.39 MB is 599 TB/s; L3 gives 45.2 GB/s at most, and nothing takes less than 92.8 us"
void hone_floor_say_broken(const hone_floor *floor, double time_ns, char *out, size_t size);
// "92.8 us: 8.39 MB at twice the 45.2 GB/s measured of L3"; "none: ..." where there is none.
void hone_floor_say(const hone_floor *floor, char *out, size_t size);

#endif
