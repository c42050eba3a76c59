
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: scripts
 * runs: beside
 *
 * Names of functions of scripts: keys of places, and what profiles and formats
 * show of them.
 */


#include "tap.h"

#include "archive/prof_archive.h"
#include "capture/prof_capture.h"
#include "formats/prof_encode.h"
#include "prof_finish.h"
#include "prof_pprof_reader.h"
#include "names/prof_symbolize.h"
#include "profile/prof_merge.h"
#include "scripts/prof_scripts.h"
#include "stacks/prof_marks.h"
#include "stacks/prof_tree.h"
#include "views/prof_kind.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>


#define PLACES   1000
#define THREADS  4


static uintptr_t test_key(const char *file, uint32_t line,
    const char *function, uint32_t start_line);
static void test_places(void);
static void test_keys(void);
static void test_long(void);
static void test_full(void);
static void test_draft(void);
static prof_profile_t *test_capture(uint32_t pid);
static void test_signal(void);
static void test_handler(int signo);
static uint32_t test_add(uint32_t round);
static void test_threads(void);
static void *test_thread(void *data);
static prof_profile_t *test_profile(uint32_t pid);
static void test_formats(void);
static int test_contains(const prof_profile_t *p,
    const prof_encoder_t *encoder, const char *text);
static void test_merge(void);


static prof_stats_t  test_stats;


int
main(void)
{
    if (prof_process_init() != PROF_OK) {
        abort();
    }

    test_places();
    test_keys();
    test_long();
    test_signal();
    test_threads();
    test_formats();
    test_merge();
    test_full();
    test_draft();

    return done_testing();
}


static uintptr_t
test_key(const char *file, uint32_t line, const char *function,
    uint32_t start_line)
{
    prof_script_t  s;

    s.file = file;
    s.file_len = file ? strlen(file) : 0;
    s.function = function;
    s.function_len = function ? strlen(function) : 0;
    s.line = line;
    s.start_line = start_line;

    return prof_script_key(&s, &test_stats);
}


static void
test_places(void)
{
    uint32_t       i, k, same;
    uintptr_t      keys[7];
    prof_script_t  s;

    keys[0] = test_key("/srv/app.lua", 40, "handler", 38);
    keys[1] = test_key("/srv/app.lua", 41, "handler", 38);
    keys[2] = test_key("/srv/app.lua", 40, "handler", 37);
    keys[3] = test_key("/srv/app.lu", 40, "ahandler", 38);
    keys[4] = test_key("/srv/app.lua", 40, NULL, 38);
    keys[5] = test_key(NULL, 0, "handler", 0);
    keys[6] = test_key(NULL, 0, NULL, 0);

    same = 0;

    for (i = 0; i < 7; i++) {
        for (k = 0; k < i; k++) {
            same += keys[i] == keys[k];
        }
    }

    is_int(same, 0, "different places have different keys");
    ok(test_key("/srv/app.lua", 40, "handler", 38) == keys[0],
       "the same place has the same key");

    is_int(prof_script_find(keys[0], &s), PROF_OK, "a key has a place");
    is_int(s.line, 40, "a place has its line");
    is_int(s.start_line, 38, "a place has the line of its function");
    ok(s.file_len == 12 && memcmp(s.file, "/srv/app.lua", 12) == 0,
       "a place has its file");
    ok(s.function_len == 7 && memcmp(s.function, "handler", 7) == 0,
       "a place has its function");

    is_int(prof_script_find(PROF_FRAME_SCRIPT, &s), PROF_ERROR,
           "the key of an unknown function has no place");
    is_int(prof_script_find(PROF_FRAME_SCRIPT | 0xffffff, &s), PROF_ERROR,
           "a number that was not given has no place");
    is_int(prof_script_find(keys[0] | 1 << 24, &s), PROF_ERROR,
           "a key of a later table has no place");

    is_int(test_stats.lost_scripts, 0, "nothing is lost");
}


/* a sample with keys between addresses, as a handler makes it */

static void
test_keys(void)
{
    uintptr_t             key;
    prof_marks_t          marks;
    prof_unwind_t        *u;
    prof_sample_t        *sample;
    static char           memory[PROF_SAMPLE_MAX]
                              __attribute__((aligned(8)));

    key = test_key("/srv/app.lua", 40, "handler", 38);

    ok(prof_frame_is_script(key), "a key is one of a script");
    ok(!prof_frame_is_name(key), "a key is not a name");
    ok(!prof_frame_is_script((uintptr_t) test_keys), "code is no script");
    ok(!prof_frame_is_script(0xffffffff81000000), "the kernel is no script");
    ok(prof_key_pc(prof_key(key, 0)) == key
       && prof_key_pc(prof_key(key, 1)) == key,
       "a call tree keeps a key");

    u = prof_unwind_create();

    memset(&marks, 0, sizeof(prof_marks_t));
    prof_marks_add(&marks, prof_process_unwind());
    prof_marks_add(&marks, u);

    sample = (prof_sample_t *) memory;
    sample->nframes = 3;
    sample->end = 0;
    sample->pcs[0] = key;
    sample->pcs[1] = (uintptr_t) test_keys + 1;
    sample->pcs[2] = key;

    prof_marks_stack(&marks, sample);

    ok(sample->nframes == 3 && sample->pcs[0] == key && sample->pcs[2] == key,
       "marks leave keys as they are");
    ok(prof_unwind_object(u, key) == NULL, "a key is in no object");

    prof_unwind_release(u);
}


static void
test_long(void)
{
    char           file[1000], function[1000];
    prof_script_t  s;

    memset(file, 'f', sizeof(file));
    memset(function, 'g', sizeof(function));
    memcpy(file + sizeof(file) - 5, "/tail", 5);
    memcpy(function, "head", 4);
    function[4] = '\0';

    s.file = file;
    s.file_len = sizeof(file);
    s.function = function;
    s.function_len = sizeof(function);
    s.line = 1;
    s.start_line = 1;

    is_int(prof_script_find(prof_script_key(&s, &test_stats), &s), PROF_OK,
           "a place with long texts has a key");
    is_int(s.file_len, PROF_SCRIPT_TEXT_MAX, "a long path is cut");
    is_mem(s.file + s.file_len - 5, "/tail", 5,
    "a long file name keeps its end");
    is_int(s.function_len, PROF_SCRIPT_TEXT_MAX, "a long name is cut");
    is_mem(s.function, "head\0g", 6, "a long function name keeps its start");
}


static volatile uint32_t  test_round;
static volatile uint32_t  test_interrupts;
static volatile uint32_t  test_wrong;


/* the handler uses the places that the interrupted code adds now */

static void
test_signal(void)
{
    uint32_t          wrong;
    struct itimerval  timer;

    memset(&timer, 0, sizeof(timer));

    (void) signal(SIGALRM, test_handler);

    wrong = 0;

    /* one signal for each round: a slow handler must not begin again */

    while (test_interrupts < 2000) {
        test_round++;

        timer.it_value.tv_usec = 1 + test_round % 100;
        (void) setitimer(ITIMER_REAL, &timer, NULL);

        wrong += test_add(test_round % 8);
    }

    memset(&timer, 0, sizeof(timer));
    (void) setitimer(ITIMER_REAL, &timer, NULL);

    is_int(wrong, 0, "a signal: interrupted calls give the right places");
    is_int(test_wrong, 0,
           "a signal: calls in the handler give the right places");
}


static void
test_handler(int signo)
{
    test_wrong += test_add(test_round % 8 + (signo != SIGALRM));
    test_interrupts++;
}


/* returns how many places were wrong, not how many found the lock taken */

static uint32_t
test_add(uint32_t round)
{
    char           file[16];
    uint32_t       i, wrong;
    uintptr_t      key;
    prof_stats_t   st;
    prof_script_t  s, found;

    wrong = 0;
    st.lost_scripts = 0;

    for (i = 0; i < PLACES; i++) {

        memcpy(file, "/srv/a00000.lua", 16);
        file[6] += i / 1000 % 10;
        file[7] += i / 100 % 10;
        file[8] += i / 10 % 10;
        file[9] += i % 10;

        s.file = file;
        s.file_len = 15;
        s.function = file + 5;
        s.function_len = 5;
        s.line = i;
        s.start_line = round;

        key = prof_script_key(&s, &st);

        if (key == PROF_FRAME_SCRIPT) {
            wrong += st.lost_scripts == 0;
            continue;
        }

        if (prof_script_find(key, &found) != PROF_OK
            || found.line != i || found.start_line != round
            || found.file_len != 15 || memcmp(found.file, file, 15)
            || found.function_len != 5 || memcmp(found.function, file + 5, 5))
        {
            wrong++;
        }
    }

    return wrong;
}


static void
test_threads(void)
{
    void      *data;
    uint32_t   i, wrong;
    pthread_t  threads[THREADS];

    wrong = 0;

    for (i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, test_thread, NULL) != 0) {
            abort();
        }
    }

    for (i = 0; i < THREADS; i++) {
        (void) pthread_join(threads[i], &data);
        wrong += (uintptr_t) data;
    }

    is_int(wrong, 0, "threads: all places are right");
}


static void *
test_thread(void *data)
{
    uint32_t  wrong;

    wrong = test_add(100);

    return (char *) data + wrong;
}


/* a script in a gap, and one that has no name */

static prof_profile_t *
test_profile(uint32_t pid)
{
    prof_profile_t  *p;

    p = test_capture(pid);

    if (prof_profile_symbolize(p) != PROF_OK) {
        abort();
    }

    return p;
}


/* returns a draft */

static prof_profile_t *
test_capture(uint32_t pid)
{
    uintptr_t             frames[4];
    prof_capture_t       *c;
    prof_profile_t       *p;
    prof_capture_conf_t   conf;

    conf.frequency = 1000;
    conf.mode = PROF_MODE_WALL;
    conf.memory = PROF_MEMORY_MIN;

    c = prof_capture_create(&conf);
    if (c == NULL) {
        abort();
    }

    prof_capture_begin(c, prof_now() - 1000000);

    frames[0] = test_key("/usr/share/lua/redis.lua", 212, "get", 200);
    frames[1] = test_key("/srv/app.lua", 40, NULL, 38);
    frames[2] = test_key("content_by_lua(conf/nginx.conf:9)", 3, "main", pid);
    frames[3] = prof_capture_name(c, "script socket", 13);

    prof_capture_gap(c, frames, 4, prof_now() - 500000);

    frames[0] = test_key("/srv/app.lua", 42, "last", 38);
    frames[1] = PROF_FRAME_SCRIPT;

    prof_capture_gap(c, frames, 2, 0);

    p = prof_capture_finish(c, "test");

    prof_capture_destroy(c);

    if (p == NULL) {
        abort();
    }

    return p;
}


static void
test_formats(void)
{
    uint32_t         i;
    prof_buf_t       b;
    prof_frame_t    *f;
    prof_profile_t  *p, *read;
    Prof__Profile   *pb;

    p = test_profile(1);

    for (i = 0; strcmp(p->frames[i].name, "get") != 0; i++) { /* void */ }

    f = &p->frames[i];

    is_int(f->type, PROF_TYPE_SCRIPT, "profile: the frame has its type");
    is_int(f->source, PROF_SOURCE_SCRIPT,
           "profile: the frame has its source");
    is_str(f->file, "/usr/share/lua/redis.lua",
           "profile: the frame has its file");
    is_int(f->line, 212, "profile: the frame has its line");
    is_int(f->start_line, 200,
           "profile: the frame has the line of its function");
    is_int(f->object, PROF_NONE, "profile: the frame has no object");
    is_int(prof_kind(p, f), PROF_KIND_SCRIPT,
           "profile: the frame has its kind");

    prof_buf_init(&b);

    if (prof_archive_write(p, &b) != PROF_OK) {
        abort();
    }

    prof_profile_destroy(p);
    read = prof_archive_read(b.data, b.len, NULL);
    prof_buf_free(&b);

    ok(read != NULL, "an archive keeps the profile");

    ok(test_contains(read, &prof_encode_folded,
                     "[waiting];script socket;"
                     "content_by_lua(conf/nginx.conf:9):3 main;"
                     "app.lua:40 function at line 38;redis.lua:212 get "),
       "folded: the stack has the functions");
    ok(test_contains(read, &prof_encode_folded,
                     "[waiting];[script];app.lua:42 last "),
       "folded: a function that is not known");
    ok(test_contains(read, &prof_encode_speedscope,
                     "{\"name\":\"redis.lua:212 get\","
                     "\"file\":\"/usr/share/lua/redis.lua\",\"line\":212,"
                     "\"source\":\"script\"}"),
       "speedscope: the frame has its line");
    ok(test_contains(read, &prof_encode_svg, ">redis.lua:212 get"),
       "svg: the box has the name");
    ok(test_contains(read, &prof_encode_html,
                     "<svg class=\"chip w\" aria-hidden=\"true\">"
                     "<rect width=\"100%\" height=\"100%\"/></svg><code>"
                     "redis.lua:212 get"),
       "html: the table has the name");

    pb = pprof_decode(read);

    for (i = 0;
         i < pb->n_function
         && strcmp(pprof_str(pb, pb->function[i]->name), "get") != 0;
         i++)
    {
        /* void */
    }

    ok(i < pb->n_function, "pprof: the function exists");
    is_str(pprof_str(pb, pb->function[i]->filename),
           "/usr/share/lua/redis.lua", "pprof: the function has its file");
    is_int(pb->function[i]->start_line, 200,
           "pprof: the function has its line");

    for (i = 0;
         i < pb->n_location
         && (pb->location[i]->n_line == 0
             || pb->location[i]->line[0]->line != 212);
         i++)
    {
        /* void */
    }

    ok(i < pb->n_location, "pprof: a location has the line");

    prof__profile__free_unpacked(pb, NULL);
    prof_profile_destroy(read);
}


static int
test_contains(const prof_profile_t *p, const prof_encoder_t *encoder,
    const char *text)
{
    int         found;
    prof_buf_t  b;

    prof_buf_init(&b);

    if (encoder->encode(p, &b) != PROF_OK) {
        abort();
    }

    prof_buf_append(&b, "", 1);
    found = strstr(b.data, text) != NULL;

    if (!found) {
        diag("%.2000s", b.data);
    }

    prof_buf_free(&b);

    return found;
}


static void
test_merge(void)
{
    uint32_t               i, main, get;
    prof_profile_t        *merged;
    const prof_profile_t  *profiles[2];

    profiles[0] = test_profile(1);
    profiles[1] = test_profile(2);

    merged = prof_profile_merge(profiles, NULL, 2, "merged", 0);

    main = 0;
    get = 0;

    for (i = 0; i < merged->nframes; i++) {
        main += strcmp(merged->frames[i].name, "main") == 0;
        get += strcmp(merged->frames[i].name, "get") == 0;
    }

    is_int(get, 1, "merged: a place of two profiles is one frame");
    is_int(main, 2, "merged: functions that begin at other lines differ");

    prof_profile_destroy((prof_profile_t *) profiles[0]);
    prof_profile_destroy((prof_profile_t *) profiles[1]);
    prof_profile_destroy(merged);
}


static void
test_full(void)
{
    uint32_t              i;
    uintptr_t             first, key;
    prof_stats_t          st;
    prof_script_t         s;

    first = test_key("/srv/app.lua", 40, "handler", 38);
    key = first;
    prof_process_hold();

    for (i = 0; test_stats.lost_scripts == 0 && i < 1000000; i++) {
        key = test_key("/srv/full.lua", i, "handler", 38);
    }

    ok(i > 4000, "thousands of places have room");
    ok(key == PROF_FRAME_SCRIPT,
       "without room a place has the key of an unknown function");
    ok(test_key("/srv/app.lua", 40, "handler", 38) == first,
       "a full table still finds its places");

    prof_process_hold();
    prof_process_release();

    is_int(prof_script_find(first, &s), PROF_OK,
           "a table that is held is not emptied");

    prof_process_release();
    prof_process_hold();

    is_int(prof_script_find(first, &s), PROF_ERROR,
           "a table that nobody held is emptied");

    st = test_stats;
    key = test_key("/srv/new.lua", 1, "handler", 38);

    is_int(prof_script_find(key, &s), PROF_OK,
           "the emptied table takes a new place");
    is_int(test_stats.lost_scripts, st.lost_scripts,
           "the emptied table loses no place");
    is_int(prof_script_find(first, &s), PROF_ERROR,
           "an old key does not find a new place");

    prof_process_release();
}


/* the names of a draft remain, also when the table needs their space */

static void
test_draft(void)
{
    uint32_t         i, known;
    prof_profile_t  *p;

    p = test_capture(1);

    prof_process_hold();

    for (i = 0; i < 1000000; i++) {
        if (test_key("/srv/more.lua", i, "handler", 38) == PROF_FRAME_SCRIPT) {
            break;
        }
    }

    prof_process_release();
    prof_process_hold();

    (void) test_key("/srv/other.lua", 1, "other", 1);

    if (prof_profile_complete(p) != PROF_OK) {
        abort();
    }

    prof_process_release();

    for (known = 0, i = 0; i < p->nframes; i++) {
        known += p->frames[i].name && strcmp(p->frames[i].name, "get") == 0;
    }

    is_int(known, 1, "a draft holds the names of its functions");

    prof_profile_destroy(p);
    prof_process_hold();

    ok(test_key("/srv/more.lua", 1000000, "handler", 38) != PROF_FRAME_SCRIPT,
       "the table is emptied after the draft");

    prof_process_release();
}
