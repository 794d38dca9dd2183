// The one place where hone reads the environment.
#include "os/os.h"

#include <stdlib.h>

const char *hone_os_variable(const char *name)
{
    return secure_getenv(name);
}

const char *hone_os_withheld_variable(const char *const *names)
{
    for (; *names != NULL; names++)
        if (getenv(*names) != NULL && secure_getenv(*names) == NULL) return *names;
    return NULL;
}
