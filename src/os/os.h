// Everything that hone asks of the operating system. Nothing above this folder includes a system header for it.
#ifndef HONE_OS_OS_H
#define HONE_OS_OS_H

#include "base/buffer.h"

// Time ----------------------------------------------------------------------------------------------------------------
uint64_t hone_os_now_ns(void); // monotonic
// The same clock, read with the system call itself: code of this process may have replaced the C library's function.
uint64_t hone_os_true_now_ns(void);
double hone_os_now_utc(void);                          // seconds since 1970
void hone_os_format_utc(double seconds, char out[24]); // "2026-11-20T12:34:56Z"
// A random number from the system, so that no code can predict it. It lies in 1 to 2^52, which every JSON reader
// represents exactly.
uint64_t hone_os_random_seed(void);
bool hone_os_parse_utc(const char *text, double *out); // this format exactly; false for anything else
double hone_os_load(void);                             // load average of the last minute; negative when not known
void hone_os_sleep_ns(uint64_t nanoseconds);

// Returns a variable of the environment, NULL if it is not set. Returns NULL for every name in a program that runs with
// more rights than the user who started it (setuid, setgid, capabilities of the file): that user must not choose which
// code is loaded or which files are written. No other function of hone reads the environment.
const char *hone_os_variable(const char *name);
// Sets a variable that is not set yet. Only for a process with one thread: other threads may be reading the
// environment.
void hone_os_offer_variable(const char *name, const char *value);
// In a program with such extra rights, returns the first of these names (a NULL-ended list) that is set: other
// libraries may still obey it there. NULL if none is set, or if the program has no extra rights.
const char *hone_os_withheld_variable(const char *const *names);

// Files ---------------------------------------------------------------------------------------------------------------

// Between hold and release, a write of the calling thread that would exceed the file size limit (RLIMIT_FSIZE) fails,
// instead of raising SIGXFSZ, which ends the process. The pairs may be nested.
void hone_os_size_signal_hold(void);
void hone_os_size_signal_release(void);
// Creates a folder and its parents (mode 0777 less umask). HONE_OK also if it exists.
hone_status hone_os_make_folders(const char *path, hone_error *err);
// Reads a whole file of at most limit bytes into buffer; "-" reads standard input. HONE_NOT_FOUND, HONE_IO,
// HONE_INVALID_ARGUMENT (too large).
hone_status hone_os_read_file(const char *path, size_t limit, hone_buffer *out, hone_error *err);
// Replaces or creates a file in one step, and syncs it to disk: readers see the old bytes or the new, and after a
// failure the old bytes remain. The mode of an existing file is kept; a link is followed; a device or a pipe is written
// to. HONE_IO.
hone_status hone_os_replace_file(const char *path, const void *bytes, size_t size, hone_error *err);
// Appends to a file, or creates it, in one write: simultaneous appends of several processes do not interleave, on a
// local file system. A device or a pipe is written to. HONE_IO, also if only a part could be written.
hone_status hone_os_append_file(const char *path, const void *bytes, size_t size, hone_error *err);
// Writes to standard error: for output that a user asked for and that has no other destination.
void hone_os_tell(const char *text, size_t size);

// Steps of replacing several files together (store/json). Writes a new file with the target's mode and syncs it to
// disk. Any file that had the temporary name is removed. HONE_IO.
hone_status hone_os_write_beside(
    const char *target, const char *temporary, const void *bytes, size_t size, hone_error *err);
hone_status hone_os_rename(const char *from, const char *to, hone_error *err);
// Creates a second name (a hard link) for a file. HONE_IO, also if the file system has no hard links.
hone_status hone_os_link(const char *from, const char *to, hone_error *err);
// Syncs the names in a folder to disk.
hone_status hone_os_sync_folder(const char *folder, hone_error *err);
void hone_os_remove_file(const char *path);

// Identifies a version of a file, to detect that it changed after it was read. All zero if the file does not exist.
typedef struct hone_file_stamp {
    uint64_t device, inode, size;
    int64_t time_ns;
} hone_file_stamp;
hone_file_stamp hone_os_file_stamp(const char *path);
bool hone_os_is_folder(const char *path);
bool hone_os_is_plain_file(const char *path); // false for a link
// Whether an open file is the one that a path names.
bool hone_os_is_file_at(int fd, const char *path);
bool hone_os_is_file(const char *path);    // a regular file, or a link to one
bool hone_os_is_free(const char *path);    // nothing exists at path, and it could be created
bool hone_os_is_special(const char *path); // exists and is not a regular file: a folder, a pipe, a device
// The folder that contains path, "." for a bare name; false if it does not fit.
bool hone_os_folder_of(const char *path, char *out, size_t out_size);
// Opens a folder whose changes are polled with hone_os_folder_changed; -1 if it cannot be opened.
int hone_os_folder_open(const char *path);
void hone_os_folder_close(int *folder); // sets it to -1, and accepts -1
// The time of the last creation, renaming or removal in the folder, with the resolution of its file system's times.
// False if that is not known.
bool hone_os_folder_changed(int folder, int64_t *out_ns);
// Whether files can be created in the folder that contains path.
bool hone_os_may_make_files_beside(const char *path);
// Whether path lies, or would lie, on a file system that other machines may write to: NFS, SMB and the like, and any
// FUSE.
bool hone_os_is_network_file(const char *path);
// Free bytes for this user on the file system of a folder. False if there is no such folder.
bool hone_os_free_bytes(const char *folder, double *out);
// Resolves all links of path; false if there is no such file or the result does not fit.
bool hone_os_real_path(const char *path, char *out, size_t size);
// Visits the names in a folder, in no particular order, except "." and "..", until visit returns false. HONE_NOT_FOUND,
// HONE_IO.
hone_status hone_os_list_folder(
    const char *folder, bool (*visit)(void *ctx, const char *name), void *ctx, hone_error *err);

// Path of the loaded object (library or program) that address lies in; false when not known.
bool hone_os_object_path(const void *address, char *out, size_t size);
// The path of this library, or of the program that it is linked into.
bool hone_os_own_path(char *out, size_t size);
bool hone_os_is_executable(const char *path);

// Creates a new folder in TMPDIR, else /tmp (mode 0700), for this process alone, and removes it together with its
// files. The first call of a process also removes such folders of this user whose processes were killed.
//   out_hold    a descriptor that marks the folder as in use; pass it to the removal
bool hone_os_make_private_folder(char *out, size_t size, int *out_hold);
void hone_os_remove_private_folder(const char *folder, int *hold);

// Creates a folder with mode 0700, or accepts one that exists. HONE_IO when the path is a link, belongs to another
// user, or is open to other users.
hone_status hone_os_make_own_folder(const char *path, hone_error *err);
// The folder for what processes of this user share while the machine is up: hone's in XDG_RUNTIME_DIR, else in
// /run/user, else in /tmp. HONE_IO with the reason if none of them is safe.
hone_status hone_os_runtime_folder(char *out, size_t size, hone_error *err);
bool hone_os_is_own_process(int pid); // a live process of this user

// The permission bits of a file; `otherwise` if there is no such file.
unsigned hone_os_file_mode(const char *path, unsigned otherwise);

// Locks between processes ---------------------------------------------------------------------------------------------
// A file whose bytes are locked one by one. A lock belongs to the open file: it is released when the file is closed and
// when the process ends, however it ends.
// Opens a lock file. If it is missing, creates it with these permission bits whatever the umask is; mode 0 leaves the
// bits to the umask. Refuses a link and anything but a regular file. HONE_IO.
hone_status hone_os_lock_open(const char *path, unsigned mode, int *out_fd, hone_error *err);
// Whether only this user, and root, can open the file and so hold its locks.
bool hone_os_lock_is_private(int fd);
void hone_os_lock_close(int *fd);
// Never waits. HONE_BUSY if another open file, also one of this process, has the byte; HONE_IO if locks are not
// supported there.
hone_status hone_os_lock_try(int fd, uint64_t byte, hone_error *err);
void hone_os_lock_leave(int fd, uint64_t byte);
// Writes or reads text in the file, as a hint for people: it proves nothing. False if it was not written, or is not
// there.
bool hone_os_lock_note(int fd, uint64_t offset, const char *text, size_t size);
bool hone_os_lock_read_note(int fd, uint64_t offset, char *out, size_t size);

// Dynamic libraries ---------------------------------------------------------------------------------------------------
typedef struct hone_library hone_library;
// Opens the first of a NULL-ended list of names that loads. A library stays loaded after hone closes it, since it may
// have started threads. HONE_UNAVAILABLE with the loader's message for each name.
hone_status hone_library_open(
    const hone_allocator *allocator, const char *const *names, hone_library **out, hone_error *err);
// Like hone_library_open, with a variable set in the environment while the library is loaded, and only then; value NULL
// sets none. Other threads that read the environment meanwhile see it with or without the variable. It has no effect on
// a library that is already loaded.
hone_status hone_library_open_under(
    const hone_allocator *allocator,
    const char *const *names,
    const char *variable,
    const char *value,
    hone_library **out,
    hone_error *err);
// Like hone_library_open, but restores the handler of SIGSEGV if loading the library replaces it.
hone_status hone_library_open_quietly(
    const hone_allocator *allocator, const char *const *names, hone_library **out, hone_error *err);
// Opens a library that is unmapped when it is closed; its file may have been removed by then. The libraries that it
// depends on stay mapped.
hone_status hone_library_open_file(
    const hone_allocator *allocator, const char *path, hone_library **out, hone_error *err);
// Finds the path of the library that the loader would load for a soname, with links resolved, so that the file name
// shows the version. Loads nothing. False if it is not found.
bool hone_library_find(const char *soname, char *out, size_t size);
// Writes digits that distinguish one build of a library from another, wherever its file lies: those of the linker's
// build id, else of a digest of the file's size and its two ends. False if there is no such file.
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
// Reads the CPU at every call; allocates nothing. Takes about 50 us.
void hone_os_cpu_read(hone_os_cpu *out);
bool hone_os_has_matrix_unit(void); // whether there is a unit for products of tiles of narrow numbers: AMX
int hone_os_thread_count(void);     // threads of this process now, not counting tickers; 0 if not known
// How many other threads of this process run, or are ready and wait for a processor. Takes about 10 us per thread.
int hone_os_others_run(void);
// Moves the other threads of this process that may use the caller's processors away from the processor that the caller
// runs on, until the end. A virtual machine may wake a thread on its caller's processor; the thread then waits there
// for a scheduler slice, some milliseconds, and a caller that waits for it in a loop loses the same time. A pool's
// workers avoid this by themselves. Takes about 10 us per thread.
//   but  a pool whose workers are not moved; may be NULL
typedef struct hone_pool hone_pool;
enum { HONE_OS_MOST_KEPT_OFF = 64 };
typedef struct hone_os_kept_off {
    int threads[HONE_OS_MOST_KEPT_OFF], count;
} hone_os_kept_off;
void hone_os_keep_off_begin(const hone_pool *but, hone_os_kept_off *out);
void hone_os_keep_off_end(hone_os_kept_off *kept);
// The state of a thread of this process by its number: 'R' runs or is ready, 'S' sleeps, ...; '?' if not known. Takes
// about 5 us.
char hone_os_thread_state(const char *thread);
// Processor time of all other threads of this process, including threads that have ended; exact to some us.
uint64_t hone_os_others_ns(void);
// Processor time of the orphans of this process, which is a worker: processes that it started, directly or not, whose
// own parent has ended, and that live on below its keeper. Exact to some us. *out: how many there are, and how many of
// them run or are ready to. Takes about 20 us.
typedef struct hone_os_orphans {
    int count, running;
} hone_os_orphans;
uint64_t hone_os_orphans_ns(hone_os_orphans *out);
uint64_t hone_os_own_ns(void); // processor time that the calling thread has used

// What code leaves in its process -------------------------------------------------------------------------------------
// The state that code can leave changed in its process, each fact as one number: signal mask and handlers,
// floating-point mode, x87 registers, folder, environment, locale, limits, priority, settings of the kernel for this
// process (prctl), user, standard files, attributes of threads, timers, child processes, the keys for thread-local
// data. Facts of a thread are those of the calling thread. Takes about 40 us.
enum { HONE_OS_FACTS = 18 };
typedef struct hone_os_state {
    uint64_t facts[HONE_OS_FACTS];
} hone_os_state;
void hone_os_state_read(hone_os_state *out);
// Describes the first fact that differs, NULL if none does. The text is static. of_thread: compares only facts of the
// calling thread.
const char *hone_os_state_changed(const hone_os_state *before, const hone_os_state *now, bool of_thread);
// Accepts in *state the current signal handlers and environment variables, which libraries set when they are loaded.
void hone_os_state_adopt_loading(hone_os_state *state);
// Rounding, trapped exceptions and flushing of subnormal numbers of the calling thread, as one number.
uint64_t hone_os_float_mode(void);
// Signal mask, priority, scheduler, processors and x87 registers in use of the calling thread, as one number. Takes
// some us.
uint64_t hone_os_thread_settings(void);
// Calls a function and returns its result. *out_changed names a register that the function must preserve for its caller
// (System V's ABI of x86-64) but changed; NULL if it preserved all of them, or on other processors, where this is not
// checked. The caller's own registers are restored.
int hone_os_call_marked(int (*call)(void *ctx), void *ctx, const char **out_changed);
// Floating-point environment, signal mask and processors of the calling thread.
typedef struct hone_os_thread_mode {
    _Alignas(16) unsigned char bytes[512];
} hone_os_thread_mode;
void hone_os_thread_mode_save(hone_os_thread_mode *out);
void hone_os_thread_mode_restore(const hone_os_thread_mode *mode);
// Restores the processors that the thread may use, and nothing else. True if they had been changed.
bool hone_os_thread_come_back(const hone_os_thread_mode *mode);
// Whether all whole pages of some memory exist, in memory or swapped out. A page that was given back to the system is
// created again at its next use. True where the system cannot report this. Takes about 20 ns per page.
bool hone_os_has_memory(const void *from, size_t size);
// The advice that was given to the system for the pages of some memory (madvise, mlock): one bit for each kind,
// described by hone_os_advice_words. 0 where the system cannot report this. Takes about 10 us for each mapping of the
// process, plus the time to count its pages.
typedef struct hone_os_span {
    const void *from;
    size_t size;
} hone_os_span;
uint32_t hone_os_advice(const hone_os_span *spans, size_t count);
const char *hone_os_advice_words(uint32_t advice); // describes the first bit
// Whether the heap of the C library's main thread is consistent: code that writes past the end of an allocation
// overwrites the sizes stored there. False also where the heap's layout is not known (glibc's is). Takes about 10 ns
// for each chunk of the heap.
bool hone_os_heap_is_whole(void);
// What this process holds now. Takes about 30 us.
typedef enum hone_os_held {
    HONE_HELD_HEAP,     // bytes allocated with the C library's allocator and not freed
    HONE_HELD_MAPPED,   // bytes of address space
    HONE_HELD_RESIDENT, // bytes of memory
    HONE_HELD_DESCRIPTORS,
    HONE_HELD_THREADS,
    HONE_HELD_KEYS, // keys for thread-local data (pthread_key_create), of which a process has about a thousand
    HONE_HELD_COUNT
} hone_os_held;
typedef struct hone_os_holdings {
    uint64_t amounts[HONE_HELD_COUNT];
} hone_os_holdings;
void hone_os_holdings_read(hone_os_holdings *out);

// Zeroed pages, which take memory when they are first written. They are never released. NULL if there is no memory.
void *hone_os_zero_pages(size_t size);

// Memory that must not be written: a write is recorded and then proceeds. For use by one thread, in a process of its
// own.
// Installs a handler of SIGSEGV. If a library replaces it later, the library's handler receives the faults, also those
// of guards.
bool hone_os_guard_begin(void);
typedef struct hone_os_guard {
    char *from;  // whole pages
    size_t size; // 0: nothing is guarded
    int place;
} hone_os_guard;
// Guards the whole pages inside a block; *guard must be zero. False if that fails; nothing has changed then.
bool hone_os_guard_close(hone_os_guard *guard, char *block, size_t size);
bool hone_os_guard_was_written(const hone_os_guard *guard);
// Makes the block writable again, so that it can be freed. False if the system has no memory for that; the guard stays.
bool hone_os_guard_open(hone_os_guard *guard);

// Threads -------------------------------------------------------------------------------------------------------------
void hone_os_yield(void); // gives the processor to another thread that waits for it
// Stops a thread in the middle of its work, as a scheduler may. One thread at a time in a process; uses SIGURG between
// begin and end. False if holds are not possible.
bool hone_os_hold_begin(void);
void hone_os_hold_end(void);
// Allows the calling thread to be held until it leaves. While held it runs on a separate signal stack: code that a
// library generates may keep data below the end of the stack, or use the stack register for something else. Returns the
// thread's number, 0 if there is no memory.
typedef struct hone_os_holdable {
    void *stack, *before; // before: the signal stack that the thread had
    size_t size, before_size;
} hone_os_holdable;
int hone_os_hold_join(hone_os_holdable *out);
void hone_os_hold_leave(hone_os_holdable *holdable);
// Waits at most patience_ns until the thread stands still. The thread continues when it is released, or after most_ns.
// False if it did not stop.
bool hone_os_hold(int thread, uint64_t patience_ns, uint64_t most_ns);
void hone_os_hold_release(void);
// A pool that shares each job with its caller: threads includes the caller. The threads are started by the first
// parallel_for.
hone_status hone_pool_create(const hone_allocator *allocator, int32_t threads, hone_pool **out, hone_error *err);
void hone_pool_destroy(hone_pool **pool);
int32_t hone_pool_threads(const hone_pool *pool);
// Has the signature of hone_parallel_for. Allocates nothing, also when it is called inside a body (it runs the bodies
// itself then). Workers spin for 200 us before they sleep, so that the next call of a loop finds them awake, each on
// its own processor.
void hone_pool_run(void *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);
// The same, with at most limit threads.
void hone_pool_run_limited(
    hone_pool *pool, int32_t limit, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);
// The same, for a pass of microseconds to a few milliseconds that runs beside what is timed. The caller runs it alone
// while the pool is crowded.
void hone_pool_share(hone_pool *pool, int64_t count, void (*body)(void *ctx, int64_t index), void *ctx);
// Records whether other work on the machine takes processors from the workers. A caller must wait for a worker that has
// taken an index and then lost its processor: a scheduler slice or more, up to .2 s beside a dozen busy threads, for a
// pass of a millisecond.
void hone_pool_note_crowd(hone_pool *pool, bool is_crowded);
// Sends spinning workers to sleep now, so that they do not disturb what comes next. Call it from the thread that runs
// the pool's jobs.
void hone_pool_rest(hone_pool *pool);
// The opposite: wakes that many workers, and sleeps until all have arrived, at most limit_ns, so that a job that begins
// within 200 us has them. On a busy machine a worker that is woken waits for a scheduler slice, some milliseconds; a
// caller that worked meanwhile would do all of the work alone, and use up its own share of the processor. False if not
// all arrived, or if a job is running.
bool hone_pool_gather(hone_pool *pool, int32_t workers, uint64_t limit_ns);
// The largest number of workers that a job requested since the last call of this function.
int32_t hone_pool_take_asked(hone_pool *pool);
// Whether a body has ever left a worker with another floating-point mode than the one that the pool was created in, or
// with other thread settings (hone_os_thread_settings) than it started with. The settings are checked only once the
// pool rests.
bool hone_pool_changed_worker(const hone_pool *pool);
bool hone_pool_has_worker(const hone_pool *pool, int thread); // thread: the system's number of it
// A thread that calls tick(ctx), sleeps for the number of nanoseconds that tick returns, and repeats this until it is
// stopped. It does not make a fork unsafe, so hone_os_thread_count does not count it. HONE_UNAVAILABLE if no thread can
// be created.
typedef struct hone_ticker hone_ticker;
hone_status hone_ticker_start(
    const hone_allocator *allocator, uint64_t (*tick)(void *ctx), void *ctx, hone_ticker **out, hone_error *err);
// Waits for a tick in progress. Must not be called inside a tick. Does nothing if *ticker is NULL.
void hone_ticker_stop(hone_ticker **ticker);
// Starts the ticker in a child process, where its memory is a copy of the parent's; allocates nothing. Does nothing for
// NULL.
void hone_ticker_in_child(hone_ticker *ticker);
int hone_ticker_count(void); // tickers that run in this process

// Processes -----------------------------------------------------------------------------------------------------------
int hone_os_process_id(void);
// "user@host"; numbers or "?" where names are not known.
void hone_os_who(char *out, size_t size);

// A child that communicates over a pair of pipes (or one socket pair), ends with its parent, and leads its own process
// group.
typedef struct hone_process {
    int pid;
    int fd;              // read and write, close-on-exec
    unsigned generation; // of the process whose child it is (os/mutex.h): in a fork of that process only fd is closed
} hone_process;
// Starts program with arguments (NULL-ended, the first is the program's name). In the child, file descriptor 3 is its
// end of the pair.
hone_status hone_process_spawn(const char *program, const char *const *arguments, hone_process *out, hone_error *err);
// Adds a variable to the environment of processes that are started from now on, unless this process's own environment
// has it: this passes on what one process knows and another needs. The last value of a name counts.
hone_status hone_process_hand_on(const char *name, const char *value);
// Runs a program to its end, and appends its output to out, at most limit bytes. The program is searched for as a shell
// does.
//   arguments    NULL-ended, the program first
//   out_exit     its exit code; 127 if it was not found
// Returns HONE_OK; HONE_BUSY if the deadline passed and the program was ended; HONE_KERNEL_FAILED if a signal
// (err->system_code) ended it; HONE_IO.
hone_status hone_process_run(
    const char *const *arguments, uint64_t deadline_ns, size_t limit, hone_buffer *out, int *out_exit, hone_error *err);
// The path of a program as a shell would find it, with links resolved; false if there is none.
bool hone_os_find_program(const char *name, char *out, size_t size);
// Forks; the child calls body(ctx, fd) and exits with its return value. Only from a single-threaded process.
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
