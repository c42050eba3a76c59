
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Test functions for unit tests written in C.  A test is a program that prints
 * TAP ("Test Anything Protocol"), so prove runs it as any other test:
 *
 *     int
 *     main(void)
 *     {
 *         is_int(1 + 1, 2, "addition");
 *         return done_testing();
 *     }
 *
 * Every assertion returns whether it holds, and prints the actual value if it
 * does not.  A program without assertions fails.
 */


#ifndef _TAP_H_INCLUDED_
#define _TAP_H_INCLUDED_


#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define TAP_UNUSED  __attribute__((unused))

/*
 * Whether the address sanitizer is on: gcc defines a macro, clang has a
 * function.  The sanitizer has an allocator of its own.
 */

#if (__SANITIZE_ADDRESS__)
#define TAP_SANITIZED  1

#elif (defined(__has_feature))
#define TAP_SANITIZED  __has_feature(address_sanitizer)

#else
#define TAP_SANITIZED  0
#endif

/* of one program, in valgrind or with sanitizers, too */
#define TAP_SECONDS  900

/* a failure is reported with the file and line of the assertion */

#define ok(cond, ...)                                                         \
    tap_ok(__FILE__, __LINE__, (cond) ? 1 : 0, __VA_ARGS__)

#define is_int(got, want, ...)                                                \
    tap_is_int(__FILE__, __LINE__, (int64_t) (got), (int64_t) (want),         \
               __VA_ARGS__)

#define is_str(got, want, ...)                                                \
    tap_is_str(__FILE__, __LINE__, got, want, __VA_ARGS__)

#define is_mem(got, want, len, ...)                                           \
    tap_is_mem(__FILE__, __LINE__, got, want, len, __VA_ARGS__)


TAP_UNUSED static int   tap_planned = -1;
TAP_UNUSED static int   tap_tests;
TAP_UNUSED static int   tap_failed;


TAP_UNUSED static void plan(int n);
TAP_UNUSED static int done_testing(void);
TAP_UNUSED static int skip_all(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
TAP_UNUSED static void diag(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
TAP_UNUSED static int tap_ok(const char *file, int line, int cond,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
TAP_UNUSED static int tap_is_int(const char *file, int line, int64_t got,
    int64_t want, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
TAP_UNUSED static int tap_is_str(const char *file, int line, const char *got,
    const char *want, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
TAP_UNUSED static int tap_is_mem(const char *file, int line, const void *got,
    const void *want, size_t len, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
TAP_UNUSED static int tap_result(const char *file, int line, int cond,
    const char *fmt, va_list args);
TAP_UNUSED static void tap_dump(const char *name, const void *data,
    size_t len);


/* a test that hangs fails, and does not hold up the tests behind it */

__attribute__((constructor)) static void
tap_limit(void)
{
    (void) alarm(TAP_SECONDS);
}


/* optional: detects a program that ended too early, even with the status 0 */

static void
plan(int n)
{
    tap_planned = n;

    printf("1..%d\n", n);
    fflush(stdout);
}


/* returns the exit status for main() */

static int
done_testing(void)
{
    if (tap_planned == -1) {
        printf("1..%d\n", tap_tests);

    } else if (tap_planned != tap_tests) {
        diag("planned %d tests but ran %d", tap_planned, tap_tests);
        return 1;
    }

    if (tap_tests == 0) {
        diag("no assertions were made");
        return 1;
    }

    if (tap_failed) {
        diag("failed %d of %d tests", tap_failed, tap_tests);
        return 1;
    }

    return 0;
}


/* in place of all tests: return skip_all("no such kernel"); */

static int
skip_all(const char *fmt, ...)
{
    va_list  args;

    printf("1..0 # SKIP ");

    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);

    printf("\n");
    fflush(stdout);

    return 0;
}


static void
diag(const char *fmt, ...)
{
    va_list  args;

    fflush(stdout);
    fprintf(stderr, "# ");

    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);

    fprintf(stderr, "\n");
}


static int
tap_ok(const char *file, int line, int cond, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    tap_result(file, line, cond, fmt, args);
    va_end(args);

    return cond;
}


static int
tap_is_int(const char *file, int line, int64_t got, int64_t want,
    const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    tap_result(file, line, got == want, fmt, args);
    va_end(args);

    if (got != want) {
        diag("     got: %" PRId64 " (0x%" PRIx64 ")", got, (uint64_t) got);
        diag("expected: %" PRId64 " (0x%" PRIx64 ")", want, (uint64_t) want);
    }

    return got == want;
}


static int
tap_is_str(const char *file, int line, const char *got, const char *want,
    const char *fmt, ...)
{
    int      equal;
    va_list  args;

    if (got == NULL || want == NULL) {
        equal = (got == want);

    } else {
        equal = (strcmp(got, want) == 0);
    }

    va_start(args, fmt);
    tap_result(file, line, equal, fmt, args);
    va_end(args);

    if (!equal) {
        diag("     got: %s%s%s", got ? "\"" : "", got ? got : "NULL",
             got ? "\"" : "");
        diag("expected: %s%s%s", want ? "\"" : "", want ? want : "NULL",
             want ? "\"" : "");
    }

    return equal;
}


static int
tap_is_mem(const char *file, int line, const void *got, const void *want,
    size_t len, const char *fmt, ...)
{
    int      equal;
    va_list  args;

    equal = (memcmp(got, want, len) == 0);

    va_start(args, fmt);
    tap_result(file, line, equal, fmt, args);
    va_end(args);

    if (!equal) {
        tap_dump("     got", got, len);
        tap_dump("expected", want, len);
    }

    return equal;
}


static int
tap_result(const char *file, int line, int cond, const char *fmt,
    va_list args)
{
    tap_tests++;

    printf("%sok %d - ", cond ? "" : "not ", tap_tests);
    vprintf(fmt, args);
    printf("\n");

    /* the output before a crash must not be lost */
    fflush(stdout);

    if (!cond) {
        tap_failed++;
        diag("failed at %s line %d", file, line);
    }

    return cond;
}


static void
tap_dump(const char *name, const void *data, size_t len)
{
    size_t                i;
    const unsigned char  *p;

    p = data;

    fprintf(stderr, "# %s:", name);

    for (i = 0; i < len && i < 64; i++) {
        fprintf(stderr, " %02x", p[i]);
    }

    fprintf(stderr, "%s\n", i < len ? " ..." : "");
}


#endif /* _TAP_H_INCLUDED_ */
