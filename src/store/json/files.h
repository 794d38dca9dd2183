// The files behind a JSON store: what is in memory against what is on the disk.
//
// A store is one file, or a folder with a file an algorithm and one for what belongs to none. A lock file stands beside
// them, with a number that is odd while somebody writes. Whoever writes holds the lock, reads what others wrote,
// changes the tables, writes the files that changed under other names and renames them: a reader sees one whole state
// or another, and needs no lock. Several files change together: a list of them is the moment when they do.
#ifndef HONE_STORE_JSON_FILES_H
#define HONE_STORE_JSON_FILES_H

#include "base/log.h"
#include "os/os.h"
#include "store/memory/memory.h"

enum { HONE_JSON_PATH_SIZE = 4096, HONE_JSON_NAME_SIZE = 256 };

typedef struct hone_json_file {
    char name[HONE_JSON_NAME_SIZE];
    hone_file_stamp stamp; // of what is in memory
    bool is_broken;        // kept aside before it is written again
    bool is_changed;       // by the change under way
} hone_json_file;

typedef struct hone_json_files {
    hone_allocator allocator;
    const hone_log *log;
    size_t fresh; // damaged lines that were found since somebody set it to 0
    char folder[HONE_JSON_PATH_SIZE - HONE_JSON_NAME_SIZE];
    char single[HONE_JSON_NAME_SIZE]; // the one file; "": a file an algorithm
    hone_memory_tables tables;
    hone_table damage; // lines that are no records: (file, text, reason)
    hone_json_file *files;
    size_t count, capacity;
    uint64_t loads;   // of files that others had changed
    int lock;         // the lock file, open; -1: none yet
    uint64_t number;  // that stood in it when the tables were read
    bool is_complete; // what a crash left was looked for
} hone_json_files;

// Opens what stands at location, which is made with its folders where there is none, and reads it into the tables.
hone_status hone_json_files_open(
    hone_json_files *files,
    const hone_allocator *allocator,
    const char *location,
    const hone_log *log,
    const hone_memory_tables *tables,
    hone_error *err);
void hone_json_files_close(hone_json_files *files);

// Reads what others changed.
hone_status hone_json_files_refresh(hone_json_files *files, hone_error *err);
// Takes the lock and reads what others changed. HONE_BUSY: others hold it for too long; HONE_IO.
hone_status hone_json_files_begin(hone_json_files *files, hone_error *err);
// Writes what changed in the tables since begin, when status is HONE_OK, else takes it back. Gives the lock back and
// returns status, or why nothing was written: then tables and files are as they were.
hone_status hone_json_files_end(hone_json_files *files, hone_status status, hone_error *err);

// Removes the damaged lines, as a part of a change.
hone_status hone_json_files_clear_damage(hone_json_files *files, hone_error *err);

// HONE_CORRUPT names a file that is damaged beyond its lines.
hone_status hone_json_files_check(const hone_json_files *files, hone_error *err);
uint64_t hone_json_files_bytes(const hone_json_files *files);
#endif
