// A malloc and locks of the program's own, which count while they are watched. Nothing for a build with sanitizers:
// they bring their own.
#ifndef HONE_TESTS_WATCH_H
#define HONE_TESTS_WATCH_H

typedef struct watched {
    int allocations; // and what was freed
    int locks;
} watched;

// From here on what this thread allocates, frees and locks is counted.
void watch_begin(void);
watched watch_end(void);

#endif
