// A program that `hone ab` runs: started with a side's environment, in a process group of its own, read while it runs,
// stopped and let go on, and ended with all that it started in its group.
#include "ab.h"
#include "pairs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_SIZE = 1 << 20, WHOLE_SIZE = 1 << 26, TICK_MS = 50, CANNOT_START = 127 };

static const uint64_t ms = 1000000;

// Starting ------------------------------------------------------------------------------------------------------------

static void become(const ab_side *side, char *const *program, bool records, const int ends[2])
{
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(nothing, STDIN_FILENO);
    dup2(ends[0], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    // A Python program keeps lines back in a pipe, and stopping it would lose when they were printed.
    setenv("PYTHONUNBUFFERED", "1", 0);
    ab_enter(side);
    if (records) setenv("HONE_RECORD", "1", 1);
    execvp(program[0], program);
    dprintf(STDERR_FILENO, "%s: %s\n", program[0], strerror(errno));
    _exit(CANNOT_START);
}

static bool make_pipe(int ends[2])
{
    return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

int ab_start(const ab_side *side, const ab_metric *metric, char *const *program, bool records, ab_run *out)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    *out = (ab_run){.side = side, .metric = metric, .streams = {{.fd = -1}, {.fd = -1}}};
    cli_text_init(&out->whole);
    for (int i = 0; i < 2; i++) {
        cli_text_init(&out->streams[i].line);
        if (make_pipe(pipes[i])) out->streams[i].fd = pipes[i][0];
    }
    fflush(NULL);
    const bool ready = out->streams[0].fd >= 0 && out->streams[1].fd >= 0;
    out->started_ns = cli_now_ns();
    out->pid = ready ? fork() : -1;
    if (out->pid == 0) become(side, program, records, (int[2]){pipes[0][1], pipes[1][1]});
    const int why = errno;
    for (int i = 0; i < 2; i++)
        if (pipes[i][1] >= 0) close(pipes[i][1]);
    if (out->pid > 0) {
        setpgid(out->pid, out->pid);
        return 0;
    }
    out->pid = 0;
    cli_warn("%s cannot be started: %s", program[0], strerror(why));
    return EXIT_WORLD;
}

// Reading -------------------------------------------------------------------------------------------------------------

static void take_value(void *ctx, double value)
{
    ab_run *run = ctx;
    run->value_ns = cli_now_ns();
    if (run->metric->is_step) {
        run->count++;
        return;
    }
    if (run->count == run->capacity) {
        run->capacity = run->capacity == 0 ? 64 : run->capacity * 2;
        run->values = realloc(run->values, run->capacity * sizeof *run->values);
        if (run->values == NULL) cli_no_memory();
    }
    run->values[run->count++] = value;
}

// The last of what was printed, for who asks why a program failed.
static void keep_tail(ab_run *run, const char *text, size_t size)
{
    size_t used = strlen(run->tail);
    if (size >= AB_TAIL_SIZE) {
        text += size - (AB_TAIL_SIZE - 1);
        size = AB_TAIL_SIZE - 1;
    }
    if (used + size >= AB_TAIL_SIZE) {
        const size_t over = used + size - (AB_TAIL_SIZE - 1);
        memmove(run->tail, run->tail + over, used - over);
        used -= over;
    }
    for (size_t i = 0; i < size; i++)
        run->tail[used + i] = text[i] == '\0' ? ' ' : text[i];
    run->tail[used + size] = '\0';
}

static void end_line(ab_run *run, ab_stream *stream)
{
    ab_metric_line(run->metric, cli_text_string(&stream->line), take_value, run);
    cli_text_clear(&stream->line);
}

static void take_bytes(ab_run *run, ab_stream *stream, const char *bytes, size_t size)
{
    const bool is_output = stream == &run->streams[0];
    keep_tail(run, bytes, size);
    if (is_output && run->metric->is_json && run->count == 0 && run->whole.size + size < WHOLE_SIZE)
        cli_text_append(&run->whole, bytes, size);
    const ab_metric *metric = run->metric;
    if (metric->is_json ? !is_output : !metric->is_regex && !metric->is_step) return;
    for (const char *end = bytes + size; bytes < end;) {
        const char *line = memchr(bytes, '\n', (size_t)(end - bytes)), *stop = line == NULL ? end : line;
        if (stream->line.size + (size_t)(stop - bytes) < LINE_SIZE)
            cli_text_append(&stream->line, bytes, (size_t)(stop - bytes));
        if (line != NULL) end_line(run, stream);
        bytes = line == NULL ? end : line + 1;
    }
}

static void read_stream(ab_run *run, ab_stream *stream)
{
    char bytes[16384];
    ssize_t got;
    while (stream->fd >= 0 && (got = read(stream->fd, bytes, sizeof bytes)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return;
        take_bytes(run, stream, bytes, (size_t)got);
    }
    if (stream->fd < 0) return;
    close(stream->fd);
    stream->fd = -1;
    if (stream->line.size > 0) end_line(run, stream);
}

// What an ended program left running keeps its pipes open, and the machine busy.
static void bury(ab_run *run)
{
    kill(-run->pid, SIGKILL);
    waitpid(run->pid, &run->status, 0);
    run->pid = 0;
}

static void reap(ab_run *run)
{
    siginfo_t info = {0};
    if (run->pid == 0 || waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return;
    run->ended_ns = cli_now_ns();
    bury(run);
    for (int i = 0; i < 2; i++) {
        read_stream(run, &run->streams[i]);
        if (run->streams[i].line.size > 0) end_line(run, &run->streams[i]);
    }
    if (run->metric->is_json && run->count == 0)
        ab_metric_whole(run->metric, cli_text_string(&run->whole), take_value, run);
}

static void look(ab_run *run)
{
    for (int i = 0; i < 2; i++)
        read_stream(run, &run->streams[i]);
    reap(run);
}

// A program that ends closes its pipes: the wait ends then, but for those whose children hold them.
static void wait_for_output(ab_run *const *runs, size_t count, uint64_t until_ns)
{
    struct pollfd fds[4];
    nfds_t used = 0;
    bool waits_for_end = false;
    for (size_t i = 0; i < count; i++)
        for (int s = 0; s < 2 && runs[i]->pid != 0 && !runs[i]->is_stopped; s++) {
            if (runs[i]->streams[s].fd >= 0)
                fds[used++] = (struct pollfd){.fd = runs[i]->streams[s].fd, .events = POLLIN};
            waits_for_end = waits_for_end || runs[i]->streams[s].fd < 0;
        }
    const uint64_t now = cli_now_ns(), left = until_ns > now ? (until_ns - now + ms - 1) / ms : 0;
    const uint64_t most = waits_for_end ? 1 : TICK_MS;
    poll(fds, used, (int)(left < most ? left : most));
}

bool ab_read(ab_run *const *runs, size_t count, size_t values, uint64_t until_ns)
{
    for (;;) {
        bool all = true;
        for (size_t i = 0; i < count; i++) {
            if (!runs[i]->is_stopped) look(runs[i]);
            all = all && (runs[i]->pid == 0 || runs[i]->count >= values);
        }
        if (all) return true;
        if (cli_is_cancelled() || cli_now_ns() >= until_ns) return false;
        wait_for_output(runs, count, until_ns);
    }
}

// Standing still, and ending ------------------------------------------------------------------------------------------

void ab_stop(ab_run *run)
{
    siginfo_t info = {0};
    if (run->pid == 0) return;
    kill(-run->pid, SIGSTOP);
    // Until it stands still, or has ended just before. One that waits for a child of vfork() stands still, and is never
    // seen to.
    const uint64_t until = cli_now_ns() + 100 * ms;
    while (waitid(P_PID, (id_t)run->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0 &&
           cli_now_ns() < until)
        cli_sleep_ns(ms / 20);
    look(run);
    run->stopped_ns = cli_now_ns();
    run->is_stopped = run->pid != 0;
}

// One thread's line of the kernel's scheduler: nanoseconds that it ran, that it waited, and how often.
static bool read_thread(int folder, const char *id, uint64_t *ran, uint64_t *waited)
{
    char path[64], text[96];
    snprintf(path, sizeof path, "%.20s/schedstat", id);
    const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    text[got] = '\0';
    return sscanf(text, "%" SCNu64 " %" SCNu64, ran, waited) == 2;
}

void ab_take_mark(const ab_run *run, ab_mark *out)
{
    char path[64];
    *out = (ab_mark){.ns = run->value_ns, .steps = run->count};
    snprintf(path, sizeof path, "/proc/%d/task", (int)run->pid);
    DIR *folder = run->pid == 0 ? NULL : opendir(path);
    for (struct dirent *entry; folder != NULL && out->count < AB_THREADS && (entry = readdir(folder)) != NULL;) {
        const long id = strtol(entry->d_name, NULL, 10);
        if (id <= 0) continue;
        out->threads[out->count].id = id;
        out->count +=
            read_thread(dirfd(folder), entry->d_name, &out->threads[out->count].ran, &out->threads[out->count].waited);
    }
    if (folder != NULL) closedir(folder);
}

ab_turn ab_turn_of(const ab_mark *before, const ab_mark *after, uint64_t still_ns)
{
    double ran = 0, waited = 0, most = 0;
    for (size_t i = 0; i < after->count; i++) {
        size_t k = 0;
        while (k < before->count && before->threads[k].id != after->threads[i].id)
            k++;
        const bool is_new = k == before->count;
        const double its = (double)(after->threads[i].ran - (is_new ? 0 : before->threads[k].ran));
        waited += (double)(after->threads[i].waited - (is_new ? 0 : before->threads[k].waited));
        ran += its;
        most = fmax(most, its);
    }
    // Threads that run at once wait at once: of two that share the work each counts half.
    const double time = (double)(after->ns - before->ns - still_ns);
    const double alike = most > 0 ? ran / most : 1;
    const double undisturbed = fmax(time - waited / alike, fmin(time, most));
    const double steps = (double)(after->steps - before->steps);
    return (ab_turn){time / steps, ran / steps, most / steps, waited / steps, undisturbed / steps};
}

static int compare_ids(const void *a, const void *b)
{
    const long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

// The processor that a thread ran on last; -1: it has ended.
static int read_processor(int folder, long id)
{
    enum { PROCESSOR = 39, AFTER_NAME = 3 }; // fields of stat, as proc(5) counts them
    char path[64], text[1024];
    snprintf(path, sizeof path, "%ld/stat", id);
    const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (got <= 0) return -1;
    text[got] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = AFTER_NAME - 1; at != NULL && field < PROCESSOR; field++) {
        at = strchr(at, ' ');
        if (at != NULL) at++;
    }
    return at == NULL ? -1 : (int)strtol(at, NULL, 10);
}

void ab_read_places(const ab_run *run, ab_places *out)
{
    char path[64];
    out->count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)run->pid);
    DIR *folder = run->pid == 0 ? NULL : opendir(path);
    for (struct dirent *entry; folder != NULL && out->count < AB_THREADS && (entry = readdir(folder)) != NULL;) {
        const long id = strtol(entry->d_name, NULL, 10);
        if (id > 0) out->threads[out->count++] = id;
    }
    qsort(out->threads, out->count, sizeof out->threads[0], compare_ids);
    for (size_t i = 0; i < out->count; i++)
        out->processors[i] = read_processor(dirfd(folder), out->threads[i]);
    if (folder != NULL) closedir(folder);
}

// Which processors a thread may wake on is narrowed while the signal wakes it, and put back before it can have run for long: where
// it goes on is still the scheduler's to choose.
void ab_go(ab_run *run, const ab_places *places)
{
    static cpu_set_t before[AB_THREADS];
    static ab_places own;
    own.count = 0;
    if (run->pid == 0 || !run->is_stopped) return;
    if (places != NULL) ab_read_places(run, &own);
    for (size_t i = 0; i < own.count; i++) {
        const int processor = i < places->count ? places->processors[i] : -1;
        cpu_set_t one;
        CPU_ZERO(&one);
        const bool may = processor >= 0 && processor < CPU_SETSIZE &&
                         sched_getaffinity((pid_t)own.threads[i], sizeof before[i], &before[i]) == 0 &&
                         CPU_ISSET((size_t)processor, &before[i]) && CPU_COUNT(&before[i]) > 1;
        if (may) CPU_SET((size_t)processor, &one);
        if (!may || sched_setaffinity((pid_t)own.threads[i], sizeof one, &one) != 0) own.processors[i] = -1;
    }
    kill(-run->pid, SIGCONT);
    for (size_t i = 0; i < own.count; i++)
        if (own.processors[i] >= 0) (void)sched_setaffinity((pid_t)own.threads[i], sizeof before[i], &before[i]);
    run->is_stopped = false;
}

void ab_tell(ab_run *run, int signal_number)
{
    if (run->pid == 0) return;
    kill(-run->pid, signal_number);
    ab_go(run, NULL);
}

void ab_leave(ab_run *run, int signal_number, uint64_t nanoseconds)
{
    if (run->pid == 0) return;
    ab_tell(run, signal_number);
    ab_read(&run, 1, SIZE_MAX, cli_now_ns() + nanoseconds);
    if (run->pid == 0) return;
    bury(run);
    run->ended_ns = cli_now_ns();
}

void ab_end(ab_run *run)
{
    ab_leave(run, SIGKILL, 0);
    for (int i = 0; i < 2; i++) {
        if (run->streams[i].fd >= 0) close(run->streams[i].fd);
        cli_text_deinit(&run->streams[i].line);
    }
    cli_text_deinit(&run->whole);
    free(run->values);
    *run = (ab_run){.streams = {{.fd = -1}, {.fd = -1}}};
}

// What became of it ---------------------------------------------------------------------------------------------------

void ab_print_tail(const ab_run *run)
{
    const char *text = run->tail;
    size_t size = strlen(text);
    while (size > 0 && text[size - 1] == '\n')
        size--;
    int lines = 0;
    const char *from = text + size;
    while (from > text && (from[-1] != '\n' || ++lines < 8))
        from--;
    if (size > 0) fprintf(stderr, "its last output:\n%.*s\n", (int)(text + size - from), from);
}

bool ab_ended_well(const ab_run *run)
{
    if (WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0) return true;
    if (WIFEXITED(run->status))
        cli_warn("the program left with %d under %s", WEXITSTATUS(run->status), run->side->name);
    else
        cli_warn(
            "the program died of signal %d (%s) under %s", WTERMSIG(run->status), strsignal(WTERMSIG(run->status)),
            run->side->name);
    ab_print_tail(run);
    return false;
}

double ab_seconds(const ab_run *run)
{
    return (double)(run->ended_ns - run->started_ns) / 1e9;
}

double ab_median(const double *values, size_t count)
{
    double *copy = malloc(count * sizeof *copy);
    if (copy == NULL) cli_no_memory();
    memcpy(copy, values, count * sizeof *copy);
    const double middle = cli_median(copy, count);
    free(copy);
    return middle;
}
