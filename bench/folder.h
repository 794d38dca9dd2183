// A private folder for the stores of a benchmark, in TMPDIR or /tmp.
#ifndef HONE_BENCH_FOLDER_H
#define HONE_BENCH_FOLDER_H

enum { BENCH_PATH_SIZE = 256 };

// Returns nonzero, and says why, when there is none.
int bench_folder_make(char path[BENCH_PATH_SIZE]);
// Removes it and the files in it.
void bench_folder_remove(const char *path);

#endif
