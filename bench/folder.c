#include "folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int bench_folder_make(char path[BENCH_PATH_SIZE])
{
    const char *parent = getenv("TMPDIR");
    snprintf(path, BENCH_PATH_SIZE, "%s/hone-bench-XXXXXX", parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    if (mkdtemp(path) != NULL) return 0;
    perror(path);
    return 1;
}

void bench_folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) return;
    for (struct dirent *file = readdir(folder); file != NULL; file = readdir(folder))
        if (file->d_name[0] != '.') unlinkat(dirfd(folder), file->d_name, 0);
    closedir(folder);
    rmdir(path);
}
