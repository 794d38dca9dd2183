// What the parts of the files of a JSON store share: names.c, load.c, lock.c, write.c.
#ifndef HONE_STORE_JSON_PARTS_H
#define HONE_STORE_JSON_PARTS_H

#include "store/json/files.h"

// The list of the files that change together.
#define HONE_JSON_LIST ".commit"

enum { HONE_JSON_FILE_LIMIT = 1 << 30, HONE_JSON_LOCK_BYTE = 0 };

// The file that a row stands in: its algorithm's, where that is part of its key.
void hone_json_name_of_row(
    const hone_json_files *files, const hone_row_shape *shape, const hone_row *row, char out[HONE_JSON_NAME_SIZE]);
// The file of that name, added where it is not known. NULL: no memory.
hone_json_file *hone_json_need_file(hone_json_files *files, const char *name);
void hone_json_path_of(const hone_json_files *files, const char *name, char out[HONE_JSON_PATH_SIZE]);
// Names have room: their parts are as long as a folder and a name may be. Returns how many characters were written.
size_t hone_json_print(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool hone_json_row_is_of(
    const hone_json_files *files, const hone_json_file *file, const hone_row_shape *shape, const hone_row *row);
// ".rms_norm.json.new": who holds the lock writes them, so that one that stays behind is nobody's.
void hone_json_temporary_of(const hone_json_files *files, const char *name, char out[HONE_JSON_PATH_SIZE]);

// Reading: what changed on the disk, into the tables.
bool hone_json_ends_with(const char *text, const char *end);
// Memory and disk may differ: the file is read again.
void hone_json_forget(hone_json_file *file);
hone_status hone_json_load_changed(hone_json_files *files, hone_error *err);

// The lock.
void hone_json_give_back(hone_json_files *files);
bool hone_json_is_marked(const hone_json_files *files);
void hone_json_lock_path_of(const hone_json_files *files, char out[HONE_JSON_PATH_SIZE]);
void hone_json_mark(const hone_json_files *files, bool is_writing);
// Who may write the files may lock them.
hone_status hone_json_open_lock(hone_json_files *files, hone_error *err);
uint64_t hone_json_read_number(const hone_json_files *files);
hone_status hone_json_wait_for_lock(hone_json_files *files, hone_error *err);
void hone_json_write_number(const hone_json_files *files, uint64_t number);

// Writing: the files that are marked as changed, under other names first, then all together.
// After a change that took place the files are what is in memory.
void hone_json_stamp_changed(hone_json_files *files);
hone_status hone_json_write_changed(hone_json_files *files, hone_error *err);

#endif
