#include "pack/needed.h"

#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, MOST_LIBRARIES = 64, LIMIT = 256 << 20 };

// As far as it is read; of 64 bits, the lower byte first.
typedef struct elf_header {
    char mark[4];
    uint8_t class, order, rest[10];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, segments, sections;
    uint32_t flags;
    uint16_t size, segment_size, segment_count, section_size, section_count, section_of_names;
} elf_header;

typedef struct elf_segment {
    uint32_t type, flags;
    uint64_t offset, address, physical, size, size_in_memory, align;
} elf_segment;

typedef struct elf_entry {
    int64_t tag;
    uint64_t value;
} elf_entry;

enum { CLASS_64 = 2, LOWER_FIRST = 1, LOADED = 1, DYNAMIC = 2 };
enum { END = 0, NEEDED = 1, TEXTS = 5, TEXTS_SIZE = 10, OLD_PATH = 15, PATH = 29 };

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

static bool read_header(const image *i, elf_header *out)
{
    return read_at(i, 0, out, sizeof *out) && memcmp(out->mark, "\177ELF", sizeof out->mark) == 0 &&
           out->class == CLASS_64 && out->order == LOWER_FIRST && out->segment_size == sizeof(elf_segment);
}

static bool read_segment(const image *i, const elf_header *header, size_t index, elf_segment *out)
{
    return index < header->segment_count && header->segments < i->size &&
           read_at(i, header->segments + index * sizeof *out, out, sizeof *out);
}

static bool offset_of(const image *i, const elf_header *header, uint64_t address, uint64_t *out)
{
    elf_segment segment;
    for (size_t s = 0; read_segment(i, header, s, &segment); s++)
        if (segment.type == LOADED && address >= segment.address && address - segment.address < segment.size) {
            *out = segment.offset + (address - segment.address);
            return true;
        }
    return false;
}

static bool find_dynamic(const image *i, const elf_header *header, elf_segment *out)
{
    for (size_t s = 0; read_segment(i, header, s, out); s++)
        if (out->type == DYNAMIC) return true;
    return false;
}

static bool next_entry(const image *i, const elf_segment *dynamic, size_t index, elf_entry *out)
{
    return index < dynamic->size / sizeof *out && dynamic->offset < i->size &&
           read_at(i, dynamic->offset + index * sizeof *out, out, sizeof *out) && out->tag != END;
}

static bool find_texts(image *i, const elf_header *header, const elf_segment *dynamic)
{
    elf_entry entry;
    uint64_t address = 0;
    for (size_t at = 0; next_entry(i, dynamic, at, &entry); at++) {
        if (entry.tag == TEXTS) address = entry.value;
        if (entry.tag == TEXTS_SIZE) i->texts_size = entry.value;
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

static void take_needed(scan *s, const image *i, const elf_segment *dynamic, const char *beside, const char *name)
{
    elf_entry entry;
    if (name[0] == '/') take(s, "", 0, "", name + 1);
    if (strchr(name, '/') != NULL) return; // from the folder that the process is in, if it is no path
    take(s, beside, strlen(beside), "", name);
    for (size_t at = 0; next_entry(i, dynamic, at, &entry); at++) {
        if (entry.tag != PATH && entry.tag != OLD_PATH) continue;
        const char *folders = text_at(i, entry.value);
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
    elf_header header;
    elf_segment dynamic;
    elf_entry entry;
    if (!read_header(&i, &header) || !find_dynamic(&i, &header, &dynamic) || !find_texts(&i, &header, &dynamic)) return;
    for (size_t at = 0; next_entry(&i, &dynamic, at, &entry); at++) {
        const char *name = entry.tag == NEEDED ? text_at(&i, entry.value) : NULL;
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
