/* A disk that fails and a clock that jumps, for `scripts/campaign`. Loaded with LD_PRELOAD.
 *
 * FAULT_FOLDER  only files below this folder count
 * FAULT_AT      the number of the operation that fails, from 1. Operations are opening for writing, mkdir, write,
 *               fsync, ftruncate and rename
 * FAULT_ONCE    if set, only this one fails; otherwise all later ones fail too, as on a full disk
 * FAULT_MARK    this file is made when an operation fails; it has the name of the operation
 * CLOCK_JUMP    seconds by which the clocks jump; with a following "r", only the time of day jumps
 * CLOCK_AT      milliseconds after the start when they jump
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static const char *folder, *mark;
static long fail_at, jump, jump_at;
static int once, only_time_of_day;
static long operations;
static struct timespec begin;

static void now(clockid_t clock, struct timespec *t) { syscall(SYS_clock_gettime, clock, t); }

/* Whether the next operation fails. Counts operations of all threads. */
static int fails(const char *operation) {
    if (fail_at == 0) return 0;
    long n = __atomic_add_fetch(&operations, 1, __ATOMIC_SEQ_CST);
    if (once ? n != fail_at : n < fail_at) return 0;
    if (mark) {
        /* Raw calls: those of this file would count themselves. */
        int fd = syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (fd >= 0) {
            char line[32];
            int length = snprintf(line, sizeof line, "%s\n", operation);
            syscall(SYS_write, fd, line, length);
            syscall(SYS_close, fd);
        }
    }
    return 1;
}

static int below(const char *path) {
    char whole[PATH_MAX];
    if (!folder || !path) return 0;
    if (path[0] != '/') {
        if (syscall(SYS_getcwd, whole, sizeof whole) < 0) return 0;
        path = whole;
    }
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int of_file(int fd) {
    char link[64], path[PATH_MAX];
    if (fail_at == 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(code) do { errno = (code); return -1; } while (0)

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); }

static int open_at(int at, const char *path, int flags, mode_t mode) {
    if (writes(flags) && below(path) && fails("open")) FAIL(ENOSPC);
    return syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);
}

#define MODE(flags, mode) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }

int open(const char *path, int flags, ...) { MODE(flags, mode) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, mode) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, mode) return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, mode) return open_at(at, path, flags, mode); }

int mkdir(const char *path, mode_t mode) {
    if (below(path) && fails("mkdir")) FAIL(ENOSPC);
    return REAL(mkdir)(path, mode);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (of_file(fd) && fails("write")) {
        /* A disk that fills up takes the first part. */
        if (!once && count > 1 && operations == fail_at) return REAL(write)(fd, bytes, count / 2);
        FAIL(ENOSPC);
    }
    return REAL(write)(fd, bytes, count);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (of_file(fd) && fails("writev")) FAIL(ENOSPC);
    return REAL(writev)(fd, parts, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    if (of_file(fd) && fails("pwrite")) FAIL(ENOSPC);
    return REAL(pwrite)(fd, bytes, count, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    if (of_file(fd) && fails("pwrite")) FAIL(ENOSPC);
    return REAL(pwrite64)(fd, bytes, count, at);
}
int fsync(int fd) {
    if (of_file(fd) && fails("fsync")) FAIL(EIO);
    return REAL(fsync)(fd);
}
int fdatasync(int fd) {
    if (of_file(fd) && fails("fdatasync")) FAIL(EIO);
    return REAL(fdatasync)(fd);
}
int ftruncate(int fd, off_t length) {
    if (of_file(fd) && fails("ftruncate")) FAIL(ENOSPC);
    return REAL(ftruncate)(fd, length);
}
int ftruncate64(int fd, off64_t length) {
    if (of_file(fd) && fails("ftruncate")) FAIL(ENOSPC);
    return REAL(ftruncate64)(fd, length);
}

/* Renames are often made without the C library, so the kernel hands them over as a signal. The handler uses renameat2,
 * which is not handed over. */
#if defined(__x86_64__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

static void on_rename(int number, siginfo_t *info, void *context) {
    (void)number;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    int plain = info->si_syscall == SYS_rename;
    int from_at = plain ? AT_FDCWD : (int)r[REG_RDI], to_at = plain ? AT_FDCWD : (int)r[REG_RDX];
    const char *from = (const char *)(plain ? r[REG_RDI] : r[REG_RSI]);
    const char *to = (const char *)(plain ? r[REG_RSI] : r[REG_R10]);
    if (below(to) && fails("rename")) {
        r[REG_RAX] = -ENOSPC;
        return;
    }
    int before = errno;
    long result = syscall(SYS_renameat2, from_at, from, to_at, to, 0);
    r[REG_RAX] = result < 0 ? -errno : result;
    errno = before;
}

static void trap_renames(void) {
    struct sigaction action = { .sa_sigaction = on_rename, .sa_flags = SA_SIGINFO | SA_NODEFER };
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rename, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        static const char why[] = "shim: cannot watch renames\n";
        syscall(SYS_write, 2, why, sizeof why - 1);
        _exit(99);
    }
}
#else
static void trap_renames(void) {}
#endif

int clock_gettime(clockid_t clock, struct timespec *t) {
    long result = syscall(SYS_clock_gettime, clock, t);
    if (result != 0 || jump == 0 || (only_time_of_day && clock != CLOCK_REALTIME)) return result;
    struct timespec here;
    now(CLOCK_MONOTONIC, &here);
    long passed = (here.tv_sec - begin.tv_sec) * 1000 + (here.tv_nsec - begin.tv_nsec) / 1000000;
    if (passed >= jump_at) {
        t->tv_sec += jump;
        if (t->tv_sec < 0) t->tv_sec = 0;
    }
    return 0;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    (void)zone;
    struct timespec found;
    int result = clock_gettime(CLOCK_REALTIME, &found);
    t->tv_sec = found.tv_sec;
    t->tv_usec = found.tv_nsec / 1000;
    return result;
}

__attribute__((constructor)) static void start(void) {
    const char *at = getenv("FAULT_AT"), *seconds = getenv("CLOCK_JUMP"), *when = getenv("CLOCK_AT");
    folder = getenv("FAULT_FOLDER");
    mark = getenv("FAULT_MARK");
    once = getenv("FAULT_ONCE") != NULL;
    fail_at = at ? atol(at) : 0;
    jump = seconds ? atol(seconds) : 0;
    only_time_of_day = seconds && strchr(seconds, 'r') != NULL;
    jump_at = when ? atol(when) : 0;
    now(CLOCK_MONOTONIC, &begin);
    if (fail_at) trap_renames();
}
