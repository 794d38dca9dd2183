// Tables of aligned columns. What a column is like is learnt as its cells come, so that a table of n rows costs n.
#include "cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct column {
    size_t width, least; // of its widest cell, of its longest word
    bool has_words;      // below its head
} column;

struct cli_table {
    size_t columns, rows, capacity;
    size_t width; // of standard output; 0: no limit
    bool marked;
    column *all;
    char **cells;
};

cli_table *cli_table_new(size_t columns)
{
    cli_table *table = calloc(1, sizeof *table);
    column *all = calloc(columns, sizeof *all);
    if (table == NULL || all == NULL) cli_no_memory();
    table->columns = columns;
    table->all = all;
    return table;
}

void cli_table_marked(cli_table *table)
{
    table->marked = true;
}

static bool is_number(const char *text)
{
    return text[0] == '\0' || isdigit((unsigned char)text[0]) || (text[0] == '-' && isdigit((unsigned char)text[1])) ||
           strcmp(text, "-") == 0;
}

static size_t longest_word(const char *text)
{
    size_t most = 0;
    for (size_t size; *text != '\0'; text += size) {
        const size_t width = cli_word_width(text, &size);
        if (width > most) most = width;
    }
    return most;
}

static void learn(cli_table *table, size_t i, const char *cell)
{
    column *its = &table->all[i];
    const size_t width = cli_text_width(cell, strlen(cell)), least = longest_word(cell);
    if (width > its->width) its->width = width;
    if (least > its->least) its->least = least;
    if (table->rows > 0 && !its->has_words) its->has_words = !is_number(cell);
}

void cli_table_row(cli_table *table, ...)
{
    if (table->rows == table->capacity) {
        table->capacity = table->capacity == 0 ? 16 : table->capacity * 2;
        char **cells = realloc(table->cells, table->capacity * table->columns * sizeof *cells);
        if (cells == NULL) cli_no_memory();
        table->cells = cells;
    }
    va_list list;
    va_start(list, table);
    for (size_t i = 0; i < table->columns; i++) {
        const char *cell = va_arg(list, const char *);
        char *copy = strdup(cell == NULL ? "" : cell);
        if (copy == NULL) cli_no_memory();
        cli_make_printable(copy, "");
        learn(table, i, copy);
        table->cells[table->rows * table->columns + i] = copy;
    }
    va_end(list);
    table->rows++;
}

enum { INDENT = 4 }; // of columns that stand below the first ones of their row

// What is between a column and the next.
static size_t gap_after(const cli_table *table, size_t i)
{
    return table->marked && i == 0 ? 1 : 2;
}

// NULL: every column of words is as narrow as its longest word; numbers are never broken.
static column *widest_of_words(const cli_table *table, size_t first, size_t end)
{
    column *widest = NULL;
    for (size_t i = first; i < end; i++) {
        column *its = &table->all[i];
        if (!its->has_words || its->width <= its->least) continue;
        if (widest == NULL || its->width > widest->width) widest = its;
    }
    return widest;
}

// Narrows the columns of words, the widest first, until these columns fit or each word has a line.
static void narrow(cli_table *table, size_t first, size_t end, size_t room)
{
    size_t total = 0;
    for (size_t i = first; i < end; i++)
        total += table->all[i].width + (i + 1 < end ? gap_after(table, i) : 0);
    for (column *its; total > room && (its = widest_of_words(table, first, end)) != NULL; total--)
        its->width--;
}

// The columns from `first` on that stand on one line: all, or as many as fit when they are as narrow as can be.
static size_t end_of_line(const cli_table *table, size_t first, size_t room)
{
    size_t total = 0, i = first;
    for (; i < table->columns; i++) {
        const column *its = &table->all[i];
        total += its->has_words ? its->least : its->width;
        if (i > first && total > room) break;
        total += gap_after(table, i);
    }
    return i;
}

static size_t room_of(const cli_table *table, size_t first)
{
    return first == 0 ? table->width : table->width - INDENT;
}

static void fit(cli_table *table)
{
    for (size_t first = 0, end; table->width > 0 && first < table->columns; first = end) {
        end = end_of_line(table, first, room_of(table, first));
        narrow(table, first, end, room_of(table, first));
    }
}

static void pad(cli_text *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cli_text_char(out, ' ');
}

// The next line of a cell; *cell is moved past it.
static void put_cell(const cli_table *table, size_t i, const char **cell, cli_text *out)
{
    const column *its = &table->all[i];
    const bool right = table->rows > 1 && !its->has_words;
    const size_t taken = cli_break(*cell, strlen(*cell), its->width), shown = cli_text_width(*cell, taken);
    const size_t empty = its->width > shown ? its->width - shown : 0;
    if (right) pad(out, empty);
    cli_text_append(out, *cell, taken);
    if (!right) pad(out, empty);
    pad(out, gap_after(table, i));
    *cell += taken;
    while (**cell == ' ')
        (*cell)++;
}

static void print_trimmed(cli_text *line, bool is_below)
{
    const char *text = cli_text_string(line);
    size_t size = line->size;
    while (size > 0 && text[size - 1] == ' ')
        size--;
    if (size > 0 || !is_below) printf("%.*s\n", (int)size, text);
    cli_text_clear(line);
}

// A row has as many lines as its longest cell, repeated for each group of columns that fits side by side.
static void print_row(const cli_table *table, const char **cells, cli_text *line)
{
    for (size_t first = 0, end; first < table->columns; first = end) {
        end = table->width > 0 ? end_of_line(table, first, room_of(table, first)) : table->columns;
        for (bool is_left = true; is_left;) {
            is_left = false;
            pad(line, first == 0 ? 0 : INDENT);
            for (size_t i = first; i < end; i++) {
                put_cell(table, i, &cells[i], line);
                is_left = is_left || *cells[i] != '\0';
            }
            print_trimmed(line, first > 0);
        }
    }
}

static bool is_colored(void)
{
    return isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
}

void cli_table_print(cli_table *table)
{
    const bool colored = is_colored();
    const char **cells = calloc(table->columns, sizeof *cells);
    cli_text line;
    cli_text_init(&line);
    if (cells == NULL) cli_no_memory();
    table->width = cli_width();
    fit(table);
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t i = 0; i < table->columns; i++)
            cells[i] = table->cells[row * table->columns + i];
        const bool bold = colored && table->marked && strcmp(cells[0], "*") == 0;
        if (bold) fputs("\033[1m", stdout);
        print_row(table, cells, &line);
        if (bold) fputs("\033[0m", stdout);
    }
    cli_text_deinit(&line);
    free(cells);
    cli_table_drop(table);
}

void cli_table_drop(cli_table *table)
{
    if (table == NULL) return;
    for (size_t i = 0; i < table->rows * table->columns; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table->all);
    free(table);
}

// Devices of a table --------------------------------------------------------------------------------------------------

char *cli_device_number(json_t *devices, const char *fingerprint, char out[24])
{
    size_t i = 0;
    while (i < json_array_size(devices) && strcmp(json_string_value(json_array_get(devices, i)), fingerprint) != 0)
        i++;
    if (i == json_array_size(devices) && json_array_append_new(devices, json_string(fingerprint)) != 0) cli_no_memory();
    snprintf(out, 24, "%zu", i + 1);
    return out;
}

void cli_print_devices(json_t *devices)
{
    for (size_t i = 0; i < json_array_size(devices); i++)
        cli_say("device %zu: %s\n", i + 1, json_string_value(json_array_get(devices, i)));
    json_decref(devices);
}
