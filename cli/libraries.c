// The libraries of others that compete: versions, cores, threads. Asked once a command.
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 16, TEXT_SIZE = 256 };

typedef struct library {
    char text[TEXT_SIZE];
    bool is_below;
} library;

static library asked[MOST];
static size_t asked_count;

static bool note(void *ctx, const hone_rival *rival)
{
    (void)ctx;
    if (asked_count == MOST) return true;
    library *one = &asked[asked_count++];
    snprintf(one->text, sizeof one->text, "%s", rival->text);
    one->is_below = rival->is_below;
    return true;
}

// None where nobody can be asked.
static size_t ask(hone_cli *cli)
{
    static bool is_asked;
    if (!is_asked) (void)!hone_rivals(cli->rt, note, NULL, NULL);
    is_asked = true;
    return asked_count;
}

bool cli_library_is_below(hone_cli *cli, const char *kernel)
{
    const size_t count = ask(cli);
    for (size_t i = 0; i < count; i++)
        if (asked[i].is_below && strncmp(asked[i].text, kernel, strcspn(asked[i].text, " ")) == 0) return true;
    return false;
}

void cli_print_libraries(hone_cli *cli)
{
    const size_t count = ask(cli);
    for (size_t i = 0; i < count; i++)
        cli_say("%s%s", i == 0 ? "  libraries: " : "; ", asked[i].text);
    if (count > 0) cli_say("\n");
}
