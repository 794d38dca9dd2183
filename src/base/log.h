// Words for the host: a callback that the runtime was opened with. The library itself never prints.
#ifndef HONE_BASE_LOG_H
#define HONE_BASE_LOG_H

#include "hone/status.h"

typedef enum hone_log_level { HONE_LOG_ERROR, HONE_LOG_WARNING, HONE_LOG_INFO, HONE_LOG_DEBUG } hone_log_level;

typedef struct hone_log {
    void (*write)(void *ctx, int level, const char *message); // NULL: nobody listens
    void *ctx;
    int level; // messages above it are not made
} hone_log;

void hone_log_write(const hone_log *log, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
