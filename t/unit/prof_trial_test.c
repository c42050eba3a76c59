
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: scripts
 * runs: beside
 */


#include "base/prof_clock.h"
#include "scripts/prof_trial.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>


/* ms that a trial may take longer than its limit, on a busy machine */
#define TEST_SLACK  5000


typedef struct {
    uint64_t  numbers[8];
} test_layout_t;


static const char *test_learn(void *data);
static const char *test_refuse(void *data);
static const char *test_fault(void *data);
static const char *test_overflow(void *data);
static const char *test_abort(void *data);
static const char *test_exit(void *data);
static const char *test_hang(void *data);
static const char *test_descriptors(void *data);
static void test_child(int signo);


static const char     test_why[] = "off: not known";
static test_layout_t  test_layout;
static uint32_t       test_changed;
static const char    *(*volatile test_next)(void *data) = test_overflow;
static uint32_t       test_children;
static uint32_t      *test_nowhere;


int
main(void)
{
    int               fd;
    size_t            i;
    uint64_t          began, ms;
    sigset_t          before, after;
    const char       *why;
    struct sigaction  sa;

    static const struct {
        const char   *(*trial)(void *data);
        const char     *name;
        const char     *why;
    } bad[] = {
        { test_refuse, "a layout that is not known", test_why },
        { test_fault, "a fault", "off: its test does not run" },
        { test_overflow, "a recursion without an end",
          "off: its test does not run" },
        { test_abort, "an abort", "off: its test does not run" },
        { test_exit, "an exit", "off: its test does not run" },
        { test_hang, "an endless loop", "off: its test does not end" }
    };

    plan(6 + 3 * sizeof(bad) / sizeof(bad[0]) + 3);

    /* as a server does */

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = test_child;
    (void) sigaction(SIGCHLD, &sa, NULL);

    (void) sigemptyset(&before);
    (void) sigaddset(&before, SIGUSR1);
    (void) sigprocmask(SIG_SETMASK, &before, NULL);

    why = prof_trial(test_learn, &test_layout, &test_layout,
                     sizeof(test_layout));

    ok(why == NULL, "the trial has a result");
    is_int(test_layout.numbers[0], 1, "its first number");
    is_int(test_layout.numbers[7], 8, "its last number");
    is_int(test_changed, 0, "the trial changes nothing else");

    fd = open("/dev/null", O_RDONLY);
    why = prof_trial(test_descriptors, &fd, &test_layout, sizeof(test_layout));
    ok(why == NULL, "the trial has no descriptor of this process");
    ok(fcntl(fd, F_GETFD) != -1, "which keeps its descriptors");

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&test_layout, 0, sizeof(test_layout));
        began = prof_clock(CLOCK_MONOTONIC);

        why = prof_trial(bad[i].trial, &test_layout, &test_layout,
                         sizeof(test_layout));

        ms = (prof_clock(CLOCK_MONOTONIC) - began) / 1000000;

        is_str(why, bad[i].why, "%s: the reason", bad[i].name);
        is_int(test_layout.numbers[0], 0, "%s: there is no result",
               bad[i].name);
        ok(ms < PROF_TRIAL_TIME + TEST_SLACK, "%s: it ends, after %u ms",
           bad[i].name, (unsigned) ms);
    }

    is_int(test_children, 0, "no child sends a signal");
    ok(waitpid(-1, NULL, WNOHANG|__WALL) == -1 && errno == ECHILD,
       "no child is left");

    (void) sigprocmask(SIG_SETMASK, NULL, &after);
    ok(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGSEGV) == 0
       && sigismember(&after, SIGTERM) == 0, "the signal mask is as before");

    return done_testing();
}


static const char *
test_learn(void *data)
{
    uint32_t        i;
    test_layout_t  *layout = data;

    test_changed = 1;

    for (i = 0; i < 8; i++) {
        layout->numbers[i] = i + 1;
    }

    return NULL;
}


static const char *
test_refuse(void *data)
{
    (void) test_learn(data);

    return test_why;
}


static const char *
test_fault(void *data)
{
    (void) test_learn(data);

    *(volatile uint32_t *) test_nowhere = 1;

    return NULL;
}


static const char *
test_overflow(void *data)
{
    char         more[4096];
    const char  *why;

    (void) test_learn(data);

    memset(more, 0, sizeof(more));
    why = test_next(more);

    return more[0] ? NULL : why;
}


static const char *
test_abort(void *data)
{
    (void) test_learn(data);

    abort();
}


static const char *
test_exit(void *data)
{
    (void) test_learn(data);

    _exit(0);
}


static const char *
test_hang(void *data)
{
    (void) test_learn(data);

    while (test_changed) {
        (void) pause();
    }

    return NULL;
}


static const char *
test_descriptors(void *data)
{
    int  *fd = data;

    return fcntl(*fd, F_GETFD) == -1 && write(2, "", 0) == -1 ? NULL : test_why;
}


static void
test_child(int signo)
{
    test_children += (signo == SIGCHLD);
}
