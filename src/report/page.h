// A page with a document in it.
#ifndef HONE_REPORT_PAGE_H
#define HONE_REPORT_PAGE_H

#include "hone/status.h"

// Puts a JSON text into a page in place of its mark, so that nothing in it ends the element that it stands in, whatever
// names and texts it holds. *out_text is freed by hone_text_free.
hone_status hone_page_make(const char *page, const char *json, char **out_text, hone_error *err);

#endif
