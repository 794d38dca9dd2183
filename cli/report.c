// --report: a result as a page, in a file.
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static bool folder_is_writable(const char *path)
{
    char folder[PATH_SIZE];
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return access(".", W_OK) == 0;
    int size = slash == path ? 1 : (int)(slash - path);
    if (size >= PATH_SIZE) return false;
    snprintf(folder, sizeof folder, "%.*s", size, path);
    return access(folder, W_OK) == 0;
}

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

int cli_check_file(const char *option, const char *path)
{
    if (path == NULL) return EXIT_DONE;
    bool is_there = access(path, W_OK) == 0;
    if (is_there && !is_folder(path)) return EXIT_DONE;
    if (is_there) errno = EISDIR;
    if (errno == ENOENT && path[0] != '\0' && folder_is_writable(path)) return EXIT_DONE;
    cli_warn("%s %s: %s", option, path, strerror(errno));
    return EXIT_WORLD;
}

static hone_status write_page(const char *path, const hone_result *result, hone_error *err)
{
    char *page = NULL;
    hone_status status = hone_result_report(result, &page, err);
    if (status == HONE_OK) status = cli_write_file(path, page, strlen(page), err);
    hone_text_release(&page);
    return status;
}

int cli_write_report(hone_cli *cli, const hone_result *result)
{
    const char *path = cli->options.report;
    hone_error err = {.message = ""};
    if (path == NULL) return EXIT_DONE;
    if (write_page(path, result, &err) != HONE_OK) return cli_fail(&err);
    if (!cli->options.json) printf("report in %s\n", path);
    return EXIT_DONE;
}
