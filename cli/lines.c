// Text that fits the terminal: how wide it is, where a line breaks, and what was probably meant by a misspelt name.
#include "cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST_WIDTH = 20, MOST_WIDTH = 10000, USUAL_WIDTH = 80 };

static size_t width_of(int file)
{
    const char *columns = getenv("COLUMNS");
    const long given = columns != NULL ? strtol(columns, NULL, 10) : 0;
    if (given >= LEAST_WIDTH && given <= MOST_WIDTH) return (size_t)given;
    struct winsize window = {.ws_col = 0};
    if (!isatty(file)) return 0;
    return ioctl(file, TIOCGWINSZ, &window) == 0 && window.ws_col >= LEAST_WIDTH ? window.ws_col : USUAL_WIDTH;
}

static bool is_prose;

void cli_wrap_prose(bool on)
{
    is_prose = on;
}

size_t cli_width(void)
{
    const size_t width = width_of(STDOUT_FILENO);
    return width == 0 && is_prose ? USUAL_WIDTH : width;
}

size_t cli_text_width(const char *text, size_t size)
{
    size_t width = 0;
    for (size_t i = 0; i < size; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80; // UTF-8: bytes that continue a character take no room
    return width;
}

// Lists of features, configs and shapes are one word of many parts. Paths stay whole: they are copied.
static bool ends_part(char c)
{
    return c == ',' || c == '+' || c == '|' || c == ';';
}

size_t cli_word_width(const char *text, size_t *out_size)
{
    size_t size = 0;
    while (text[size] != '\0' && text[size] != ' ' && !ends_part(text[size]))
        size++;
    size += ends_part(text[size]);
    *out_size = size + (text[size] == ' ');
    return cli_text_width(text, size);
}

// The parts of a word that go on one line, at least one.
static size_t break_word(const char *text, size_t size, size_t width)
{
    size_t fits = 0;
    for (size_t i = 0; i < size; i++) {
        if (!ends_part(text[i]) && i + 1 < size) continue;
        if (fits > 0 && cli_text_width(text, i + 1) > width) break;
        fits = i + 1;
    }
    return fits;
}

size_t cli_break(const char *text, size_t size, size_t width)
{
    size_t fits = 0;
    for (size_t i = 0; i < size;) {
        size_t end = i;
        while (end < size && text[end] == ' ')
            end++;
        while (end < size && text[end] != ' ')
            end++;
        if (fits > 0 && cli_text_width(text, end) > width) break;
        fits = i = end;
    }
    return cli_text_width(text, fits) > width ? break_word(text, fits, width) : fits;
}

// Where the lines below continue: under the last column of a row, else two further than its indent.
static size_t hanging(const char *line, size_t size, size_t width)
{
    size_t indent = 0, column = 0;
    while (indent < size && line[indent] == ' ')
        indent++;
    for (size_t i = indent; i + 2 < size && i < width / 2; i++)
        if (line[i] == ' ' && line[i + 1] == ' ' && line[i + 2] != ' ') column = i + 2;
    if (is_prose) return indent;
    return column > 0 && column <= width / 2 ? column : indent + 2;
}

static void print_line(const char *line, size_t size, size_t width)
{
    if (width == 0 || cli_text_width(line, size) <= width) {
        printf("%.*s\n", (int)size, line);
        return;
    }
    const size_t indent = hanging(line, size, width);
    for (size_t room = width, before = 0; size > 0; room = width - indent, before = indent) {
        const size_t taken = cli_break(line, size, room);
        printf("%*s%.*s\n", (int)before, "", (int)taken, line);
        line += taken;
        size -= taken;
        while (size > 0 && *line == ' ') {
            line++;
            size--;
        }
    }
}

void cli_print_lines(const char *text)
{
    const size_t width = cli_width();
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n");
        print_line(text, size, width);
        text += size + (text[size] == '\n');
    }
}

// What others stored may hold anything, and a terminal obeys control characters.
void cli_make_printable(char *text, const char *but)
{
    for (; *text != '\0'; text++)
        if (((unsigned char)*text < ' ' || *text == 0x7f) && strchr(but, *text) == NULL)
            *text = *text == '\n' || *text == '\t' ? ' ' : '?';
}

void cli_say(const char *format, ...)
{
    static char line[16384];
    static size_t used;
    va_list list;
    va_start(list, format);
    const int size = vsnprintf(line + used, sizeof line - used, format, list);
    va_end(list);
    if (size < 0) return;
    cli_make_printable(line + used, "\n\t");
    used += (size_t)size < sizeof line - used ? (size_t)size : sizeof line - used - 1;
    if (used == 0 || (line[used - 1] != '\n' && used + 1 < sizeof line)) return;
    cli_print_lines(line);
    used = 0;
}

void cli_warn_list(const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    const int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = size < 0 ? NULL : malloc((size_t)size + 1);
    if (text == NULL) cli_no_memory();
    vsnprintf(text, (size_t)size + 1, format, list);
    cli_make_printable(text, "\n\t");
    fprintf(stderr, "hone: %s\n", text);
    free(text);
}

void cli_warn(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    cli_warn_list(format, list);
    va_end(list);
}

void cli_say_elsewhere(const char *indent, size_t count)
{
    cli_say(
        "%s%zu kernel%s for other devices or calls, or need%s what is not installed (--all shows why)\n", indent, count,
        count == 1 ? " is" : "s are", count == 1 ? "s" : "");
}

void cli_print_progress(const char *text)
{
    const size_t width = width_of(STDERR_FILENO) > 0 ? width_of(STDERR_FILENO) : USUAL_WIDTH;
    size_t size = strcspn(text, "\n");
    while (size > 0 && cli_text_width(text, size) >= width)
        size--;
    while (size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80) // not within a character
        size--;
    fprintf(stderr, "\r\033[K%.*s", (int)size, text);
    fflush(stderr);
}

// What was meant ------------------------------------------------------------------------------------------------------

void cli_meant_by(cli_meant *meant, const char *name)
{
    const bool has_one = meant->name[0] != '\0';
    const char *const both[] = {has_one ? meant->name : name, name};
    if (hone_names_nearest(meant->given, both, has_one ? 2 : 1) == name)
        snprintf(meant->name, sizeof meant->name, "%s", name);
}

const char *cli_meant_text(cli_meant *meant)
{
    if (meant->name[0] != '\0')
        snprintf(meant->text, sizeof meant->text, "; did you mean %s%s?", meant->before, meant->name);
    return meant->text;
}
