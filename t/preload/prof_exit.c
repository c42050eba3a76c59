
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * For LD_PRELOAD: a process that exits continues for 30 ms of CPU time after
 * nginx has unloaded its modules, as with the destructors of large libraries.
 * Timers that a module has left behind expire in this time.
 */


#include <time.h>


#define PROF_EXIT_MS  30


static long prof_exit_cpu(void);


__attribute__((destructor)) static void
prof_exit_late(void)
{
    long  end;

    end = prof_exit_cpu() + PROF_EXIT_MS;

    while (prof_exit_cpu() < end) { /* void */ }
}


static long
prof_exit_cpu(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
