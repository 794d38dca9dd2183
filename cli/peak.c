// What this machine can do at best, for the column "peak".
#include "cli.h"

static hone_peak peak;
static bool is_known;

static double *one_of(hone_peak *all, cli_peak_kind kind)
{
    return kind == CLI_PEAK_F32 ? &all->operations : kind == CLI_PEAK_BF16 ? &all->of_bf16 : &all->bytes;
}

const char *cli_peak_lacks(cli_peak_kind kind)
{
    return *one_of(&peak, kind) > 0 ? "" : peak.lacks;
}

static void read_peak(hone_cli *cli, bool anew)
{
    hone_peak now;
    if (hone_peak_read(cli->rt, anew, &now, NULL) == HONE_OK) peak = now;
    is_known = true;
}

// One that was kept may have been measured on a busier machine than this is now. What was reached all the same, by
// instructions that no loop of hone has, is the most that is known; it is not kept.
double cli_peak(hone_cli *cli, cli_peak_kind kind, double seen)
{
    double *one = one_of(&peak, kind);
    if (!is_known) read_peak(cli, false);
    if (!peak.is_new && *one < seen) read_peak(cli, true);
    if (*one > 0 && *one < seen) *one = seen;
    return *one;
}
