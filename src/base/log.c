#include "base/log.h"

#include "base/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hone_log_write(const hone_log *log, int level, const char *format, ...)
{
    if (log == NULL || log->write == NULL || level > log->level) return;
    char message[1024];
    va_list list;
    va_start(list, format);
    int length = hone_print_list(message, sizeof message, format, list);
    va_end(list);
    if (length < 0) return;
    if ((size_t)length >= sizeof message) memcpy(message + sizeof message - 4, "...", 4);
    log->write(log->ctx, level, message);
}
