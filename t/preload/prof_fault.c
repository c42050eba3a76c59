
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * For LD_PRELOAD: makes calls of the C library fail if the module or its core
 * makes them.  Calls by nginx and by libraries are passed on; the return
 * address identifies the caller.
 *
 * PROF_FAULT names a file of 4096 bytes, which all processes map, and which
 * the test reads and writes.  It contains numbers of 32 bits in the byte order
 * of the host:
 *
 *     0     the call that fails, by its line in the table below; 0: none fails
 *     1     the first call that fails, counted from 1 since the test set it
 *     2     the last call that fails
 *     3     the number of failed calls
 *     16..  the number of calls of each line
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>


#define PROF_FAULT_SIZE    4096
#define PROF_FAULT_COUNTS  16

/* a part of the module's file name */
#define PROF_FAULT_MODULE  "ngx_http_profile_module"


typedef struct {
    volatile uint32_t   call;
    volatile uint32_t   first;
    volatile uint32_t   last;
    volatile uint32_t   failed;
    volatile uint32_t   unused[PROF_FAULT_COUNTS - 4];
    volatile uint32_t   counts[PROF_FAULT_SIZE / 4 - PROF_FAULT_COUNTS];
} prof_fault_t;


/* in the order of their numbers, which start at 1 */

#define PROF_FAULTS(x)                                                        \
    x(socketpair)                                                             \
    x(mmap)                                                                   \
    x(memfd_create)                                                           \
    x(ftruncate)                                                              \
    x(madvise)                                                                \
    x(prctl)                                                                  \
    x(timer_create)                                                           \
    x(pthread_create)                                                         \
    x(sigaction)                                                              \
    x(sigaltstack)                                                            \
    x(open)                                                                   \
    x(fopen)                                                                  \
    x(write)                                                                  \
    x(pwrite)                                                                 \
    x(clone)                                                                  \
    x(pipe)                                                                   \
    x(fcntl)                                                                  \
    x(send)                                                                   \
    x(recv)                                                                   \
    x(sendmsg)                                                                \
    x(strdup)                                                                 \
    x(asprintf)                                                               \
    x(malloc)                                                                 \
    x(calloc)                                                                 \
    x(realloc)


typedef enum {
    PROF_FAULT_none = 0,
#define PROF_FAULT_INDEX(name)  PROF_FAULT_##name,
    PROF_FAULTS(PROF_FAULT_INDEX)
    PROF_FAULT_N
} prof_fault_e;


static prof_fault_t  *prof_fault;


/* the C library's own functions, which dlsym() needs */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);


#define prof_fault_real(name)                                                 \
    ({                                                                        \
        static __typeof__(&name)  real;                                       \
        if (real == NULL) {                                                   \
            real = (__typeof__(&name)) dlsym(RTLD_NEXT, #name);               \
        }                                                                     \
        real;                                                                 \
    })

/* the return address of the function that replaces another */

#define prof_fails(name, err)                                                 \
    prof_fault_now(PROF_FAULT_##name, __builtin_return_address(0), err)


__attribute__((constructor)) static void
prof_fault_init(void)
{
    int          fd;
    void        *p;
    const char  *path;

    path = getenv("PROF_FAULT");
    fd = path ? open(path, O_RDWR|O_CLOEXEC) : -1;

    if (fd == -1) {
        return;
    }

    p = mmap(NULL, PROF_FAULT_SIZE, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);

    if (p != MAP_FAILED) {
        prof_fault = p;
    }

    (void) close(fd);
}


static int
prof_fault_now(prof_fault_e call, void *pc, int err)
{
    uint32_t               n;
    struct dl_find_object  object;

    if (prof_fault == NULL || _dl_find_object(pc, &object) != 0
        || strstr(object.dlfo_link_map->l_name, PROF_FAULT_MODULE) == NULL)
    {
        return 0;
    }

    n = __atomic_add_fetch(&prof_fault->counts[call], 1, __ATOMIC_SEQ_CST);

    if (call != prof_fault->call || n < prof_fault->first
        || n > prof_fault->last)
    {
        return 0;
    }

    (void) __atomic_add_fetch(&prof_fault->failed, 1, __ATOMIC_SEQ_CST);

    errno = err;

    return 1;
}


int
socketpair(int domain, int type, int protocol, int s[2])
{
    return prof_fails(socketpair, EMFILE)
           ? -1 : prof_fault_real(socketpair)(domain, type, protocol, s);
}


void *
mmap(void *p, size_t len, int prot, int flags, int fd, off_t offset)
{
    return prof_fails(mmap, ENOMEM)
           ? MAP_FAILED
           : prof_fault_real(mmap)(p, len, prot, flags, fd, offset);
}


void *
mmap64(void *p, size_t len, int prot, int flags, int fd, off64_t offset)
{
    return prof_fails(mmap, ENOMEM)
           ? MAP_FAILED
           : prof_fault_real(mmap64)(p, len, prot, flags, fd, offset);
}


int
memfd_create(const char *name, unsigned flags)
{
    return prof_fails(memfd_create, EMFILE)
           ? -1 : prof_fault_real(memfd_create)(name, flags);
}


int
ftruncate(int fd, off_t size)
{
    return prof_fails(ftruncate, EIO)
           ? -1 : prof_fault_real(ftruncate)(fd, size);
}


int
ftruncate64(int fd, off64_t size)
{
    return prof_fails(ftruncate, EIO)
           ? -1 : prof_fault_real(ftruncate64)(fd, size);
}


int
madvise(void *p, size_t size, int advice)
{
    return prof_fails(madvise, ENOMEM)
           ? -1 : prof_fault_real(madvise)(p, size, advice);
}


/* all options have four arguments at most */

int
prctl(int option, ...)
{
    int      i;
    va_list  args;
    long     arg[4];

    va_start(args, option);

    for (i = 0; i < 4; i++) {
        arg[i] = va_arg(args, long);
    }

    va_end(args);

    return prof_fails(prctl, EINVAL)
           ? -1 : prof_fault_real(prctl)(option, arg[0], arg[1], arg[2],
                                         arg[3]);
}


int
timer_create(clockid_t clock, struct sigevent *restrict event,
    timer_t *restrict timer)
{
    return prof_fails(timer_create, EAGAIN)
           ? -1 : prof_fault_real(timer_create)(clock, event, timer);
}


int
pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
    void *(*fn)(void *), void *restrict data)
{
    return prof_fails(pthread_create, EAGAIN)
           ? EAGAIN : prof_fault_real(pthread_create)(thread, attr, fn, data);
}


int
sigaction(int signo, const struct sigaction *restrict new,
    struct sigaction *restrict old)
{
    return prof_fails(sigaction, EINVAL)
           ? -1 : prof_fault_real(sigaction)(signo, new, old);
}


int
sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
    return prof_fails(sigaltstack, ENOMEM)
           ? -1 : prof_fault_real(sigaltstack)(new, old);
}


int
open(const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);

    return prof_fails(open, EMFILE)
           ? -1 : prof_fault_real(open)(path, flags, mode);
}


int
open64(const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);

    return prof_fails(open, EMFILE)
           ? -1 : prof_fault_real(open64)(path, flags, mode);
}


int
openat(int dir, const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);

    return prof_fails(open, EMFILE)
           ? -1 : prof_fault_real(openat)(dir, path, flags, mode);
}


int
openat64(int dir, const char *path, int flags, ...)
{
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);

    return prof_fails(open, EMFILE)
           ? -1 : prof_fault_real(openat64)(dir, path, flags, mode);
}


FILE *
fopen(const char *path, const char *mode)
{
    return prof_fails(fopen, EMFILE)
           ? NULL : prof_fault_real(fopen)(path, mode);
}


FILE *
fopen64(const char *path, const char *mode)
{
    return prof_fails(fopen, EMFILE)
           ? NULL : prof_fault_real(fopen64)(path, mode);
}


ssize_t
write(int fd, const void *p, size_t len)
{
    return prof_fails(write, ENOSPC) ? -1 : prof_fault_real(write)(fd, p, len);
}


ssize_t
pwrite(int fd, const void *p, size_t len, off_t offset)
{
    return prof_fails(pwrite, ENOSPC)
           ? -1 : prof_fault_real(pwrite)(fd, p, len, offset);
}


ssize_t
pwrite64(int fd, const void *p, size_t len, off64_t offset)
{
    return prof_fails(pwrite, ENOSPC)
           ? -1 : prof_fault_real(pwrite64)(fd, p, len, offset);
}


/*
 * The module starts the helper for names by two calls.  The second call is
 * made in a process that shares this process's memory.
 */

int
clone(int (*fn)(void *), void *stack, int flags, void *data, ...)
{
    return prof_fails(clone, EAGAIN)
           ? -1 : prof_fault_real(clone)(fn, stack, flags, data);
}


int
pipe(int s[2])
{
    return prof_fails(pipe, EMFILE) ? -1 : prof_fault_real(pipe)(s);
}


int
fcntl(int fd, int cmd, ...)
{
    void    *arg;
    va_list  args;

    va_start(args, cmd);
    arg = va_arg(args, void *);
    va_end(args);

    return prof_fails(fcntl, EMFILE)
           ? -1 : prof_fault_real(fcntl)(fd, cmd, arg);
}


int
fcntl64(int fd, int cmd, ...)
{
    void    *arg;
    va_list  args;

    va_start(args, cmd);
    arg = va_arg(args, void *);
    va_end(args);

    return prof_fails(fcntl, EMFILE)
           ? -1 : prof_fault_real(fcntl64)(fd, cmd, arg);
}


ssize_t
send(int fd, const void *p, size_t len, int flags)
{
    return prof_fails(send, EPIPE)
           ? -1 : prof_fault_real(send)(fd, p, len, flags);
}


ssize_t
recv(int fd, void *p, size_t len, int flags)
{
    return prof_fails(recv, ECONNRESET)
           ? -1 : prof_fault_real(recv)(fd, p, len, flags);
}


ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return prof_fails(sendmsg, ENOBUFS)
           ? -1 : prof_fault_real(sendmsg)(fd, msg, flags);
}


void *
malloc(size_t size)
{
    return prof_fails(malloc, ENOMEM) ? NULL : __libc_malloc(size);
}


void *
calloc(size_t n, size_t size)
{
    return prof_fails(calloc, ENOMEM) ? NULL : __libc_calloc(n, size);
}


void *
realloc(void *p, size_t size)
{
    return prof_fails(realloc, ENOMEM) ? NULL : __libc_realloc(p, size);
}


char *
strdup(const char *s)
{
    return prof_fails(strdup, ENOMEM) ? NULL : prof_fault_real(strdup)(s);
}


int
asprintf(char **p, const char *format, ...)
{
    int      n;
    va_list  args;

    if (prof_fails(asprintf, ENOMEM)) {
        return -1;
    }

    va_start(args, format);
    n = vasprintf(p, format, args);
    va_end(args);

    return n;
}
