// Runs a fuzz target on every file of its corpus, without libFuzzer: what a fuzzer once found stays found.
//   fuzz_NAME FOLDER-or-FILE...
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PATH_SIZE = 4096, LIMIT = 16 << 20 };

// Returns the number of files that could not be run.
static int run_file(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(LIMIT);
    if (file == NULL || data == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        if (file != NULL) fclose(file);
        free(data);
        return 1;
    }
    size_t size = fread(data, 1, LIMIT, file);
    fclose(file);
    // Exactly as large as the input, so that a sanitizer sees a read behind its end.
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact != NULL) {
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
        ++*count;
    }
    free(exact);
    free(data);
    return exact == NULL;
}

static int run_folder(const char *path, size_t *count)
{
    DIR *folder = opendir(path);
    if (folder == NULL) return run_file(path, count);
    int failed = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char name[PATH_SIZE];
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        failed += run_file(name, count);
    }
    closedir(folder);
    return failed;
}

int main(int count, char **arguments)
{
    int failed = 0;
    size_t inputs = 0;
    for (int i = 1; i < count; i++)
        failed += run_folder(arguments[i], &inputs);
    printf("%zu inputs\n", inputs);
    return failed == 0 && inputs > 0 ? 0 : 1; // an empty corpus tests nothing
}
