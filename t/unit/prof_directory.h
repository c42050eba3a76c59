
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A directory for a test that compiles objects, and commands in it.
 */


#ifndef _PROF_DIRECTORY_H_INCLUDED_
#define _PROF_DIRECTORY_H_INCLUDED_


#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


static int directory_create(const char *name, const char *source);
static const char *compiler(void);
static int run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *file(const char *name);


static char  dir[256];


/* returns 0 if the directory exists now, with the source in "lib.c" */

static int
directory_create(const char *name, const char *source)
{
    int          rc;
    FILE        *f;
    const char  *tmp;

    tmp = getenv("TMPDIR");

    (void) snprintf(dir, sizeof(dir), "%s/%s.XXXXXX", tmp ? tmp : "/tmp",
                    name);

    if (mkdtemp(dir) == NULL) {
        return 1;
    }

    f = fopen(file("lib.c"), "w");
    if (f == NULL) {
        return 1;
    }

    rc = (fputs(source, f) == EOF);

    return fclose(f) != 0 || rc;
}


static const char *
compiler(void)
{
    return getenv("CC") ? getenv("CC") : "cc";
}


static int
run(const char *fmt, ...)
{
    char     command[4096];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(command, sizeof(command), fmt, args);
    va_end(args);

    return system(command);
}


/* the result is valid until the fourth call after it */

static const char *
file(const char *name)
{
    static char    paths[4][512];
    static size_t  n;

    n = (n + 1) % 4;

    (void) snprintf(paths[n], sizeof(paths[n]), "%s/%s", dir, name);

    return paths[n];
}


#endif /* _PROF_DIRECTORY_H_INCLUDED_ */
