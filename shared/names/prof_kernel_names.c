
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The kernel's list of functions is long (some 100,000 lines), and the kernel
 * makes its text anew for each reader.  So functions that were found are kept
 * for a minute.  Later, modules of the kernel may have been unloaded.
 */


#include "base/prof_clock.h"
#include "base/prof_map.h"
#include "kernel/prof_kernel.h"
#include "names/prof_kernel_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define PROF_KERNEL_NAMES_MAX   4096

/* ns */

#define PROF_KERNEL_NAMES_KEEP  60000000000ULL


/*
 * The work of prof_kernel_join(), with the new index of each frame and node.
 * A node that is left out has the new index of its parent.
 */

typedef struct {
    prof_profile_t  *profile;
    uint32_t        *sorted;        /* the kernel's frames, by name */
    uint32_t         n;
    uint32_t        *frames;
    uint32_t        *nodes;
    prof_map_t       children;
} prof_kernel_join_t;


static const char *prof_kernel_find(uint64_t pc, prof_kernel_symbols_t *syms);
static prof_kernel_symbol_t *prof_kernel_known(uint64_t pc);
static const char *prof_kernel_keep(const prof_kernel_symbol_t *sym);
static char *prof_kernel_name(const char *name);
static int prof_kernel_is_way(const char *name);
static void prof_kernel_join_frames(prof_kernel_join_t *k);
static int prof_kernel_join_nodes(prof_kernel_join_t *k);
static int prof_kernel_is_repeated(const prof_profile_t *p, uint32_t frame,
    uint32_t parent);
static void prof_kernel_join_series(prof_kernel_join_t *k);
static int prof_kernel_cmp_names(const void *one, const void *two, void *data);


/*
 * The functions of the kernel on the way from the entry of a system call to
 * the function of this call, in several versions of the kernel.
 */

static const char *const  prof_kernel_ways[] = {
    "entry_SYSCALL_64",
    "entry_SYSCALL_64_after_hwframe",
    "do_syscall_64",
    "do_syscall_x64",
    "x64_sys_call",
    "el0_svc",
    "el0_svc_common",
    "el0_svc_handler",
    "el0_sync",
    "el0_sync_handler",
    "el0t_64_sync",
    "el0t_64_sync_handler",
    "do_el0_svc",
    "invoke_syscall"
};


/* functions that were found, sorted by address; their names are owned */

static prof_kernel_symbol_t  prof_kernel_names[PROF_KERNEL_NAMES_MAX];
static uint32_t              prof_kernel_nnames;
static uint64_t              prof_kernel_until;


int
prof_kernel_name_frames(prof_profile_t *p, uint32_t *n)
{
    int                     known;
    uint32_t                i;
    const char             *name;
    prof_frame_t           *f;
    prof_kernel_symbols_t   syms;

    *n = 0;
    known = 1;
    memset(&syms, 0, sizeof(prof_kernel_symbols_t));

    if (prof_clock(CLOCK_MONOTONIC) >= prof_kernel_until) {
        prof_kernel_forget();
    }

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        if (f->type != PROF_TYPE_KERNEL || f->name) {
            continue;
        }

        if (known && prof_kernel_known(f->pc) == NULL && syms.n == 0) {
            known = prof_kernel_symbols(&syms) == PROF_OK;
        }

        name = known ? prof_kernel_find(f->pc, &syms) : "";

        f->name = prof_kernel_name(name ? name : "[kernel]");
        f->source = PROF_SOURCE_KERNEL;
        f->pc = 0;
        (*n)++;

        if (f->name == NULL) {
            break;
        }
    }

    prof_kernel_symbols_free(&syms);

    return i == p->nframes ? PROF_OK : PROF_ERROR;
}


static const char *
prof_kernel_find(uint64_t pc, prof_kernel_symbols_t *syms)
{
    const prof_kernel_symbol_t  *sym;

    sym = prof_kernel_known(pc);

    if (sym) {
        return sym->name;
    }

    sym = prof_kernel_symbol(syms, pc);

    return sym ? prof_kernel_keep(sym) : NULL;
}


static prof_kernel_symbol_t *
prof_kernel_known(uint64_t pc)
{
    uint32_t  low, high, i;

    low = 0;
    high = prof_kernel_nnames;

    while (low < high) {
        i = low + (high - low) / 2;

        if (prof_kernel_names[i].end <= pc) {
            low = i + 1;

        } else {
            high = i;
        }
    }

    return low < prof_kernel_nnames && pc >= prof_kernel_names[low].start
           ? &prof_kernel_names[low] : NULL;
}


/*
 * Keeps a function, and returns its name.  If memory is short, returns the
 * name in the list, which is valid until the list is freed.
 */

static const char *
prof_kernel_keep(const prof_kernel_symbol_t *sym)
{
    char      *name;
    uint32_t   i;

    name = prof_kernel_nnames < PROF_KERNEL_NAMES_MAX ? strdup(sym->name)
                                                      : NULL;
    if (name == NULL) {
        return sym->name;
    }

    if (prof_kernel_nnames == 0) {
        prof_kernel_until = prof_clock(CLOCK_MONOTONIC)
                            + PROF_KERNEL_NAMES_KEEP;
    }

    for (i = prof_kernel_nnames; i > 0; i--) {

        if (prof_kernel_names[i - 1].start < sym->start) {
            break;
        }

        prof_kernel_names[i] = prof_kernel_names[i - 1];
    }

    prof_kernel_names[i] = *sym;
    prof_kernel_names[i].name = name;
    prof_kernel_nnames++;

    return name;
}


void
prof_kernel_forget(void)
{
    while (prof_kernel_nnames) {
        free((void *) (uintptr_t) prof_kernel_names[--prof_kernel_nnames].name);
    }
}


/*
 * Returns the name of a frame: "sys_writev" for the function of a system call,
 * "" for a function on the way to such a function.  NULL: memory is short.
 */

static char *
prof_kernel_name(const char *name)
{
    if (prof_kernel_is_way(name)) {
        return strdup("");
    }

    if (strncmp(name, "__x64_sys_", 10) == 0) {
        return strdup(name + 6);
    }

    return strdup(strncmp(name, "__arm64_sys_", 12) == 0 ? name + 8 : name);
}


/*
 * Returns whether a function is on the way of system calls.  A compiler may
 * have added a suffix to its name: "do_syscall_64.constprop.0".
 */

static int
prof_kernel_is_way(const char *name)
{
    size_t  i, len;

    len = strcspn(name, ".");

    for (i = 0; i < sizeof(prof_kernel_ways) / sizeof(char *); i++) {

        if (strncmp(name, prof_kernel_ways[i], len) == 0
            && prof_kernel_ways[i][len] == '\0')
        {
            return 1;
        }
    }

    return 0;
}


int
prof_kernel_join(prof_profile_t *p)
{
    int                  rc;
    uint32_t             i;
    prof_kernel_join_t   k;

    memset(&k, 0, sizeof(prof_kernel_join_t));

    k.profile = p;
    k.sorted = malloc(((size_t) p->nframes + 1) * sizeof(uint32_t));
    k.frames = malloc(((size_t) p->nframes + 1) * sizeof(uint32_t));
    k.nodes = malloc(((size_t) p->nnodes + 1) * sizeof(uint32_t));

    prof_map_init(&k.children);

    rc = PROF_ERROR;

    if (k.sorted && k.frames && k.nodes) {

        for (i = 0; i < p->nframes; i++) {
            k.frames[i] = i;

            if (p->frames[i].type == PROF_TYPE_KERNEL) {
                k.sorted[k.n++] = i;
            }
        }

        prof_kernel_join_frames(&k);
        rc = prof_kernel_join_nodes(&k);
    }

    if (rc == PROF_OK) {
        prof_kernel_join_series(&k);
    }

    prof_map_free(&k.children);
    free(k.nodes);
    free(k.frames);
    free(k.sorted);

    return rc;
}


/* makes one frame, the first one, of all frames with the same name */

static void
prof_kernel_join_frames(prof_kernel_join_t *k)
{
    uint32_t         i, n, first;
    prof_frame_t    *f;
    prof_profile_t  *p;

    p = k->profile;

    qsort_r(k->sorted, k->n, sizeof(uint32_t), prof_kernel_cmp_names,
            p->frames);

    first = 0;

    for (i = 0; i < k->n; i++) {

        if (strcmp(p->frames[k->sorted[i]].name,
                   p->frames[k->sorted[first]].name)
            != 0)
        {
            first = i;
        }

        k->frames[k->sorted[i]] = k->sorted[first];
    }

    n = 0;

    for (i = 0; i < p->nframes; i++) {
        f = &p->frames[i];

        if (k->frames[i] == i
            && (f->type != PROF_TYPE_KERNEL || f->name[0] != '\0'))
        {
            k->frames[i] = n;
            p->frames[n++] = *f;
            continue;
        }

        k->frames[i] = k->frames[i] == i ? PROF_NONE
                                         : k->frames[k->frames[i]];

        /* frames of the kernel have no file, but a damaged archive may */

        free(f->name);
        free(f->file);
    }

    p->nframes = n;
}


/*
 * Makes one node of all nodes with the same frame and parent.  Parents precede
 * their children, before and after this function.
 */

static int
prof_kernel_join_nodes(prof_kernel_join_t *k)
{
    uint32_t         i, n, parent, frame;
    prof_profile_t  *p;

    p = k->profile;
    n = 0;

    for (i = 0; i < p->nnodes; i++) {
        parent = p->nodes[i].parent;
        parent = parent == PROF_NONE ? PROF_NONE : k->nodes[parent];
        frame = k->frames[p->nodes[i].frame];

        if (frame == PROF_NONE || prof_kernel_is_repeated(p, frame, parent)) {
            k->nodes[i] = parent;
            continue;
        }

        k->nodes[i] = prof_map_add(&k->children, parent, frame, n);

        if (k->nodes[i] == PROF_NONE) {
            return PROF_ERROR;
        }

        if (k->nodes[i] == n) {
            p->nodes[n].parent = parent;
            p->nodes[n++].frame = frame;
        }
    }

    p->nnodes = n;

    return PROF_OK;
}


/*
 * Returns whether the frame is the kernel's function of a system call, and its
 * parent is the frame "sys_..." of this call: both show the same.
 */

static int
prof_kernel_is_repeated(const prof_profile_t *p, uint32_t frame,
    uint32_t parent)
{
    const prof_frame_t  *f, *call;

    if (parent == PROF_NONE) {
        return 0;
    }

    f = &p->frames[frame];
    call = &p->frames[p->nodes[parent].frame];

    return f->type == PROF_TYPE_KERNEL && call->type == PROF_TYPE_KERNEL
           && strncmp(f->name, "sys_", 4) == 0
           && strncmp(call->name, "sys_", 4) == 0;
}


static void
prof_kernel_join_series(prof_kernel_join_t *k)
{
    uint32_t        i, j;
    prof_entry_t   *e;
    prof_series_t  *s;

    for (i = 0; i < PROF_SERIES_MAX; i++) {
        s = &k->profile->series[i];

        for (j = 0; j < s->n; j++) {
            e = prof_series_entry(s, j);
            e->node = k->nodes[e->node];
        }
    }
}


static int
prof_kernel_cmp_names(const void *one, const void *two, void *data)
{
    int                  cmp;
    uint32_t             i1, i2;
    const prof_frame_t  *frames;

    frames = data;
    i1 = *(const uint32_t *) one;
    i2 = *(const uint32_t *) two;

    cmp = strcmp(frames[i1].name, frames[i2].name);

    return cmp ? cmp : i1 < i2 ? -1 : i1 > i2;
}
