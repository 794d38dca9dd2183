// What hone declares of NVML in its own words is what its header says.
// Both call it by one name.
#define NVML_SUCCESS HEADER_SUCCESS
#include <nvml.h>
#undef NVML_SUCCESS

#include "same.h"

#include "platforms/cuda/nvml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void numbers_are_those_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(NVML_SUCCESS, HEADER_SUCCESS);
    assert_int_equal(NVML_CLOCK_OF_SM, NVML_CLOCK_SM);
    assert_int_equal(NVML_MIG_ON, NVML_DEVICE_MIG_ENABLE);
    assert_int_equal(NVML_IDLE, nvmlClocksThrottleReasonGpuIdle);
    assert_int_equal(NVML_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
    assert_int_equal(NVML_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
    assert_int_equal(NVML_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
    assert_int_equal(NVML_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
    assert_int_equal(NVML_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
}

static void structs_have_the_fields_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(sizeof(nvml_process), sizeof(nvmlProcessInfo_t));
    assert_int_equal(offsetof(nvml_process, memory), offsetof(nvmlProcessInfo_t, usedGpuMemory));
    assert_int_equal(sizeof(nvml_utilization), sizeof(nvmlProcessUtilizationSample_t));
    assert_int_equal(offsetof(nvml_utilization, at_us), offsetof(nvmlProcessUtilizationSample_t, timeStamp));
    assert_int_equal(offsetof(nvml_utilization, sm), offsetof(nvmlProcessUtilizationSample_t, smUtil));
}

static void functions_take_what_the_header_says(void **state)
{
    (void)state;
    static nvml n;
    void *p = NULL;
    unsigned u = 0;
    (void)p, (void)u;
    SAME(n.error_string, nvmlErrorString, HEADER_SUCCESS);
    SAME(n.device_by_bus, nvmlDeviceGetHandleByPciBusId_v2, p, p);
    SAME(n.clock, nvmlDeviceGetClockInfo, p, NVML_CLOCK_SM, p);
    SAME(n.reasons, nvmlDeviceGetCurrentClocksEventReasons, p, p);
    SAME(n.mig_mode, nvmlDeviceGetMigMode, p, p, p);
    SAME(n.processes, nvmlDeviceGetComputeRunningProcesses_v3, p, p, p);
    SAME(n.utilization, nvmlDeviceGetProcessUtilization, p, p, p, u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_the_header),
        cmocka_unit_test(structs_have_the_fields_of_the_header),
        cmocka_unit_test(functions_take_what_the_header_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
