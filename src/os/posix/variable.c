// The only file of hone that reads the environment; it also sets variables in a worker.
#include "os/os.h"

#include <stdlib.h>

const char *hone_os_variable(const char *name)
{
    return secure_getenv(name);
}

void hone_os_offer_variable(const char *name, const char *value)
{
    (void)setenv(name, value, 0); // without memory for it, the library keeps its default
}

const char *hone_os_withheld_variable(const char *const *names)
{
    for (; *names != NULL; names++)
        if (getenv(*names) != NULL && secure_getenv(*names) == NULL) return *names;
    return NULL;
}
