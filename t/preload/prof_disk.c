
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * For LD_PRELOAD: a disk and a /proc that hang.  PROF_DISK names a directory.
 * While the file with this name and the suffix ".seen" exists, each call that
 * uses a file of this directory or of /proc is written to the file with the
 * suffix ".log".  While the file with the suffix ".slow" exists, each also
 * takes 300 ms more.
 *
 *     PROCESS loop|thread CALL PATH
 *
 * "loop" is the main thread of the process, which runs nginx's event loop.  The
 * file schedstat of a thread is a clock: the kernel prints three numbers, and
 * takes no lock for them, so it is left out.
 */


#define _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


#define DISK_DELAY  300000000


static void disk_start(void) __attribute__((constructor));
static void disk_path(const char *call, const char *path);
static void disk_fd(const char *call, int fd);


static char    disk_dir[256];
static char    disk_slow[264];
static char    disk_seen[264];
static size_t  disk_len;
static int     disk_log = -1;


static void
disk_start(void)
{
    char         path[264];
    const char  *dir;

    dir = getenv("PROF_DISK");

    if (dir == NULL) {
        return;
    }

    (void) snprintf(disk_dir, sizeof(disk_dir), "%s/", dir);
    (void) snprintf(disk_slow, sizeof(disk_slow), "%s.slow", dir);
    (void) snprintf(disk_seen, sizeof(disk_seen), "%s.seen", dir);
    (void) snprintf(path, sizeof(path), "%s.log", dir);

    disk_len = strlen(disk_dir);

    /* the master opens it before workers change their user */

    disk_log = (int) syscall(SYS_openat, AT_FDCWD, path,
                             O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0666);
}


static void
disk_path(const char *call, const char *path)
{
    int              len, slow;
    char             line[512];
    struct timespec  ts;

    slow = (disk_log != -1
            && syscall(SYS_faccessat, AT_FDCWD, disk_slow, F_OK) == 0);

    if (path == NULL || disk_log == -1 || strstr(path, "/schedstat")
        || (strncmp(path, "/proc/", 6) != 0
            && strncmp(path, disk_dir, disk_len) != 0
            && strncmp(path, disk_dir, disk_len - 1) != 0)
        || (!slow
            && syscall(SYS_faccessat, AT_FDCWD, disk_seen, F_OK) == -1))
    {
        return;
    }

    len = snprintf(line, sizeof(line), "%d %s %s %.300s\n", (int) getpid(),
                   syscall(SYS_gettid) == getpid() ? "loop" : "thread", call,
                   path);

    if (syscall(SYS_write, disk_log, line, len) == -1) {
        return;
    }

    ts.tv_sec = 0;
    ts.tv_nsec = slow ? DISK_DELAY : 0;

    while (slow && nanosleep(&ts, &ts) == -1) { /* void */ }
}


static void
disk_fd(const char *call, int fd)
{
    char     link[64], path[300];
    ssize_t  n;

    if (disk_log == -1) {
        return;
    }

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);

    n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path) - 1);

    if (n > 0) {
        path[n] = '\0';
        disk_path(call, path);
    }
}


#define disk_next(name)                                                       \
    static __typeof__(name)  *next;                                           \
                                                                              \
    if (next == NULL) {                                                       \
        *(void **) &next = dlsym(RTLD_NEXT, #name);                           \
    }


/* functions whose first argument is a path, and those with a descriptor */

#define DISK_PATH(type, name, args, call, path)                               \
    type name args                                                            \
    {                                                                         \
        disk_next(name)                                                       \
        disk_path(#name, path);                                               \
        return next call;                                                     \
    }

#define DISK_FD(type, name, args, call, fd)                                   \
    type name args                                                            \
    {                                                                         \
        disk_next(name)                                                       \
        disk_fd(#name, fd);                                                   \
        return next call;                                                     \
    }

#define DISK_OPEN(name)                                                       \
    int name(const char *path, int flags, ...)                                \
    {                                                                         \
        mode_t   mode;                                                        \
        va_list  args;                                                        \
                                                                              \
        disk_next(name)                                                       \
                                                                              \
        va_start(args, flags);                                                \
        mode = (flags & (O_CREAT|O_TMPFILE)) ? va_arg(args, mode_t) : 0;      \
        va_end(args);                                                         \
                                                                              \
        disk_path(#name, path);                                               \
        return next(path, flags, mode);                                       \
    }


DISK_OPEN(open)
DISK_OPEN(open64)

DISK_PATH(FILE *, fopen, (const char *path, const char *mode), (path, mode),
          path)
DISK_PATH(FILE *, fopen64, (const char *path, const char *mode), (path, mode),
          path)
DISK_PATH(DIR *, opendir, (const char *path), (path), path)
DISK_PATH(int, stat, (const char *path, struct stat *st), (path, st), path)
DISK_PATH(int, stat64, (const char *path, struct stat64 *st), (path, st), path)
DISK_PATH(int, lstat, (const char *path, struct stat *st), (path, st), path)
DISK_PATH(int, lstat64, (const char *path, struct stat64 *st), (path, st),
          path)
DISK_PATH(int, access, (const char *path, int mode), (path, mode), path)
DISK_PATH(ssize_t, readlink, (const char *path, char *buf, size_t len),
          (path, buf, len), path)
DISK_PATH(char *, realpath, (const char *path, char *buf), (path, buf), path)
DISK_PATH(int, rename, (const char *path, const char *name), (path, name),
          path)
DISK_PATH(int, unlink, (const char *path), (path), path)

DISK_FD(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), fd)
DISK_FD(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), fd)
DISK_FD(ssize_t, pread, (int fd, void *p, size_t n, off_t at),
        (fd, p, n, at), fd)
DISK_FD(ssize_t, pread64, (int fd, void *p, size_t n, off64_t at),
        (fd, p, n, at), fd)
DISK_FD(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at),
        (fd, p, n, at), fd)
DISK_FD(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at),
        (fd, p, n, at), fd)
DISK_FD(int, fstat, (int fd, struct stat *st), (fd, st), fd)
DISK_FD(int, fstat64, (int fd, struct stat64 *st), (fd, st), fd)
DISK_FD(int, fsync, (int fd), (fd), fd)
DISK_FD(int, fdatasync, (int fd), (fd), fd)
DISK_FD(int, ftruncate, (int fd, off_t len), (fd, len), fd)
DISK_FD(int, flock, (int fd, int op), (fd, op), fd)
DISK_FD(struct dirent *, readdir, (DIR *dir), (dir), dirfd(dir))
DISK_FD(struct dirent64 *, readdir64, (DIR *dir), (dir), dirfd(dir))
