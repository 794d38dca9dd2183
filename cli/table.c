// Tables of aligned columns. What a column is like is learnt as its cells come, so that a table of n rows costs n.
#include "cli.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct column {
    size_t width;
    bool has_words; // below its head
} column;

struct cli_table {
    size_t columns, rows, capacity;
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

static void learn(cli_table *table, size_t i, const char *cell, size_t width)
{
    column *its = &table->all[i];
    if (width > its->width) its->width = width;
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
        learn(table, i, copy, strlen(copy));
        table->cells[table->rows * table->columns + i] = copy;
    }
    va_end(list);
    table->rows++;
}

static void print_cell(const cli_table *table, size_t row, size_t i)
{
    const char *cell = table->cells[row * table->columns + i];
    const bool last = i + 1 == table->columns, right = table->rows > 1 && !table->all[i].has_words;
    const int width = (int)table->all[i].width;
    if (right)
        printf("%*s%s", width, cell, last ? "" : "  ");
    else
        printf("%-*s%s", last ? 0 : width, cell, last ? "" : table->marked && i == 0 ? " " : "  ");
}

static bool is_colored(void)
{
    return isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
}

void cli_table_print(cli_table *table)
{
    bool colored = is_colored();
    for (size_t row = 0; row < table->rows; row++) {
        bool bold = colored && table->marked && strcmp(table->cells[row * table->columns], "*") == 0;
        if (bold) fputs("\033[1m", stdout);
        for (size_t i = 0; i < table->columns; i++)
            print_cell(table, row, i);
        puts(bold ? "\033[0m" : "");
    }
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
        printf("device %zu: %s\n", i + 1, json_string_value(json_array_get(devices, i)));
    json_decref(devices);
}
