#include "os/conditions.h"

#include "base/number.h"
#include "os/limits.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS "/sys/devices/system/cpu"

// -1: there is no such file, or no number in it.
static int64_t read_number(const char *root, const char *path)
{
    char text[HONE_OS_TEXT_SIZE], *end;
    if (!hone_os_read_text(root, path, text)) return -1;
    long long number = strtoll(text, &end, 10);
    return end == text || number < 0 ? -1 : number;
}

static int64_t or_none(int64_t number)
{
    return number < 0 ? 0 : number;
}

static hone_os_switch read_switch(const char *root, const char *path, int64_t on)
{
    int64_t number = read_number(root, path);
    return number < 0 ? HONE_OS_UNKNOWN : number == on ? HONE_OS_ON : HONE_OS_OFF;
}

static void read_governor(const char *root, char out[32])
{
    char text[HONE_OS_TEXT_SIZE];
    if (!hone_os_read_text(root, CPUS "/cpu0/cpufreq/scaling_governor", text)) return;
    snprintf(out, 32, "%.*s", (int)strcspn(text, "\n"), text);
}

// "0-3,8,10-11"
static int32_t count_listed(const char *text)
{
    int64_t count = 0;
    while (isdigit((unsigned char)*text)) {
        char *end;
        long long first = strtoll(text, &end, 10), last = first;
        if (*end == '-') last = strtoll(end + 1, &end, 10);
        if (last >= first && last < INT32_MAX) count += last - first + 1;
        text = *end == ',' ? end + 1 : end;
    }
    return count < INT32_MAX ? (int32_t)count : 0;
}

static void read_processors(const char *root, hone_os_conditions *out)
{
    char text[HONE_OS_TEXT_SIZE];
    if (hone_os_read_text(root, CPUS "/online", text)) out->online = count_listed(text);
    out->allowed = hone_os_affinity_threads();
}

// Only Intel processors have these counters.
static int64_t count_throttled(const char *root, int32_t processors)
{
    int64_t sum = -1;
    for (int32_t i = 0; i < processors; i++) {
        char path[96];
        snprintf(path, sizeof path, CPUS "/cpu%d/thermal_throttle/core_throttle_count", (int)i);
        int64_t count = read_number(root, path);
        if (count >= 0) sum = (sum < 0 ? 0 : sum) + count;
    }
    return sum;
}

static double read_load(const char *root)
{
    char text[HONE_OS_TEXT_SIZE], *end;
    if (!hone_os_read_text(root, "/proc/loadavg", text)) return -1;
    double load = hone_number_read(text, &end);
    return end == text || !(load >= 0) ? -1 : load;
}

// "cpu  user nice system idle iowait irq softirq steal ...": guests' time is in user's already.
static void read_ticks(const char *root, hone_os_conditions *out)
{
    enum { STEAL = 7 };
    char text[HONE_OS_TEXT_SIZE];
    out->ticks = out->stolen_ticks = -1;
    if (!hone_os_read_text(root, "/proc/stat", text) || strncmp(text, "cpu ", 4) != 0) return;
    double sum = 0, stolen = -1;
    char *at = text + 4;
    for (int i = 0; i <= STEAL; i++) {
        char *end;
        stolen = strtod(at, &end);
        if (end == at || !(stolen >= 0)) return;
        sum += stolen;
        at = end;
    }
    out->ticks = sum;
    out->stolen_ticks = stolen;
}

void hone_os_conditions_read_stolen(const char *root, hone_os_conditions *out)
{
    memset(out, 0, sizeof *out);
    read_ticks(root, out);
}

void hone_os_conditions_read(const char *root, hone_os_conditions *out)
{
    memset(out, 0, sizeof *out);
    read_governor(root, out->governor);
    out->least_khz = or_none(read_number(root, CPUS "/cpu0/cpufreq/scaling_min_freq"));
    out->most_khz = or_none(read_number(root, CPUS "/cpu0/cpufreq/scaling_max_freq"));
    out->processor_khz = or_none(read_number(root, CPUS "/cpu0/cpufreq/cpuinfo_max_freq"));
    out->turbo = read_switch(root, CPUS "/intel_pstate/no_turbo", 0);
    if (out->turbo == HONE_OS_UNKNOWN) out->turbo = read_switch(root, CPUS "/cpufreq/boost", 1);
    out->smt = read_switch(root, CPUS "/smt/active", 1);
    read_processors(root, out);
    out->throttled = count_throttled(root, out->online);
    out->load = read_load(root);
    read_ticks(root, out);
}

hone_os_disturbance hone_os_disturbance_between(const hone_os_conditions *before, const hone_os_conditions *after)
{
    hone_os_disturbance out = {.throttled = -1, .stolen = -1};
    double ticks = after->ticks - before->ticks, stolen = after->stolen_ticks - before->stolen_ticks;
    if (before->throttled >= 0 && after->throttled >= before->throttled)
        out.throttled = after->throttled - before->throttled;
    if (before->ticks >= 0 && ticks > 0 && stolen >= 0 && stolen <= ticks) out.stolen = stolen / ticks;
    return out;
}
