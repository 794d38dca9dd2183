#include "tune/contest/failures.h"

#include "os/os.h"
#include "registry/failure_kinds.h"
#include "registry/registry.h"
#include "tune/result/environment.h"
#include "tune/tuner.h"

#include <stdio.h>
#include <string.h>

static const double seconds_a_day = 86400;

static bool refuse(char *out, size_t size, const char *why)
{
    if (out != NULL) snprintf(out, size, "%s", why);
    return false;
}

bool hone_failure_stands(
    const hone_store_measurement *measurement,
    const hone_kernel *kernel,
    const hone_device_info *device,
    double now_utc,
    char *out_why,
    size_t size)
{
    double then;
    char difference[HONE_DIFFERENCE_SIZE];
    if (!hone_same_revision(measurement->revision, kernel->revision))
        return refuse(out_why, size, "it was of another revision of the kernel");
    if (measurement->measured == NULL || !hone_os_parse_utc(measurement->measured, &then))
        return refuse(out_why, size, "its date was not kept");
    // A date in the future: the clock was set back, or was wrong then. Clocks may differ by a minute.
    if (then > now_utc + 60) return refuse(out_why, size, "its date is in the future");
    if (now_utc - then > hone_failure_kind_of(measurement->failure)->days * seconds_a_day)
        return refuse(out_why, size, "it is too long ago");
    if (hone_environment_compare(measurement->environment, device, kernel, difference) != HONE_STANDS)
        return refuse(out_why, size, difference);
    return true;
}

bool hone_measurement_verifies(
    const hone_store_measurement *measurement, const hone_kernel *kernel, const hone_device_info *device)
{
    char difference[HONE_DIFFERENCE_SIZE];
    return measurement->failure == HONE_FAILURE_NONE && measurement->max_error >= 0 &&
           hone_same_revision(measurement->revision, kernel->revision) &&
           hone_environment_compare(measurement->environment, device, kernel, difference) == HONE_STANDS;
}

void hone_failure_until(const hone_store_measurement *measurement, char out[24])
{
    double then;
    out[0] = '\0';
    if (measurement->measured == NULL || !hone_os_parse_utc(measurement->measured, &then)) return;
    hone_os_format_utc(then + hone_failure_kind_of(measurement->failure)->days * seconds_a_day, out);
}
