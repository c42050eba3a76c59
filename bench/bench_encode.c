
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Encodes a profile of 100,000 samples of 22 frames in each format.  Other
 * tools make pictures of the same stacks: flamegraph.pl from the folded text,
 * and pprof from its own format.  Tools that are not installed are left out.
 * Each runs in a process of its own, in alternation, and the best of the
 * rounds is printed:
 *
 *     ms       wall clock; for tools including the start of the interpreter
 *     MB       peak memory; for our formats without the profile itself
 *     bytes    of the output
 *     ratio    time of flamegraph.pl / this time
 *
 * "typical" walks a call tree in which some calls are much more frequent than
 * others, as in real programs.  In "random" nearly all stacks differ.
 */


#include "formats/prof_encode.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


#define BENCH_SAMPLES    100000
#define BENCH_DEPTH      22
#define BENCH_FUNCTIONS  500
#define BENCH_ROUNDS     3
#define BENCH_TASKS      16

#define BENCH_FLAMEGRAPH  "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"


/* a format, or a command that reads a format */

typedef struct {
    const char            *name;
    const prof_encoder_t  *encoder;
    const char            *input;
    const char            *argv[8];
    double                 ms;
    double                 mb;
    size_t                 bytes;
} bench_task_t;


static prof_profile_t *bench_profile(uint32_t fanout);
static uint32_t bench_child(prof_profile_t *p, uint32_t parent,
    uint32_t function, uint32_t *buckets, uint32_t mask);
static uint32_t bench_random(uint32_t n);
static void bench_run(const char *name, prof_profile_t *p);
static size_t bench_tasks(bench_task_t *tasks);
static void bench_one(bench_task_t *t, const prof_profile_t *p);
static void bench_encode(const bench_task_t *t, const prof_profile_t *p,
    int out);
static void bench_exec(const bench_task_t *t);
static void bench_path(char *path, size_t size, const char *name);
static size_t bench_resident(void);
static double bench_now(void);
static void *bench_alloc(size_t n, size_t size);


static char      bench_dir[64];
static uint64_t  bench_seed;


int
main(void)
{
    char             command[128];
    prof_profile_t  *p;

    (void) snprintf(bench_dir, sizeof(bench_dir), "/tmp/bench_encode_XXXXXX");

    if (mkdtemp(bench_dir) == NULL || chdir(bench_dir) == -1) {
        perror("mkdtemp()");
        return 1;
    }

    p = bench_profile(2);
    bench_run("typical", p);
    prof_profile_destroy(p);

    p = bench_profile(BENCH_FUNCTIONS);
    bench_run("random", p);
    prof_profile_destroy(p);

    (void) snprintf(command, sizeof(command), "rm -rf %s", bench_dir);

    return system(command) ? 1 : 0;
}


/* fanout: the number of callees of each function */

static prof_profile_t *
bench_profile(uint32_t fanout)
{
    char             name[64];
    uint32_t         depth, function, i, mask, next, node, *buckets;
    prof_entry_t    *e;
    prof_frame_t    *f;
    prof_profile_t  *p;

    bench_seed = 1;

    p = prof_profile_create("GET /bench");
    if (p == NULL) {
        abort();
    }

    p->frequency = 1000;
    p->frequency_end = 1000;
    p->nobjects = 1;
    p->objects = bench_alloc(1, sizeof(prof_profile_object_t));
    p->objects[0].path = strdup("/usr/sbin/server");
    p->objects[0].build_id = strdup("0d7fd93d");
    p->objects[0].end = UINT32_MAX;

    p->frames = bench_alloc(BENCH_FUNCTIONS, sizeof(prof_frame_t));
    p->nframes = BENCH_FUNCTIONS;

    for (i = 0; i < BENCH_FUNCTIONS; i++) {
        (void) snprintf(name, sizeof(name), "server_module_%u_handler", i);

        f = &p->frames[i];
        f->pc = 0x1000 + 0x100 * i;
        f->function = f->pc;
        f->name = strdup(name);
        f->source = PROF_SOURCE_SYMBOLS;
    }

    p->nodes = bench_alloc(BENCH_SAMPLES * BENCH_DEPTH, sizeof(prof_node_t));

    mask = (1 << 23) - 1;
    buckets = bench_alloc((size_t) mask + 1, sizeof(uint32_t));

    for (i = 0; i < BENCH_SAMPLES; i++) {
        node = PROF_NONE;
        function = 0;

        for (depth = 0; depth < BENCH_DEPTH; depth++) {
            node = bench_child(p, node, function, buckets, mask);

            /*
             * The first callee is three times as frequent as all others
             * together.
             */

            next = bench_random(4) ? 0 : bench_random(fanout);

            if (fanout == BENCH_FUNCTIONS) {
                next = bench_random(fanout);
            }

            function = (function * 7 + 11 * next + 1) % BENCH_FUNCTIONS;
        }

        e = prof_series_add(&p->series[PROF_SERIES_TIME]);
        if (e == NULL) {
            abort();
        }

        e->node = node;
        e->labels = PROF_NONE;
        e->count = 1;
        e->values[PROF_VALUE_WALL] = 1000000;
        e->values[PROF_VALUE_CPU] = 990000;
    }

    free(buckets);

    p->stats.samples = BENCH_SAMPLES;
    p->wall = BENCH_SAMPLES * 1000000ull;
    p->running = p->wall;
    p->cpu = BENCH_SAMPLES * 990000ull;

    return p;
}


static uint32_t
bench_child(prof_profile_t *p, uint32_t parent, uint32_t function,
    uint32_t *buckets, uint32_t mask)
{
    uint32_t      bucket;
    uint64_t      hash;
    prof_node_t  *node;

    hash = (((uint64_t) parent << 32) | function) * 0x9e3779b97f4a7c15;

    for (bucket = (hash >> 32) & mask;
         buckets[bucket];
         bucket = (bucket + 1) & mask)
    {
        node = &p->nodes[buckets[bucket] - 1];

        if (node->parent == parent && node->frame == function) {
            return buckets[bucket] - 1;
        }
    }

    p->nodes[p->nnodes].parent = parent;
    p->nodes[p->nnodes].frame = function;
    buckets[bucket] = ++p->nnodes;

    return p->nnodes - 1;
}


/* a fixed seed: each run has the same numbers */

static uint32_t
bench_random(uint32_t n)
{
    bench_seed = bench_seed * 6364136223846793005 + 1442695040888963407;

    return (bench_seed >> 33) % n;
}


static void
bench_run(const char *name, prof_profile_t *p)
{
    size_t         i, n, round;
    double         base;
    struct stat    st;
    bench_task_t   tasks[BENCH_TASKS];
    char           path[128];

    n = bench_tasks(tasks);

    for (round = 0; round < BENCH_ROUNDS; round++) {
        for (i = 0; i < n; i++) {
            bench_one(&tasks[i], p);
        }
    }

    base = 0;

    for (i = 0; i < n; i++) {
        if (strcmp(tasks[i].name, "flamegraph.pl") == 0) {
            base = tasks[i].ms;
        }
    }

    printf("%s: %u samples of %u frames, %u nodes\n", name,
           p->series[PROF_SERIES_TIME].n, BENCH_DEPTH, p->nnodes);
    printf("%-16s %8s %8s %10s %8s\n", "", "ms", "MB", "bytes", "ratio");

    for (i = 0; i < n; i++) {
        bench_path(path, sizeof(path), tasks[i].name);

        if (stat(path, &st) == 0) {
            tasks[i].bytes = st.st_size;
        }

        printf("%-16s %8.0f %8.0f %10zu", tasks[i].name, tasks[i].ms,
               tasks[i].mb, tasks[i].bytes);

        if (base > 0) {
            printf(" %8.2f", base / tasks[i].ms);
        }

        printf("\n");
    }

    printf("\n");
}


static size_t
bench_tasks(bench_task_t *tasks)
{
    FILE          *f;
    size_t         i, n;
    static char    pprof[PATH_MAX];

    memset(tasks, 0, BENCH_TASKS * sizeof(bench_task_t));

    for (n = 0; prof_encoders[n]; n++) {
        tasks[n].name = prof_encoders[n]->name;
        tasks[n].encoder = prof_encoders[n];
    }

    if (access(BENCH_FLAMEGRAPH, R_OK) == 0) {
        tasks[n].name = "flamegraph.pl";
        tasks[n].input = "folded";
        tasks[n].argv[0] = "perl";
        tasks[n].argv[1] = BENCH_FLAMEGRAPH;
        n++;
    }

    /* pprof itself, without the start of "go" */

    pprof[0] = '\0';

    f = popen("go tool -n pprof 2> /dev/null", "r");

    if (f) {
        if (fgets(pprof, sizeof(pprof), f)) {
            pprof[strcspn(pprof, "\n")] = '\0';
        }

        (void) pclose(f);
    }

    if (pprof[0] == '/') {
        static const char  *reports[] = { "-top", "-raw" };

        for (i = 0; i < 2; i++) {
            tasks[n].name = i ? "go pprof -raw" : "go pprof -top";
            tasks[n].input = "pprof";
            tasks[n].argv[0] = pprof;
            tasks[n].argv[1] = reports[i];
            tasks[n].argv[2] = "-symbolize=none";
            tasks[n].argv[3] = "pprof";
            n++;
        }
    }

    for (i = 0; i < n; i++) {
        tasks[i].ms = 1e9;
    }

    return n;
}


static void
bench_one(bench_task_t *t, const prof_profile_t *p)
{
    int            fd, out[2], status;
    pid_t          pid;
    double         ms, mb, start;
    size_t         base;
    struct rusage  ru;

    if (pipe(out) == -1) {
        abort();
    }

    start = bench_now();

    pid = fork();

    if (pid == 0) {
        if (t->encoder == NULL) {
            bench_exec(t);
        }

        bench_encode(t, p, out[1]);
    }

    close(out[1]);

    if (wait4(pid, &status, 0, &ru) != pid || status != 0) {
        fprintf(stderr, "%s failed\n", t->name);
        exit(1);
    }

    ms = (bench_now() - start) * 1e3;
    mb = ru.ru_maxrss / 1024.0;

    fd = out[0];

    if (t->encoder) {
        if (read(fd, &ms, sizeof(ms)) != sizeof(ms)
            || read(fd, &base, sizeof(base)) != sizeof(base))
        {
            abort();
        }

        mb -= base / 1048576.0;
    }

    close(fd);

    if (ms < t->ms) {
        t->ms = ms;
        t->mb = mb;
    }
}


static void
bench_encode(const bench_task_t *t, const prof_profile_t *p, int out)
{
    int          fd;
    double       ms, start;
    size_t       base;
    prof_buf_t   b;
    char         path[128];

    base = bench_resident();
    start = bench_now();

    prof_buf_init(&b);

    if (t->encoder->encode(p, &b) != PROF_OK) {
        _exit(1);
    }

    ms = (bench_now() - start) * 1e3;

    bench_path(path, sizeof(path), t->name);

    fd = open(path, O_CREAT|O_TRUNC|O_WRONLY, 0600);

    if (fd == -1 || write(fd, b.data, b.len) != (ssize_t) b.len
        || write(out, &ms, sizeof(ms)) != sizeof(ms)
        || write(out, &base, sizeof(base)) != sizeof(base))
    {
        _exit(1);
    }

    _exit(0);
}


static void
bench_exec(const bench_task_t *t)
{
    int   err, in, out;
    char  path[128];

    bench_path(path, sizeof(path), t->name);

    in = open(t->input, O_RDONLY);
    out = open(path, O_CREAT|O_TRUNC|O_WRONLY, 0600);
    err = open("/dev/null", O_WRONLY);

    if (in == -1 || out == -1 || err == -1
        || dup2(in, 0) == -1 || dup2(out, 1) == -1 || dup2(err, 2) == -1)
    {
        _exit(1);
    }

    (void) setenv("HOME", bench_dir, 1);
    (void) execvp(t->argv[0], (char *const *) t->argv);

    _exit(1);
}


static void
bench_path(char *path, size_t size, const char *name)
{
    (void) snprintf(path, size, "%s/%s", bench_dir, name);
}


static size_t
bench_resident(void)
{
    FILE           *f;
    unsigned long   size, resident;

    f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%lu %lu", &size, &resident) != 2) {
        abort();
    }

    fclose(f);

    return resident * (size_t) sysconf(_SC_PAGESIZE);
}


static double
bench_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


static void *
bench_alloc(size_t n, size_t size)
{
    void  *p;

    p = calloc(n, size);
    if (p == NULL) {
        abort();
    }

    return p;
}
