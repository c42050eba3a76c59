
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Stacks end where the thread enters the kernel.  Functions of the C library
 * that are system calls have their own kind, since they show the kernel's time.
 */


#include "views/prof_kind.h"

#include <stdlib.h>
#include <string.h>


typedef struct {
    const char  *part;          /* in an object's file name */
    uint32_t     start;         /* only at the beginning */
    uint32_t     kind;
} prof_kind_object_t;


static uint32_t prof_kind_of_path(const char *path);
static int prof_kind_enters(const char *name);
static int prof_kind_cmp(const void *one, const void *two);


const prof_kind_t  prof_kinds[] = {
#define PROF_KIND_ROW(name, class, text)  { class, text },
    PROF_KINDS(PROF_KIND_ROW)
#undef PROF_KIND_ROW
};


/* the first matching row decides */

static const prof_kind_object_t  prof_kind_objects[] = {
    { "[vdso]",       1, PROF_KIND_KERNEL },
    { "linux-vdso",   1, PROF_KIND_KERNEL },
    { "lua",          0, PROF_KIND_SCRIPT },
    { "_js_module",   0, PROF_KIND_SCRIPT },
    { "perl",         0, PROF_KIND_SCRIPT },
    { "libnjs",       1, PROF_KIND_SCRIPT },
    { "libquickjs",   1, PROF_KIND_SCRIPT },
    { "libpython",    1, PROF_KIND_SCRIPT },
    { "_module.so",   0, PROF_KIND_MODULE },
    { "libc.",        1, PROF_KIND_LIBC },
    { "libc-",        1, PROF_KIND_LIBC },
    { "libm.",        1, PROF_KIND_LIBC },
    { "libpthread",   1, PROF_KIND_LIBC },
    { "librt.",       1, PROF_KIND_LIBC },
    { "libdl.",       1, PROF_KIND_LIBC },
    { "libresolv",    1, PROF_KIND_LIBC },
    { "libnss_",      1, PROF_KIND_LIBC },
    { "libgcc_s",     1, PROF_KIND_LIBC },
    { "ld-",          1, PROF_KIND_LIBC },
    { "libssl",       1, PROF_KIND_TLS },
    { "libcrypto",    1, PROF_KIND_TLS },
    { "libgnutls",    1, PROF_KIND_TLS },
    { "libnettle",    1, PROF_KIND_TLS },
    { "libhogweed",   1, PROF_KIND_TLS },
    { "libmbed",      1, PROF_KIND_TLS },
    { "libz.",        1, PROF_KIND_ZLIB },
    { "libz-",        1, PROF_KIND_ZLIB },
    { "libbrotli",    1, PROF_KIND_ZLIB },
    { "libzstd",      1, PROF_KIND_ZLIB },
    { "liblzma",      1, PROF_KIND_ZLIB },
    { "libbz2",       1, PROF_KIND_ZLIB }
};


/* kinds of frames without an object */

static const uint32_t  prof_kind_types[PROF_TYPE_MAX] = {
    [PROF_TYPE_CODE] = PROF_KIND_UNKNOWN,
    [PROF_TYPE_RETURN] = PROF_KIND_UNKNOWN,
    [PROF_TYPE_KERNEL] = PROF_KIND_KERNEL,
    [PROF_TYPE_SCRIPT] = PROF_KIND_SCRIPT,
    [PROF_TYPE_STAGE] = PROF_KIND_SPAN,
    [PROF_TYPE_WAITING] = PROF_KIND_WAITING,
    [PROF_TYPE_NOTE] = PROF_KIND_NOTE
};


/* names of system calls in the C library, sorted */

static const char *const  prof_kind_calls[] = {
    "accept", "accept4", "bind", "brk", "chdir", "chmod", "clock_nanosleep",
    "clone", "close", "connect", "copy_file_range", "dup", "dup2",
    "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd_write", "fallocate", "fchmod", "fcntl", "fcntl64", "fdatasync",
    "flock", "fstat", "fstat64", "fstatat", "fstatat64", "fsync", "ftruncate",
    "ftruncate64", "getdents64", "getpeername", "getrandom", "getsockname",
    "getsockopt", "gettid", "io_getevents", "io_submit", "ioctl", "kill",
    "link", "listen", "lseek", "lseek64", "lstat", "lstat64", "madvise",
    "mkdir", "mmap", "mmap64", "mprotect", "mremap", "munmap", "nanosleep",
    "open", "open64", "openat", "openat64", "pipe", "pipe2", "poll",
    "posix_fadvise", "posix_fadvise64", "ppoll", "pread", "pread64", "preadv",
    "pselect", "pwrite", "pwrite64", "pwritev", "read", "readahead",
    "readlink", "readv", "recv", "recvfrom", "recvmmsg", "recvmsg", "rename",
    "renameat", "rmdir", "sched_yield", "select", "send", "sendfile",
    "sendfile64", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    "socket", "socketpair", "splice", "stat", "stat64", "statx", "syscall",
    "timer_settime", "timerfd_settime", "unlink", "unlinkat", "usleep",
    "utimensat", "waitpid", "write", "writev"
};


uint32_t
prof_kind(const prof_profile_t *p, const prof_frame_t *f)
{
    uint32_t  kind;

    kind = prof_kind_object(p, f);

    if (kind == PROF_KIND_LIBC && prof_frame_is_exact(f)
        && prof_kind_enters(f->name))
    {
        return PROF_KIND_KERNEL;
    }

    return kind;
}


uint32_t
prof_kind_object(const prof_profile_t *p, const prof_frame_t *f)
{
    if (f->object != PROF_NONE) {
        return prof_kind_of_path(p->objects[f->object].path);
    }

    return prof_kind_types[f->type];
}


uint32_t *
prof_kind_functions(const prof_profile_t *p, const prof_view_t *v)
{
    uint32_t                     i, *kind;
    const prof_view_function_t  *func;

    kind = malloc(((size_t) v->nfunctions + 1) * sizeof(uint32_t));
    if (kind == NULL) {
        return NULL;
    }

    for (i = 0; i < v->nfunctions; i++) {
        func = &v->functions[i];

        kind[i] = func->waits ? (uint32_t) PROF_KIND_WAITING
                              : prof_kind(p, &p->frames[func->frame]);
    }

    return kind;
}


void
prof_kind_text(const prof_profile_t *p, uint32_t kind, prof_buf_t *b)
{
    uint32_t  i;

    if (kind == PROF_KIND_PROGRAM) {

        for (i = 0; i < p->nobjects; i++) {
            if (prof_kind_of_path(p->objects[i].path) == PROF_KIND_PROGRAM) {
                prof_buf_puts(b, prof_path_file(p->objects[i].path));
                return;
            }
        }
    }

    prof_buf_puts(b, prof_kinds[kind].text);
}


static uint32_t
prof_kind_of_path(const char *path)
{
    size_t       i;
    const char  *found, *name;

    name = prof_path_file(path);

    for (i = 0;
         i < sizeof(prof_kind_objects) / sizeof(prof_kind_objects[0]);
         i++)
    {
        found = strstr(name, prof_kind_objects[i].part);

        if (found && (found == name || !prof_kind_objects[i].start)) {
            return prof_kind_objects[i].kind;
        }
    }

    return strstr(name, ".so") || name[0] == '[' ? PROF_KIND_LIBRARY
                                                 : PROF_KIND_PROGRAM;
}


static int
prof_kind_enters(const char *name)
{
    /* the library has internal names for some of them: "__libc_read" */

    while (*name == '_') {
        name++;
    }

    if (strncmp(name, "libc_", 5) == 0) {
        name += 5;
    }

    return bsearch(&name, prof_kind_calls,
                   sizeof(prof_kind_calls) / sizeof(prof_kind_calls[0]),
                   sizeof(prof_kind_calls[0]), prof_kind_cmp)
           != NULL;
}


static int
prof_kind_cmp(const void *one, const void *two)
{
    return strcmp(*(const char *const *) one, *(const char *const *) two);
}
