
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Reads the structures of a VM: frames, and the code of functions.  A word may
 * be in memory that is gone, so each word is checked before the handler reads
 * the word.
 *
 * Context: signal handler.
 */


#include "scripts/prof_njs.h"


#if (__x86_64__)


/* frames between two active ones: functions in C, incomplete calls */
#define PROF_NJS_BETWEEN  64

/* recent codes, by their start; a power of two */
#define PROF_NJS_CACHE    256

/* names of files are paths */
#define PROF_NJS_TEXT_MAX  4096


static uintptr_t prof_njs_start(prof_walk_t *w, uintptr_t frame);
static uintptr_t prof_njs_find(prof_walk_t *w, uintptr_t codes,
    uintptr_t start);
static uint32_t prof_njs_load32(prof_walk_t *w, uintptr_t addr);
static int prof_njs_text(prof_walk_t *w, uintptr_t str, const char **text,
    uint32_t *len);


/*
 * The entries where codes were found.  Each is verified before its use, so an
 * entry of another VM, or one that another thread writes, does no harm.
 */

static uintptr_t  prof_njs_cache[PROF_NJS_CACHE];

/*
 * Where the search of the next walk begins, since the limit of one walk may be
 * less than the number of functions.
 */

static uint32_t   prof_njs_next;


uintptr_t
prof_njs_load(prof_walk_t *w, uintptr_t addr)
{
    return addr % sizeof(uintptr_t) == 0
           && prof_memory_readable(w, addr, sizeof(uintptr_t))
           ? prof_arch_load(addr) : 0;
}


static uint32_t
prof_njs_load32(prof_walk_t *w, uintptr_t addr)
{
    uintptr_t  word;

    word = prof_njs_load(w, addr & ~(sizeof(uintptr_t) - 1));

    return (uint32_t) (word >> 8 * (addr % sizeof(uintptr_t)));
}


int
prof_njs_is_vm(prof_walk_t *w, uintptr_t vm)
{
    return vm && prof_njs_load(w, vm + prof_njs.self) == vm;
}


/*
 * A frame has the address of the active frame before it.  After an "await" this
 * address is old, because another frame resumes the function: the address is
 * used only if this frame is still on the stack.
 */

uintptr_t
prof_njs_before(prof_walk_t *w, uintptr_t frame)
{
    uint32_t   i;
    uintptr_t  before, first, p;

    before = prof_njs_load(w, frame + prof_njs.before);
    first = 0;
    p = frame;

    for (i = 0; i < PROF_NJS_BETWEEN; i++) {

        p = prof_njs_load(w, p + NJS_FRAME_PREVIOUS);

        if (p == 0) {
            break;
        }

        if (p == before) {
            return p;
        }

        if (first == 0
            && (prof_njs_load32(w, p + prof_njs.native) & 0xff) == 0
            && prof_njs_load(w, p + NJS_FRAME_PC))
        {
            first = p;
        }
    }

    return first;
}


void
prof_njs_code(prof_walk_t *w, uintptr_t vm, uintptr_t frame,
    prof_njs_code_t *code)
{
    uintptr_t  codes, start;

    code->entry = 0;
    code->start = 0;
    code->end = 0;

    codes = prof_njs_load(w, vm + prof_njs.codes);
    start = prof_njs_start(w, frame);

    if (codes == 0 || start == 0) {
        return;
    }

    code->entry = prof_njs_find(w, codes, start);

    if (code->entry) {
        code->start = prof_njs_load(w, code->entry + NJS_CODE_START);
        code->end = prof_njs_load(w, code->entry + NJS_CODE_END);
    }
}


/* returns an address in the code of the frame, or 0 */

static uintptr_t
prof_njs_start(prof_walk_t *w, uintptr_t frame)
{
    uintptr_t  function;

    function = prof_njs_load(w, frame + NJS_FRAME_FUNCTION);

    if (function == 0) {
        return prof_njs_load(w, frame + NJS_FRAME_PC);
    }

    return prof_njs_load(w, prof_njs_load(w, function + prof_njs.lambda)
                            + prof_njs.code);
}


/* returns the entry of the code that contains the address, or 0 */

static uintptr_t
prof_njs_find(prof_walk_t *w, uintptr_t codes, uintptr_t start)
{
    uint32_t    i, n, next;
    uintptr_t   first, entry, *cached;

    first = prof_njs_load(w, codes + NJS_ARR_START);
    n = prof_njs_load32(w, codes + NJS_ARR_ITEMS) & prof_njs.items;

    cached = &prof_njs_cache[(start >> 4 ^ start >> 12) % PROF_NJS_CACHE];
    entry = __atomic_load_n(cached, __ATOMIC_RELAXED);

    if (entry >= first && entry - first < (uintptr_t) n * NJS_CODE_SIZE
        && (entry - first) % NJS_CODE_SIZE == 0
        && prof_njs_load(w, entry + NJS_CODE_START) <= start
        && prof_njs_load(w, entry + NJS_CODE_END) > start)
    {
        return entry;
    }

    next = n ? __atomic_load_n(&prof_njs_next, __ATOMIC_RELAXED) % n : 0;

    for (i = 0; i < n && w->names; i++, w->names--) {

        entry = first + (uintptr_t) next * NJS_CODE_SIZE;
        next = (next + 1) % n;

        if (!prof_memory_readable(w, entry, NJS_CODE_SIZE)) {
            break;
        }

        if (prof_arch_load(entry + NJS_CODE_START) <= start
            && prof_arch_load(entry + NJS_CODE_END) > start)
        {
            __atomic_store_n(cached, entry, __ATOMIC_RELAXED);
            return entry;
        }
    }

    __atomic_store_n(&prof_njs_next, next, __ATOMIC_RELAXED);

    return 0;
}


/* the table of lines has the first instruction of each line, in their order */

uint32_t
prof_njs_line(prof_walk_t *w, const prof_njs_code_t *code, uintptr_t pc)
{
    uint32_t   lo, hi, mid, offset;
    uintptr_t  lines, first;

    lines = prof_njs_load(w, code->entry + NJS_CODE_LINES);
    first = prof_njs_load(w, lines + NJS_ARR_START);

    lo = 0;
    hi = prof_njs_load32(w, lines + NJS_ARR_ITEMS) & prof_njs.items;
    offset = (uint32_t) (pc - code->start);

    while (lo < hi && first) {
        mid = lo + (hi - lo) / 2;

        if (prof_njs_load32(w, first + mid * NJS_LINE_SIZE) <= offset) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    return lo && first
           ? prof_njs_load32(w, first + (lo - 1) * NJS_LINE_SIZE + 4) : 0;
}


uintptr_t
prof_njs_place(prof_walk_t *w, const prof_njs_code_t *code, uint32_t line)
{
    prof_script_t  s;

    static const char  script[] = "script";
    static const char  anonymous[] = "anonymous";

    if (!prof_njs_text(w, code->entry + NJS_CODE_FILE, &s.file, &s.file_len)
        || !prof_njs_text(w, code->entry + NJS_CODE_NAME, &s.function,
                          &s.function_len))
    {
        return 0;
    }

    s.line = line;
    s.start_line = 0;

    if (s.file_len == 0) {
        s.file = script;
        s.file_len = sizeof(script) - 1;
    }

    if (s.function_len == 0) {
        s.function = anonymous;
        s.function_len = sizeof(anonymous) - 1;
    }

    return prof_script_key(&s, w->st);
}


/* returns 0 if the text cannot be read */

static int
prof_njs_text(prof_walk_t *w, uintptr_t str, const char **text, uint32_t *len)
{
    uintptr_t  n, start;

    if (!prof_memory_readable(w, str, 2 * sizeof(uintptr_t))) {
        return 0;
    }

    n = prof_arch_load(str + NJS_STR_LENGTH);
    start = prof_arch_load(str + NJS_STR_START);

    if (n > PROF_NJS_TEXT_MAX || (n && !prof_memory_readable(w, start, n))) {
        return 0;
    }

    *text = (const char *) start;
    *len = (uint32_t) n;

    return 1;
}


#endif
