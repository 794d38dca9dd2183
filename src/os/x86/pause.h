// Tells the CPU that a loop only waits.
#ifndef HONE_OS_X86_PAUSE_H
#define HONE_OS_X86_PAUSE_H

static inline void hone_os_pause(void)
{
    __builtin_ia32_pause();
}

#endif
