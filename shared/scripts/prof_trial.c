
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_fds.h"
#include "scripts/prof_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>


/* of the handler of faults: the trial may have used up its own stack */
#define PROF_TRIAL_STACK  32768


typedef struct {
    const char  *why;           /* a text of the program, which is at the same
                                   address in both processes */
    uint8_t      result[PROF_TRIAL_RESULT];
} prof_trial_answer_t;


static void prof_trial_begin(int fd, void *stack);
static void prof_trial_fault(int signo);


const char *
prof_trial(const char *(*trial)(void *data), void *data, void *result,
    size_t size)
{
    int                  fds[2];
    pid_t                pid;
    ssize_t              n;
    sigset_t             all, old;
    struct pollfd        pfd;
    prof_trial_answer_t  answer;
    uint8_t              stack[PROF_TRIAL_STACK];

    if (pipe2(fds, O_CLOEXEC) == -1) {
        return "off: there is no descriptor for its test";
    }

    /* signals of this process do not run handlers in the child */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    /*
     * Works as fork(), but the end of the child sends no signal.  A server
     * reaps its children in a handler of SIGCHLD, and logs unknown ones.
     */

    pid = (pid_t) syscall(SYS_clone, 0L, NULL, NULL, NULL, 0L);

    if (pid == 0) {
        prof_trial_begin(fds[1], stack);

        memset(&answer, 0, sizeof(answer));

        answer.why = trial(data);
        memcpy(answer.result, result, size);

        n = write(0, &answer, sizeof(answer));

        _exit(n == (ssize_t) sizeof(answer) ? 0 : 1);
    }

    close(fds[1]);

    answer.why = "off: there is no process for its test";

    if (pid > 0) {
        pfd.fd = fds[0];
        pfd.events = POLLIN;

        if (poll(&pfd, 1, PROF_TRIAL_TIME) != 1) {
            answer.why = "off: its test does not end";

        } else if (read(fds[0], &answer, sizeof(answer))
                   != (ssize_t) sizeof(answer))
        {
            answer.why = "off: its test does not run";
        }

        (void) kill(pid, SIGKILL);

        while (waitpid(pid, NULL, __WCLONE) == -1 && errno == EINTR) {
            /* void */
        }
    }

    close(fds[0]);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (answer.why == NULL) {
        memcpy(result, answer.result, size);
    }

    return answer.why;
}


/* the answer goes to descriptor 0, which is the only one */

static void
prof_trial_begin(int fd, void *stack)
{
    size_t            i;
    stack_t           ss;
    sigset_t          set;
    struct rlimit     limit;
    struct sigaction  sa;

    static const int  faults[] = {
        SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS
    };

    /* a child does not outlive the process that waits for it */

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);

    limit.rlim_cur = 1 + PROF_TRIAL_TIME / 1000;
    limit.rlim_max = limit.rlim_cur;
    (void) setrlimit(RLIMIT_CPU, &limit);

    limit.rlim_cur = 0;
    limit.rlim_max = 0;
    (void) setrlimit(RLIMIT_CORE, &limit);

    /* the kernel logs a fault that no handler takes */

    memset(&ss, 0, sizeof(ss));
    ss.ss_sp = stack;
    ss.ss_size = PROF_TRIAL_STACK;
    (void) sigaltstack(&ss, NULL);

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = prof_trial_fault;
    sa.sa_flags = SA_ONSTACK;
    (void) sigemptyset(&set);

    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void) sigaction(faults[i], &sa, NULL);
        (void) sigaddset(&set, faults[i]);
    }

    (void) pthread_sigmask(SIG_UNBLOCK, &set, NULL);

    if (dup2(fd, 0) == -1) {
        _exit(1);
    }

    prof_fds_close(1);
}


static void
prof_trial_fault(int signo)
{
    (void) signo;

    _exit(1);
}
