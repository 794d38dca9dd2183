// hone doctor on what moves times from outside. Nothing of it is required: contests go on, and record it.
#include "doctor.h"

#include "os/conditions.h"

#include <stdio.h>
#include <string.h>

static hone_os_conditions conditions(void)
{
    hone_os_conditions now;
    hone_os_conditions_read("", &now);
    return now;
}

static const char *switch_word(hone_os_switch is)
{
    return is == HONE_OS_ON ? "on" : is == HONE_OS_OFF ? "off" : "not visible here";
}

void cli_check_governor(hone_cli *cli, cli_check *out)
{
    (void)cli;
    const hone_os_conditions now = conditions();
    out->ok = strcmp(now.governor, "powersave") != 0;
    snprintf(
        out->detail, sizeof out->detail, "%s, turbo %s, hardware threads %s",
        now.governor[0] == '\0' ? "not visible here" : now.governor, switch_word(now.turbo), switch_word(now.smt));
    out->advice = out->ok ? NULL : "cpupower frequency-set -g performance while tuning";
}

void cli_check_frequency(hone_cli *cli, cli_check *out)
{
    (void)cli;
    const hone_os_conditions now = conditions();
    out->ok = true;
    if (now.most_khz == 0) {
        snprintf(out->detail, sizeof out->detail, "not visible here");
        return;
    }
    snprintf(
        out->detail, sizeof out->detail, "%.0f to %.0f MHz, of %.0f", (double)now.least_khz / 1e3,
        (double)now.most_khz / 1e3, (double)now.processor_khz / 1e3);
    if (now.processor_khz > now.most_khz)
        out->advice = "the limit is below what the processor can: choices are made at that clock";
}

void cli_check_pinning(hone_cli *cli, cli_check *out)
{
    (void)cli;
    const hone_os_conditions now = conditions();
    out->ok = true;
    snprintf(out->detail, sizeof out->detail, "%d of %d processors may be used", (int)now.allowed, (int)now.online);
    if (now.online > now.allowed)
        out->advice = "the fingerprint counts these alone: tune with as many as the program will have";
}

void cli_check_throttling(hone_cli *cli, cli_check *out)
{
    (void)cli;
    const hone_os_conditions now = conditions();
    out->ok = true;
    if (now.throttled < 0) {
        snprintf(out->detail, sizeof out->detail, "not visible here");
        return;
    }
    snprintf(
        out->detail, sizeof out->detail, "heat or power slowed a core %lld times since the start",
        (long long)now.throttled);
    if (now.throttled > 0) out->advice = "look whether it grows while tuning: contests interleave, but cooling helps";
}

// Half a processor's worth of other work is seen in times.
void cli_check_load(hone_cli *cli, cli_check *out)
{
    (void)cli;
    const hone_os_conditions now = conditions();
    const double busy = 0.5, much_stolen = 0.02;
    out->ok = true;
    size_t used = 0;
    if (now.load < 0)
        used = (size_t)snprintf(out->detail, sizeof out->detail, "not visible here");
    else
        used = (size_t)snprintf(out->detail, sizeof out->detail, "%.2f in the last minute", now.load);
    if (now.stolen >= 0)
        snprintf(
            out->detail + used, sizeof out->detail - used, ", %.2f %% of the time was the host's", 100 * now.stolen);
    if (now.load > busy) out->advice = "stop other work while tuning: it costs time, and close calls";
    if (now.stolen > much_stolen)
        out->advice = "the host gives this machine's processors to others: tune when it is quieter, or elsewhere";
}
