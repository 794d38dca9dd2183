// The command: finds the row of the command that was asked for, reads its options, runs it. The rows are in commands.c.
#include "cli.h"

#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int cancel;
static bool is_heeded; // somebody knows of it, or will when it is set

bool cli_is_cancelled(void)
{
    if (cancel) is_heeded = true;
    return cancel != 0;
}

const volatile int *cli_lend_cancel(void)
{
    is_heeded = true;
    return &cancel;
}

enum { FIRST_OPTION = 256 }; // getopt's number of the first option; below stand letters

static int read_value(cli_options *options, size_t index, const char *text)
{
    void *field = (char *)options + cli_option_rows[index].offset;
    const char *name = cli_option_rows[index].name;
    char *end = NULL;
    switch (cli_option_rows[index].kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return 0;
    case CLI_TEXT:
        if (text[0] == '\0') return cli_usage("--%s is empty, expected%s", name, cli_option_rows[index].value);
        *(const char **)field = text;
        return 0;
    case CLI_LIST: {
        cli_names *list = field;
        if (list->count == CLI_NAMES_SIZE) return cli_usage("--%s more than %d times", name, CLI_NAMES_SIZE);
        list->items[list->count++] = text;
        return 0;
    }
    case CLI_SECONDS: {
        double seconds = strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(seconds) || seconds <= 0)
            return cli_usage("--%s is '%s', expected a number of seconds above 0", name, text);
        *(double *)field = seconds;
        return 0;
    }
    case CLI_PERCENT: {
        double percent = strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(percent) || percent <= 0)
            return cli_usage("--%s is '%s', expected a number of percent above 0", name, text);
        *(double *)field = percent;
        return 0;
    }
    case CLI_NUMBER:
    case CLI_COUNT: {
        long long number = strtoll(text, &end, 10), least = cli_option_rows[index].kind == CLI_COUNT ? 1 : 0;
        if (end == text || *end != '\0' || number < least || number > INT32_MAX)
            return cli_usage("--%s is '%s', expected a whole number from %lld to %d", name, text, least, INT32_MAX);
        *(int64_t *)field = number;
        return 0;
    }
    }
    return 0;
}

static int refuse_option(const cli_command *command, const char *text)
{
    char name[64];
    cli_meant meant = {.given = name, .before = "--"};
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text + strspn(text, "-"));
    for (size_t i = 0; i < cli_option_count; i++)
        if (cli_takes(command->options, cli_option_rows[i].name)) cli_meant_by(&meant, cli_option_rows[i].name);
    return cli_usage(
        "%s takes no option %s%s (hone help %s)", command->name, text, cli_meant_text(&meant), command->name);
}

// getopt_long takes the beginning of a name for the name. An option that is added later would break scripts which rely
// on that. given: what getopt has just read, with its value where that stands apart.
static int check_whole(char **given, const char *value, const char *name)
{
    const char *text = value != NULL && value == given[-1] ? given[-2] : given[-1];
    const size_t size = strcspn(text, "=");
    if (size == strlen(name) + 2 && strncmp(text + 2, name, size - 2) == 0) return 0;
    return cli_usage("%.*s is an abbreviation: write --%s", (int)size, text, name);
}

static int row_of(const char *name)
{
    int row = 0;
    while (strcmp(cli_option_rows[row].name, name) != 0)
        row++;
    return row;
}

// Refused before the work: JSON is UTF-8, and names of files are in its documents.
static int check_names(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        json_t *name = json_string(argv[i]);
        json_decref(name);
        if (name != NULL) continue;
        for (char *at = argv[i]; *at != '\0'; at++)
            if ((unsigned char)*at > 0x7f) *at = '?';
        return cli_usage("'%s' is not UTF-8, and --json cannot show it: leave --json out", argv[i]);
    }
    return 0;
}

static int refuse_count(const hone_cli *cli, const cli_command *command)
{
    const char *plural = cli->count == 1 ? "" : "s";
    if (command->arguments == NULL)
        return cli_usage(
            "expected hone %s without arguments, got %zu (hone help %s)", command->name, cli->count, command->name);
    return cli_usage(
        "expected hone %s %s, got %zu argument%s (hone help %s)", command->name, command->arguments, cli->count, plural,
        command->name);
}

// Options may stand before or after arguments; getopt_long moves them to the front.
static int read_options(const cli_command *command, int argc, char **argv, hone_cli *cli)
{
    struct option long_options[CLI_OPTIONS_MAX + 2] = {{0}};
    int count = 0;
    for (size_t i = 0; i < cli_option_count; i++) {
        const cli_option *row = &cli_option_rows[i];
        if (cli_takes(command->options, row->name))
            long_options[count++] = (struct option){
                row->name, row->kind == CLI_FLAG ? no_argument : required_argument, NULL, FIRST_OPTION + (int)i};
    }
    long_options[count++] = (struct option){"help", no_argument, NULL, 'h'};
    opterr = 0;
    optind = 1;
    for (int found; (found = getopt_long(argc, argv, ":ho:", long_options, NULL)) != -1;) {
        if (found == 'h') {
            cli->arguments = (char *[]){(char *)(uintptr_t)command->name};
            cli->count = 1;
            return cli_help(cli) == 0 ? -1 : EXIT_USAGE;
        }
        const bool is_short = found == 'o' && cli_takes(command->options, "output");
        if (is_short) found = FIRST_OPTION + row_of("output");
        if (found == ':') return cli_usage("%s needs a value (hone help %s)", argv[optind - 1], command->name);
        if (found == 'o') return cli_usage("%s takes no option -o (hone help %s)", command->name, command->name);
        if (found < FIRST_OPTION) return refuse_option(command, argv[optind - 1]);
        const size_t row = (size_t)(found - FIRST_OPTION);
        int status = is_short ? 0 : check_whole(argv + optind, optarg, cli_option_rows[row].name);
        if (status == 0) status = read_value(&cli->options, row, optarg);
        if (status != 0) return status;
        cli->given[row] = true;
    }
    if (cli->options.json && check_names(argc, argv) != 0) return EXIT_USAGE;
    cli->arguments = argv + optind;
    cli->count = (size_t)(argc - optind);
    if (cli->count < command->least || (command->most != 0 && cli->count > command->most) ||
        (command->arguments == NULL && cli->count > 0))
        return refuse_count(cli, command);
    return 0;
}

static void on_signal(int signal_number)
{
    (void)signal_number;
    if (cancel) _exit(EXIT_INTERRUPTED);
    cancel = 1;
}

static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a file beyond its limit is a write that fails
}

// Whether nobody reads the standard output any more, as in hone list | head.
static bool is_read_enough(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// The exit code, when all that was printed is written.
static int finish(int status)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || is_read_enough()) return status;
    cli_warn("standard output cannot be written");
    return status == EXIT_DONE ? EXIT_WORLD : status;
}

int main(int argc, char **argv)
{
    hone_cli cli = {.progress = isatty(STDERR_FILENO)};
    if (argc < 2) {
        cli_help(&cli);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("hone %s\n", hone_version());
        return finish(EXIT_DONE);
    }
    const char *name = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? "help" : argv[1];
    const cli_command *command = cli_find_command(name);
    if (command == NULL) return cli_refuse_command(name);
    int status = read_options(command, argc - 1, argv + 1, &cli);
    if (status != 0) return status < 0 ? finish(EXIT_DONE) : status;
    watch_signals();
    status = command->run(&cli);
    hone_runtime_close(&cli.rt);
    return finish(cancel && is_heeded ? EXIT_INTERRUPTED : status);
}
