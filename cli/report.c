// --report and --t4: a result as a page, and what was measured as T4 results, in files.
#include "cli.h"

#include "simulate/t4.h"

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
    fprintf(stderr, "hone: %s %s: %s\n", option, path, strerror(errno));
    return EXIT_WORLD;
}

int cli_check_report(const hone_cli *cli)
{
    int status = cli_check_file("--report", cli->options.report);
    return status == EXIT_DONE ? cli_check_file("--t4", cli->options.t4) : status;
}

static hone_status write_page(const char *path, const hone_result *result, hone_error *err)
{
    char *page = NULL;
    hone_status status = hone_result_report(result, &page, err);
    if (status == HONE_OK) status = cli_write_file(path, page, strlen(page), err);
    hone_text_free(page);
    return status;
}

// Of the chosen kernel, unless --kernel names another.
static hone_status write_t4(hone_cli *cli, const hone_result *result, hone_error *err)
{
    const hone_decision *decision = hone_result_decision(result, 0);
    char name[sizeof decision->algorithm + sizeof decision->version + 4];
    snprintf(name, sizeof name, "%s@v%s", decision->algorithm, decision->version);
    const hone_op *op = NULL;
    hone_status status = hone_op_get(cli->rt, name, &op, err);
    if (status != HONE_OK) return status;
    const char *kernel = cli->options.kernel != NULL ? cli->options.kernel : decision->kernel;
    const hone_kernel_ref *ref = cli_kernel_named(cli, op, kernel, decision->platform, decision->backend);
    if (ref == NULL) {
        *err = (hone_error){.status = HONE_NOT_FOUND, .where = "tune"};
        snprintf(err->message, sizeof err->message, "--t4: no kernel is named %s", kernel);
        return err->status;
    }
    hone_buffer text;
    hone_buffer_init(&text, hone_allocator_system());
    status = hone_result_t4(result, 0, kernel, hone_kernel_space(ref), &text, err);
    if (status == HONE_OK) status = cli_write_file(cli->options.t4, text.data, text.size, err);
    hone_buffer_deinit(&text);
    return status;
}

int cli_write_report(hone_cli *cli, const hone_result *result)
{
    const cli_options *options = &cli->options;
    hone_error err = {.message = ""};
    hone_status status = HONE_OK;
    if (options->report != NULL) status = write_page(options->report, result, &err);
    if (status == HONE_OK && options->t4 != NULL && hone_result_size(result) > 0) status = write_t4(cli, result, &err);
    if (status != HONE_OK) return cli_fail(&err);
    if (options->report != NULL && !options->json) printf("report in %s\n", options->report);
    if (options->t4 != NULL && !options->json) printf("T4 results in %s\n", options->t4);
    return EXIT_DONE;
}
