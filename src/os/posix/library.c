// Dynamic libraries. They stay mapped after a close (RTLD_NODELETE): a math library may have started threads, whose
// code would be unmapped.
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "os/os.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fenv.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char where[] = "os.library.open", where_file[] = "os.library.open_file";

struct hone_library {
    void *handle;
};

// A library that was linked with -Ofast or -ffast-math makes the thread that loads it treat subnormal numbers as zero,
// and the program would compute so from then on. So the thread's mode is restored.
static void *load(const char *name, int flags)
{
    fenv_t mode;
    const bool is_known = fegetenv(&mode) == 0;
    void *handle = dlopen(name, flags);
    if (is_known) (void)fesetenv(&mode);
    return handle;
}

// Tries the names in turn, and appends the loader's message for each to words.
static void *open_first(const char *const *names, hone_buffer *words)
{
    for (; *names != NULL; names++) {
        void *handle = load(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle != NULL) return handle;
        const char *reason = dlerror();
        if (words->size > 0) hone_buffer_text(words, "; ");
        hone_buffer_text(words, reason != NULL ? reason : *names);
    }
    return NULL;
}

hone_status hone_library_open(
    const hone_allocator *allocator, const char *const *names, hone_library **out, hone_error *err)
{
    *out = NULL;
    hone_buffer words;
    hone_buffer_init(&words, *allocator);
    hone_status status = HONE_OK;
    void *handle = open_first(names, &words);
    hone_library *library = handle != NULL ? hone_alloc(allocator, sizeof *library) : NULL;
    if (handle == NULL) {
        const char *text = words.size > 0 ? hone_buffer_string(&words) : "no name was given";
        status = hone_fail(err, HONE_UNAVAILABLE, where, "%s", text);
    } else if (library == NULL) {
        dlclose(handle);
        status = hone_fail_memory(err, where);
    } else {
        library->handle = handle;
        *out = library;
    }
    hone_buffer_deinit(&words);
    return status;
}

hone_status hone_library_open_quietly(
    const hone_allocator *allocator, const char *const *names, hone_library **out, hone_error *err)
{
    struct sigaction before;
    const bool is_known = sigaction(SIGSEGV, NULL, &before) == 0;
    const hone_status status = hone_library_open(allocator, names, out, err);
    if (is_known) (void)sigaction(SIGSEGV, &before, NULL);
    return status;
}

// The environment of one load. Other threads read the array without a lock, so the current array is never changed: a
// new one replaces it in one store. The array stays in memory afterwards, since a thread may still read it. There is
// one for each library that is opened so.
typedef struct lent_environment {
    struct lent_environment *next;
    char **entries;
    char entry[128];
} lent_environment;

extern char **environ;

static lent_environment *lend(const char *variable, const char *value)
{
    static lent_environment *all; // so that tools that search for leaks find what stays
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    lent_environment *lent = calloc(1, sizeof *lent);
    if (lent != NULL) lent->entries = calloc(count + 2, sizeof *lent->entries);
    if (lent == NULL || lent->entries == NULL) {
        free(lent);
        return NULL;
    }
    snprintf(lent->entry, sizeof lent->entry, "%s=%s", variable, value);
    if (count > 0) memcpy(lent->entries + 1, environ, count * sizeof *lent->entries);
    lent->entries[0] = lent->entry;
    lent->next = all;
    all = lent;
    return lent;
}

hone_status hone_library_open_under(
    const hone_allocator *allocator,
    const char *const *names,
    const char *variable,
    const char *value,
    hone_library **out,
    hone_error *err)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    void *loaded = names[0] != NULL ? dlopen(names[0], RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (loaded != NULL) dlclose(loaded);
    if (value == NULL || loaded != NULL) return hone_library_open(allocator, names, out, err);
    pthread_mutex_lock(&one_at_a_time);
    lent_environment *lent = lend(variable, value);
    char **before = environ;
    if (lent != NULL) __atomic_store_n(&environ, lent->entries, __ATOMIC_RELEASE);
    hone_status status = hone_library_open(allocator, names, out, err);
    // If other code has set a variable meanwhile, it has made its own copy of the array, which stays.
    if (lent != NULL && environ == lent->entries) __atomic_store_n(&environ, before, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&one_at_a_time);
    return status;
}

// The address that an entry of a loaded object's dynamic section holds. Some loaders leave addresses as in the file.
static const void *address_in(const struct link_map *map, const ElfW(Dyn) * entry)
{
    const uintptr_t address = (uintptr_t)entry->d_un.d_ptr;
    return (const void *)(address < map->l_addr ? map->l_addr + address : address);
}

// Keeps the libraries that a loaded library depends on mapped (RTLD_NOLOAD finds them): threads of OpenMP's library
// wait in its code after ours has returned.
static void keep_needed(void *handle)
{
    struct link_map *map = NULL;
    const char *texts = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map->l_ld == NULL) return;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB) texts = address_in(map, entry);
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag != DT_NEEDED) continue;
        void *needed = dlopen(texts + entry->d_un.d_val, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
        if (needed != NULL) dlclose(needed);
    }
}

hone_status hone_library_open_file(
    const hone_allocator *allocator, const char *path, hone_library **out, hone_error *err)
{
    *out = NULL;
    hone_library *library = hone_alloc(allocator, sizeof *library);
    if (library == NULL) return hone_fail_memory(err, where_file);
    library->handle = load(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL) {
        const char *reason = dlerror();
        hone_free(allocator, library);
        return hone_fail(err, HONE_UNAVAILABLE, where_file, "%s", reason != NULL ? reason : path);
    }
    keep_needed(library->handle);
    *out = library;
    return HONE_OK;
}

#if defined(__x86_64__)
enum { RELOCATED_CALL = R_X86_64_JUMP_SLOT, RELOCATED_ADDRESS = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { RELOCATED_CALL = R_AARCH64_JUMP_SLOT, RELOCATED_ADDRESS = R_AARCH64_GLOB_DAT };
#else
enum { RELOCATED_CALL = -1, RELOCATED_ADDRESS = -1 };
#endif

// Names that the C library has too, for example an allocator's: the function that is called instead does the same.
static bool is_of_libc(uintptr_t address)
{
    Dl_info of_address, of_libc;
    return dladdr((const void *)address, &of_address) != 0 &&
           dladdr((const void *)(uintptr_t)gnu_get_libc_version, &of_libc) != 0 &&
           of_address.dli_fbase == of_libc.dli_fbase;
}

// The first of its own functions for which its calls go to another function.
static const char *find_taken(
    const struct link_map *map,
    const ElfW(Rela) * relocations,
    size_t bytes,
    const ElfW(Sym) * symbols,
    const char *names)
{
    for (size_t i = 0; relocations != NULL && i < bytes / sizeof *relocations; i++) {
        const ElfW(Rela) *relocation = &relocations[i];
        const int type = (int)ELF64_R_TYPE(relocation->r_info);
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(relocation->r_info)];
        // Definitions of inline functions are weak, and equal wherever they come from.
        const bool is_own = symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
                            ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL;
        if (!is_own || (type != RELOCATED_CALL && type != RELOCATED_ADDRESS)) continue;
        const uintptr_t called = *(const uintptr_t *)(map->l_addr + relocation->r_offset);
        if (called != map->l_addr + symbol->st_value && !is_of_libc(called)) return names + symbol->st_name;
    }
    return NULL;
}

const char *hone_library_taken(const hone_library *library)
{
    struct link_map *map = NULL;
    const ElfW(Rela) *calls = NULL, *others = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t calls_bytes = 0, others_bytes = 0;
    bool has_addends = true;
    if (dlinfo(library->handle, RTLD_DI_LINKMAP, &map) != 0 || map->l_ld == NULL) return NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_JMPREL) calls = address_in(map, entry);
        if (entry->d_tag == DT_PLTRELSZ) calls_bytes = entry->d_un.d_val;
        if (entry->d_tag == DT_PLTREL) has_addends = entry->d_un.d_val == DT_RELA;
        if (entry->d_tag == DT_RELA) others = address_in(map, entry);
        if (entry->d_tag == DT_RELASZ) others_bytes = entry->d_un.d_val;
        if (entry->d_tag == DT_SYMTAB) symbols = address_in(map, entry);
        if (entry->d_tag == DT_STRTAB) names = address_in(map, entry);
    }
    if (symbols == NULL || names == NULL || sizeof(void *) != 8 || !has_addends) return NULL;
    const char *taken = find_taken(map, calls, calls_bytes, symbols, names);
    return taken != NULL ? taken : find_taken(map, others, others_bytes, symbols, names);
}

void *hone_library_symbol(hone_library *library, const char *name)
{
    return dlsym(library->handle, name);
}

void hone_library_close(const hone_allocator *allocator, hone_library **library)
{
    if (*library == NULL) return;
    dlclose((*library)->handle);
    hone_free(allocator, *library);
    *library = NULL;
}

// Finding -------------------------------------------------------------------------------------------------------------

static bool resolve(const char *path, char *out, size_t size)
{
    char resolved[PATH_MAX];
    if (access(path, R_OK) != 0 || realpath(path, resolved) == NULL || strlen(resolved) >= size) return false;
    memcpy(out, resolved, strlen(resolved) + 1);
    return true;
}

static bool find_in_library_path(const char *soname, char *out, size_t size)
{
    const char *folders = hone_os_variable("LD_LIBRARY_PATH");
    while (folders != NULL && *folders) {
        char path[PATH_MAX];
        size_t length = strcspn(folders, ":;");
        int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, folders, soname);
        if (written > 0 && (size_t)written < sizeof path && resolve(path, out, size)) return true;
        folders += length + (folders[length] != '\0');
    }
    return false;
}

// The loader's cache: a header, entries, and the texts that they point to, with offsets from the header (ldconfig(8)).
static const char cache_magic[] = "glibc-ld.so.cache1.1";
typedef struct cache_header {
    char magic[sizeof cache_magic - 1];
    uint32_t entries, texts_size;
    uint8_t flags, padding[3];
    uint32_t extension, unused[3];
} cache_header;
typedef struct cache_entry {
    int32_t flags;
    uint32_t soname, path, os_version;
    uint64_t capabilities;
} cache_entry;
_Static_assert(sizeof(cache_header) == 48 && sizeof(cache_entry) == 24, "as glibc writes them");

// A text of the cache; NULL if the offset lies outside.
static const char *text_at(const hone_buffer *cache, size_t header, uint32_t offset)
{
    size_t at = header + offset;
    return at < cache->size && memchr(cache->data + at, '\0', cache->size - at) != NULL ? cache->data + at : NULL;
}

static bool search_cache(const hone_buffer *cache, const char *soname, char *out, size_t size)
{
    const char *begin = cache->size == 0 ? NULL : memmem(cache->data, cache->size, cache_magic, sizeof cache_magic - 1);
    size_t header = begin != NULL ? (size_t)(begin - cache->data) : 0, at = header + sizeof(cache_header);
    cache_header head;
    if (begin == NULL || at > cache->size) return false;
    memcpy(&head, begin, sizeof head);
    for (uint32_t i = 0; i < head.entries && cache->size - at >= sizeof(cache_entry); i++, at += sizeof(cache_entry)) {
        cache_entry entry;
        memcpy(&entry, cache->data + at, sizeof entry);
        const char *name = text_at(cache, header, entry.soname), *path = text_at(cache, header, entry.path);
        if (name != NULL && path != NULL && strcmp(name, soname) == 0 && resolve(path, out, size)) return true;
    }
    return false;
}

bool hone_library_find(const char *soname, char *out, size_t size)
{
    enum { CACHE_LIMIT = 16 << 20 };
    if (find_in_library_path(soname, out, size)) return true;
    hone_buffer cache;
    hone_buffer_init(&cache, hone_allocator_system());
    bool found = hone_os_read_file("/etc/ld.so.cache", CACHE_LIMIT, &cache, NULL) == HONE_OK &&
                 search_cache(&cache, soname, out, size);
    hone_buffer_deinit(&cache);
    return found;
}

// Builds --------------------------------------------------------------------------------------------------------------

// A note is its header, its name and its bytes, each padded to a multiple of 4 bytes.
static const unsigned char *find_build_id(const unsigned char *notes, size_t size, size_t *out_size)
{
    for (size_t at = 0; size - at >= sizeof(ElfW(Nhdr));) {
        ElfW(Nhdr) head;
        memcpy(&head, notes + at, sizeof head);
        const size_t name = at + sizeof head, bytes = name + ((size_t)head.n_namesz + 3) / 4 * 4,
                     end = bytes + ((size_t)head.n_descsz + 3) / 4 * 4;
        if (end > size) return NULL;
        *out_size = head.n_descsz;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0)
            return notes + bytes;
        at = end;
    }
    return NULL;
}

static bool read_build_id(int file, uint64_t *out)
{
    enum { MOST_NOTES = 4096 };
    unsigned char notes[MOST_NOTES];
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    if (pread(file, &head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof part)
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (pread(file, &part, sizeof part, (off_t)(head.e_phoff + i * sizeof part)) != (ssize_t)sizeof part)
            return false;
        if (part.p_type != PT_NOTE || part.p_filesz > MOST_NOTES ||
            pread(file, notes, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz)
            continue;
        size_t size = 0;
        const unsigned char *id = find_build_id(notes, part.p_filesz, &size);
        if (id == NULL) continue;
        *out = hone_hash64(id, size);
        return true;
    }
    return false;
}

// The tables at both ends of the file hold the offsets of everything in it, so they differ between builds.
static bool digest_ends(int file, uint64_t *out)
{
    enum { END = 1 << 14 };
    unsigned char ends[2 * END + sizeof(int64_t)] = {0};
    struct stat about;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    const int64_t size = about.st_size;
    memcpy(ends + 2 * END, &size, sizeof size);
    (void)!pread(file, ends, END, 0);
    (void)!pread(file, ends + END, END, (off_t)(size > END ? size - END : 0));
    *out = hone_hash64(ends, sizeof ends);
    return true;
}

bool hone_library_build(const char *path, char out[HONE_LIBRARY_BUILD_SIZE])
{
    uint64_t build = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool known = read_build_id(file, &build) || digest_ends(file, &build);
    close(file);
    if (known) snprintf(out, HONE_LIBRARY_BUILD_SIZE, "%016llx", (unsigned long long)build);
    return known;
}

typedef struct loaded_search {
    const char *beginning;
    char *out;
    size_t size;
} loaded_search;

static int look_at_loaded(struct dl_phdr_info *object, size_t info_size, void *ctx)
{
    const loaded_search *search = ctx;
    const char *slash = object->dlpi_name != NULL ? strrchr(object->dlpi_name, '/') : NULL;
    (void)info_size;
    if (slash == NULL || strncmp(slash + 1, search->beginning, strlen(search->beginning)) != 0) return 0;
    return resolve(object->dlpi_name, search->out, search->size);
}

bool hone_library_loaded(const char *beginning, char *out, size_t size)
{
    loaded_search search = {beginning, out, size};
    return dl_iterate_phdr(look_at_loaded, &search) != 0;
}

// Copies --------------------------------------------------------------------------------------------------------------

typedef struct mapped_file {
    const unsigned char *bytes;
    size_t size;
    dev_t device;
    ino_t number;
} mapped_file;

static bool map_file(const char *path, mapped_file *out)
{
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    *out = (mapped_file){.bytes = MAP_FAILED};
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        out->bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        out->size = (size_t)about.st_size;
        out->device = about.st_dev;
        out->number = about.st_ino;
    }
    close(file);
    return out->bytes != MAP_FAILED;
}

static void unmap_file(mapped_file *file)
{
    (void)munmap((void *)(uintptr_t)file->bytes, file->size);
}

typedef struct copy_search {
    const mapped_file *file;
    char *out;
    size_t size;
} copy_search;

// Compares bytes itself instead of memcmp: AddressSanitizer would report the guard zones around constants of an
// instrumented library.
__attribute__((no_sanitize_address)) static bool is_equal(const unsigned char *a, const unsigned char *b, size_t size)
{
    size_t i = 0;
    while (i < size && a[i] == b[i])
        i++;
    return i == size;
}

// A segment that is not writable is in memory as in the file: the loader relocates only other segments.
static bool is_mapped(const struct dl_phdr_info *object, const mapped_file *file)
{
    size_t compared = 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0 || (segment->p_flags & PF_R) == 0) continue;
        if (segment->p_offset > file->size || segment->p_filesz > file->size - segment->p_offset) return false;
        const unsigned char *memory = (const unsigned char *)(uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        if (!is_equal(memory, file->bytes + segment->p_offset, segment->p_filesz)) return false;
        compared += segment->p_filesz;
    }
    return compared > 0;
}

static int look_at_copy(struct dl_phdr_info *object, size_t info_size, void *ctx)
{
    const copy_search *search = ctx;
    mapped_file other;
    struct stat about;
    (void)info_size;
    const char *name = object->dlpi_name;
    if (name == NULL || strchr(name, '/') == NULL || strlen(name) >= search->size) return 0;
    if (stat(name, &about) != 0 || (size_t)about.st_size != search->file->size || !map_file(name, &other)) return 0;
    const bool is_same = other.device == search->file->device && other.number == search->file->number;
    const bool is_copy = !is_same && other.size == search->file->size &&
                         memcmp(other.bytes, search->file->bytes, other.size) == 0 && is_mapped(object, search->file);
    unmap_file(&other);
    if (is_copy) strcpy(search->out, name);
    return is_copy;
}

bool hone_library_loaded_copy(const char *path, char *out, size_t size)
{
    mapped_file file;
    if (!map_file(path, &file)) return false;
    copy_search search = {&file, out, size};
    const bool is_found = dl_iterate_phdr(look_at_copy, &search) != 0;
    unmap_file(&file);
    return is_found;
}
