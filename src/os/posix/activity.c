#include "os/limits.h"
#include "os/os.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Of its line in /proc, "12 (a name) R 1 ...": the name may hold anything.
char hone_os_thread_state(const char *thread)
{
    char path[64], line[HONE_OS_TEXT_SIZE];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    if (!hone_os_read_text("", path, line)) return '?';
    const char *name_end = strrchr(line, ')');
    return name_end != NULL && name_end[1] == ' ' ? name_end[2] : '?';
}

int hone_os_others_run(void)
{
    DIR *threads = opendir("/proc/self/task");
    if (threads == NULL) return 0;
    int count = 0;
    const struct dirent *entry;
    while ((entry = readdir(threads)) != NULL)
        if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != gettid())
            count += hone_os_thread_state(entry->d_name) == 'R';
    closedir(threads);
    return count;
}
