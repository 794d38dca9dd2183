// One check of hone doctor.
#ifndef HONE_CLI_DOCTOR_H
#define HONE_CLI_DOCTOR_H

#include "cli.h"

typedef struct cli_check {
    bool ok;
    char detail[1000];
    const char *advice; // NULL: none needed
} cli_check;

// What is kept in files (doctor_files.c).
void cli_check_store(hone_cli *cli, cli_check *out);
void cli_check_damage(hone_cli *cli, cli_check *out);
void cli_check_system_store(hone_cli *cli, cli_check *out);
void cli_check_file_system(hone_cli *cli, cli_check *out);
void cli_check_lock(hone_cli *cli, cli_check *out);

// What moves times from outside (doctor_machine.c).
void cli_check_governor(hone_cli *cli, cli_check *out);
void cli_check_frequency(hone_cli *cli, cli_check *out);
void cli_check_pinning(hone_cli *cli, cli_check *out);
void cli_check_throttling(hone_cli *cli, cli_check *out);
void cli_check_load(hone_cli *cli, cli_check *out);
void cli_check_contests(hone_cli *cli, cli_check *out);

#endif
