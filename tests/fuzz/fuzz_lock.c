// Lock files of any origin. What is read must write itself so that it reads back the same.
#include "lock/lock.h"

#include <stdlib.h>
#include <string.h>

static void check_line(const hone_lock_line *a, const hone_lock_line *b)
{
    if (hone_lock_line_compare(a, b) != 0 || strcmp(a->platform, b->platform) != 0 ||
        strcmp(a->kernel, b->kernel) != 0 || strcmp(a->config, b->config) != 0 ||
        strcmp(a->config_text, b->config_text) != 0)
        abort();
    if (a->revision != b->revision &&
        (a->revision == NULL || b->revision == NULL || strcmp(a->revision, b->revision) != 0))
        abort();
}

static void check_again(const hone_lock *lock)
{
    hone_buffer text;
    hone_lock *again = NULL;
    hone_buffer_init(&text, hone_allocator_system());
    hone_lock_text(lock, &text);
    hone_status status =
        hone_lock_parse(hone_allocator_system(), "hone.lock", hone_buffer_string(&text), text.size, 0, &again, NULL);
    if (!text.failed && status != HONE_OUT_OF_MEMORY) {
        if (status != HONE_OK || hone_lock_size(lock) != hone_lock_size(again)) abort();
        for (size_t i = 0; i < hone_lock_size(lock); i++)
            check_line(hone_lock_at(lock, i), hone_lock_at(again, i));
    }
    hone_lock_release(&again);
    hone_buffer_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_lock *lock = NULL;
    hone_error err;
    hone_status status = hone_lock_parse(
        hone_allocator_system(), "hone.lock", (const char *)data, size, HONE_LOCK_UNSEALED, &lock, &err);
    if (status == HONE_OK)
        check_again(lock);
    else if (lock != NULL || err.message[0] == '\0')
        abort();
    hone_lock_release(&lock);
    return 0;
}
