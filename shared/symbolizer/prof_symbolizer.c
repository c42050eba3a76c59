
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The main program of the helper.  It reads questions from its standard input,
 * which is a socket, and writes the answers to the same socket.
 */


#include "names/prof_mangled.h"
#include "symbolizer/prof_demangle.h"
#include "symbolizer/prof_symbolizer.h"
#include "symbolizer/prof_units.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>


#define PROF_SYMBOLIZER_SOCKET  STDIN_FILENO


static void prof_symbolizer_limit(uint32_t cpu);
static void prof_symbolizer_signals(void);
static void prof_symbolizer_signal(int signo);
static int prof_symbolizer_send(const prof_buf_t *b);
static int prof_symbolizer_question(const prof_buf_t *b, uint32_t *more);
static int prof_symbolizer_names(prof_wire_t *w,
    prof_symbolizer_question_t *q);
static int prof_symbolizer_answer(prof_symbolizer_question_t *q);
static int prof_symbolizer_name(prof_buf_t *b, prof_symbolizer_object_t *o,
    prof_symbolizer_question_t *q, uint32_t i);
static int prof_symbolizer_units(prof_wire_t *w,
    prof_symbolizer_question_t *q);


int
main(int argc, char **argv)
{
    int            type;
    uint32_t       more;
    socklen_t      len;
    prof_buf_t     b;
    struct pollfd  pfd;

    len = sizeof(int);

    if (getsockopt(PROF_SYMBOLIZER_SOCKET, SOL_SOCKET, SO_TYPE, &type, &len)
        == -1)
    {
        (void) fprintf(stderr, "%s: names functions for "
                       "ngx_http_profile_module, which starts it\n", argv[0]);
        return 2;
    }

    prof_symbolizer_signals();

    if (prof_symbolizer_sandbox(prof_symbolizer_fetches()) != PROF_OK) {
        return 1;
    }

    prof_buf_init(&b);
    prof_wire_u32(&b, PROF_WIRE_HELLO);

    pfd.fd = PROF_SYMBOLIZER_SOCKET;
    pfd.events = POLLIN;

    while (prof_symbolizer_send(&b) == PROF_OK) {

        (void) alarm(0);
        prof_symbolizer_limit(0);

        if (poll(&pfd, 1, PROF_SYMBOLIZER_IDLE * 1000) != 1) {
            break;
        }

        /* the worker may have closed its side, or lost this process */

        (void) alarm(PROF_SYMBOLIZER_TIME);
        prof_symbolizer_limit(PROF_SYMBOLIZER_CPU);

        more = 0;

        if (prof_wire_receive(PROF_SYMBOLIZER_SOCKET, &b, UINT64_MAX)
            != PROF_OK
            || prof_symbolizer_question(&b, &more) != PROF_OK)
        {
            break;
        }

        b.len = 0;
        prof_wire_u32(&b, PROF_WIRE_END);
        prof_wire_u32(&b, more);
    }

    prof_buf_free(&b);

    return 0;
}


/* ends this process when it has used this time, in seconds; 0: no limit */

static void
prof_symbolizer_limit(uint32_t cpu)
{
    struct itimerval  limit;

    memset(&limit, 0, sizeof(struct itimerval));

    limit.it_value.tv_sec = cpu;

    (void) setitimer(ITIMER_PROF, &limit, NULL);
}


/*
 * The signals are blocked at start.  On a signal that would kill this process,
 * the process exits instead.  So its parent, possibly the only process of a
 * container, does not log a killed process.
 */

static void
prof_symbolizer_signals(void)
{
    size_t            i;
    stack_t           ss;
    sigset_t          none;
    struct sigaction  sa;

    static char       stack[16384];
    static const int  signals[] = {
        SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGPROF,
        SIGQUIT, SIGSEGV, SIGSYS, SIGTERM, SIGTRAP, SIGXCPU, SIGXFSZ
    };

    memset(&ss, 0, sizeof(stack_t));

    ss.ss_sp = stack;
    ss.ss_size = sizeof(stack);

    (void) sigaltstack(&ss, NULL);

    memset(&sa, 0, sizeof(struct sigaction));

    sa.sa_handler = prof_symbolizer_signal;
    sa.sa_flags = SA_ONSTACK;
    (void) sigemptyset(&sa.sa_mask);

    for (i = 0; i < sizeof(signals) / sizeof(int); i++) {
        (void) sigaction(signals[i], &sa, NULL);
    }

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
}


static void
prof_symbolizer_signal(int signo)
{
    _exit(1);
}


static int
prof_symbolizer_send(const prof_buf_t *b)
{
    return prof_wire_send(PROF_SYMBOLIZER_SOCKET, b, UINT64_MAX);
}


static int
prof_symbolizer_question(const prof_buf_t *b, uint32_t *more)
{
    int                          rc;
    uint32_t                     i, question;
    prof_wire_t                  w;
    prof_symbolizer_question_t   q;

    w.pos = b->data;
    w.end = b->data + b->len;
    w.failed = 0;

    memset(&q, 0, sizeof(prof_symbolizer_question_t));

    question = prof_wire_get_u32(&w);

    q.dev = prof_wire_get_u64(&w);
    q.ino = prof_wire_get_u64(&w);
    q.build_id = prof_wire_get_text(&w);
    q.path = prof_wire_get_text(&w);
    q.debug_root = prof_wire_get_text(&w);

    if (w.failed || q.path == NULL || q.debug_root == NULL) {
        return PROF_ERROR;
    }

    if (question == PROF_WIRE_UNITS) {
        return prof_symbolizer_units(&w, &q);
    }

    rc = question == PROF_WIRE_NAMES
         ? prof_symbolizer_names(&w, &q) : PROF_ERROR;

    if (rc == PROF_OK) {
        rc = prof_symbolizer_answer(&q);
        *more = q.more;
    }

    for (i = 0; i < q.n; i++) {
        free(q.syms[i].name);
    }

    free(q.syms);
    free(q.own);

    return rc;
}


static int
prof_symbolizer_names(prof_wire_t *w, prof_symbolizer_question_t *q)
{
    uint32_t  i, n;

    n = prof_wire_get_u32(w);

    if (w->failed || n == 0 || n > PROF_WIRE_ADDRESSES) {
        return PROF_ERROR;
    }

    q->syms = calloc(n, sizeof(prof_symbol_t));
    q->own = calloc(n, sizeof(char *));

    if (q->syms == NULL || q->own == NULL) {
        return PROF_ERROR;
    }

    q->n = n;

    for (i = 0; i < n; i++) {
        q->syms[i].pc = prof_wire_get_u64(w);
        q->syms[i].function = prof_wire_get_u64(w);
        q->own[i] = prof_wire_get_text(w);

        if (i && q->syms[i].pc < q->syms[i - 1].pc) {
            return PROF_ERROR;
        }
    }

    return w->failed || w->pos != w->end ? PROF_ERROR : PROF_OK;
}


static int
prof_symbolizer_answer(prof_symbolizer_question_t *q)
{
    int                        rc;
    uint32_t                   i;
    prof_buf_t                 b;
    prof_symbolizer_object_t   o;

    memset(&o, 0, sizeof(prof_symbolizer_object_t));

    rc = PROF_OK;
    prof_buf_init(&b);

    if (prof_symbolizer_open(&o, q) == PROF_OK) {
        rc = prof_symbolizer_symbols(&o, q);
    }

    /* each address has its own answer, so answers before the deadline count */

    for (i = 0; i < q->n && rc == PROF_OK; i++) {
        b.len = 0;
        rc = prof_symbolizer_name(&b, &o, q, i);

        if (rc == PROF_OK) {
            rc = prof_symbolizer_send(&b);
        }
    }

    prof_buf_free(&b);
    prof_symbolizer_close(&o);

    return rc;
}


/* symbols of debug files first, the object's own symbols second */

static int
prof_symbolizer_name(prof_buf_t *b, prof_symbolizer_object_t *o,
    prof_symbolizer_question_t *q, uint32_t i)
{
    prof_symbol_t  *s;

    s = &q->syms[i];

    if (s->name == NULL && q->own[i]) {
        s->name = strdup(q->own[i]);
        if (s->name == NULL) {
            return PROF_ERROR;
        }
    }

    if (s->name && prof_demangle(&s->name) != PROF_OK) {
        return PROF_ERROR;
    }

    prof_wire_u32(b, i);

    if (o->dwfl) {
        prof_symbolizer_lines(b, o, s->pc, s->name);
        return PROF_OK;
    }

    prof_wire_u32(b, 0);
    prof_wire_u32(b, 0);
    prof_wire_u32(b, 0);
    prof_wire_text(b, s->name);
    prof_wire_text(b, NULL);
    prof_wire_u32(b, 0);

    return PROF_OK;
}


/* only the object's own file has code */

static int
prof_symbolizer_units(prof_wire_t *w, prof_symbolizer_question_t *q)
{
    int                        rc;
    Elf                       *elf;
    GElf_Addr                  bias;
    prof_buf_t                 b;
    prof_symbolizer_object_t   o;

    memset(&o, 0, sizeof(prof_symbolizer_object_t));

    elf = NULL;
    prof_buf_init(&b);

    if (prof_symbolizer_open(&o, q) == PROF_OK) {
        elf = dwfl_module_getelf(o.module, &bias);
    }

    rc = prof_units_answer(&b, w, elf);

    if (rc == PROF_OK) {
        rc = prof_symbolizer_send(&b);
    }

    prof_buf_free(&b);
    prof_symbolizer_close(&o);

    return rc;
}
