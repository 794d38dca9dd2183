#include "pack/includes.h"

#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, MOST_FILES = 4096, LIMIT = 64 << 20 };

typedef struct scan {
    const char *const *options;
    size_t count;
    const char *without, *within; // folders; NULL: none, anywhere
    hone_buffer found;            // paths, each with a NUL behind it
    size_t files;
} scan;

static bool is_found(const scan *s, const char *path)
{
    const char *all = hone_buffer_string(&s->found);
    for (const char *at = all; at < all + s->found.size; at += strlen(at) + 1)
        if (strcmp(at, path) == 0) return true;
    return false;
}

static const char *name_within(const scan *s, const char *path)
{
    const size_t size = strlen(s->within);
    return strncmp(path, s->within, size) == 0 && path[size] == '/' ? path + size + 1 : NULL;
}

// Whether there is such a header in the folder; then it is noted.
static bool take(scan *s, const char *folder, size_t folder_size, const char *name, size_t size)
{
    char written[PATH_SIZE], path[PATH_SIZE];
    const int length = snprintf(written, sizeof written, "%.*s/%.*s", (int)folder_size, folder, (int)size, name);
    if (length <= 0 || (size_t)length >= sizeof written || !hone_os_is_file(written)) return false;
    if (!hone_os_real_path(written, path, sizeof path)) return false;
    if (s->within != NULL && name_within(s, path) == NULL) return true;
    if (s->without != NULL && strncmp(written, s->without, strlen(s->without)) == 0) return true;
    if (s->files < MOST_FILES && !is_found(s, path)) {
        hone_buffer_append(&s->found, path, strlen(path) + 1);
        s->files++;
    }
    return true;
}

static const char *folder_of_option(const scan *s, size_t *index)
{
    static const char longer[] = "--include-path=";
    const char *option = s->options[*index];
    if (strncmp(option, longer, sizeof longer - 1) == 0) return option + sizeof longer - 1;
    if (strncmp(option, "-I", 2) != 0) return NULL;
    if (option[2] != '\0') return option + 2;
    return *index + 1 < s->count ? s->options[++*index] : NULL;
}

static void find(scan *s, const char *beside, const char *name, size_t size, bool quoted)
{
    if (quoted && beside != NULL && take(s, beside, strlen(beside), name, size)) return;
    for (size_t i = 0; i < s->count; i++) {
        const char *folder = folder_of_option(s, &i);
        if (folder != NULL && take(s, folder, strlen(folder), name, size)) return;
    }
}

// Bytes that the assembler puts in: .incbin "file", often within a string, "... \".incbin \\\"file\\\"\"...".
static void scan_assembly(scan *s, const char *text, const char *beside)
{
    static const char directive[] = ".incbin";
    for (const char *at = text; (at = strstr(at, directive)) != NULL;) {
        at += strlen(directive);
        const char *name = at + strspn(at, " \t\\\"");
        find(s, beside, name, strcspn(name, "\\\"\n"), true);
    }
}

static void scan_text(scan *s, const char *text, const char *beside)
{
    scan_assembly(s, text, beside);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += strspn(line, "\n \t\r");
        if (*line != '#') continue;
        const char *at = line + 1 + strspn(line + 1, " \t");
        const char *const words[] = {"include", "embed"};
        const char *word = strncmp(at, words[1], strlen(words[1])) == 0 ? words[1] : words[0];
        if (strncmp(at, word, strlen(word)) != 0) continue;
        at += strlen(word);
        at += strspn(at, " \t");
        if (*at != '"' && *at != '<') continue;
        const size_t size = strcspn(at + 1, "\">\n");
        find(s, beside, at + 1, size, *at == '"');
    }
}

static void scan_file(scan *s, const char *path, hone_buffer *out)
{
    char folder[PATH_SIZE], digest[HONE_SHA256_HEX_SIZE];
    hone_buffer bytes;
    hone_buffer_init(&bytes, out->allocator);
    if (hone_os_read_file(path, LIMIT, &bytes, NULL) == HONE_OK && hone_os_folder_of(path, folder, sizeof folder)) {
        hone_hash_sha256(hone_buffer_string(&bytes), bytes.size, digest);
        hone_buffer_format(out, "%s %s\n", digest, s->within != NULL ? name_within(s, path) : path);
        scan_text(s, hone_buffer_string(&bytes), folder);
    }
    out->failed = out->failed || bytes.failed;
    hone_buffer_deinit(&bytes);
}

static void scan_all(scan *s, const char *text, const char *beside, hone_buffer *out)
{
    hone_buffer_init(&s->found, out->allocator);
    scan_text(s, text, beside);
    // What a header includes is appended behind it. A path is copied: the buffer moves as it grows.
    for (size_t at = 0; at < s->found.size && !s->found.failed;) {
        char path[PATH_SIZE];
        const char *next = hone_buffer_string(&s->found) + at;
        const size_t size = strlen(next) + 1;
        memcpy(path, next, size);
        at += size;
        scan_file(s, path, out);
    }
    out->failed = out->failed || s->found.failed;
    hone_buffer_deinit(&s->found);
}

void hone_includes_digest(
    const char *text, const char *const *options, size_t count, const char *without, hone_buffer *out)
{
    scan s = {.options = options, .count = count, .without = without};
    scan_all(&s, text, NULL, out);
}

void hone_includes_digest_within(const char *text, const char *beside, const char *within, hone_buffer *out)
{
    char folder[PATH_SIZE + 2];
    const char *const options[] = {folder};
    scan s = {.options = options, .count = 1, .within = within};
    snprintf(folder, sizeof folder, "-I%s", within);
    scan_all(&s, text, beside, out);
}
