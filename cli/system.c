#include "system.h"

#include "base/buffer.h"
#include "base/random.h"
#include "os/os.h"
#include "os/plain_file.h"

uint64_t cli_now_ns(void)
{
    return hone_os_now_ns();
}

void cli_sleep_ns(uint64_t nanoseconds)
{
    hone_os_sleep_ns(nanoseconds);
}

void cli_utc_text(double seconds, char out[24])
{
    hone_os_format_utc(seconds, out);
}

uint64_t cli_random_seed(void)
{
    return hone_os_random_seed();
}

uint32_t cli_random_below(uint64_t *state, uint32_t bound)
{
    return hone_random_below(state, bound);
}

bool cli_is_folder(const char *path)
{
    return hone_os_is_folder(path);
}

bool cli_is_file(const char *path)
{
    return hone_os_is_file(path);
}

bool cli_is_plain_file(const char *path)
{
    return hone_os_is_plain_file(path);
}

bool cli_real_path(const char *path, char *out, size_t size)
{
    return hone_os_real_path(path, out, size);
}

hone_status cli_make_folders(const char *path, hone_error *err)
{
    return hone_os_make_folders(path, err);
}

// What a function of the library appended to its own kind of text. Returns status.
static hone_status hand_over(hone_buffer *bytes, cli_text *out, hone_status status, hone_error *err)
{
    cli_text_init(out);
    if (bytes->size > 0) cli_text_append(out, bytes->data, bytes->size);
    hone_buffer_deinit(bytes);
    if (!out->failed) return status;
    cli_text_deinit(out);
    *err = (hone_error){HONE_OUT_OF_MEMORY, 0, "system", "out of memory"};
    return HONE_OUT_OF_MEMORY;
}

hone_status cli_read_file(const char *path, size_t limit, cli_text *out, hone_error *err)
{
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    const hone_status status = hone_os_read_file(path, limit, &bytes, err);
    if (status != HONE_OK) hone_buffer_clear(&bytes);
    return hand_over(&bytes, out, status, err);
}

hone_status cli_read_plain_file(const char *path, size_t limit, cli_text *out, hone_error *err)
{
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    const hone_status status = hone_os_read_plain_file(path, limit, &bytes, err);
    if (status != HONE_OK) hone_buffer_clear(&bytes);
    return hand_over(&bytes, out, status, err);
}

hone_status cli_run_program(
    const char *const *arguments, unsigned seconds, size_t limit, cli_text *out, int *out_code, hone_error *err)
{
    hone_buffer bytes;
    hone_buffer_init(&bytes, hone_allocator_system());
    const uint64_t deadline = hone_os_now_ns() + seconds * UINT64_C(1000000000);
    return hand_over(&bytes, out, hone_process_run(arguments, deadline, limit, &bytes, out_code, err), err);
}

hone_status cli_list_folder(const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err)
{
    return hone_os_list_folder(folder, visit, ctx, err);
}

hone_status cli_write_file(const char *path, const void *bytes, size_t size, hone_error *err)
{
    return hone_os_replace_file(path, bytes, size, err);
}

bool cli_make_private_folder(char *out, size_t size, int *out_hold)
{
    return hone_os_make_private_folder(out, size, out_hold);
}

void cli_remove_private_folder(const char *folder, int *hold)
{
    hone_os_remove_private_folder(folder, hold);
}
