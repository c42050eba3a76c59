
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: kernel
 * runs: beside
 *
 * Stacks of the kernel: the list of its functions, the ring, the process that
 * opens events, and samples of code that makes system calls.
 */


#define _GNU_SOURCE

#include "prof.h"

#include "tap.h"

#include "kernel/prof_kernel_wire.h"
#include "prof_finish.h"
#include "prof_series.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define KERNEL   0xffffffff81000000
#define ENTRY    0xffffffff82000000

#define TEST_PC  0x401234
#define TEST_SP  0x7ffc00001000


static int test_file(const char *text, size_t len);
static const char *test_name(const prof_kernel_symbols_t *syms, uint64_t addr);
static void test_symbols(void);
static void test_record(uint32_t type, const uint64_t *words, uint32_t n);
static uint32_t test_take(const uint64_t *words, uint32_t n, uintptr_t pc,
    uintptr_t sp, uintptr_t *pcs);
static void test_ring(void);
static void test_frames(void);
static int test_ask(int sock, uint32_t what, int tid, int signo, size_t size,
    int *pid);
static int test_descriptors(int pid);
static void test_privileges(int pid);
static void test_opener(int sock);
static uint64_t test_clock(clockid_t id);
static void test_copy(int ms);
static void test_spin(int ms);
static void test_work(void *data);
static const char *test_frame(const prof_profile_t *p, uint32_t node);
static void test_stacks(const prof_profile_t *p);
static int test_mapped(void);
static void test_captures(void);
static void test_limits(void);
static void test_unprivileged(void);
static void test_hangs(void);


static int  test_polls;         /* with a time */


/* counts the waits for the opener */

int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts,
    const sigset_t *mask)
{
    struct timespec  left;

    test_polls += (ts->tv_sec || ts->tv_nsec);
    left = *ts;

    return (int) syscall(SYS_ppoll, fds, n, &left, mask, _NSIG / 8);
}


/* us in which a running opener answers, also on a busy machine */
#define TEST_WAIT  500000


static const char  test_list[] =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000000 T first\n"
    "ffffffff81000100 t second\n"
    "ffffffff81000180 D data\n"
    "ffffffff81000200 W third\n"
    "ffffffff82000000 T interrupt\n"
    "ffffffff82000100 T last\n"
    "ffffffffc0000010 t in_module\t[nf_tables]\n"
    "ffffffffc0000020 t next_in_module\t[nf_tables]\n"
    "not a line\n"
    "ffffffff81000080 t without a newline";


static char  test_page[8192] __attribute__((aligned(8)));


static int
test_file(const char *text, size_t len)
{
    int  fd;

    fd = memfd_create("test", 0);

    if (write(fd, text, len) != (ssize_t) len
        || lseek(fd, 0, SEEK_SET) != 0)
    {
        return -1;
    }

    return fd;
}


static const char *
test_name(const prof_kernel_symbols_t *syms, uint64_t addr)
{
    const prof_kernel_symbol_t  *sym;

    sym = prof_kernel_symbol(syms, addr);

    return sym ? sym->name : "none";
}


static void
test_symbols(void)
{
    int                     fd;
    prof_kernel_symbols_t   syms;

    fd = test_file(test_list, sizeof(test_list) - 1);

    is_int(prof_kernel_symbols_read(&syms, fd), PROF_OK, "a list is read");
    close(fd);

    is_int(syms.n, 8, "the list has all symbols of code");
    is_str(test_name(&syms, KERNEL), "first",
           "a function begins at its symbol");
    is_str(test_name(&syms, KERNEL + 0xff), "first",
           "the end of a function has its name");
    is_str(test_name(&syms, KERNEL + 0x190), "second", "data is no symbol");
    is_str(test_name(&syms, KERNEL - 1), "none",
           "an address before the list has no name");
    is_str(test_name(&syms, KERNEL + 0x300), "none",
           "an address between sections has no name");
    is_str(test_name(&syms, 0xffffffffc0000018), "in_module",
           "an address in a module has its name");
    is_str(test_name(&syms, 0xffffffffc0000020), "none",
           "the end of the last one is not known");

    prof_kernel_symbols_free(&syms);

    fd = test_file("0000000000000000 T hidden\n", 26);
    is_int(prof_kernel_symbols_read(&syms, fd), PROF_ERROR,
           "a list without addresses is refused");
    close(fd);

    is_int(prof_kernel_symbols_read(&syms, -1), PROF_ERROR,
           "a missing list is refused");
}


/* appends a record to the ring; the last words are ABI, sp and pc */

static void
test_record(uint32_t type, const uint64_t *words, uint32_t n)
{
    uint32_t                      i;
    uint64_t                      word;
    struct perf_event_header      header;
    struct perf_event_mmap_page  *page;

    page = (struct perf_event_mmap_page *) test_page;

    memset(&header, 0, sizeof(header));
    header.type = type;
    header.size = 8 + 8 * n;

    memcpy(&word, &header, 8);

    for (i = 0; i <= n; i++) {
        memcpy(test_page + 4096 + page->data_head % 4096, &word, 8);
        page->data_head += 8;
        word = i < n ? words[i] : 0;
    }
}


static uint32_t
test_take(const uint64_t *words, uint32_t n, uintptr_t pc, uintptr_t sp,
    uintptr_t *pcs)
{
    uint32_t            taken;
    prof_kernel_ring_t  ring;

    memset(&ring, 0, sizeof(prof_kernel_ring_t));

    ring.page = test_page;
    ring.data = test_page + 4096;
    ring.mask = 4095;
    ring.nentries = 1;
    ring.entries[0].start = ENTRY;
    ring.entries[0].end = ENTRY + 0x100;

    test_record(PERF_RECORD_SAMPLE, words, n);

    taken = prof_kernel_take(&ring, pc, sp, pcs);

    is_int(((struct perf_event_mmap_page *) test_page)->data_tail,
           ((struct perf_event_mmap_page *) test_page)->data_head,
           "the ring is empty");

    return taken;
}


static void
test_ring(void)
{
    uint32_t            i;
    uint64_t            deep[PROF_KERNEL_RECORD + 4];
    uintptr_t           pcs[PROF_KERNEL_DEPTH];
    prof_kernel_ring_t  empty;

    static const uint64_t  call[] = {
        6, (uint64_t) PERF_CONTEXT_KERNEL, KERNEL + 1, ENTRY + 0x10,
        KERNEL + 2, KERNEL + 3, 0x401234, 2, TEST_SP, TEST_PC
    };

    static const uint64_t  own[] = {
        3, (uint64_t) PERF_CONTEXT_KERNEL, KERNEL + 1, ENTRY + 0x10,
        2, TEST_SP, TEST_PC
    };

    static const uint64_t  work[] = {
        2, (uint64_t) PERF_CONTEXT_KERNEL, KERNEL + 1, 2, TEST_SP, TEST_PC
    };

    static const uint64_t  none[] = { 1, KERNEL, 0, TEST_SP, TEST_PC };
    static const uint64_t  wrong[] = { 1000, KERNEL, 2, TEST_SP, TEST_PC };
    static const uint64_t  huge[] = { UINT64_MAX, KERNEL, 2, TEST_SP, TEST_PC };

    is_int(test_take(call, 10, TEST_PC, TEST_SP, pcs), 2,
           "a system call has a stack");
    ok(pcs[0] == KERNEL + 2 && pcs[1] == KERNEL + 3,
       "the stack does not show the interrupt");
    is_int(test_take(call, 10, TEST_PC - 2, TEST_SP, pcs), 2,
           "a call that is restarted");
    is_int(test_take(call, 10, TEST_PC - 5, TEST_SP, pcs), 0,
           "a call at another place has no stack");
    is_int(test_take(call, 10, TEST_PC + 1, TEST_SP, pcs), 0,
           "a call at a later place has no stack");
    is_int(test_take(call, 10, TEST_PC, TEST_SP - 8, pcs), 0,
           "a call with another stack pointer has no stack");
    is_int(test_take(own, 7, TEST_PC, TEST_SP, pcs), 0,
           "the code of the process has no stack");
    is_int(test_take(work, 6, TEST_PC, TEST_SP, pcs), 0,
           "a record without an interrupt has no stack");
    is_int(test_take(none, 5, TEST_PC, TEST_SP, pcs), 0,
           "a record without registers has no stack");
    is_int(test_take(wrong, 5, TEST_PC, TEST_SP, pcs), 0,
           "a record with too many addresses has no stack");
    is_int(test_take(huge, 5, TEST_PC, TEST_SP, pcs), 0,
           "a record with a huge number has no stack");
    is_int(test_take(NULL, 0, TEST_PC, TEST_SP, pcs), 0,
           "an empty record has no stack");

    deep[0] = PROF_KERNEL_RECORD;
    deep[1] = ENTRY;

    for (i = 2; i <= PROF_KERNEL_RECORD; i++) {
        deep[i] = KERNEL + i;
    }

    deep[i] = 2;
    deep[i + 1] = TEST_SP;
    deep[i + 2] = TEST_PC;

    for (i = 0; i < 20; i++) {
        is_int(test_take(deep, PROF_KERNEL_RECORD + 4, TEST_PC, TEST_SP, pcs),
               PROF_KERNEL_DEPTH,
               "a deep stack is read at any place of the ring");
    }

    test_record(PERF_RECORD_LOST, call, 2);
    is_int(test_take(call, 10, TEST_PC, TEST_SP, pcs), 2,
           "a stack is read after a loss");
    test_record(PERF_RECORD_SAMPLE, call, 10);
    is_int(test_take(own, 7, TEST_PC, TEST_SP, pcs), 0,
           "the newest stack is taken");

    memset(&empty, 0, sizeof(empty));
    empty.page = test_page;
    is_int(prof_kernel_take(&empty, TEST_PC, TEST_SP, pcs), 0,
           "an empty ring has no stack");
}


/* a stack of two frames of the process and two of the kernel, and another */

static void
test_frames(void)
{
    uint32_t         i;
    prof_entry_t    *e;
    prof_profile_t  *p;

    p = prof_profile_create("test");
    p->frames = calloc(4, sizeof(prof_frame_t));
    p->nodes = calloc(5, sizeof(prof_node_t));
    p->nframes = 4;
    p->nnodes = 5;

    for (i = 0; i < 4; i++) {
        p->frames[i].object = PROF_NONE;
        p->frames[i].type = i < 2 ? PROF_TYPE_NOTE : PROF_TYPE_KERNEL;
        p->frames[i].name = i < 2 ? strdup(i ? "inner" : "outer") : NULL;
        p->frames[i].pc = i < 2 ? 0 : KERNEL + i;

        p->nodes[i].parent = i ? i - 1 : PROF_NONE;
        p->nodes[i].frame = i;
    }

    p->nodes[4].parent = 0;
    p->nodes[4].frame = 3;

    for (i = 0; i < 2; i++) {
        e = prof_series_add(&p->series[PROF_SERIES_TIME]);
        e->node = 3 + i;
    }

    is_int(prof_profile_symbolize(p), PROF_OK,
           "a profile has its names without a list of functions");
    is_int(p->nframes, 2, "the kernel's frames are left out");
    is_int(p->nnodes, 2, "the nodes of these frames are left out");
    is_int(time_of(p, 0)->node, 1, "a stack ends in the process");
    is_int(time_of(p, 1)->node, 0,
           "the other stack ends in the process as well");

    prof_profile_destroy(p);
}


/* asks the opener; returns errno of its answer, or -1 without an answer */

static int
test_ask(int sock, uint32_t what, int tid, int signo, size_t size, int *pid)
{
    int                     fd, fds[2], on, rc;
    struct timeval          tv;
    prof_kernel_answer_t    a;
    prof_kernel_question_t  q[2];

    memset(q, 0, sizeof(q));
    q[0].what = what;
    q[0].tid = tid;
    q[0].signo = signo;

    on = 1;
    tv.tv_sec = 10;
    tv.tv_usec = 0;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == -1
        || setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(int)) == -1
        || setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == -1
        || prof_kernel_send(sock, q, size, fds[1]) != PROF_OK)
    {
        return -1;
    }

    close(fds[1]);

    rc = prof_kernel_receive(fds[0], &a, sizeof(a), &fd, pid);

    close(fds[0]);

    if (rc != PROF_OK) {
        return -1;
    }

    ok((fd == -1) == (a.err != 0), "the opener sends a descriptor or an error");

    if (fd != -1) {
        close(fd);
    }

    return a.err;
}


static int
test_descriptors(int pid)
{
    int    n;
    DIR   *dir;
    char   path[64];

    (void) snprintf(path, sizeof(path), "/proc/%d/fd", pid);

    n = 0;
    dir = opendir(path);

    while (dir && readdir(dir)) {
        n++;
    }

    closedir(dir);

    return n - 2;
}


static void
test_privileges(int pid)
{
    int                  i, n;
    char                 path[64], line[256];
    FILE                *f;
    unsigned long long   caps, effective;

    (void) snprintf(path, sizeof(path), "/proc/%d/status", pid);

    effective = UINT64_MAX;
    f = fopen(path, "r");

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "CapEff: %llx", &caps) == 1) {
            effective = caps;
        }
    }

    fclose(f);

    is_int(effective & ~(1ULL << 38 | 1ULL << 34 | 1ULL << 21 | 1ULL << 19), 0,
           "the opener has no other capabilities");
    is_int(!(effective & 1ULL << 38) + !(effective & 1ULL << 21), 1,
           "the opener has one of the two capabilities that open events");

    /* the opener sends an answer before it closes the answer's descriptors */

    n = test_descriptors(pid);

    for (i = 0; i < 1000 && n != 5; i++) {
        usleep(10000);
        n = test_descriptors(pid);
    }

    is_int(n, 5, "the opener has a socket, an event and /dev/null");
}


static void
test_opener(int sock)
{
    int                     self, pid, signo;
    prof_kernel_question_t  q;

    self = (int) syscall(SYS_gettid);
    signo = SIGRTMIN;
    pid = 0;

    is_int(test_ask(sock, PROF_KERNEL_ASK_EVENT, self, signo, sizeof(q), &pid),
           0, "the opener opens an event for this thread");
    is_int(test_ask(sock, PROF_KERNEL_ASK_SYMBOLS, 0, 0, sizeof(q), &pid), 0,
           "the opener sends the list of functions");
    ok(test_ask(sock, PROF_KERNEL_ASK_EVENT, getppid(), signo, sizeof(q),
                &pid) > 0, "the opener refuses an event for another process");
    ok(test_ask(sock, PROF_KERNEL_ASK_EVENT, pid, signo, sizeof(q), &pid) > 0,
       "the opener refuses an event for itself");
    ok(test_ask(sock, PROF_KERNEL_ASK_EVENT, 0, signo, sizeof(q), &pid) > 0,
       "the opener refuses an event for the thread 0");
    ok(test_ask(sock, PROF_KERNEL_ASK_EVENT, -1, signo, sizeof(q), &pid) > 0,
       "the opener refuses an event for all threads");
    ok(test_ask(sock, PROF_KERNEL_ASK_EVENT, self, SIGKILL, sizeof(q),
                &pid) > 0, "the opener refuses an event for another signal");
    ok(test_ask(sock, 77, self, signo, sizeof(q), &pid) > 0,
       "the opener refuses unknown questions");

    is_int(test_ask(sock, PROF_KERNEL_ASK_EVENT, self, signo, 4, &pid), -1,
           "a short message has no answer");
    is_int(test_ask(sock, PROF_KERNEL_ASK_EVENT, self, signo, 2 * sizeof(q),
                    &pid), -1, "a long message has no answer");

    memset(&q, 0, sizeof(q));
    is_int(prof_kernel_send(sock, &q, sizeof(q), -1), PROF_OK,
           "a message without a socket has no answer");

    pid = 0;
    is_int(test_ask(sock, PROF_KERNEL_ASK_EVENT, self, signo, sizeof(q), &pid),
           0, "the opener continues");
    ok(pid > 0 && pid != getpid(), "the opener is another process");

    test_privileges(pid);

    close(sock);
    prof_kernel_use(-1);

    is_int(waitpid(pid, NULL, 0), pid, "the opener ends with its last socket");
}


static uint64_t
test_clock(clockid_t id)
{
    struct timespec  ts;

    (void) clock_gettime(id, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


__attribute__((noinline)) static void
test_copy(int ms)
{
    int       fds[2];
    uint64_t  end;

    static char  buf[65536];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == -1) {
        abort();
    }

    end = test_clock(CLOCK_THREAD_CPUTIME_ID) + (uint64_t) ms * 1000000;

    while (test_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
        if (write(fds[0], buf, sizeof(buf)) != sizeof(buf)
            || read(fds[1], buf, sizeof(buf)) <= 0)
        {
            abort();
        }
    }

    close(fds[0]);
    close(fds[1]);
}


static volatile uint64_t  test_sink;


__attribute__((noinline)) static void
test_spin(int ms)
{
    uint64_t  end, i;

    /* this clock is no system call, at which the thread might be preempted */

    end = test_clock(CLOCK_MONOTONIC) + (uint64_t) ms * 1000000;

    while (test_clock(CLOCK_MONOTONIC) < end) {
        for (i = 0; i < 100000; i++) {
            test_sink += i;
        }
    }
}


/* also while the signal is blocked: it comes when the kernel has done more */

static void
test_work(void *data)
{
    int       i;
    sigset_t  all, old;

    test_copy(400);
    test_spin(400);

    (void) sigfillset(&all);

    for (i = 0; i < 20; i++) {
        (void) sigprocmask(SIG_BLOCK, &all, &old);
        test_copy(3);
        (void) sigprocmask(SIG_SETMASK, &old, NULL);
    }
}


static const char *
test_frame(const prof_profile_t *p, uint32_t node)
{
    return node == PROF_NONE ? "" : p->frames[p->nodes[node].frame].name;
}


static void
test_stacks(const prof_profile_t *p)
{
    uint32_t             i, k, node, parent, wrong, addresses;
    uint64_t             calls, deep, spun, kernel;
    const char          *name;
    const prof_frame_t  *f;

    wrong = addresses = 0;
    calls = deep = spun = kernel = 0;

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];
        addresses += prof_frame_is_kernel(f->pc)
                     || strstr(f->name, "ffffffff") != NULL
                     || strstr(f->name, "[kernel]") != NULL;
    }

    is_int(addresses, 0,
           "each function of the kernel has a name and no address");

    for (i = 0; i < ntimes(p); i++) {
        k = 0;

        for (node = time_of(p, i)->node; node != PROF_NONE; node = parent) {
            name = test_frame(p, node);
            parent = p->nodes[node].parent;
            k++;

            if (strcmp(name, "sys_write") == 0 || strcmp(name, "sys_read") == 0)
            {
                calls += cpu_of(p, i);
                deep += k > 1 ? cpu_of(p, i) : 0;
                wrong += strstr(test_frame(p, parent), name + 4) == NULL;
            }

            if (strncmp(name, "test_spin", 9) == 0) {
                spun += cpu_of(p, i);
                kernel += p->frames[p->nodes[time_of(p, i)->node].frame].type
                          == PROF_TYPE_KERNEL ? cpu_of(p, i) : 0;
            }
        }
    }

    is_int(wrong, 0, "each stack is below the function of its system call");

    /*
     * On a busy machine, timers also expire while another process runs.  Such
     * a signal is handled after the call in which the thread was preempted.
     * So the number of samples has no lower bound.
     */

    ok(calls > 0,
       "samples have %d ms in calls", (int) (calls / 1000000));
    ok(deep * 5 > calls,
       "samples have %d ms of calls with a stack of the kernel",
       (int) (deep / 1000000));
    ok(spun > 0 && kernel * 5 < spun,
       "%d of %d ms of other code are in the kernel",
       (int) (kernel / 1000000),
       (int) (spun / 1000000));
}


static int
test_mapped(void)
{
    int    n;
    char   line[512];
    FILE  *f;

    n = 0;
    f = fopen("/proc/self/maps", "r");

    while (f && fgets(line, sizeof(line), f)) {
        n += strstr(line, "perf_event") != NULL;
    }

    fclose(f);

    return n;
}


static void
test_captures(void)
{
    const char           *err;
    prof_sampler_t       *s;
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    conf.frequency = 1000;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_DEFAULT;

    s = prof_sampler_create(&err);
    c = prof_capture_create(&conf);

    is_int(test_mapped(), 1, "a sampler has a ring");
    ok(prof_kernel_error() == NULL, "the ring is opened without an error");

    prof_turn_run(s, c, (uintptr_t) test_work, test_work, NULL);

    p = finish_capture(c, "request");
    prof_capture_destroy(c);
    prof_sampler_destroy(s);

    is_int(test_mapped(), 0, "a destroyed sampler has no ring");

    (void) prof_profile_symbolize(p);
    test_stacks(p);
    prof_profile_destroy(p);

    conf.mode = PROF_MODE_CPU;
    conf.frequency = 99;
    c = prof_capture_create(&conf);

    if (prof_process_start(c, 1, &err) != PROF_OK) {
        diag("prof_process_start(): %s", err);
        abort();
    }

    is_int(test_mapped(), 1, "a thread has a ring");

    test_work(NULL);

    p = finish_process(c, "process");
    prof_capture_destroy(c);

    is_int(test_mapped(), 0, "the thread has no ring after the capture");

    (void) prof_profile_symbolize(p);
    test_stacks(p);
    prof_profile_destroy(p);

    prof_profile_forget();
}


static void
test_limits(void)
{
    int                  i, tid;
    prof_kernel_ring_t  *rings[PROF_KERNEL_RINGS];

    tid = (int) syscall(SYS_gettid);

    for (i = 0; i < PROF_KERNEL_RINGS; i++) {
        rings[i] = prof_kernel_open(tid, SIGRTMIN, TEST_WAIT);
        ok(rings[i] != NULL, "ring %d is opened", i);
    }

    ok(prof_kernel_open(tid, SIGRTMIN, TEST_WAIT) == NULL,
       "the number of rings is limited");

    for (i = 0; i < PROF_KERNEL_RINGS; i++) {
        prof_kernel_close(rings[i]);
    }

    ok(prof_kernel_open(getppid(), SIGRTMIN, TEST_WAIT) == NULL,
       "a ring for another process is refused");
    ok(prof_kernel_error() != NULL, "the error of the refusal is known");
}


/* an opener that hangs is waited for once; its late answer is still taken */

static void
test_hangs(void)
{
    int                      i, fd, reply, fds[2];
    void                    *page;
    prof_kernel_ring_t      *rings[3];
    prof_kernel_answer_t     a;
    prof_kernel_question_t   q;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == -1) {
        abort();
    }

    prof_kernel_use(fds[0]);
    test_polls = 0;

    for (i = 0; i < 3; i++) {
        rings[i] = prof_kernel_open(1, SIGRTMIN, 1);
        ok(rings[i] && rings[i]->page == NULL, "ring %d is asked for", i);
    }

    is_int(test_polls, 1, "the opener is waited for once");
    ok(prof_kernel_error() != NULL, "the error is known");

    prof_kernel_ready(rings[0]);
    ok(rings[0]->page == NULL, "without an answer the ring stays empty");

    memset(&a, 0, sizeof(a));
    a.nentries = 1;

    is_int(prof_kernel_receive(fds[1], &q, sizeof(q), &reply, NULL), PROF_OK,
           "the opener gets the question");

    fd = memfd_create("ring", 0);

    if (fd == -1 || ftruncate(fd, 1 << 20) == -1) {
        abort();
    }

    is_int(prof_kernel_send(reply, &a, sizeof(a), fd), PROF_OK,
           "it answers late");
    (void) close(reply);
    (void) close(fd);

    prof_kernel_ready(rings[0]);
    page = rings[0]->page;
    ok(page != NULL && rings[0]->nentries == 1, "a late answer is taken");
    ok(prof_kernel_error() == NULL, "the error has ended");

    /* an opener that refuses, and one that has ended */

    is_int(prof_kernel_receive(fds[1], &q, sizeof(q), &reply, NULL), PROF_OK,
           "another question");
    a.err = EPERM;
    is_int(prof_kernel_send(reply, &a, sizeof(a), -1), PROF_OK,
           "is refused late");
    (void) close(reply);
    (void) close(fds[1]);

    prof_kernel_ready(rings[1]);
    ok(rings[1]->page == NULL && rings[1]->sock == -1,
       "the ring of a late refusal stays empty");
    prof_kernel_ready(rings[2]);
    ok(rings[2]->page == NULL && rings[2]->sock == -1,
       "so does the ring of an opener that has ended");

    for (i = 0; i < 3; i++) {
        prof_kernel_close(rings[i]);
    }

    prof_kernel_use(-1);
    (void) close(fds[0]);
}


/* a process without privileges starts no opener, and says why */

static void
test_unprivileged(void)
{
    int          status;
    pid_t        pid;
    const char  *err;

    pid = fork();

    if (pid == 0) {
        err = NULL;

        _exit(setresgid(65534, 65534, 65534) == -1
              || setresuid(65534, 65534, 65534) == -1
              || prof_kernel_opener(NULL, &err) != -1
              || err == NULL);
    }

    is_int(waitpid(pid, &status, 0), pid,
           "a ring for a process of another user is refused");
    is_int(status, 0, "has no opener, and an error");
}


int
main(void)
{
    int          sock;
    const char  *err;

    test_symbols();
    test_ring();
    test_frames();
    test_hangs();

    (void) prctl(PR_SET_CHILD_SUBREAPER, 1);

    sock = prof_kernel_opener(NULL, &err);

    if (sock == -1) {
        diag("stacks of the kernel are not tested: %s", err);
        return done_testing();
    }

    prof_kernel_use(sock);

    test_unprivileged();
    test_limits();
    test_captures();
    test_opener(sock);

    ok(prof_kernel_open((int) syscall(SYS_gettid), SIGRTMIN, 0) == NULL,
       "no ring is opened without an opener");

    prof_process_done();

    return done_testing();
}
