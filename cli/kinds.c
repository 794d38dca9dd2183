// The kinds of stores, as the library shows them: nobody here asks what one is called.
#include "cli.h"

typedef struct pick {
    bool (*wanted)(const hone_store_kind *kind);
    const char *scheme;
} pick;

static bool take_first(void *ctx, const hone_store_kind *kind)
{
    pick *p = ctx;
    if (p->wanted(kind)) p->scheme = kind->scheme;
    return p->scheme == NULL;
}

static const char *first(bool (*wanted)(const hone_store_kind *kind))
{
    pick p = {wanted, NULL};
    (void)!hone_store_kinds(take_first, &p, NULL);
    return p.scheme != NULL ? p.scheme : "";
}

static bool is_default(const hone_store_kind *kind)
{
    return kind->is_default;
}

static bool is_scratch(const hone_store_kind *kind)
{
    return kind->is_scratch;
}

const char *cli_file_scheme(void)
{
    return first(is_default);
}

const char *cli_scratch_url(void)
{
    return first(is_scratch);
}

typedef struct forms {
    bool reads_alone;
    cli_text *out;
} forms;

static bool add_form(void *ctx, const hone_store_kind *kind)
{
    const forms *f = ctx;
    if (!f->reads_alone || kind->reads_alone)
        cli_text_format(f->out, "%s%s", f->out->size == 0 ? "" : ", ", kind->form);
    return true;
}

void cli_store_forms(bool reads_alone, cli_text *out)
{
    (void)!hone_store_kinds(add_form, &(forms){reads_alone, out}, NULL);
}
