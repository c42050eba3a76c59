
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The opener: a small process that keeps the privileges to open perf events.
 * It reads messages of a fixed size and no other input of a worker.  A process
 * that has the socket gets events of its own threads only, and a descriptor of
 * the kernel's list of functions (/proc/kallsyms).
 *
 * The opener keeps an event of its own.  The kernel prepares the tracepoint for
 * the first event and waits for all processors after the last one.  This takes
 * milliseconds, and a worker would wait for it in each capture.
 */


#include "base/prof_fds.h"
#include "kernel/prof_kernel_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>


#ifndef CAP_PERFMON
#define CAP_PERFMON  38
#endif

/* numbers of perf_event.h's registers (asm/perf_regs.h) */

#if (__x86_64__)
#define PROF_KERNEL_REGS  (1ULL << 7 | 1ULL << 8)       /* sp, ip */
#else
#define PROF_KERNEL_REGS  (1ULL << 31 | 1ULL << 32)     /* sp, pc */
#endif

/* of setpriority() */

#define PROF_KERNEL_NICE     (-10)

#define PROF_KERNEL_SYMBOLS  "/proc/kallsyms"


typedef struct {
    int                   sock;
    uint32_t              tracepoint;
    prof_kernel_answer_t  answer;       /* has the kernel's entries */
} prof_kernel_opener_t;


static int prof_kernel_tracepoint(uint32_t *id, const char **err);
static int prof_kernel_permitted(uint32_t tracepoint, const char **err);
static int prof_kernel_entries(prof_kernel_answer_t *a, const char **err);
static int prof_kernel_event(uint32_t tracepoint, int tid, int signo);
static int prof_kernel_start(prof_kernel_opener_t *o, void (*titled)(void));
static void prof_kernel_detach(prof_kernel_opener_t *o);
static void prof_kernel_privileges(void);
static void prof_kernel_serve(prof_kernel_opener_t *o);
static int prof_kernel_serve_event(const prof_kernel_opener_t *o,
    const prof_kernel_question_t *q, int pid);
static int prof_kernel_is_thread(int pid, int tid);


/* functions by which timer interrupts enter several versions of the kernel */

static const char *const  prof_kernel_interrupts[] = {
    "asm_sysvec_apic_timer_interrupt",
    "asm_sysvec_hyperv_stimer0",
    "asm_sysvec_xen_hvm_callback",
    "asm_xen_hypervisor_callback",
    "exc_xen_hypervisor_callback",
    "asm_common_interrupt",
    "apic_timer_interrupt",
    "el1h_64_irq",
    "el0t_64_irq",
    "el1_irq",
    "el0_irq"
};


int
prof_kernel_opener(void (*titled)(void), const char **err)
{
    int                   on, fds[2];
    prof_kernel_opener_t  o;

    memset(&o, 0, sizeof(prof_kernel_opener_t));

    if (prof_kernel_tracepoint(&o.tracepoint, err) != PROF_OK
        || prof_kernel_permitted(o.tracepoint, err) != PROF_OK
        || prof_kernel_entries(&o.answer, err) != PROF_OK)
    {
        return -1;
    }

    *err = "no descriptor for a socket";

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, fds) == -1) {
        return -1;
    }

    on = 1;
    o.sock = fds[1];

    *err = "cannot start the opener";

    if (setsockopt(o.sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(int)) == -1
        || prof_kernel_start(&o, titled) != PROF_OK)
    {
        (void) close(fds[0]);
        (void) close(fds[1]);
        return -1;
    }

    (void) close(fds[1]);

    *err = NULL;

    return fds[0];
}


static int
prof_kernel_tracepoint(uint32_t *id, const char **err)
{
    int    i, n;
    FILE  *f;

    static const char *const  paths[] = {
        "/sys/kernel/tracing/events/signal/signal_generate/id",
        "/sys/kernel/debug/tracing/events/signal/signal_generate/id"
    };

    *err = "the tracepoint signal:signal_generate in /sys/kernel/tracing "
           "cannot be read";

    for (i = 0; i < 2; i++) {
        f = fopen(paths[i], "re");

        if (f == NULL) {
            continue;
        }

        n = fscanf(f, "%u", id);

        (void) fclose(f);

        if (n == 1) {
            return PROF_OK;
        }
    }

    return PROF_ERROR;
}


static int
prof_kernel_permitted(uint32_t tracepoint, const char **err)
{
    int  fd;

    fd = prof_kernel_event(tracepoint, 0, SIGRTMIN);

    if (fd == -1) {
        *err = errno == ENOSYS || errno == ENOENT
               ? "the kernel has no such perf events"
               : "perf_event_open() is not permitted";
        return PROF_ERROR;
    }

    (void) close(fd);

    return PROF_OK;
}


static int
prof_kernel_entries(prof_kernel_answer_t *a, const char **err)
{
    int                    fd, rc;
    size_t                 j;
    uint32_t               i;
    prof_kernel_symbols_t  syms;

    *err = "the addresses in /proc/kallsyms cannot be read";

    fd = open(PROF_KERNEL_SYMBOLS, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return PROF_ERROR;
    }

    rc = prof_kernel_symbols_read(&syms, fd);

    (void) close(fd);

    if (rc != PROF_OK) {
        return PROF_ERROR;
    }

    for (i = 0; i < syms.n; i++) {

        for (j = 0; j < sizeof(prof_kernel_interrupts) / sizeof(char *); j++) {

            if (a->nentries < PROF_KERNEL_ENTRIES
                && strcmp(syms.symbols[i].name, prof_kernel_interrupts[j]) == 0)
            {
                a->entries[a->nentries].start = syms.symbols[i].start;
                a->entries[a->nentries].end = syms.symbols[i].end;
                a->nentries++;
            }
        }
    }

    prof_kernel_symbols_free(&syms);

    *err = "the kernel's interrupts of timers are not known";

    return a->nentries ? PROF_OK : PROF_ERROR;
}


/*
 * The event of a thread, for signals of the profiler's timers: its own signal,
 * and the signal for threads that have blocked it.
 */

static int
prof_kernel_event(uint32_t tracepoint, int tid, int signo)
{
    int                     fd;
    char                    filter[64];
    struct perf_event_attr  attr;

    memset(&attr, 0, sizeof(struct perf_event_attr));

    attr.size = sizeof(struct perf_event_attr);
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = tracepoint;
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_CALLCHAIN|PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = PROF_KERNEL_REGS;
    attr.sample_max_stack = PROF_KERNEL_RECORD;
    attr.exclude_callchain_user = 1;

    /* no thread waits for the ring */

    attr.watermark = 1;
    attr.wakeup_watermark = UINT32_MAX;

    fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1,
                 PERF_FLAG_FD_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    (void) snprintf(filter, sizeof(filter), "sig==%d||sig==%d", signo, SIGFPE);

    if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) == -1) {
        (void) close(fd);
        return -1;
    }

    return fd;
}


/*
 * The opener is not a child of this process, because this process may reap its
 * children and log unknown ones.  An intermediate process starts the opener.
 * It sends no signal when it ends, because it is cloned and not forked.
 */

static int
prof_kernel_start(prof_kernel_opener_t *o, void (*titled)(void))
{
    int    status;
    pid_t  pid;

    pid = syscall(SYS_clone, 0, 0, 0, 0, 0);

    if (pid == -1) {
        return PROF_ERROR;
    }

    if (pid == 0) {
        pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

        if (pid != 0) {
            _exit(pid == -1);
        }

        prof_kernel_detach(o);

        if (titled) {
            titled();
        }

        prof_kernel_privileges();
        prof_kernel_serve(o);

        _exit(0);
    }

    while (waitpid(pid, &status, __WCLONE) == -1) {

        if (errno != EINTR) {
            return PROF_ERROR;
        }
    }

    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? PROF_OK
                                                         : PROF_ERROR;
}


/* leaves the terminal, the handlers of signals, and all descriptors */

static void
prof_kernel_detach(prof_kernel_opener_t *o)
{
    int               signo, fd, null;
    sigset_t          set;
    struct sigaction  sa;

    (void) setsid();

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = SIG_DFL;

    for (signo = 1; signo < NSIG; signo++) {
        (void) sigaction(signo, &sa, NULL);
    }

    (void) sigemptyset(&set);
    (void) sigprocmask(SIG_SETMASK, &set, NULL);

    fd = fcntl(o->sock, F_DUPFD, 4);
    null = open("/dev/null", O_RDWR);

    if (fd == -1 || null == -1 || dup2(fd, 3) == -1 || dup2(null, 0) == -1
        || dup2(null, 1) == -1 || dup2(null, 2) == -1)
    {
        _exit(1);
    }

    prof_fds_close(4);

    o->sock = 3;

    /* workers wait for its answers */

    (void) setpriority(PRIO_PROCESS, 0, PROF_KERNEL_NICE);
}


/* older kernels have no capability for perf events alone */

static void
prof_kernel_privileges(void)
{
    int                              i, caps[3];
    struct __user_cap_data_struct    data[2];
    struct __user_cap_header_struct  header;

    caps[0] = CAP_SYS_PTRACE;
    caps[1] = CAP_SYSLOG;
    caps[2] = prctl(PR_CAPBSET_READ, CAP_PERFMON) == -1 ? CAP_SYS_ADMIN
                                                        : CAP_PERFMON;

    header.version = _LINUX_CAPABILITY_VERSION_3;
    header.pid = 0;

    memset(data, 0, sizeof(data));

    if (syscall(SYS_capget, &header, data) == -1) {
        _exit(1);
    }

    for (i = 0; i < 2; i++) {
        data[i].inheritable = 0;
        data[i].effective = 0;
    }

    for (i = 0; i < 3; i++) {
        data[caps[i] / 32].effective |= data[caps[i] / 32].permitted
                                        & 1U << caps[i] % 32;
    }

    for (i = 0; i < 2; i++) {
        data[i].permitted = data[i].effective;
    }

    if (syscall(SYS_capset, &header, data) == -1
        || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
        || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
    {
        _exit(1);
    }
}


static void
prof_kernel_serve(prof_kernel_opener_t *o)
{
    int                     fd, pid, rc, reply;
    prof_kernel_question_t  q;

    (void) prof_kernel_event(o->tracepoint, 0, SIGRTMIN);

    for ( ;; ) {
        rc = prof_kernel_receive(o->sock, &q, sizeof(q), &reply, &pid);

        if (rc == PROF_LIMIT) {
            return;
        }

        if (rc != PROF_OK || reply == -1) {

            if (reply != -1) {
                (void) close(reply);

            } else if (rc != PROF_OK && errno) {
                return;
            }

            continue;
        }

        fd = (q.what == PROF_KERNEL_ASK_SYMBOLS)
             ? open(PROF_KERNEL_SYMBOLS, O_RDONLY|O_CLOEXEC)
             : prof_kernel_serve_event(o, &q, pid);

        o->answer.err = fd == -1 ? errno : 0;

        (void) prof_kernel_send(reply, &o->answer, sizeof(o->answer), fd);

        (void) close(reply);

        if (fd != -1) {
            (void) close(fd);
        }
    }
}


/* when a thread ends meanwhile, its number may belong to another thread */

static int
prof_kernel_serve_event(const prof_kernel_opener_t *o,
    const prof_kernel_question_t *q, int pid)
{
    int  fd;

    if (q->what != PROF_KERNEL_ASK_EVENT || q->signo < SIGRTMIN
        || q->signo > SIGRTMAX || !prof_kernel_is_thread(pid, q->tid))
    {
        errno = EINVAL;
        return -1;
    }

    fd = prof_kernel_event(o->tracepoint, q->tid, q->signo);

    if (fd != -1 && !prof_kernel_is_thread(pid, q->tid)) {
        (void) close(fd);
        errno = ESRCH;
        return -1;
    }

    return fd;
}


static int
prof_kernel_is_thread(int pid, int tid)
{
    char  path[64];

    if (pid <= 0 || tid <= 0) {
        return 0;
    }

    (void) snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);

    return access(path, F_OK) == 0;
}
