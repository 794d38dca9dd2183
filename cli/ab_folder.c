// The folder of one run of `hone ab`: copies of stores, packs of commits. Whoever has one holds a lock on it, so that one
// whose owner was killed is known by that nobody does, and the next run takes it away.
#include "ab.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char start[] = "hone-ab-";

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    (void)remove(path);
    return 0;
}

// A link is removed, and what it leads to stays.
static void remove_whole(const char *folder)
{
    enum { OPEN_FOLDERS = 16 };
    (void)nftw(folder, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

static bool is_named(int fd, const char *folder)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 && lstat(folder, &named) == 0 && open_one.st_dev == named.st_dev &&
           open_one.st_ino == named.st_ino && open_one.st_uid == geteuid();
}

// -1: somebody has it, it is another user's, or it is gone by now.
static int hold(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(fd, folder)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

void ab_remove_folder(const char *folder, int hold_of_it)
{
    remove_whole(folder);
    close(hold_of_it);
}

static bool remove_left_behind(void *parent, const char *name)
{
    char path[AB_PATH_SIZE];
    if (strncmp(name, start, sizeof start - 1) != 0) return true;
    if (snprintf(path, sizeof path, "%s/%s", (const char *)parent, name) >= AB_PATH_SIZE) return true;
    const int fd = hold(path);
    if (fd >= 0) ab_remove_folder(path, fd);
    return true;
}

int ab_make_folder(char out[AB_PATH_SIZE])
{
    enum { TRIES = 16 }; // who looks for folders that were left may find a new one before it is held
    hone_error err;
    int fd = -1;
    const char *named = cli_variable("TMPDIR"), *parent = named != NULL && named[0] == '/' ? named : "/tmp";
    (void)!cli_list_folder(parent, remove_left_behind, (void *)(uintptr_t)parent, &err);
    for (int i = 0; i < TRIES && fd < 0; i++) {
        if (snprintf(out, AB_PATH_SIZE, "%s/%sXXXXXX", parent, start) >= AB_PATH_SIZE || mkdtemp(out) == NULL) break;
        fd = hold(out);
        if (fd < 0) (void)rmdir(out);
    }
    if (fd < 0)
        fprintf(
            stderr, "hone: no folder can be made in %s: set TMPDIR to one that is there and can be written\n", parent);
    return fd;
}
