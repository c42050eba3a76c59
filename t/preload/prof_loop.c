
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Preloaded into nginx, this library has a loop in C, which a script calls.  It
 * ends when the file exists.
 */


#include <unistd.h>


void prof_endless_c_loop(const char *file);

volatile unsigned  prof_loop_count;


void
prof_endless_c_loop(const char *file)
{
    do {
        while (++prof_loop_count % 10000000) {
            /* void */
        }

    } while (access(file, F_OK) == -1);
}
