/* Loaded before libc by LD_PRELOAD: counts the calls that touch a folder, writes them to a log, and
   fails, shortens or kills at the n-th. FAULTS names a file with a `struct plan`, which all
   processes share; scripts/fuzzing/faults.py makes and reads it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALLS 16384
#define HERE (-100) /* AT_FDCWD */
enum { SHORT = -1, KILL = -2 };

struct call {
    char name[16], path[240], to[240];
    long result;
};
struct plan {
    atomic_long on, calls, at, action;
    char folder[480];
    struct call log[CALLS];
};
static struct plan *plan;

__attribute__((constructor)) static void load(void) {
    const char *name = getenv("FAULTS");
    /* Through the system, as the functions below stand before those of libc. */
    int file = name ? (int)syscall(SYS_openat, HERE, name, 02 /* O_RDWR */) : -1;
    if (file < 0) return;
    void *memory = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (memory != MAP_FAILED) plan = memory;
}

/* The path that a descriptor, or a name beside it, leads to, without the folder; NULL outside. */
static const char *locate(char *full, int at, const char *name) {
    char link[32];
    ssize_t length = 0;
    /* An empty name (AT_EMPTY_PATH) is that of the descriptor. */
    if (name && !*name) name = NULL;
    if (!name || name[0] != '/') {
        snprintf(link, sizeof link, at == HERE ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        if ((length = readlink(link, full, PATH_MAX - 1)) < 0) return NULL;
    }
    full[length] = 0;
    if (name) snprintf(full + length, PATH_MAX - length, "%s%s", length ? "/" : "", name);
    size_t prefix = strlen(plan->folder);
    if (strncmp(full, plan->folder, prefix) || (full[prefix] && full[prefix] != '/')) return NULL;
    return full + prefix + (full[prefix] == '/');
}

/* Whether an open makes a file: it has O_CREAT, and there is none. */
static int creates(int at, const char *path, int flags) {
    int before = errno;
    int makes = plan && plan->on && flags & 0100 && syscall(SYS_faccessat, at, path, 0);
    errno = before;
    return makes;
}

/* Count a call, and note what happens to it: NULL if it does not touch the folder. */
static struct call *begin(const char *name, int needs_room, size_t *size, int at, const char *path,
                          int to_at, const char *to) {
    char full[PATH_MAX + 1], to_full[PATH_MAX + 1];
    if (!plan || !plan->on) return NULL;
    int before = errno;
    const char *place = locate(full, at, path), *target = to ? locate(to_full, to_at, to) : NULL;
    errno = before;
    if (!place && !target) return NULL;
    long number = atomic_fetch_add(&plan->calls, 1), action = plan->action;
    static struct call beyond;
    struct call *call = number < CALLS ? &plan->log[number] : &beyond;
    snprintf(call->name, sizeof call->name, "%s", name);
    snprintf(call->path, sizeof call->path, "%s", place ? place : "");
    snprintf(call->to, sizeof call->to, "%s", target ? target : "");
    call->result = 0;
    /* A disk that is full, or broken (1000 and the error), stays so. */
    int stays = action == ENOSPC ? needs_room : action > 1000;
    if (number != plan->at && !(stays && number > plan->at)) return call;
    if (action == KILL) kill(getpid(), SIGKILL);
    /* A read may ask for more than there is, so that half of it is all. */
    if (action == SHORT && size && *size > 1) *size = name[0] == 'r' ? 1 : *size / 2;
    if (action > 0) call->result = -(action % 1000);
    return call;
}

/* A function of libc in a function of its name, and what it returns if it fails. The arguments of
   `begin` come after its own. */
#define WRAP_OR(failure, type, name, parameters, arguments, ...)                           \
    type faults_##name parameters __asm__(#name);                                          \
    type faults_##name parameters {                                                        \
        static type(*real) parameters;                                                     \
        if (!real) real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                     \
        struct call *call = begin(__VA_ARGS__);                                            \
        int fails = call && call->result < 0, error = fails ? (int)-call->result : 0;      \
        type result = failure;                                                             \
        if (!fails || !strcmp(#name, "close")) result = real arguments;                    \
        if (fails) errno = error, result = failure;                                        \
        if (call) call->result = result == failure ? -errno : result;                      \
        return result;                                                                     \
    }
#define WRAP(...) WRAP_OR(-1, __VA_ARGS__)
#define OPEN(name) WRAP(int, name, (const char *path, int flags, unsigned mode), (path, flags, mode), \
    creates(HERE, path, flags) ? "create" : "open", creates(HERE, path, flags), NULL, HERE, path, 0, NULL)
#define OPENAT(name) WRAP(int, name, (int at, const char *path, int flags, unsigned mode), \
    (at, path, flags, mode), creates(at, path, flags) ? "create" : "open", \
    creates(at, path, flags), NULL, at, path, 0, NULL)
#define MOVE(name, size, words) WRAP(ssize_t, name, (int file, void *data, size_t size), \
    (file, data, size), words, #name[0] == 'w', &size, file, NULL, 0, NULL)
#define MOVE_AT(name, words) WRAP(ssize_t, name, (int file, void *data, size_t size, off_t start), \
    (file, data, size, start), words, #name[1] == 'w', &size, file, NULL, 0, NULL)
#define OF_FILE(name, words, room) WRAP(int, name, (int file), (file), words, room, NULL, file, NULL, 0, NULL)
#define OF_FILE_AND(name, words, type, room) WRAP(int, name, (int file, type value), (file, value), \
    words, room, NULL, file, NULL, 0, NULL)
#define OF_PATH(name) WRAP(int, name, (const char *path), (path), #name, 0, NULL, HERE, path, 0, NULL)
#define OF_PATH_AND(name, words, type, room) WRAP(int, name, (const char *path, type value), \
    (path, value), words, room, NULL, HERE, path, 0, NULL)
#define OF_PATH_AT(name, words, type) WRAP(int, name, (int at, const char *path, type value, int flags), \
    (at, path, value, flags), words, 0, NULL, at, path, 0, NULL)
/* As in programs that were built with an old glibc. */
#define OLD_STAT(name) WRAP(int, name, (int version, const char *path, void *state), \
    (version, path, state), "stat", 0, NULL, HERE, path, 0, NULL)
#define OLD_FSTAT(name) WRAP(int, name, (int version, int file, void *state), (version, file, state), \
    "stat", 0, NULL, file, NULL, 0, NULL)
#define OLD_FSTATAT(name) WRAP(int, name, (int version, int at, const char *path, void *state, int flags), \
    (version, at, path, state, flags), "stat", 0, NULL, at, path, 0, NULL)
/* As numbers, so that 0 is a failure, or the end of a folder. */
#define READDIR(name) WRAP_OR(0, long, name, (void *folder), (folder), \
    "readdir", 0, NULL, dirfd(folder), NULL, 0, NULL)
#define OF_TWO(name) WRAP(int, name, (const char *path, const char *to), (path, to), \
    #name, 1, NULL, HERE, path, HERE, to)
#define MOVE_PARTS(name, words) WRAP(ssize_t, name, (int file, const struct iovec *parts, size_t count, \
    off_t start, int flags), (file, parts, count, start, flags), words, #name[1] == 'w', \
    &count, file, NULL, 0, NULL)
/* Locks alone: F_SETLK, F_SETLKW, and those of open files. */
#define FCNTL(name) WRAP(int, name, (int file, int what, void *value), (file, what, value), \
    "lock", 0, NULL, what == 6 || what == 7 || what == 37 || what == 38 ? file : -1, NULL, 0, NULL)

OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)
MOVE(read, size, "read") MOVE(write, size, "write")
MOVE(writev, count, "write") MOVE(readv, count, "read")
MOVE_PARTS(preadv, "read") MOVE_PARTS(preadv64, "read") MOVE_PARTS(preadv2, "read")
MOVE_PARTS(preadv64v2, "read") MOVE_PARTS(pwritev, "write") MOVE_PARTS(pwritev64, "write")
MOVE_PARTS(pwritev2, "write") MOVE_PARTS(pwritev64v2, "write")
MOVE_AT(pread, "read") MOVE_AT(pread64, "read") MOVE_AT(pwrite, "write") MOVE_AT(pwrite64, "write")
OF_FILE(fsync, "fsync", 1) OF_FILE(fdatasync, "fsync", 1) OF_FILE(close, "close", 0)
OF_FILE_AND(ftruncate, "ftruncate", off_t, 1) OF_FILE_AND(ftruncate64, "ftruncate", off_t, 1)
OF_FILE_AND(fchmod, "chmod", unsigned, 0) OF_FILE_AND(flock, "lock", int, 0)
OF_PATH(unlink) OF_PATH(rmdir)
OF_PATH_AND(mkdir, "mkdir", unsigned, 1) OF_PATH_AND(chmod, "chmod", unsigned, 0)
OF_PATH_AND(stat, "stat", void *, 0) OF_PATH_AND(stat64, "stat", void *, 0)
OF_PATH_AND(lstat, "stat", void *, 0) OF_PATH_AND(lstat64, "stat", void *, 0)
OF_FILE_AND(fstat, "stat", void *, 0) OF_FILE_AND(fstat64, "stat", void *, 0)
OF_PATH_AT(fstatat, "stat", void *) OF_PATH_AT(fstatat64, "stat", void *)
OLD_STAT(__xstat) OLD_STAT(__xstat64) OLD_STAT(__lxstat) OLD_STAT(__lxstat64)
OLD_FSTAT(__fxstat) OLD_FSTAT(__fxstat64) OLD_FSTATAT(__fxstatat) OLD_FSTATAT(__fxstatat64)
WRAP(int, statx, (int at, const char *path, int flags, unsigned what, void *state),
     (at, path, flags, what, state), "stat", 0, NULL, at, path, 0, NULL)
OF_PATH_AND(access, "access", int, 0) OF_PATH_AT(faccessat, "access", int)
WRAP_OR(0, long, opendir, (const char *path), (path), "opendir", 0, NULL, HERE, path, 0, NULL)
WRAP_OR(0, long, fdopendir, (int file), (file), "opendir", 0, NULL, file, NULL, 0, NULL)
READDIR(readdir) READDIR(readdir64)
OF_TWO(rename) OF_TWO(link) FCNTL(fcntl) FCNTL(fcntl64)
WRAP(int, mkdirat, (int at, const char *path, unsigned mode), (at, path, mode), "mkdir", 1, NULL, at, path, 0, NULL)
WRAP(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), "unlink", 0, NULL, at, path, 0, NULL)
/* As numbers, so that -1 is a failure. */
WRAP(long, mmap, (void *place, size_t size, int may, int flags, int file, off_t start),
     (place, size, may, flags, file, start), "mmap", 0, NULL, file, NULL, 0, NULL)
WRAP(long, mmap64, (void *place, size_t size, int may, int flags, int file, off_t start),
     (place, size, may, flags, file, start), "mmap", 0, NULL, file, NULL, 0, NULL)
WRAP(int, fchown, (int file, unsigned user, unsigned group), (file, user, group),
     "chown", 0, NULL, file, NULL, 0, NULL)
WRAP(int, chown, (const char *path, unsigned user, unsigned group), (path, user, group),
     "chown", 0, NULL, HERE, path, 0, NULL)
WRAP(int, renameat, (int at, const char *path, int to_at, const char *to), (at, path, to_at, to),
     "rename", 1, NULL, at, path, to_at, to)
WRAP(int, renameat2, (int at, const char *path, int to_at, const char *to, unsigned flags),
     (at, path, to_at, to, flags), flags & 2 ? "exchange" : "rename", 1, NULL, at, path, to_at, to)
WRAP(int, linkat, (int at, const char *path, int to_at, const char *to, int flags),
     (at, path, to_at, to, flags), "link", 1, NULL, at, path, to_at, to)
WRAP(ssize_t, sendfile, (int file, int from, off_t *start, size_t size), (file, from, start, size),
     "write", 1, &size, file, NULL, 0, NULL)
WRAP(ssize_t, sendfile64, (int file, int from, off_t *start, size_t size), (file, from, start, size),
     "write", 1, &size, file, NULL, 0, NULL)
WRAP(ssize_t, copy_file_range, (int from, off_t *a, int file, off_t *b, size_t size, unsigned flags),
     (from, a, file, b, size, flags), "write", 1, &size, file, NULL, 0, NULL)
