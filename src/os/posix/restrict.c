#include "os/restrict.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Files ---------------------------------------------------------------------------------------------------------------
// The build's header may be older than the running kernel, so the numbers are defined here.

enum { RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };

#define BIT(n) (UINT64_C(1) << (n))
static const uint64_t write_file = BIT(1),
                      remove_and_make =
                          BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8) | BIT(9) | BIT(10) | BIT(11) | BIT(12),
                      refer = BIT(13), truncate_file = BIT(14);                // of versions 2 and 3
static const uint64_t bind_tcp = BIT(0), connect_tcp = BIT(1);                 // of version 4
static const uint64_t scope_abstract_sockets = BIT(0), scope_signals = BIT(1); // of version 6

typedef struct ruleset {
    uint64_t files, network, scopes;
} ruleset;

// Packed, as in the kernel.
typedef struct __attribute__((packed)) beneath {
    uint64_t allowed;
    int32_t parent;
} beneath;

static int landlock_version(void)
{
    return (int)syscall(CREATE_RULESET, NULL, 0, RULESET_VERSION);
}

// Landlock refuses a ruleset with rights that its version does not know.
static ruleset ruleset_of(int version)
{
    ruleset all = {.files = write_file | remove_and_make};
    if (version >= 2) all.files |= refer;
    if (version >= 3) all.files |= truncate_file;
    if (version >= 4) all.network = bind_tcp | connect_tcp;
    if (version >= 6) all.scopes = scope_abstract_sockets | scope_signals;
    return all;
}

static void allow(int rules, const char *path, uint64_t rights, uint64_t of_files)
{
    struct stat info;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return;
    beneath rule = {.allowed = rights, .parent = fd};
    if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) rule.allowed &= of_files;
    (void)!syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0);
    close(fd);
}

static bool restrict_files(const hone_os_rights *rights)
{
    const int version = landlock_version();
    if (version < 1) return false;
    const ruleset all = ruleset_of(version);
    const uint64_t of_files = all.files & (write_file | truncate_file);
    const size_t size = version >= 6 ? sizeof all : version >= 4 ? offsetof(ruleset, scopes) : sizeof all.files;
    const int rules = (int)syscall(CREATE_RULESET, &all, size, 0);
    if (rules < 0) return false;
    for (size_t i = 0; i < rights->folder_count; i++)
        allow(rules, rights->folders[i], all.files, of_files);
    for (size_t i = 0; i < rights->device_count; i++)
        allow(rules, rights->devices[i], of_files, of_files);
    const bool holds = syscall(RESTRICT_SELF, rules, 0) == 0;
    close(rules);
    return holds;
}

// Calls ---------------------------------------------------------------------------------------------------------------

// Calls that affect other processes, the kernel itself, or the machine's mounts, clock and keys, and calls that create
// objects which outlive all processes (shared memory, semaphores and queues of System V and POSIX). io_uring does what
// a filter would otherwise see; a userfaultfd supplies memory when it is read.
static const int refused[] = {
#if !defined(__SANITIZE_ADDRESS__) // whose search for leaks traces the process
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_migrate_pages,
    SYS_shmget,
    SYS_semget,
    SYS_msgget,
    SYS_mq_open,
    SYS_userfaultfd,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_unshare,
    SYS_setns,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_quotactl,
    SYS_open_by_handle_at,
    SYS_bpf,
    SYS_perf_event_open,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
#endif
#ifdef SYS_open_tree
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
#endif
#ifdef SYS_mount_setattr
    SYS_mount_setattr,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
};

// Calls that name a process. The number of the process is the last argument named; 0, or the caller's own, is allowed.
// A filter cannot distinguish the process's own threads from other processes, so calls that change processors and
// scheduler are not filtered.
static const struct {
    uint32_t call;
    int kind; // the first argument, where the number is the second one; -1: the number is the first
} of_process[] = {
    {SYS_prlimit64, -1},
    {SYS_setpriority, PRIO_PROCESS},
    {SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */},
};

#if defined(__x86_64__)
enum { X32 = 0x40000000 }; // numbers from X32 on are those of another table
static const uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
enum { X32 = 0x40000000 };
static const uint32_t machine = AUDIT_ARCH_AARCH64;
#else
enum { X32 = 0x40000000 };
static const uint32_t machine = 0; // not known: no filter
#endif

enum { REFUSED = sizeof refused / sizeof *refused, OF_PROCESS = sizeof of_process / sizeof *of_process };
enum { MOST_STEPS = REFUSED + 12 * OF_PROCESS + 32 };

typedef struct filter {
    struct sock_filter steps[MOST_STEPS];
    uint16_t count;
} filter;

static void add(filter *f, struct sock_filter step)
{
    f->steps[f->count++] = step;
}

static void load(filter *f, size_t offset)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(filter *f, uint32_t with)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, with));
}

// Returns `with` if the loaded value is this one; otherwise continues.
static void answer_if(filter *f, uint32_t value, uint32_t with)
{
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    answer(f, with);
}

static size_t argument(size_t number)
{
    return offsetof(struct seccomp_data, args) + number * sizeof(uint64_t);
}

// Continues if it is another call.
static void answer_for_own_process(filter *f, uint32_t call, int kind, uint32_t otherwise)
{
    const uint16_t test = f->count;
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 0));
    if (kind >= 0) {
        load(f, argument(0));
        add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)kind, 1, 0));
        answer(f, otherwise);
    }
    load(f, argument(kind >= 0));
    answer_if(f, 0, SECCOMP_RET_ALLOW);
    answer_if(f, (uint32_t)getpid(), SECCOMP_RET_ALLOW);
    answer(f, otherwise);
    f->steps[test].jf = (uint8_t)(f->count - 1 - test);
}

// After the test of the call's number, a socket's family decides: those of the network are refused.
static void write_filter(filter *f, bool local_sockets)
{
    const uint32_t no = SECCOMP_RET_ERRNO | EPERM;
    load(f, offsetof(struct seccomp_data, arch));
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0));
    answer(f, no);
    load(f, offsetof(struct seccomp_data, nr));
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1));
    answer(f, no);
    const uint16_t tests = f->count;
    for (size_t i = 0; i < REFUSED; i++)
        add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused[i], 0, 0));
    for (size_t i = 0; i < OF_PROCESS; i++)
        answer_for_own_process(f, of_process[i].call, of_process[i].kind, no);
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0));
    answer(f, SECCOMP_RET_ALLOW);
    load(f, argument(0));
    if (local_sockets) answer_if(f, AF_UNIX, SECCOMP_RET_ALLOW);
    answer_if(f, AF_NETLINK, SECCOMP_RET_ALLOW); // messages of the kernel, for example about devices
    answer(f, no);
    for (size_t i = 0; i < REFUSED; i++) // each jumps to the last step
        f->steps[tests + i].jt = (uint8_t)(f->count - 1 - (tests + i) - 1);
}

static bool has_filters(void)
{
    return machine != 0 && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

static bool restrict_calls(const hone_os_rights *rights)
{
    filter f = {.count = 0};
    _Static_assert(MOST_STEPS < 256, "a jump is at most 255 steps long");
    if (!has_filters()) return false;
    write_filter(&f, rights->local_sockets);
    const struct sock_fprog program = {f.count, f.steps};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// Signals -------------------------------------------------------------------------------------------------------------

// Steps of the filter below that are targets of jumps.
enum { OF_MASK = 5, OF_ACTION = 7, OF_SET = 9, ALLOWED = 13, DONE = 14, SIGNAL_STEPS };
enum { FIRST = offsetof(struct seccomp_data, args), SECOND = FIRST + 8, SECOND_HIGH = SECOND + 4 }; // arguments

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define STEP_IF(at, value, yes, no)                                                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), (yes) - (at)-1, (no) - (at)-1)

// A call with a NULL set or action only queries.
bool hone_os_keep_signals_open(int signal)
{
    struct sock_filter steps[SIGNAL_STEPS] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        STEP_IF(1, machine, 2, ALLOWED),
        LOAD(offsetof(struct seccomp_data, nr)),
        STEP_IF(3, SYS_rt_sigprocmask, OF_MASK, 4),
        STEP_IF(4, SYS_rt_sigaction, OF_ACTION, ALLOWED),
        LOAD(FIRST),
        STEP_IF(6, SIG_UNBLOCK, ALLOWED, OF_SET),
        LOAD(FIRST),
        STEP_IF(8, signal, OF_SET, ALLOWED),
        LOAD(SECOND),
        STEP_IF(10, 0, 11, DONE),
        LOAD(SECOND_HIGH),
        STEP_IF(12, 0, ALLOWED, DONE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
    };
    const struct sock_fprog program = {SIGNAL_STEPS, steps};
    return has_filters() && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// Both ----------------------------------------------------------------------------------------------------------------

unsigned hone_os_can_restrict(void)
{
    return (landlock_version() >= 1 ? HONE_OS_RESTRICTS_FILES : 0u) | (has_filters() ? HONE_OS_RESTRICTS_CALLS : 0u);
}

unsigned hone_os_restrict(const hone_os_rights *rights)
{
    // Otherwise a program with the rights of another user could be attacked.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 0;
    const unsigned files = restrict_files(rights) ? HONE_OS_RESTRICTS_FILES : 0;
    return files | (restrict_calls(rights) ? HONE_OS_RESTRICTS_CALLS : 0u);
}
