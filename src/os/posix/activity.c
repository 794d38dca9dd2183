#include "os/limits.h"
#include "os/os.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Parses the thread's line in /proc, "12 (a name) R 1 ...": the name may contain any character.
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

// Keeping off ---------------------------------------------------------------------------------------------------------

static void keep_off(int thread, const cpu_set_t *usual, const cpu_set_t *others, hone_os_kept_off *out)
{
    cpu_set_t now;
    if (out->count == HONE_OS_MOST_KEPT_OFF || sched_getaffinity(thread, sizeof now, &now) != 0) return;
    // A thread that is bound to processors is bound on purpose, so it is not moved.
    if (!CPU_EQUAL(&now, usual) || sched_setaffinity(thread, sizeof *others, others) != 0) return;
    out->threads[out->count++] = thread;
}

void hone_os_keep_off_begin(const hone_pool *but, hone_os_kept_off *out)
{
    cpu_set_t usual, others;
    const int here = sched_getcpu();
    out->count = 0;
    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof usual, &usual) != 0) return;
    others = usual;
    CPU_CLR((size_t)here, &others);
    DIR *threads = CPU_COUNT(&others) > 0 ? opendir("/proc/self/task") : NULL;
    if (threads == NULL) return;
    const struct dirent *entry;
    while ((entry = readdir(threads)) != NULL) {
        const int thread = (int)strtol(entry->d_name, NULL, 10);
        if (thread <= 0 || thread == gettid() || (but != NULL && hone_pool_has_worker(but, thread))) continue;
        keep_off(thread, &usual, &others, out);
    }
    closedir(threads);
}

void hone_os_keep_off_end(hone_os_kept_off *kept)
{
    cpu_set_t usual;
    if (kept->count == 0 || sched_getaffinity(0, sizeof usual, &usual) != 0) return;
    for (int i = 0; i < kept->count; i++)
        (void)sched_setaffinity(kept->threads[i], sizeof usual, &usual);
    kept->count = 0;
}
