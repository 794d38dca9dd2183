// How a program of a wheel starts (--wrap=__libc_start_main). The C library's crt1.o of 2.34 and newer leaves constructors to
// __libc_start_main, that of older ones brought a function that runs them, and an older C library runs no others.
#include <stddef.h>

typedef int main_function(int, char **, char **);
typedef void (*constructor)(int, char **, char **);

typedef int start(main_function *, int, char **, constructor, void (*)(void), void (*)(void), void *);
start __real___libc_start_main, __wrap___libc_start_main;

// Of crti.o and of the linker.
extern void _init(void);
extern __attribute__((visibility("hidden"))) const constructor __init_array_start[], __init_array_end[];

static void construct(int argc, char **argv, char **environment)
{
    _init();
    for (const constructor *each = __init_array_start; each < __init_array_end; each++)
        (*each)(argc, argv, environment);
}

// Destructors are the loader's, in each version.
int __wrap___libc_start_main(
    main_function *main,
    int argc,
    char **argv,
    constructor init,
    void (*fini)(void),
    void (*loader_fini)(void),
    void *stack_end)
{
    return __real___libc_start_main(main, argc, argv, init != NULL ? init : construct, fini, loader_fini, stack_end);
}
