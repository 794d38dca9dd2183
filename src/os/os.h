// Everything that hone asks of the operating system. Nothing above this folder includes a system header for it.
#ifndef HONE_OS_OS_H
#define HONE_OS_OS_H

#include "base/buffer.h"

// Time ----------------------------------------------------------------------------------------------------------------
uint64_t hone_os_now_ns(void); // monotonic
// The same clock, asked of the system without the C library's function, which code of this process may have replaced.
uint64_t hone_os_true_now_ns(void);
double hone_os_now_utc(void);                          // seconds since 1970
void hone_os_format_utc(double seconds, char out[24]); // "2026-11-20T12:34:56Z"
// Of the system's randomness, so that nobody knows it before: 1 to 2^52, which every reader of JSON keeps as it is.
uint64_t hone_os_random_seed(void);
bool hone_os_parse_utc(const char *text, double *out); // exactly that; false for anything else
double hone_os_load(void);                             // load average of the last minute; negative when not known
void hone_os_sleep_ns(uint64_t nanoseconds);

// A variable of the environment; NULL when it is not set, and for every name in a program that runs with more rights
// than who started it has (setuid, setgid, capabilities of the file): what loads code or names files to write is not
// that one's to say.
// Nobody else in hone reads the environment.
const char *hone_os_variable(const char *name);
// Sets it where it is not set. Of a process that has one thread: the others may be reading.
void hone_os_offer_variable(const char *name, const char *value);
// The first of these names, which NULL ends, that is set in such a program: a library of others may heed it there.
// NULL: none is set, or the program has no more rights than who started it.
const char *hone_os_withheld_variable(const char *const *names);

// Files ---------------------------------------------------------------------------------------------------------------

// Between the two a file of the calling thread that would grow beyond its limit (RLIMIT_FSIZE) is a failed write, and no SIGXFSZ, which
// ends the process. They may be nested.
void hone_os_size_signal_hold(void);
void hone_os_size_signal_release(void);
// Creates a folder and its parents (mode 0777 less umask). HONE_OK also when it is there.
hone_status hone_os_make_folders(const char *path, hone_error *err);
// Reads a whole file of at most limit bytes into buffer; "-" reads standard input. HONE_NOT_FOUND, HONE_IO,
// HONE_INVALID_ARGUMENT (too large).
hone_status hone_os_read_file(const char *path, size_t limit, hone_buffer *out, hone_error *err);
// Replaces a file, or makes it, in one step and on the disk: readers see the old bytes or the new, and after a failure
// the old ones stand. A mode that was there is kept; a link is followed; a device or a pipe is written to. HONE_IO.
hone_status hone_os_replace_file(const char *path, const void *bytes, size_t size, hone_error *err);
// Appends to a file, or makes it, in one write: what processes append at once stands behind each other, on a file system
// of this machine. A device or a pipe is written to. HONE_IO, also when a part alone could be written.
hone_status hone_os_append_file(const char *path, const void *bytes, size_t size, hone_error *err);
// To standard error: for what a user asked for who has no other way to hear it.
void hone_os_tell(const char *text, size_t size);

// Steps of replacing several files together (store/json). A new file that takes a target's mode, on the disk; what
// stood under its name is gone. HONE_IO.
hone_status hone_os_write_beside(
    const char *target, const char *temporary, const void *bytes, size_t size, hone_error *err);
hone_status hone_os_rename(const char *from, const char *to, hone_error *err);
// A second name for a file. HONE_IO, also where the file system has no such names.
hone_status hone_os_link(const char *from, const char *to, hone_error *err);
// Brings new names in a folder to the disk.
hone_status hone_os_sync_folder(const char *folder, hone_error *err);
void hone_os_remove_file(const char *path);

// What tells whether a file is still the one that was read. All zero: there is none.
typedef struct hone_file_stamp {
    uint64_t device, inode, size;
    int64_t time_ns;
} hone_file_stamp;
hone_file_stamp hone_os_file_stamp(const char *path);
bool hone_os_is_folder(const char *path);
bool hone_os_is_plain_file(const char *path); // and no link to one
// Whether an open file is the one that a path names.
bool hone_os_is_file_at(int fd, const char *path);
bool hone_os_is_file(const char *path);    // a plain one, or a link to it
bool hone_os_is_free(const char *path);    // nothing is there, nor in the way of making it
bool hone_os_is_special(const char *path); // something that is neither: a folder, a pipe, a device
// The folder that path stands in, "." for a bare name; false when it does not fit.
bool hone_os_folder_of(const char *path, char *out, size_t out_size);
// An open folder, for who asks again and again whether something in it changed; -1 when it cannot be opened.
int hone_os_folder_open(const char *path);
void hone_os_folder_close(int *folder); // which is -1 then, and may be before
// When something in it was made, renamed or removed last, as coarse as its file system's times are. False: nobody can
// tell.
bool hone_os_folder_changed(int folder, int64_t *out_ns);
// Whether files can be made in it.
bool hone_os_may_make_files_beside(const char *path);
// Whether path lies, or would lie, where other machines may write to it too: on NFS, SMB and the like, and on any FUSE.
bool hone_os_is_network_file(const char *path);
// Bytes that are free for this user on the file system of a folder. False: there is no such folder.
bool hone_os_free_bytes(const char *folder, double *out);
// The path without links in it; false when there is no such file or the path does not fit.
bool hone_os_real_path(const char *path, char *out, size_t size);
// Visits the names in a folder, in no order, but for "." and "..", until visit returns false. HONE_NOT_FOUND, HONE_IO.
hone_status hone_os_list_folder(
    const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err);

// Path of the loaded object (library or program) that address lies in; false when not known.
bool hone_os_object_path(const void *address, char *out, size_t size);
// Of this library, or of the program that it is linked into.
bool hone_os_own_path(char *out, size_t size);
bool hone_os_is_executable(const char *path);

// A new folder of this process's own in TMPDIR, else /tmp (mode 0700); and its removal with the files in it. The first
// of a process also removes those of this user whose processes were killed.
//   out_hold    a descriptor that tells others that the folder is in use, for the removal
bool hone_os_make_private_folder(char *out, size_t size, int *out_hold);
void hone_os_remove_private_folder(const char *folder, int *hold);

// Creates a folder with mode 0700, or accepts one that exists. HONE_IO when the path is a link, belongs to another
// user, or is open to other users.
hone_status hone_os_make_own_folder(const char *path, hone_error *err);
// The folder for what processes of this user share while the machine runs: hone's of XDG_RUNTIME_DIR, else of
// /run/user, else in /tmp. HONE_IO with why there is none that is safe.
hone_status hone_os_runtime_folder(char *out, size_t size, hone_error *err);
bool hone_os_is_own_process(int pid); // one that lives, and is this user's

// The permission bits of a file; `otherwise` when there is none.
unsigned hone_os_file_mode(const char *path, unsigned otherwise);

// Locks between processes ---------------------------------------------------------------------------------------------
// A file whose bytes are locked one by one. A lock belongs to the open file: it is gone when that is closed, and when
// the process ends, however it ends.
// Opens a lock file, made with these permission bits, whatever the umask, when there is none; 0: as the umask says. A
// link, or anything but a plain file, is refused. HONE_IO.
hone_status hone_os_lock_open(const char *path, unsigned mode, int *out_fd, hone_error *err);
// Whether nobody but this user, and root, can open it and so hold its locks.
bool hone_os_lock_is_private(int fd);
void hone_os_lock_close(int *fd);
// Never waits. HONE_BUSY: another open file has the byte, be it of this process; HONE_IO: there are no locks there.
hone_status hone_os_lock_try(int fd, uint64_t byte, hone_error *err);
void hone_os_lock_leave(int fd, uint64_t byte);
// Text in the file, for people and hints: it proves nothing. False: it was not written, or is not there.
bool hone_os_lock_note(int fd, uint64_t offset, const char *text, size_t size);
bool hone_os_lock_read_note(int fd, uint64_t offset, char *out, size_t size);

// Dynamic libraries ---------------------------------------------------------------------------------------------------
typedef struct hone_library hone_library;
// Opens the first of a NULL-ended list of names. Never closed again by hone when it starts threads.
// HONE_UNAVAILABLE with the loader's words for each name.
hone_status hone_library_open(
    const hone_allocator *allocator, const char *const *names, hone_library **out, hone_error *err);
// The same with a variable in the environment while the library is loaded, and only then; value NULL: as
// hone_library_open. Threads that read the environment meanwhile see it as it was or with the variable. One that is
// loaded already has read it before.
hone_status hone_library_open_under(
    const hone_allocator *allocator,
    const char *const *names,
    const char *variable,
    const char *value,
    hone_library **out,
    hone_error *err);
// The same; what the library sets as handler of SIGSEGV when it is loaded is put back.
hone_status hone_library_open_quietly(
    const hone_allocator *allocator, const char *const *names, hone_library **out, hone_error *err);
// A library that is unmapped when it is closed: its file may be gone by then. The libraries that it needs stay.
hone_status hone_library_open_file(
    const hone_allocator *allocator, const char *path, hone_library **out, hone_error *err);
// Path of the library that the loader would take for a soname, links followed, so that the file's name tells its
// version.
// Loads nothing. False: there is none.
bool hone_library_find(const char *soname, char *out, size_t size);
// What tells one build of a library from another, wherever its file lies: digits of the build id that the linker wrote,
// else of a digest of the file's size and its two ends. False: there is no such file.
enum { HONE_LIBRARY_BUILD_SIZE = 17 };
bool hone_library_build(const char *path, char out[HONE_LIBRARY_BUILD_SIZE]);
// Finds a library that this process has loaded, by the beginning of its file name, and writes its path with links
// resolved. Returns false when no such library is loaded.
bool hone_library_loaded(const char *beginning, char *out, size_t size);
// Finds a library that this process has loaded from another file with the bytes of this one, and writes the path that it
// was loaded by. Returns false when no such library is loaded, or when its mapped code differs from its file.
bool hone_library_loaded_copy(const char *path, char *out, size_t size);
void *hone_library_symbol(hone_library *library, const char *name); // NULL when there is none
// The name of a function that the library exports and calls, where its calls go to another function of that name in the process.
// Borrowed from the library. NULL if there is none, and on processors other than x86-64 and AArch64.
const char *hone_library_taken(const hone_library *library);
void hone_library_close(const hone_allocator *allocator, hone_library **library);

// The CPU -------------------------------------------------------------------------------------------------------------
typedef struct hone_os_cpu {
    char vendor[16];            // "AuthenticAMD"
    char brand[64];             // "AMD EPYC 9654 96-Core Processor"
    char microarchitecture[32]; // "zen4"
    uint64_t features;          // HONE_CPU_* of hone/device.h
    int32_t threads;            // usable: sched affinity and cgroup cpu quota (v1 and v2) honoured, at least 1
    int64_t l1_bytes, l2_bytes, l3_bytes;
    int64_t memory_bytes;
} hone_os_cpu;
// Reads once a call; allocates nothing. About 50 us.
void hone_os_cpu_read(hone_os_cpu *out);
bool hone_os_has_matrix_unit(void); // products of tiles of narrow numbers: AMX
int hone_os_thread_count(void);     // threads of this process now, but for tickers; 0 when not known
// How many other threads of this process are running, or wait for a processor to run on. Some 10 us a thread.
int hone_os_others_run(void);
// Keeps the other threads of this process that may use the caller's processors off the one that it is on, until the end.
// A thread that a virtual machine wakes beside its caller waits there for a slice of the scheduler, some milliseconds,
// and where the caller waits for it in a loop so does that. A pool's workers keep off by themselves. Some 10 us a thread.
//   but  a pool whose workers are left alone; may be NULL
typedef struct hone_pool hone_pool;
enum { HONE_OS_MOST_KEPT_OFF = 64 };
typedef struct hone_os_kept_off {
    int threads[HONE_OS_MOST_KEPT_OFF], count;
} hone_os_kept_off;
void hone_os_keep_off_begin(const hone_pool *but, hone_os_kept_off *out);
void hone_os_keep_off_end(hone_os_kept_off *kept);
// Of a thread of this process by its number: 'R' runs or is ready, 'S' sleeps, ...; '?': not known. Some 5 us.
char hone_os_thread_state(const char *thread);
// Processor time that all other threads of this process have had, those that ended included; exact to some us.
uint64_t hone_os_others_ns(void);
// Processor time of processes that this one, a worker, has started and that live on below its keeper: who started them has
// ended. Exact to some us. *out: how many there are, and how many of them run or are ready to. Some 20 us.
typedef struct hone_os_orphans {
    int count, running;
} hone_os_orphans;
uint64_t hone_os_orphans_ns(hone_os_orphans *out);
uint64_t hone_os_own_ns(void); // of processor time that the calling thread has taken

// What code leaves in its process -------------------------------------------------------------------------------------
// Signal mask and handlers, floating-point mode, x87 registers, folder, environment, locale, limits, priority, what the
// kernel was told (prctl), user, standard files, rules of threads, timers, child processes, whether a key for thread-local data is left: each as one number. Those of a thread are the calling thread's. Some 40 us.
enum { HONE_OS_FACTS = 18 };
typedef struct hone_os_state {
    uint64_t facts[HONE_OS_FACTS];
} hone_os_state;
void hone_os_state_read(hone_os_state *out);
// The first fact that differs, in words; NULL: none does. Static. of_thread: only facts of the calling thread.
const char *hone_os_state_changed(const hone_os_state *before, const hone_os_state *now, bool of_thread);
// Takes what libraries set when they are loaded, handlers and variables of the environment, as it is now.
void hone_os_state_adopt_loading(hone_os_state *state);
// Rounding, trapping exceptions and flushing of the calling thread, as one number.
uint64_t hone_os_float_mode(void);
// Signal mask, priority, scheduler, processors and x87 registers in use of the calling thread, as one number. Some us.
uint64_t hone_os_thread_settings(void);
// Calls a function, and returns what that does. *out_changed, in words: a register that it has to keep for its caller came back
// with another number (System V's ABI of x86-64); NULL: none, or another processor, where nobody looks. The caller's own are as they were.
int hone_os_call_marked(int (*call)(void *ctx), void *ctx, const char **out_changed);
// Floating-point environment, signal mask and processors of the calling thread.
typedef struct hone_os_thread_mode {
    _Alignas(16) unsigned char bytes[512];
} hone_os_thread_mode;
void hone_os_thread_mode_save(hone_os_thread_mode *out);
void hone_os_thread_mode_restore(const hone_os_thread_mode *mode);
// Of its processors alone: puts them back. True: they were others.
bool hone_os_thread_come_back(const hone_os_thread_mode *mode);
// Whether all whole pages of some memory are there, in memory or swapped out: one that was given back is made when it is next touched.
// True where that cannot be asked. Some 20 ns a page.
bool hone_os_has_memory(const void *from, size_t size);
// What the system was told of the pages that some memory lies in (madvise, mlock): a bit for each thing, whose words are below.
// 0 where that cannot be asked. Some 10 us for each mapping of the process, and what its pages take to be counted.
typedef struct hone_os_span {
    const void *from;
    size_t size;
} hone_os_span;
uint32_t hone_os_advice(const hone_os_span *spans, size_t count);
const char *hone_os_advice_words(uint32_t advice); // of the first one
// Whether the heap of the C library's main thread is in order: who writes past the end of what it allocated writes over sizes that stand
// there. False also where its form is not known (glibc's is). Some 10 ns for each piece of it.
bool hone_os_heap_is_whole(void);
// What this process holds now. Some 30 us.
typedef enum hone_os_held {
    HONE_HELD_HEAP,     // bytes that were allocated and not freed, those of the C library's allocator
    HONE_HELD_MAPPED,   // bytes of address space
    HONE_HELD_RESIDENT, // bytes of memory
    HONE_HELD_DESCRIPTORS,
    HONE_HELD_THREADS,
    HONE_HELD_KEYS, // for thread-local data (pthread_key_create), of which a process has some thousand
    HONE_HELD_COUNT
} hone_os_held;
typedef struct hone_os_holdings {
    uint64_t amounts[HONE_HELD_COUNT];
} hone_os_holdings;
void hone_os_holdings_read(hone_os_holdings *out);

// Zeros, on pages that take memory when they are first written. They are never given back. NULL: there is no room.
void *hone_os_zero_pages(size_t size);

// Memory that is not to be written: a write is noted and goes on. Of one thread's use, in a process of its own.
// Begins with a handler of SIGSEGV. What a library sets in its place later has the faults, those of guards too.
bool hone_os_guard_begin(void);
typedef struct hone_os_guard {
    char *from;  // whole pages
    size_t size; // 0: nothing is guarded
    int place;
} hone_os_guard;
// Guards the whole pages inside a block; *guard is zero before. False: it cannot, and nothing has changed.
bool hone_os_guard_close(hone_os_guard *guard, char *block, size_t size);
bool hone_os_guard_was_written(const hone_os_guard *guard);
// The block may be written and freed again. False: the system has no memory for it, and the guard stays.
bool hone_os_guard_open(hone_os_guard *guard);

// Threads -------------------------------------------------------------------------------------------------------------
void hone_os_yield(void); // the processor, to whoever waits for it
// A thread is stopped in the middle of whatever it does, as a scheduler may stop it. One at a time in a process; takes
// SIGURG between begin and end. False: it cannot.
bool hone_os_hold_begin(void);
void hone_os_hold_end(void);
// The calling thread may be held from now on until it leaves. It stands still on a stack of its own: code that a library
// generates may keep numbers below the stack's end, or use its register for others. Its number; 0: no memory.
typedef struct hone_os_holdable {
    void *stack, *before; // before: the one that the thread had
    size_t size, before_size;
} hone_os_holdable;
int hone_os_hold_join(hone_os_holdable *out);
void hone_os_hold_leave(hone_os_holdable *holdable);
// Waits until the thread stands still, at most patience_ns. It goes on when it is released, or after most_ns. False: it
// goes on as it did.
bool hone_os_hold(int thread, uint64_t patience_ns, uint64_t most_ns);
void hone_os_hold_release(void);
// A pool that works together with the caller: threads counts the caller. Threads start at the first parallel_for.
hone_status hone_pool_create(const hone_allocator *allocator, int32_t threads, hone_pool **out, hone_error *err);
void hone_pool_destroy(hone_pool **pool);
int32_t hone_pool_threads(const hone_pool *pool);
// hone_parallel_for's shape. Allocates nothing, also when it is called from inside a body (then it runs the bodies
// itself).
// Workers spin for 200 us before they sleep: the next call of a loop finds them awake, on processors of their own.
void hone_pool_run(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);
// The same with at most limit threads at work.
void hone_pool_run_limited(
    hone_pool *pool, int32_t limit, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);
// The same of a pass of microseconds to a few milliseconds beside what is timed: by the caller alone while the pool is crowded.
void hone_pool_share(hone_pool *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);
// Whether other work on the machine takes the workers their processors: who waits for one that has taken an index and lost its
// processor waits for a slice or more of the scheduler, up to .2 s beside a dozen busy threads, for a pass of a millisecond.
void hone_pool_note_crowd(hone_pool *pool, bool is_crowded);
// Workers that spin go to sleep now, so that nothing runs beside what comes next. Of who runs the pool's jobs.
void hone_pool_rest(hone_pool *pool);
// The other way round: wakes so many of them, and sleeps until all have come, at most limit_ns, so that what begins within
// 200 us has them beside it. On a busy machine a worker that is woken waits for a slice of the scheduler, some milliseconds;
// a caller that works meanwhile does it all alone, and uses up its own claim. False: not all came; or a job is at work.
bool hone_pool_gather(hone_pool *pool, int32_t workers, uint64_t limit_ns);
// The most workers that a job was put out to since this was last asked.
int32_t hone_pool_take_asked(hone_pool *pool);
// Whether a body has ever left a worker in another floating-point mode than the pool was made in, or, known once the
// pool rests, with other settings (hone_os_thread_settings) than it began with.
bool hone_pool_changed_worker(const hone_pool *pool);
bool hone_pool_has_worker(const hone_pool *pool, int thread); // the system's number of it
// A thread that calls tick(ctx), then sleeps as many nanoseconds as that says, until it is stopped. No fork has to fear
// it, so that hone_os_thread_count leaves it out. HONE_UNAVAILABLE: there is no thread to be had.
typedef struct hone_ticker hone_ticker;
hone_status hone_ticker_start(
    const hone_allocator *allocator, uint64_t (*tick)(void *ctx), void *ctx, hone_ticker **out, hone_error *err);
// Waits for a tick that goes on. Not from inside of one. *ticker NULL: nothing.
void hone_ticker_stop(hone_ticker **ticker);
// Starts it in a child, too, where it is as it was in the parent; allocates nothing. NULL: nothing.
void hone_ticker_in_child(hone_ticker *ticker);
int hone_ticker_count(void); // that run in this process

// Processes -----------------------------------------------------------------------------------------------------------
int hone_os_process_id(void);
// "user@host"; numbers or "?" where there are no names.
void hone_os_who(char *out, size_t size);

// A child that talks over a pair of pipes (or one socket pair), dies with its parent, and leads its own process group.
typedef struct hone_process {
    int pid;
    int fd;              // read and write, close-on-exec
    unsigned generation; // of the process whose child it is (os/mutex.h): a fork of that one only closes fd
} hone_process;
// Starts program with arguments (NULL-ended, first is the program's name); the child finds its end as file descriptor
// 3.
hone_status hone_process_spawn(const char *program, const char *const *arguments, hone_process *out, hone_error *err);
// Processes that are started from now on have the variable too, where this one's own environment lacks it: what one
// process knows and another has to know. Of one name the last value counts.
hone_status hone_process_hand_on(const char *name, const char *value);
// Runs a program to its end, found as a shell finds it, and appends what it prints, at most limit bytes.
//   arguments    NULL-ended, the program first
//   out_exit     its exit code; 127: it was not found
// Returns: HONE_OK; HONE_BUSY: the deadline passed, and it was ended; HONE_KERNEL_FAILED: a signal (err->system_code)
// ended it; HONE_IO.
hone_status hone_process_run(
    const char *const *arguments, uint64_t deadline_ns, size_t limit, hone_buffer *out, int *out_exit, hone_error *err);
// Path of a program that a shell would find, without links; false when there is none.
bool hone_os_find_program(const char *name, char *out, size_t size);
// Forks; the child calls body(ctx, fd) and leaves with its return value. Only from a single-threaded process.
hone_status hone_process_fork(int (*body)(void *ctx, int fd), void *ctx, hone_process *out, hone_error *err);
// Splits the calling process, which has one thread, into a keeper and its child, and returns in the child only. When
// the child has ended, when SIGTERM comes or when the keeper's parent is gone, the keeper ends everything that descends
// from the child, and then itself as the child did.
void hone_process_keep(void);
// The calling process ends when its parent does. Takes SIGHUP.
void hone_process_follow(void);
// Asks the child to end (a keeper then takes its own along), kills its whole group, reaps it, closes fd. out_signal:
// what it died of before, 0 when it still ran or had exited (then out_exit).
void hone_process_kill(hone_process *process, int *out_signal, int *out_exit);
// Writes all / reads exactly size bytes before the deadline (hone_os_now_ns; 0: none).
// HONE_OK; HONE_BUSY: the deadline passed; HONE_IO: the other end is gone.
hone_status hone_fd_write(int fd, const void *bytes, size_t size, uint64_t deadline_ns);
hone_status hone_fd_read(int fd, void *bytes, size_t size, uint64_t deadline_ns);
// Bytes are there, or the other end is gone.
bool hone_fd_is_readable(int fd);
// Waits until it is. False: it is not after so long.
bool hone_fd_await_readable(int fd, uint64_t patience_ns);

#endif
