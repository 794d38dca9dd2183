#include "exports.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

typedef struct file {
    const char *bytes;
    size_t size;
    Elf64_Ehdr head;
} file;

// A copy, for what stands in a file may stand at any address.
static bool take(const file *f, uint64_t at, void *out, size_t size)
{
    if (at > f->size || size > f->size - at) return false;
    memcpy(out, f->bytes + at, size);
    return true;
}

static bool open_file(file *f, const char *bytes, size_t size)
{
    *f = (file){.bytes = bytes, .size = size};
    return take(f, 0, &f->head, sizeof f->head) && memcmp(f->head.e_ident, ELFMAG, SELFMAG) == 0 &&
           f->head.e_ident[EI_CLASS] == ELFCLASS64 && f->head.e_ident[EI_DATA] == ELFDATA2LSB &&
           f->head.e_shentsize == sizeof(Elf64_Shdr);
}

static bool section_at(const file *f, size_t index, Elf64_Shdr *out)
{
    return index < f->head.e_shnum && f->head.e_shoff <= f->size &&
           take(f, f->head.e_shoff + index * sizeof *out, out, sizeof *out);
}

// A text that ends within its section. NULL: it does not.
static const char *text_at(const file *f, const Elf64_Shdr *texts, uint64_t at)
{
    if (texts->sh_offset > f->size || texts->sh_size > f->size - texts->sh_offset || at >= texts->sh_size) return NULL;
    const char *text = f->bytes + texts->sh_offset + at;
    return memchr(text, '\0', texts->sh_size - at) != NULL ? text : NULL;
}

bool cli_has_section(const char *bytes, size_t size, const char *name)
{
    file f;
    Elf64_Shdr texts, section;
    if (!open_file(&f, bytes, size) || !section_at(&f, f.head.e_shstrndx, &texts)) return false;
    for (size_t i = 0; section_at(&f, i, &section); i++) {
        const char *text = text_at(&f, &texts, section.sh_name);
        if (text != NULL && strcmp(text, name) == 0) return true;
    }
    return false;
}

static void visit_symbols(
    const file *f, const Elf64_Shdr *symbols, void (*visit)(void *ctx, const char *name), void *ctx)
{
    Elf64_Shdr texts;
    Elf64_Sym symbol;
    if (!section_at(f, symbols->sh_link, &texts)) return;
    for (uint64_t at = 0; at + sizeof symbol <= symbols->sh_size; at += sizeof symbol) {
        if (symbols->sh_offset > f->size || !take(f, symbols->sh_offset + at, &symbol, sizeof symbol)) return;
        const char *name = text_at(f, &texts, symbol.st_name);
        if (name != NULL && name[0] != '\0' && symbol.st_shndx != SHN_UNDEF &&
            ELF64_ST_BIND(symbol.st_info) != STB_LOCAL)
            visit(ctx, name);
    }
}

bool cli_exports(const char *bytes, size_t size, void (*visit)(void *ctx, const char *name), void *ctx)
{
    file f;
    Elf64_Shdr section;
    if (!open_file(&f, bytes, size)) return false;
    for (size_t i = 0; section_at(&f, i, &section); i++)
        if (section.sh_type == SHT_DYNSYM) visit_symbols(&f, &section, visit, ctx);
    return true;
}
