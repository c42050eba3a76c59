
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The limits and the permissions of the helper.
 *
 * Without debuginfod servers the helper needs few system calls.  All others
 * fail with EPERM, which its libraries can handle.  The HTTP client of
 * debuginfod needs sockets, threads, a resolver and writable files.  With
 * servers, only those system calls fail that neither the helper nor the client
 * needs.
 */


#include "symbolizer/prof_symbolizer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>


/* address space: debug files are mapped, and sections are decompressed */

#define PROF_SANDBOX_MEMORY  (512 * 1024 * 1024)

/* the maximum size of a file from a server */

#define PROF_SANDBOX_FILE    (512 * 1024 * 1024)

#define PROF_SANDBOX_CPU     60
#define PROF_SANDBOX_FDS     64


#if (defined __x86_64__)
#define PROF_SANDBOX_ARCH    AUDIT_ARCH_X86_64
#else
#define PROF_SANDBOX_ARCH    AUDIT_ARCH_AARCH64
#endif

/* from this number on, x86-64 has a second set of system calls */

#define PROF_SANDBOX_X32     0x40000000

/* AddressSanitizer needs terabytes of address space */

#if (defined __has_feature)
#if (__has_feature(address_sanitizer))
#define PROF_SANDBOX_ASAN    1
#endif
#endif

#if !(defined __SANITIZE_ADDRESS__ || defined PROF_SANDBOX_ASAN)
#define PROF_SANDBOX_LIMITED  1
#endif


static int prof_sandbox_limit(int resource, rlim_t max);
static int prof_sandbox_filter(const int *calls, int listed, int others);
static size_t prof_sandbox_open(struct sock_filter *code, size_t n, int call,
    uint32_t arg);


/*
 * System calls of libdw, libelf and the C library to read files, beside
 * open().
 */

static const int  prof_sandbox_needed[] = {
    SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_write, SYS_writev,
    SYS_close, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_lseek,
    SYS_readlinkat, SYS_faccessat, SYS_getcwd, SYS_fcntl, SYS_dup,
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk,
    SYS_sendto, SYS_recvfrom, SYS_ppoll, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_setitimer,
    SYS_clock_gettime, SYS_gettimeofday, SYS_futex, SYS_getrandom,
    SYS_getpid, SYS_gettid, SYS_tgkill, SYS_prlimit64, SYS_getrlimit,
    SYS_uname, SYS_sysinfo, SYS_sched_getaffinity, SYS_sched_yield,
    SYS_exit, SYS_exit_group,
#if (defined __x86_64__)
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_poll,
    SYS_alarm, SYS_time,
#endif
    -1
};


static const int  prof_sandbox_denied[] = {
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv,
    SYS_process_vm_writev, SYS_kill, SYS_tkill, SYS_mount, SYS_umount2,
    SYS_unshare, SYS_setns, SYS_chroot, SYS_pivot_root, SYS_bpf,
    SYS_perf_event_open, SYS_userfaultfd, SYS_add_key, SYS_keyctl,
    SYS_request_key, SYS_init_module, SYS_finit_module, SYS_kexec_load,
    SYS_personality, SYS_setpriority, SYS_bind, SYS_listen, SYS_accept,
    SYS_accept4,
    -1
};


int
prof_symbolizer_sandbox(int fetches)
{
    int  rc;

    rc = prof_sandbox_limit(RLIMIT_CORE, 0)
         | prof_sandbox_limit(RLIMIT_CPU, PROF_SANDBOX_CPU)
         | prof_sandbox_limit(RLIMIT_NOFILE, PROF_SANDBOX_FDS)
         | prof_sandbox_limit(RLIMIT_FSIZE, fetches ? PROF_SANDBOX_FILE : 0);

#if (PROF_SANDBOX_LIMITED)
    rc |= prof_sandbox_limit(RLIMIT_AS, PROF_SANDBOX_MEMORY);
#endif

    if (rc != PROF_OK || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) {
        return PROF_ERROR;
    }

    (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

    if (fetches) {

        /* seconds; the client's own limits are much longer */

        (void) setenv("DEBUGINFOD_TIMEOUT", "5", 1);
        (void) setenv("DEBUGINFOD_MAXTIME", "5", 1);

        return prof_sandbox_filter(prof_sandbox_denied,
                                   SECCOMP_RET_ERRNO|EPERM,
                                   SECCOMP_RET_ALLOW);
    }

    return prof_sandbox_filter(prof_sandbox_needed, SECCOMP_RET_ALLOW,
                               SECCOMP_RET_ERRNO|EPERM);
}


static int
prof_sandbox_limit(int resource, rlim_t max)
{
    struct rlimit  rl;

    if (getrlimit(resource, &rl) == -1) {
        return PROF_ERROR;
    }

    if (rl.rlim_max > max) {
        rl.rlim_max = max;
    }

    rl.rlim_cur = rl.rlim_max;

    return setrlimit(resource, &rl) == 0 ? PROF_OK : PROF_ERROR;
}


/* listed calls have one result, all other calls have another result */

static int
prof_sandbox_filter(const int *calls, int listed, int others)
{
    size_t              n;
    struct sock_fprog   prog;
    struct sock_filter  code[256];

    static const struct sock_filter  begin[] = {

        BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, PROF_SANDBOX_ARCH, 1, 0),
        BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_KILL),

        BPF_STMT(BPF_LD|BPF_W|BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP|BPF_JGE|BPF_K, PROF_SANDBOX_X32, 0, 1),
        BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_KILL)
    };

    n = sizeof(begin) / sizeof(begin[0]);
    memcpy(code, begin, sizeof(begin));

    if (others != SECCOMP_RET_ALLOW) {
        n = prof_sandbox_open(code, n, SYS_openat, 2);
#if (defined SYS_open)
        n = prof_sandbox_open(code, n, SYS_open, 1);
#endif
    }

    for ( /* void */ ; *calls != -1; calls++) {

        code[n++] = (struct sock_filter)
                    BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, (uint32_t) *calls, 0, 1);
        code[n++] = (struct sock_filter)
                    BPF_STMT(BPF_RET|BPF_K, (uint32_t) listed);
    }

    code[n++] = (struct sock_filter)
                BPF_STMT(BPF_RET|BPF_K, (uint32_t) others);

    prog.len = n;
    prog.filter = code;

    /* a kernel may lack filters; the limits still apply */

    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) == -1
        && errno != EINVAL && errno != ENOSYS)
    {
        return PROF_ERROR;
    }

    return PROF_OK;
}


/* read-only: no limit covers files that open() alone creates or truncates */

static size_t
prof_sandbox_open(struct sock_filter *code, size_t n, int call, uint32_t arg)
{
    code[n++] = (struct sock_filter)
                BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K, (uint32_t) call, 0, 4);
    code[n++] = (struct sock_filter)
                BPF_STMT(BPF_LD|BPF_W|BPF_ABS,
                         offsetof(struct seccomp_data, args)
                         + arg * sizeof(uint64_t));
    code[n++] = (struct sock_filter)
                BPF_JUMP(BPF_JMP|BPF_JSET|BPF_K, O_ACCMODE|O_CREAT|O_TRUNC,
                         0, 1);
    code[n++] = (struct sock_filter)
                BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_ERRNO|EPERM);
    code[n++] = (struct sock_filter)
                BPF_STMT(BPF_RET|BPF_K, SECCOMP_RET_ALLOW);

    return n;
}


int
prof_symbolizer_fetches(void)
{
    const char  *urls;

    urls = getenv("DEBUGINFOD_URLS");

    return urls && urls[0];
}
