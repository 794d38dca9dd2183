// The registry's life and its readers. Writers are in register.c.
#include "registry/tables.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

static const char where[] = "registry.create";

static const hone_algorithm_list no_algorithms = {0};
static const hone_kernel_list no_kernels = {0};

hone_status hone_registry_create(
    const hone_allocator *allocator, hone_platform_find *platforms, void *owner, hone_registry **out, hone_error *err)
{
    hone_assert(platforms != NULL);
    *out = NULL;
    hone_registry *registry = hone_alloc(allocator, sizeof *registry);
    if (registry == NULL) return hone_fail_memory(err, where);
    hone_mutex_init(&registry->mutex);
    hone_mutex_init(&registry->late_mutex);
    hone_mutex_init(&registry->life);
    registry->allocator = *allocator;
    registry->platforms = platforms;
    registry->present_backends = 1u << HONE_CPU;
    registry->default_backend = HONE_CPU;
    registry->features = UINT64_MAX;
    registry->owner = owner;
    atomic_init(&registry->algorithms, &no_algorithms);
    atomic_init(&registry->deferred, NULL);
    atomic_init(&registry->late_done, true);
    atomic_init(&registry->retired, NULL);
    atomic_init(&registry->epoch, 1);
    for (int i = 0; i < 3; i++)
        atomic_init(&registry->readers[i], 0);
    *out = registry;
    return HONE_OK;
}

void hone_registry_leave_out(hone_registry *registry, uint32_t platforms)
{
    registry->left_out = platforms;
}

void hone_registry_set_hardware(
    hone_registry *registry, uint32_t present_backends, hone_backend default_backend, uint64_t features)
{
    registry->present_backends = present_backends;
    registry->default_backend = default_backend;
    registry->features = features;
}

void hone_registry_destroy(hone_registry **registry)
{
    hone_registry *gone = *registry;
    if (gone == NULL) return;
    *registry = NULL;
    // A kernel's batch is newer than its algorithm's, so nothing is released before what points at it.
    for (hone_registry_batch *next, *owned = gone->batches; owned != NULL; owned = next) {
        next = owned->next;
        hone_registry_batch_destroy(owned, &gone->allocator);
    }
    hone_registry_deferred_destroy(gone);
    hone_foreign *foreign = atomic_load(&gone->foreign);
    hone_foreign_release(&foreign);
    hone_mutex_deinit(&gone->life);
    hone_mutex_deinit(&gone->late_mutex);
    hone_mutex_deinit(&gone->mutex);
    hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

// Memory on the stack for the one lower-cased name: look-ups allocate nothing.
typedef struct scratch {
    _Alignas(max_align_t) unsigned char bytes[4096];
    size_t used;
} scratch;

static void *scratch_reallocate(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    scratch *space = ctx;
    size_t size = (new_size + 15) & ~(size_t)15;
    if (new_size == 0 || size < new_size || size > sizeof space->bytes - space->used) return NULL;
    void *block = space->bytes + space->used;
    space->used += size;
    if (ptr != NULL) memcpy(block, ptr, old_size < new_size ? old_size : new_size);
    return block;
}

static bool lower(const char *text, size_t size, char out[HONE_NAME_SIZE])
{
    scratch space;
    space.used = 0;
    hone_buffer buffer;
    hone_buffer_init(&buffer, (hone_allocator){&space, scratch_reallocate});
    hone_text_lower(&buffer, text, size);
    bool fits = !buffer.failed && buffer.size > 0 && buffer.size < HONE_NAME_SIZE;
    if (fits) memcpy(out, hone_buffer_string(&buffer), buffer.size + 1);
    hone_buffer_deinit(&buffer);
    return fits;
}

bool hone_registry_name_read(const char *text, hone_registry_name *out)
{
    enum { LONGEST = 256 }; // no lower case shrinks a longer one under HONE_NAME_SIZE
    size_t size = strnlen(text, LONGEST);
    if (size == LONGEST) return false;
    out->version[0] = '\0';
    const char *at = strstr(text, "@v");
    if (at != NULL) {
        size_t version_size = size - (size_t)(at - text) - 2;
        if (version_size == 0 || version_size >= sizeof out->version) return false;
        memcpy(out->version, at + 2, version_size + 1);
        size = (size_t)(at - text);
    }
    return lower(text, size, out->name);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(const char *text)
{
    size_t count = 0;
    while (is_digit(text[count]))
        count++;
    return count;
}

// Compares two runs of digits as numbers of any length and steps over both.
static int compare_numbers(const char **a, const char **b)
{
    while (**a == '0' && is_digit((*a)[1]))
        ++*a;
    while (**b == '0' && is_digit((*b)[1]))
        ++*b;
    size_t length_a = digits(*a);
    size_t length_b = digits(*b);
    if (length_a != length_b) return length_a < length_b ? -1 : 1;
    int order = memcmp(*a, *b, length_a);
    *a += length_a;
    *b += length_b;
    return order;
}

// Natural order: runs of digits compare as numbers, the rest by bytes, so that 1.10 comes behind 1.9. Numbers of any
// length, without their leading zeros, compare by length and then by digits.
int hone_registry_version_compare(const char *a, const char *b)
{
    const char *left = a;
    const char *right = b;
    while (*left != '\0' && *right != '\0') {
        if (is_digit(*left) && is_digit(*right)) {
            int order = compare_numbers(&left, &right);
            if (order != 0) return order;
        } else if (*left != *right) {
            return (unsigned char)*left < (unsigned char)*right ? -1 : 1;
        } else {
            left++;
            right++;
        }
    }
    if (*left != *right) return *left == '\0' ? -1 : 1;
    return strcmp(a, b); // "01" and "1" are two versions, in some order
}

const hone_algorithm_entry *hone_registry_find_now(hone_registry *registry, const hone_registry_name *from)
{
    const hone_algorithm_list *list = atomic_load_explicit(&registry->algorithms, memory_order_acquire);
    size_t low = 0;
    size_t high = list->count;
    // Binary search for the end of the versions of that name; from there back, the newest comes first.
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(list->entries[middle]->name, from->name) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i > 0 && strcmp(list->entries[i - 1]->name, from->name) == 0; i--)
        if (from->version[0] == '\0' || strcmp(list->entries[i - 1]->version, from->version) == 0)
            return list->entries[i - 1];
    return NULL;
}

const hone_algorithm_entry *hone_registry_find(hone_registry *registry, const char *name, const char *version)
{
    hone_registry_name wanted;
    if (name == NULL || !hone_registry_name_read(name, &wanted)) return NULL;
    if (version != NULL && version[0] != '\0') {
        if (strlen(version) >= sizeof wanted.version) return NULL;
        memcpy(wanted.version, version, strlen(version) + 1);
    }
    if (hone_registry_load_name(registry, wanted.name, NULL) != HONE_OK) return NULL;
    return hone_registry_find_now(registry, &wanted);
}

const hone_kernel_list *hone_registry_kernels_now(const hone_algorithm_entry *entry)
{
    const hone_owned_algorithm *whole = (const hone_owned_algorithm *)entry;
    const hone_kernel_list *list = atomic_load_explicit(&whole->kernels, memory_order_acquire);
    return list == NULL ? &no_kernels : list;
}

const hone_kernel_ref *const *hone_registry_list(const hone_algorithm_entry *entry, size_t *out_count)
{
    const hone_kernel_list *list = hone_registry_kernels_now(entry);
    *out_count = list->count;
    return list->refs;
}

const hone_algorithm_entry *const *hone_registry_all_now(hone_registry *registry, size_t *out_count)
{
    const hone_algorithm_list *list = atomic_load_explicit(&registry->algorithms, memory_order_acquire);
    *out_count = list->count;
    return list->entries;
}

const hone_algorithm_entry *const *hone_registry_all(hone_registry *registry, size_t *out_count)
{
    // Where there is no memory to register one, the list is without it: hone_registry_load says so.
    (void)hone_registry_load(registry, NULL);
    return hone_registry_all_now(registry, out_count);
}

const hone_kernel *hone_kernel_of(const hone_kernel_ref *kernel)
{
    return kernel == NULL ? NULL : &kernel->kernel;
}

static const hone_kernel_ref *named_from(
    const hone_kernel_list *list, size_t from, const char *name, hone_platform platform)
{
    for (size_t i = from; i < list->count; i++) {
        const hone_kernel *kernel = &list->refs[i]->kernel;
        if ((platform == HONE_PLATFORM_NONE || kernel->platform == platform) && strcmp(kernel->name, name) == 0)
            return list->refs[i];
    }
    return NULL;
}

bool hone_same_revision(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "1", b != NULL ? b : "1") == 0;
}

bool hone_kernel_is_of_pack(const hone_kernel_ref *kernel)
{
    return kernel->kernel.code != NULL && kernel->kernel.code->pack != NULL;
}

const hone_kernel_ref *hone_kernel_by_name(const hone_algorithm_entry *entry, const char *name, hone_platform platform)
{
    return named_from(hone_registry_kernels_now(entry), 0, name, platform);
}

const hone_kernel_ref *hone_kernel_after(
    const hone_algorithm_entry *entry, const hone_kernel_ref *kernel, hone_platform platform)
{
    const hone_kernel_list *list = hone_registry_kernels_now(entry);
    for (size_t i = 0; i < list->count; i++)
        if (list->refs[i] == kernel) return named_from(list, i + 1, kernel->kernel.name, platform);
    return NULL;
}

bool hone_kernel_is_registered(const hone_kernel_ref *kernel)
{
    hone_registry_reader reader;
    bool found = false;
    hone_registry_enter(kernel->registry, &reader);
    const hone_kernel_list *list = hone_registry_kernels_now(kernel->algorithm);
    for (size_t i = 0; i < list->count && !found; i++)
        found = list->refs[i] == kernel;
    hone_registry_leave(&reader);
    return found;
}

const hone_kernel_ref *hone_kernel_for_device(
    const hone_algorithm_entry *entry, const char *name, hone_platform platform, const hone_device_info *device)
{
    const hone_kernel_ref *first = hone_kernel_by_name(entry, name, platform), *of_any = NULL;
    for (const hone_kernel_ref *one = first; device != NULL && one != NULL;
         one = hone_kernel_after(entry, one, platform)) {
        if (one->kernel.backend == device->backend) return one;
        if (of_any == NULL && one->kernel.backend == HONE_ANY) of_any = one;
    }
    return of_any != NULL ? of_any : first;
}
