// The libraries of others that compete, as the worker finds them: versions, cores, threads. Asked once a command.
#include "cli.h"

#include "os/os.h"
#include "runtime/api/api.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, LIBRARIES_SIZE = 1024 };

static char asked[LIBRARIES_SIZE];

const char *cli_libraries(hone_cli *cli)
{
    static bool is_asked;
    enum { SECONDS = 20 };
    char worker[PATH_SIZE];
    if (is_asked) return asked;
    is_asked = true;
    if (!hone_runtime_find_worker(cli->rt, worker, sizeof worker)) return asked;
    const char *const arguments[] = {worker, "libraries", NULL};
    int code = 0;
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    const uint64_t deadline = hone_os_now_ns() + SECONDS * UINT64_C(1000000000);
    hone_status status = hone_process_run(arguments, deadline, LIBRARIES_SIZE - 1, &text, &code, NULL);
    if (status == HONE_OK && code == 0) snprintf(asked, sizeof asked, "%s", hone_buffer_string(&text));
    hone_buffer_deinit(&text);
    return asked;
}

const char *cli_library_line(const char **text, size_t *out_size, bool *out_below)
{
    const char *line = *text;
    if (line[0] != ' ' && line[0] != '!') return NULL;
    *out_below = line[0] == '!';
    *out_size = strcspn(line + 1, "\n");
    *text = line + 1 + *out_size + (line[1 + *out_size] == '\n');
    return line + 1;
}

bool cli_library_is_below(hone_cli *cli, const char *kernel)
{
    const char *text = cli_libraries(cli), *line;
    size_t size;
    bool is_below;
    while ((line = cli_library_line(&text, &size, &is_below)) != NULL)
        if (is_below && strncmp(line, kernel, strcspn(line, " ")) == 0) return true;
    return false;
}

void cli_print_libraries(hone_cli *cli)
{
    const char *text = cli_libraries(cli), *line, *between = "  libraries: ";
    size_t size;
    bool is_below;
    while ((line = cli_library_line(&text, &size, &is_below)) != NULL) {
        cli_say("%s%.*s", between, (int)size, line);
        between = "; ";
    }
    if (between[0] == ';') cli_say("\n");
}
