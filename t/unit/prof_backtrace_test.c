
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: unwind
 * runs: beside
 *
 * Compares the walk with glibc's backtrace(), which unwinds with libgcc.
 * Signal handlers take both of the same stacks and compare them frame by
 * frame.  They interrupt a mixture of code at random times.  They also
 * single-step through pieces of it, so every instruction of prologues,
 * epilogues and lazy binding occurs.
 *
 * libgcc stops at code without unwind entries.  The walk continues there by
 * scanning the stack.  Such stacks must end as all others do.  They are rare,
 * except for code that is made at run time.
 */


#include "prof_unwind_fixture.h"

#include "tap.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <time.h>


#if (TAP_SANITIZED)
#define TEST_SAMPLES  10000
#define TEST_STEPS    20000

#else
#define TEST_SAMPLES  100000
#define TEST_STEPS    200000
#endif

/* the number of single steps in a row */

#define TEST_WINDOW   2000

/* eflags: trap after each instruction */

#define TEST_TF       0x100


static void test_load(void);
static void test_fixtures(void);
static void test_lazy_binding(void);
static void test_jit(void);
static void test_mixture(void);
static void work_libc(void);
static int work_compare(const void *one, const void *two);
static void work_deflate(void);
static void work_crypto(void);
static void work_none(void);
static void step_begin(int n);
static void step_end(void);
static void timer_next(void);
static void handler(int signo, siginfo_t *si, void *ctx);
static void compare(const ucontext_t *uc);
static void show(uint32_t n, uint32_t end, void **frame, int m);
static uint32_t random_next(void);


static prof_unwind_t          *unwind;
static prof_walk_cache_t       cache;
static prof_stats_t            stats;
static int                   (*libc_backtrace)(void **buf, int size);
static uintptr_t               pcs[PROF_MAX_DEPTH];
static void                   *want[PROF_MAX_DEPTH];
static timer_t                 timer;
static uint32_t                seed = 1;

/* the handler writes these */
static volatile sig_atomic_t   stepping;    /* remaining instructions */
static volatile uint64_t       compared;
static volatile uint64_t       different;
static volatile uint64_t       scanned;
static volatile uint64_t       incomplete;  /* the number of these stacks */
static volatile uintptr_t      outermost;
static volatile uint64_t       steps;

/* found with dlsym(): the program does not link these libraries */

static int             (*z_compress)(void *dst, unsigned long *len,
                                     const void *src, unsigned long n,
                                     int level);
static int             (*z_uncompress)(void *dst, unsigned long *len,
                                       const void *src, unsigned long n);
static void           *(*c_sha256)(const void *data, size_t n, void *md);
static int             (*c_aes_set_key)(const void *key, int bits,
                                        void *schedule);
static void            (*c_aes_cbc)(const void *in, void *out, size_t n,
                                    const void *schedule, void *iv, int enc);
static void           *(*c_md_ctx_new)(void);
static void            (*c_md_ctx_free)(void *ctx);
static const void     *(*c_md_sha256)(void);
static int             (*c_sign_init)(void *ctx, void *pctx, const void *md,
                                      void *engine, void *key);
static int             (*c_sign)(void *ctx, void *sig, size_t *len,
                                 const void *data, size_t n);
static void             *c_key[2];

static void             *pcre2, *pattern;
static void           *(*p_compile)(const char *pattern, size_t len,
                                    uint32_t options, int *err,
                                    size_t *offset, void *ctx);

static unsigned char     plain[16384];
static unsigned char     packed[32768];


int
main(void)
{
    void              *libc;
    struct sigaction   sa;

#if !(__x86_64__)
    return skip_all("single-steps with an x86-64 flag");
#endif

    if (fixture_valgrind()) {
        return skip_all("valgrind does not single-step");
    }

    /* by handle: a library in between may define its own backtrace() */

    libc = dlopen("libc.so.6", RTLD_LAZY|RTLD_NOLOAD);
    libc_backtrace = libc ? (int (*)(void **, int)) dlsym(libc, "backtrace")
                          : NULL;

    if (libc_backtrace == NULL) {
        return skip_all("no glibc");
    }

    /* the first call loads libgcc */

    (void) libc_backtrace(want, PROF_MAX_DEPTH);

    test_load();

    unwind = prof_unwind_create();

    if (!ok(unwind != NULL, "snapshot")) {
        return done_testing();
    }

    memset(&sa, 0, sizeof(sa));
    sa.sa_sigaction = handler;
    sa.sa_flags = SA_SIGINFO|SA_RESTART;
    sigaddset(&sa.sa_mask, SIGUSR1);
    sigaddset(&sa.sa_mask, SIGALRM);
    sigaddset(&sa.sa_mask, SIGTRAP);

    (void) sigaction(SIGUSR1, &sa, NULL);
    (void) sigaction(SIGALRM, &sa, NULL);
    (void) sigaction(SIGTRAP, &sa, NULL);

    test_fixtures();
    test_lazy_binding();
    test_jit();
    test_mixture();

    diag("%" PRIu64 " stacks, %" PRIu64 " of them single steps, %" PRIu64
         " scanned", compared, steps, scanned);

    prof_unwind_release(unwind);

    return done_testing();
}


static void
test_load(void)
{
    int     i;
    void   *z, *crypto;
    void  *(*keygen)(void *libctx, const char *query, const char *type, ...);

    z = dlopen("libz.so.1", RTLD_LAZY);

    if (z) {
        z_compress = dlsym(z, "compress2");
        z_uncompress = dlsym(z, "uncompress");

    } else {
        diag("no zlib");
    }

    crypto = dlopen("libcrypto.so.3", RTLD_LAZY);

    if (crypto == NULL) {
        diag("no libcrypto");
        return;
    }

    c_sha256 = dlsym(crypto, "SHA256");
    c_aes_set_key = dlsym(crypto, "AES_set_encrypt_key");
    c_aes_cbc = dlsym(crypto, "AES_cbc_encrypt");
    c_md_ctx_new = dlsym(crypto, "EVP_MD_CTX_new");
    c_md_ctx_free = dlsym(crypto, "EVP_MD_CTX_free");
    c_md_sha256 = dlsym(crypto, "EVP_sha256");
    c_sign_init = dlsym(crypto, "EVP_DigestSignInit");
    c_sign = dlsym(crypto, "EVP_DigestSign");
    keygen = dlsym(crypto, "EVP_PKEY_Q_keygen");

    c_key[0] = keygen(NULL, NULL, "RSA", (size_t) 2048);
    c_key[1] = keygen(NULL, NULL, "EC", "P-256");

    for (i = 0; i < 2; i++) {
        ok(c_key[i] != NULL, "the test has key %d", i);
    }
}


static void
test_fixtures(void)
{
    uint32_t  i;
    uint64_t  before;

    static const struct {
        const char  *name;
        fixture_pt   fixture;
    } kind[] = {
        { "no frame pointer", fixture_nofp },
        { "realigned stack", fixture_realign },
        { "CFA behind a pointer", fixture_deref },
        { "CFA in rbx", fixture_rbx },
        { "CFA in rax", fixture_rax },
        { "CFA indexed by r9", fixture_r9 },
        { "lazy binding stub", fixture_plt },
        { "outermost frame", fixture_end }
    };

    for (i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
        before = steps;
        different = 0;
        scanned = 0;

        step_begin(TEST_WINDOW);
        kind[i].fixture(work_none);
        step_end();

        ok(steps - before > 5, "%s: %d steps are taken", kind[i].name,
           (int) (steps - before));
        is_int(different, 0, "%s: all stacks are as libgcc's", kind[i].name);
        is_int(scanned, 0, "%s: no stack is scanned", kind[i].name);
    }
}


/* calls into a library whose functions are bound at their first call */

static void
test_lazy_binding(void)
{
    int        err;
    size_t     offset;
    uint64_t   before;

    pcre2 = dlopen("libpcre2-8.so.0", RTLD_LAZY);

    if (pcre2 == NULL) {
        diag("no libpcre2");
        return;
    }

    prof_unwind_release(unwind);
    memset(&cache, 0, sizeof(cache));
    unwind = prof_unwind_create();

    p_compile = dlsym(pcre2, "pcre2_compile_8");

    before = steps;
    different = 0;
    scanned = 0;

    step_begin(20 * TEST_WINDOW);
    pattern = p_compile("^/(a|b+)[0-9]{2,}", 17, 0, &err, &offset, NULL);
    step_end();

    ok(steps - before > TEST_WINDOW, "lazy binding: %d steps are taken",
       (int) (steps - before));
    is_int(different, 0, "lazy binding: all stacks are as libgcc's");
    is_int(scanned, 0, "lazy binding: no stack is scanned");
}


static void
test_jit(void)
{
    int        i;
    void      *match;
    uint64_t   before;
    int      (*jit_compile)(void *code, uint32_t options);
    void    *(*match_create)(void *code, void *ctx);
    void     (*match_free)(void *match);
    int      (*run)(void *code, const void *text, size_t len, size_t start,
                    uint32_t options, void *match, void *ctx);
    void     (*code_free)(void *code);

    if (pcre2 == NULL) {
        return;
    }

    jit_compile = dlsym(pcre2, "pcre2_jit_compile_8");
    match_create = dlsym(pcre2, "pcre2_match_data_create_from_pattern_8");
    match_free = dlsym(pcre2, "pcre2_match_data_free_8");
    run = dlsym(pcre2, "pcre2_match_8");
    code_free = dlsym(pcre2, "pcre2_code_free_8");

    if (jit_compile(pattern, 1) != 0) {
        diag("libpcre2 has no JIT compiler");
        code_free(pattern);
        return;
    }

    match = match_create(pattern, NULL);

    different = 0;
    scanned = 0;
    incomplete = 0;
    before = steps;

    step_begin(20 * TEST_WINDOW);

    for (i = 0; i < 100; i++) {
        (void) run(pattern, "/abbbbbbbbbbbbbbbb/bbbbbbb123", 29, i % 20, 0,
                   match, NULL);
    }

    step_end();

    ok(scanned > 100, "JIT: %d of %d steps are in it", (int) scanned,
       (int) (steps - before));
    is_int(incomplete, 0, "JIT: all stacks are complete");
    is_int(different, 0, "JIT: other stacks are as libgcc's");

    match_free(match);
    code_free(pattern);
}


static void
test_mixture(void)
{
    size_t            i;
    struct sigevent   ev;

    for (i = 0; i < sizeof(plain); i++) {
        plain[i] = "abcdefghijklmnopqrstuvwxyz\n ,.;"[random_next() % 32];
    }

    memset(&ev, 0, sizeof(ev));
    ev.sigev_notify = SIGEV_SIGNAL;
    ev.sigev_signo = SIGALRM;

    if (timer_create(CLOCK_MONOTONIC, &ev, &timer) == -1) {
        perror("timer_create");
        exit(1);
    }

    compared = 0;
    different = 0;
    steps = 0;
    scanned = 0;
    incomplete = 0;

    timer_next();

    while (compared - steps < TEST_SAMPLES || steps < TEST_STEPS) {
        work_libc();
        work_deflate();
        work_crypto();
    }

    (void) timer_delete(timer);

    ok(compared - steps >= TEST_SAMPLES, "%d samples are taken",
       (int) (compared - steps));
    ok(steps >= TEST_STEPS, "%d single steps are taken", (int) steps);
    is_int(different, 0, "all stacks are as libgcc's");
    ok(scanned < compared / 1000, "%d stacks meet code without entries",
       (int) scanned);

    /* a few stacks: the scan finds their callers by probability */

    ok(incomplete <= 1 + scanned / 10, "all of them but %d are complete",
       (int) incomplete);
}


static void
work_libc(void)
{
    int     v[1000];
    char    text[256], copy[256];
    size_t  i;

    for (i = 0; i < 1000; i++) {
        v[i] = (int) random_next();
    }

    qsort(v, 1000, sizeof(int), work_compare);

    for (i = 0; i < 100; i++) {
        snprintf(text, sizeof(text), "%d %s %.3f %p %lx", v[i], "text",
                 v[i] / 7.0, (void *) text, (long) v[i]);
        memcpy(copy, text, sizeof(copy));
        free(strdup(copy));
        (void) strtod(copy, NULL);
    }
}


static __attribute__((noinline)) int
work_compare(const void *one, const void *two)
{
    const int *a = one;
    const int *b = two;

    return (*a > *b) - (*a < *b);
}


static void
work_deflate(void)
{
    unsigned long  n, len;

    if (z_compress == NULL) {
        return;
    }

    n = sizeof(packed);
    z_compress(packed, &n, plain, sizeof(plain), 1 + random_next() % 9);

    len = sizeof(plain);
    z_uncompress(plain, &len, packed, n);
}


static void
work_crypto(void)
{
    int            i;
    void          *ctx;
    size_t         len;
    unsigned char  md[64], iv[16], sig[512], schedule[512];

    if (c_sha256 == NULL) {
        return;
    }

    c_sha256(plain, sizeof(plain), md);

    memset(iv, 0, sizeof(iv));
    c_aes_set_key(md, 128, schedule);
    c_aes_cbc(plain, packed, sizeof(plain), schedule, iv, 1);

    for (i = 0; i < 2; i++) {
        ctx = c_md_ctx_new();
        len = sizeof(sig);

        c_sign_init(ctx, NULL, c_md_sha256(), NULL, c_key[i]);
        c_sign(ctx, sig, &len, plain, sizeof(plain));

        c_md_ctx_free(ctx);
    }
}


static void
work_none(void)
{
    __asm__ volatile("");
}


static void
step_begin(int n)
{
    stepping = n;
    raise(SIGUSR1);
}


static void
step_end(void)
{
    stepping = 0;
}


static void
timer_next(void)
{
    struct itimerspec  its;

    memset(&its, 0, sizeof(its));
    its.it_value.tv_nsec = 10000 + random_next() % 60000;

    (void) timer_settime(timer, 0, &its, NULL);
}


static void
handler(int signo, siginfo_t *si, void *ctx)
{
    int          err;
    ucontext_t  *uc;

    err = errno;
    uc = ctx;

    if (signo != SIGUSR1) {
        compare(uc);
    }

    if (signo == SIGALRM) {
        timer_next();

        if (stepping == 0 && steps < TEST_STEPS && random_next() % 256 == 0) {
            stepping = TEST_WINDOW;
        }
    }

    if (signo == SIGTRAP) {
        steps++;

        if (stepping) {
            stepping--;
        }
    }

#if (__x86_64__)

    if (stepping) {
        uc->uc_mcontext.gregs[REG_EFL] |= TEST_TF;

    } else {
        uc->uc_mcontext.gregs[REG_EFL] &= ~TEST_TF;
    }

#endif

    errno = err;
}


static void
compare(const ucontext_t *uc)
{
    int       i, m;
    uint32_t  n, end;
    uint64_t  before;

    before = stats.scanned;

    n = prof_walk(unwind, &cache, uc, (uintptr_t) __libc_stack_end, pcs,
                  PROF_MAX_DEPTH, &stats, &end);

    compared++;

    if (stats.scanned != before) {
        scanned++;

        if (end != 0 || pcs[n - 1] != outermost) {
            incomplete++;
        }

        return;
    }

    m = libc_backtrace(want, PROF_MAX_DEPTH);

    /* the frames of the handler and of the trampoline come first */

    for (i = 0; i < m && (uintptr_t) want[i] != pcs[0]; i++) { /* void */ }

    if (end != 0 || n == 0 || m - i != (int) n
        || memcmp(pcs, want + i, n * sizeof(uintptr_t)) != 0)
    {
        if (different++ < 3) {
            show(n, end, want + i, m - i);
        }

        return;
    }

    outermost = pcs[n - 1];
}


static void
show(uint32_t n, uint32_t end, void **frame, int m)
{
    Dl_info   info;
    uint32_t  i;

    diag("walk: %u frames, end %u; libgcc: %d frames", n, end, m);

    for (i = 0; i < n || (int) i < m; i++) {
        memset(&info, 0, sizeof(info));

        if (i < n) {
            (void) dladdr((void *) pcs[i], &info);
        }

        diag("%#18lx %18p %s %s", (i < n) ? (unsigned long) pcs[i] : 0,
             ((int) i < m) ? frame[i] : NULL,
             info.dli_fname ? info.dli_fname : "",
             info.dli_sname ? info.dli_sname : "");
    }
}


/* the sequence is the same in each run, the interrupted code is not */

static uint32_t
random_next(void)
{
    seed = seed * 1664525 + 1013904223;

    return seed >> 8;
}
