#include "pack/needed.h"

#include "base/hash.h"
#include "os/os.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, MOST_LIBRARIES = 64, LIMIT = 256 << 20 };

typedef struct scan {
    const char *within;
    hone_buffer found; // paths, each with a NUL behind it
    size_t libraries;
} scan;

// A library's bytes, whose numbers nobody has checked.
typedef struct image {
    const char *bytes;
    size_t size;
    uint64_t texts, texts_size; // of its dynamic section, as offsets
} image;

static bool read_at(const image *i, uint64_t at, void *out, size_t size)
{
    if (at > i->size || size > i->size - at) return false;
    memcpy(out, i->bytes + at, size);
    return true;
}

static bool read_header(const image *i, Elf64_Ehdr *out)
{
    return read_at(i, 0, out, sizeof *out) && memcmp(out->e_ident, ELFMAG, SELFMAG) == 0 &&
           out->e_ident[EI_CLASS] == ELFCLASS64 && out->e_ident[EI_DATA] == ELFDATA2LSB &&
           out->e_phentsize == sizeof(Elf64_Phdr);
}

static bool read_segment(const image *i, const Elf64_Ehdr *header, size_t index, Elf64_Phdr *out)
{
    return index < header->e_phnum && header->e_phoff < i->size &&
           read_at(i, header->e_phoff + index * sizeof *out, out, sizeof *out);
}

static bool offset_of(const image *i, const Elf64_Ehdr *header, uint64_t address, uint64_t *out)
{
    Elf64_Phdr segment;
    for (size_t s = 0; read_segment(i, header, s, &segment); s++)
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
            *out = segment.p_offset + (address - segment.p_vaddr);
            return true;
        }
    return false;
}

static bool find_dynamic(const image *i, const Elf64_Ehdr *header, Elf64_Phdr *out)
{
    for (size_t s = 0; read_segment(i, header, s, out); s++)
        if (out->p_type == PT_DYNAMIC) return true;
    return false;
}

static bool next_entry(const image *i, const Elf64_Phdr *dynamic, size_t index, Elf64_Dyn *out)
{
    return index < dynamic->p_filesz / sizeof *out && dynamic->p_offset < i->size &&
           read_at(i, dynamic->p_offset + index * sizeof *out, out, sizeof *out) && out->d_tag != DT_NULL;
}

static bool find_texts(image *i, const Elf64_Ehdr *header, const Elf64_Phdr *dynamic)
{
    Elf64_Dyn entry;
    uint64_t address = 0;
    for (size_t at = 0; next_entry(i, dynamic, at, &entry); at++) {
        if (entry.d_tag == DT_STRTAB) address = entry.d_un.d_ptr;
        if (entry.d_tag == DT_STRSZ) i->texts_size = entry.d_un.d_val;
    }
    return address != 0 && offset_of(i, header, address, &i->texts) && i->texts < i->size;
}

// NULL: it does not end within the file.
static const char *text_at(const image *i, uint64_t at)
{
    if (at >= i->texts_size || at >= i->size - i->texts) return NULL;
    const char *text = i->bytes + i->texts + at;
    return memchr(text, '\0', i->size - i->texts - at) != NULL ? text : NULL;
}

static bool is_found(const scan *s, const char *path)
{
    const char *all = hone_buffer_string(&s->found);
    for (const char *at = all; at < all + s->found.size; at += strlen(at) + 1)
        if (strcmp(at, path) == 0) return true;
    return false;
}

static void take(scan *s, const char *folder, size_t folder_size, const char *below, const char *name)
{
    char written[PATH_SIZE], path[PATH_SIZE];
    const size_t within = strlen(s->within);
    const int length = snprintf(written, sizeof written, "%.*s%s/%s", (int)folder_size, folder, below, name);
    if (length <= 0 || (size_t)length >= sizeof written || !hone_os_is_file(written)) return;
    if (!hone_os_real_path(written, path, sizeof path) || strncmp(path, s->within, within) != 0 || path[within] != '/')
        return;
    if (s->libraries >= MOST_LIBRARIES || is_found(s, path)) return;
    hone_buffer_append(&s->found, path, strlen(path) + 1);
    s->libraries++;
}

// One folder of a search path, if it begins where the library lies.
static void take_from(scan *s, const char *beside, const char *folder, size_t size, const char *name)
{
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
    char below[PATH_SIZE];
    for (int i = 0; i < 2; i++) {
        const size_t skip = strlen(origins[i]);
        if (size < skip || size - skip >= sizeof below || strncmp(folder, origins[i], skip) != 0) continue;
        memcpy(below, folder + skip, size - skip);
        below[size - skip] = '\0';
        take(s, beside, strlen(beside), below, name);
    }
}

static void take_needed(scan *s, const image *i, const Elf64_Phdr *dynamic, const char *beside, const char *name)
{
    Elf64_Dyn entry;
    if (name[0] == '/') take(s, "", 0, "", name + 1);
    if (strchr(name, '/') != NULL) return; // from the folder that the process is in, if it is no path
    take(s, beside, strlen(beside), "", name);
    for (size_t at = 0; next_entry(i, dynamic, at, &entry); at++) {
        if (entry.d_tag != DT_RUNPATH && entry.d_tag != DT_RPATH) continue;
        const char *folders = text_at(i, entry.d_un.d_val);
        while (folders != NULL && *folders != '\0') {
            const size_t size = strcspn(folders, ":");
            take_from(s, beside, folders, size, name);
            folders += size + (folders[size] == ':');
        }
    }
}

static void scan_library(scan *s, const hone_buffer *bytes, const char *beside)
{
    image i = {.bytes = bytes->data, .size = bytes->size};
    Elf64_Ehdr header;
    Elf64_Phdr dynamic;
    Elf64_Dyn entry;
    if (!read_header(&i, &header) || !find_dynamic(&i, &header, &dynamic) || !find_texts(&i, &header, &dynamic)) return;
    for (size_t at = 0; next_entry(&i, &dynamic, at, &entry); at++) {
        const char *name = entry.d_tag == DT_NEEDED ? text_at(&i, entry.d_un.d_val) : NULL;
        if (name != NULL) take_needed(s, &i, &dynamic, beside, name);
    }
}

static void scan_found(scan *s, const char *path, hone_buffer *out)
{
    char folder[PATH_SIZE], digest[HONE_SHA256_HEX_SIZE];
    hone_buffer bytes;
    hone_buffer_init(&bytes, out->allocator);
    if (hone_os_read_file(path, LIMIT, &bytes, NULL) == HONE_OK && hone_os_folder_of(path, folder, sizeof folder)) {
        hone_hash_sha256(hone_buffer_string(&bytes), bytes.size, digest);
        hone_buffer_format(out, "%s %s\n", digest, path + strlen(s->within) + 1);
        scan_library(s, &bytes, folder);
    }
    out->failed = out->failed || bytes.failed;
    hone_buffer_deinit(&bytes);
}

void hone_needed_digest_within(const hone_buffer *library, const char *beside, const char *within, hone_buffer *out)
{
    scan s = {.within = within};
    hone_buffer_init(&s.found, out->allocator);
    scan_library(&s, library, beside);
    // What one of them needs is appended behind it. A path is copied: the buffer moves as it grows.
    for (size_t at = 0; at < s.found.size && !s.found.failed;) {
        char path[PATH_SIZE];
        const char *next = hone_buffer_string(&s.found) + at;
        const size_t size = strlen(next) + 1;
        memcpy(path, next, size);
        at += size;
        scan_found(&s, path, out);
    }
    out->failed = out->failed || s.found.failed;
    hone_buffer_deinit(&s.found);
}
