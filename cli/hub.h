// Folders in the layout of Hugging Face's kernels: build/VARIANT/ with metadata.json, kernels.lock beside a program.
#ifndef HONE_CLI_HUB_H
#define HONE_CLI_HUB_H

#include "cli.h"

enum { CLI_HUB_PATH = 4096, CLI_HUB_NAME = 256 };

typedef struct cli_hub_choice {
    char library[CLI_HUB_PATH];                                         // the variant's one library
    char variant[CLI_HUB_NAME], id[CLI_HUB_NAME], commit[CLI_HUB_NAME]; // "": not known
} cli_hub_choice;

// Chooses the variant that fits this machine, prints why each other one does not, and compares its files with the digests of
// its metadata.json, and its revision with the lock file. Returns an exit status after printing what failed.
//   lock  NULL: none is asked for
int cli_hub_choose(const char *folder, const char *lock, cli_hub_choice *out);

#endif
