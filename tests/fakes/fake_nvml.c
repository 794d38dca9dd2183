// NVML without a GPU. What it says stands in the environment:
//   FAKE_NVML_CLOCK    of the multiprocessors, MHz; 1980
//   FAKE_NVML_REASONS  that hold it back, the bits as a number; 0
//   FAKE_NVML_OTHER    percent of the GPU that another process uses; 0: it is there and rests; unset: there is none
//   FAKE_NVML_HIDDEN   processes have the numbers of another name space
//   FAKE_NVML_MIG      the GPU is divided
//   FAKE_NVML_STILL    there are no new samples of processes
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, OTHER_ID = 77777, HIDDEN_ID = 88888 };

typedef struct process {
    unsigned id;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
} process;

typedef struct utilization {
    unsigned id;
    unsigned long long at_us;
    unsigned sm, memory, encoder, decoder;
} utilization;

static char the_device;
static unsigned long long now_us = 1000000, grown;

static long number(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL && *text ? strtol(text, NULL, 0) : otherwise;
}

static unsigned own_id(void)
{
    return getenv("FAKE_NVML_HIDDEN") != NULL ? HIDDEN_ID : (unsigned)getpid();
}

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return OK;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return OK;
}

EXPORT const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
    return result == NOT_FOUND ? "Not Found" : "another error";
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    if (strcmp(bus, "0000:01:00.0") != 0) return NOT_FOUND;
    *device = &the_device;
    return OK;
}

EXPORT int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    if (device != &the_device || which != 1) return NOT_SUPPORTED;
    *mhz = (unsigned)number("FAKE_NVML_CLOCK", 1980);
    return OK;
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    *reasons = (unsigned long long)number("FAKE_NVML_REASONS", 0);
    return OK;
}

EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending);
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
    (void)device;
    *now = *pending = getenv("FAKE_NVML_MIG") != NULL;
    return OK;
}

// The memory of this process grows from one look to the next, as if it had taken some.
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *processes);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *processes)
{
    (void)device;
    if (*count < 2) return INSUFFICIENT_SIZE;
    processes[0] = (process){own_id(), (grown += 64ull << 20), 0, 0};
    processes[1] = (process){OTHER_ID, 8ull << 30, 0, 0};
    *count = getenv("FAKE_NVML_OTHER") != NULL ? 2 : 1;
    return OK;
}

EXPORT int nvmlDeviceGetProcessUtilization(
    void *device, utilization *samples, unsigned *count, unsigned long long since_us);
int nvmlDeviceGetProcessUtilization(void *device, utilization *samples, unsigned *count, unsigned long long since_us)
{
    const unsigned other = (unsigned)number("FAKE_NVML_OTHER", 0);
    (void)device;
    if (*count < 2) return INSUFFICIENT_SIZE;
    if (getenv("FAKE_NVML_STILL") != NULL && since_us >= now_us) return NOT_FOUND;
    now_us += 1000000;
    samples[0] = (utilization){.id = own_id(), .at_us = now_us, .sm = 60};
    samples[1] = (utilization){.id = OTHER_ID, .at_us = now_us, .sm = other};
    *count = other > 0 ? 2 : 1;
    return OK;
}
