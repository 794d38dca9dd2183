// The one place where hone reads the environment.
#include "os/os.h"

#include <stdlib.h>

const char *hone_os_variable(const char *name)
{
    return secure_getenv(name);
}
