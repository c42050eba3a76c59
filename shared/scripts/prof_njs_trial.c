
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Learns the layout of njs's structures while the known script runs.  The VM
 * has these frames, from the innermost one:
 *
 *     profile()   in C
 *     inner()
 *     map()       in C
 *     middle()
 *     outer()
 *     first()     incomplete: its argument is not known yet; newer versions
 *                 have no such frame
 *     the code outside of functions
 *
 * Offsets are searched by values that only the right place has.  A word is read
 * only if its memory can be read.
 *
 * Context: not in a signal; the thread that makes captures.
 */


#include "scripts/prof_engine.h"
#include "scripts/prof_njs_trial.h"

#include <string.h>


#if (__x86_64__)


/* parts of structures that are searched, in bytes */

#define PROF_NJS_VM        0x2000
#define PROF_NJS_FRAME     0x80
#define PROF_NJS_FUNCTION  0x60
#define PROF_NJS_LAMBDA    0x80

/* frames of functions of the script, and of functions in C */

#define PROF_NJS_SCRIPTS   4
#define PROF_NJS_NATIVES   2

/* the script's functions, and the code outside of them */
#define PROF_NJS_CODES     5


typedef struct {
    uintptr_t  scripts[PROF_NJS_SCRIPTS];   /* the last one is outermost */
    uintptr_t  natives[PROF_NJS_NATIVES];
} prof_njs_frames_t;


typedef struct {
    const char  *function;
    uint32_t     line;
} prof_njs_expected_t;


static const char *prof_njs_learn(prof_njs_trial_t *t);
static int prof_njs_find_interpreter(prof_njs_trial_t *t);
static uintptr_t prof_njs_function(const prof_njs_trial_t *t, uintptr_t pc,
    size_t *len);
static int prof_njs_find_register(prof_njs_trial_t *t);
static int prof_njs_find_self(uintptr_t vm);
static int prof_njs_find_frames(uintptr_t vm, prof_njs_frames_t *f);
static uintptr_t prof_njs_native(uintptr_t frame);
static int prof_njs_find_links(const prof_njs_frames_t *f);
static int prof_njs_find_codes(uintptr_t vm);
static int prof_njs_is_codes(uintptr_t codes);
static int prof_njs_find_lambda(uintptr_t vm, const prof_njs_frames_t *f);
static int prof_njs_is_code(uintptr_t vm, uintptr_t start, const char *name);
static int prof_njs_is_text(uintptr_t str, const char *text);
static uintptr_t prof_njs_word(uintptr_t addr);
static uint8_t prof_njs_byte(uintptr_t addr);
static void prof_njs_take(prof_njs_trial_t *t, int (*frame)(prof_walk_t *w));
static int prof_njs_probe(prof_walk_t *w);
static int prof_njs_is_expected(const prof_njs_trial_t *t);


prof_njs_trial_t  *prof_njs_running;


static const prof_njs_expected_t  prof_njs_expected[PROF_NJS_SCRIPTS] = {
    { "inner", 2 },
    { "middle", 6 },
    { "outer", 9 },
    { "main", 13 }
};


intptr_t
prof_njs_trial(void *vm, void *args, unsigned nargs, uintptr_t magic,
    void *retval)
{
    prof_njs_trial_t  *t;

    (void) args;
    (void) nargs;
    (void) magic;
    (void) retval;

    t = prof_njs_running;

    if (t) {
        t->vm = (uintptr_t) vm;
        t->why = prof_njs_learn(t);
    }

    return 0;
}


/* returns NULL, or why njs cannot be used */

static const char *
prof_njs_learn(prof_njs_trial_t *t)
{
    prof_njs_frames_t  f;

    memset(&prof_njs, 0, sizeof(prof_njs_t));

    if (prof_njs_find_interpreter(t) != PROF_OK) {
        return "off: its interpreter was not found";
    }

    if (prof_njs_find_self(t->vm) != PROF_OK
        || prof_njs_find_frames(t->vm, &f) != PROF_OK
        || prof_njs_find_links(&f) != PROF_OK
        || prof_njs_find_codes(t->vm) != PROF_OK
        || prof_njs_find_lambda(t->vm, &f) != PROF_OK)
    {
        return "off: the layout of this build is not known";
    }

    if (prof_njs_find_register(t) != PROF_OK) {
        return "off: this build has its state in another register";
    }

    prof_njs.outside = 1;

    prof_njs_take(t, prof_njs_frame);

    return prof_njs_is_expected(t)
           ? NULL : "off: the stacks of this build cannot be read";
}


/*
 * njs_vm_start() calls the interpreter.  The stack has one frame of the
 * interpreter for each frame of the script.
 */

static int
prof_njs_find_interpreter(prof_njs_trial_t *t)
{
    size_t     len;
    uint32_t   i, n;
    uintptr_t  start;

    prof_njs.main = prof_njs_function(t, (uintptr_t) t->api.njs_vm_start, &len);
    prof_njs.main_end = prof_njs.main + len;

    prof_njs_take(t, NULL);

    for (i = 1; i < t->n; i++) {
        if (t->pcs[i] - prof_njs.main < len) {
            break;
        }
    }

    if (prof_njs.main == 0 || i >= t->n) {
        return PROF_ERROR;
    }

    start = prof_njs_function(t, t->pcs[i - 1] - 1, &len);
    n = 0;

    for (i = 0; i < t->n; i++) {
        n += (t->pcs[i] - start < len);
    }

    prof_njs.start = start;
    prof_njs.end = start + len;

    return start && n == PROF_NJS_SCRIPTS ? PROF_OK : PROF_ERROR;
}


static uintptr_t
prof_njs_function(const prof_njs_trial_t *t, uintptr_t pc, size_t *len)
{
    return prof_unwind_function(t->unwind, prof_engine_mark(t->unwind, pc),
                                len);
}


static int
prof_njs_find_register(prof_njs_trial_t *t)
{
    prof_njs_take(t, prof_njs_probe);

    if (t->frames != PROF_NJS_SCRIPTS) {
        return PROF_ERROR;
    }

    if (t->fp == t->frames) {
        prof_njs.vm = PROF_NJS_FP;
        return PROF_OK;
    }

    if (t->aux == t->frames) {
        prof_njs.vm = PROF_NJS_AUX;
        return PROF_OK;
    }

    prof_njs.vm = PROF_NJS_OTHER;

    return t->other == t->frames ? PROF_OK : PROF_ERROR;
}


static int
prof_njs_find_self(uintptr_t vm)
{
    uint32_t  at;

    for (at = sizeof(uintptr_t); at < PROF_NJS_VM; at += sizeof(uintptr_t)) {
        if (prof_njs_word(vm + at) == vm) {
            prof_njs.self = at;
            return PROF_OK;
        }
    }

    return PROF_ERROR;
}


/*
 * Finds the frames: the VM has the address of the innermost frame, and then
 * that of the innermost frame of a script.
 */

static int
prof_njs_find_frames(uintptr_t vm, prof_njs_frames_t *f)
{
    uint32_t   at;
    uintptr_t  top, last;

    top = 0;

    for (at = 0; at < PROF_NJS_VM; at += sizeof(uintptr_t)) {

        top = prof_njs_word(vm + at);

        if (prof_njs_native(top) == (uintptr_t) prof_njs_trial) {
            break;
        }
    }

    if (at == PROF_NJS_VM) {
        return PROF_ERROR;
    }

    prof_njs.active = at + sizeof(uintptr_t);

    f->natives[0] = top;
    f->scripts[0] = prof_njs_word(top + NJS_FRAME_PREVIOUS);
    f->natives[1] = prof_njs_word(f->scripts[0] + NJS_FRAME_PREVIOUS);
    f->scripts[1] = prof_njs_word(f->natives[1] + NJS_FRAME_PREVIOUS);
    f->scripts[2] = prof_njs_word(f->scripts[1] + NJS_FRAME_PREVIOUS);
    f->scripts[3] = prof_njs_word(f->scripts[2] + NJS_FRAME_PREVIOUS);

    last = prof_njs_word(f->scripts[3] + NJS_FRAME_PREVIOUS);

    if (last) {
        f->scripts[3] = last;
    }

    return prof_njs_word(vm + prof_njs.active) == f->scripts[0]
           && f->scripts[3]
           && prof_njs_word(f->scripts[3] + NJS_FRAME_PREVIOUS) == 0
           && prof_njs_word(f->scripts[3] + NJS_FRAME_FUNCTION) == 0
           ? PROF_OK : PROF_ERROR;
}


/* returns the address of the function in C that a frame may have, or 0 */

static uintptr_t
prof_njs_native(uintptr_t frame)
{
    uint32_t   at;
    uintptr_t  function;

    function = prof_njs_word(frame + NJS_FRAME_FUNCTION);

    for (at = 0; function && at < PROF_NJS_FUNCTION; at += sizeof(uintptr_t)) {
        if (prof_njs_word(function + at) == (uintptr_t) prof_njs_trial) {
            prof_njs.lambda = at;
            return (uintptr_t) prof_njs_trial;
        }
    }

    return 0;
}


static int
prof_njs_find_links(const prof_njs_frames_t *f)
{
    uint32_t  at, i;

    for (at = NJS_FRAME_PREVIOUS + sizeof(uintptr_t); at < PROF_NJS_FRAME;
         at += sizeof(uintptr_t))
    {
        for (i = 1; i < PROF_NJS_SCRIPTS
                    && prof_njs_word(f->scripts[i - 1] + at) == f->scripts[i];
             i++)
        {
            /* void */
        }

        if (i == PROF_NJS_SCRIPTS) {
            prof_njs.before = at;
            break;
        }
    }

    for (at = NJS_FRAME_PREVIOUS + sizeof(uintptr_t); at < prof_njs.before;
         at++)
    {
        for (i = 0; i < PROF_NJS_SCRIPTS
                    && prof_njs_byte(f->scripts[i] + at) == 0;
             i++)
        {
            /* void */
        }

        if (i == PROF_NJS_SCRIPTS
            && prof_njs_byte(f->natives[0] + at) == 1
            && prof_njs_byte(f->natives[1] + at) == 1)
        {
            prof_njs.native = at;
            return PROF_OK;
        }
    }

    return PROF_ERROR;
}


static int
prof_njs_find_codes(uintptr_t vm)
{
    uint32_t   at;
    uintptr_t  n;

    for (at = 0; at < PROF_NJS_VM; at += sizeof(uintptr_t)) {
        if (prof_njs_is_codes(prof_njs_word(vm + at))) {
            break;
        }
    }

    if (at == PROF_NJS_VM) {
        return PROF_ERROR;
    }

    prof_njs.codes = at;

    /* older versions have a number of 16 bits */

    n = prof_njs_word(prof_njs_word(vm + at) + NJS_ARR_ITEMS);

    if ((uint32_t) n == PROF_NJS_CODES) {
        prof_njs.items = UINT32_MAX;

    } else if ((uint16_t) n == PROF_NJS_CODES) {
        prof_njs.items = UINT16_MAX;

    } else {
        return PROF_ERROR;
    }

    return PROF_OK;
}


/* returns whether all entries have bounds of code, and one entry is inner() */

static int
prof_njs_is_codes(uintptr_t codes)
{
    uint32_t   i, found;
    uintptr_t  entry;

    entry = prof_njs_word(codes + NJS_ARR_START);
    found = 0;

    for (i = 0; entry && i < PROF_NJS_CODES; i++, entry += NJS_CODE_SIZE) {

        if (prof_njs_word(entry + NJS_CODE_START) == 0
            || prof_njs_word(entry + NJS_CODE_START)
               >= prof_njs_word(entry + NJS_CODE_END))
        {
            return 0;
        }

        found += prof_njs_is_text(entry + NJS_CODE_NAME, "inner");
    }

    return found == 1;
}


/*
 * Finds where a lambda has the start of its code.  A function has its lambda
 * where a function in C has its address.
 */

static int
prof_njs_find_lambda(uintptr_t vm, const prof_njs_frames_t *f)
{
    uint32_t   at, i;
    uintptr_t  function, lambda;

    for (at = 0; at < PROF_NJS_LAMBDA; at += sizeof(uintptr_t)) {

        for (i = 0; i < PROF_NJS_SCRIPTS - 1; i++) {
            function = prof_njs_word(f->scripts[i] + NJS_FRAME_FUNCTION);
            lambda = prof_njs_word(function + prof_njs.lambda);

            if (lambda == 0
                || !prof_njs_is_code(vm, prof_njs_word(lambda + at),
                                     prof_njs_expected[i].function))
            {
                break;
            }
        }

        if (i == PROF_NJS_SCRIPTS - 1) {
            prof_njs.code = at;
            return PROF_OK;
        }
    }

    return PROF_ERROR;
}


static int
prof_njs_is_code(uintptr_t vm, uintptr_t start, const char *name)
{
    uint32_t   i;
    uintptr_t  entry;

    entry = prof_njs_word(prof_njs_word(vm + prof_njs.codes) + NJS_ARR_START);

    for (i = 0; start && i < PROF_NJS_CODES; i++, entry += NJS_CODE_SIZE) {
        if (prof_njs_word(entry + NJS_CODE_START) == start) {
            return prof_njs_is_text(entry + NJS_CODE_NAME, name);
        }
    }

    return 0;
}


static int
prof_njs_is_text(uintptr_t str, const char *text)
{
    size_t     len;
    uintptr_t  start;

    len = strlen(text);
    start = prof_njs_word(str + NJS_STR_START);

    return prof_njs_word(str + NJS_STR_LENGTH) == len && start
           && prof_arch_readable(start) && prof_arch_readable(start + len - 1)
           && memcmp((void *) start, text, len) == 0;
}


/*
 * Returns 0 if the word cannot be read.  Asks the kernel once for a page: njs
 * frees nothing meanwhile.
 */

static uintptr_t
prof_njs_word(uintptr_t addr)
{
    uintptr_t  page, *known;

    page = addr / PROF_WALK_PAGE;
    known = &prof_njs_running->pages[page % PROF_NJS_PAGES];

    if (addr % sizeof(uintptr_t) || page == 0) {
        return 0;
    }

    if (*known != page) {

        if (!prof_arch_readable(addr)) {
            return 0;
        }

        *known = page;
    }

    return prof_arch_load(addr);
}


static uint8_t
prof_njs_byte(uintptr_t addr)
{
    uintptr_t  word;

    word = prof_njs_word(addr & ~(sizeof(uintptr_t) - 1));

    return (uint8_t) (word >> 8 * (addr % sizeof(uintptr_t)));
}


/* takes the stack of the function in C; frame: NULL, or that of the engine */

static void
prof_njs_take(prof_njs_trial_t *t, int (*frame)(prof_walk_t *w))
{
    prof_engine_code_t  code;

    memset(&code, 0, sizeof(prof_engine_code_t));

    if (frame) {
        code.start = prof_njs.start;
        code.end = prof_njs.end;
        code.frame = frame;
    }

    t->frames = 0;
    t->fp = 0;
    t->aux = 0;
    t->other = 0;

    t->n = prof_engine_take(t->unwind, &code, t->cache, t->top, t->pcs);
}


/* counts the frames of the interpreter by the register that has the VM */

static int
prof_njs_probe(prof_walk_t *w)
{
    uintptr_t          aux;
    prof_njs_trial_t  *t;

    t = prof_njs_running;

    prof_memory_prepare(w);

    prof_njs.call = (t->frames++ == 0 || prof_njs.call == w->f.pc)
                    ? w->f.pc : 0;
    t->fp += (w->f.fp == t->vm);
    t->aux += (prof_walk_aux(w, &aux) && aux == t->vm);
    t->other += (prof_njs_find_vm(w) == t->vm);

    return PROF_WALK_OTHER;
}


/*
 * Some versions count the lines of code outside of functions wrong, also in
 * their own backtraces.  Then the engine leaves these lines out.
 */

static int
prof_njs_is_expected(const prof_njs_trial_t *t)
{
    size_t                      len;
    uint32_t                    i, n;
    prof_script_t               s;
    const prof_njs_expected_t  *e;

    n = 0;

    for (i = 0; i < t->n; i++) {

        if (prof_script_find(t->pcs[i], &s) != PROF_OK) {
            continue;
        }

        if (n == PROF_NJS_SCRIPTS) {
            return 0;
        }

        e = &prof_njs_expected[n++];
        len = strlen(e->function);

        if (s.function_len != len || memcmp(s.function, e->function, len)) {
            return 0;
        }

        if (s.line != e->line) {

            if (n != PROF_NJS_SCRIPTS) {
                return 0;
            }

            prof_njs.outside = 0;
        }
    }

    return n == PROF_NJS_SCRIPTS;
}


#endif
