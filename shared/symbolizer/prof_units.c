
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The sets of functions: each is a tree of parents whose root stands for the
 * set (union-find).
 */


#include "symbolizer/prof_units.h"

#include <stdlib.h>
#include <string.h>


/*
 * A set that joins functions of two source files shows that the method does not
 * hold for this object.  This can only be seen at functions whose files are
 * known.  An object with fewer known files than this gets no units.
 */

#define PROF_UNITS_FILES   8

/*
 * A label that is not listed is the name of a module of nginx.  One source file
 * may contain several modules.  A set with more of them is not one file.
 */

#define PROF_UNITS_LABELS  4


static int prof_units_parse(prof_units_t *u, prof_wire_t *w,
    uint32_t *nmembers);
static int prof_units_infer(prof_units_t *u, prof_wire_t *w,
    uint32_t nmembers);
static uint32_t prof_units_label_symbols(prof_units_t *u);
static uint32_t prof_units_label(const prof_units_t *u, const char *symbol);
static int prof_units_listed(const char *symbols, const char *name);
static void prof_units_members(prof_units_t *u, prof_wire_t *w, uint32_t n);
static uint32_t prof_units_root(const prof_units_t *u, uint32_t i);
static void prof_units_between(prof_units_t *u, prof_units_set_t *sets);
static int prof_units_count(prof_units_t *u, prof_units_set_t *sets);
static uint32_t prof_units_of(const prof_units_t *u, uint32_t i);
static void prof_units_write(prof_buf_t *b, const prof_units_t *u);


int
prof_units_answer(prof_buf_t *b, prof_wire_t *w, Elf *elf)
{
    int           rc;
    uint32_t      nmembers;
    prof_units_t  u;

    memset(&u, 0, sizeof(prof_units_t));

    u.elf = elf;

    rc = prof_units_parse(&u, w, &nmembers);

    if (rc == PROF_OK) {

        if (elf == NULL || prof_units_infer(&u, w, nmembers) != PROF_OK) {
            u.nfunctions = 0;
        }

        prof_units_write(b, &u);
    }

    free(u.functions);
    free(u.symbols);
    free(u.labels);
    free(u.parents);
    free(u.sets);

    return rc;
}


/* members may have labels of their own */

static int
prof_units_parse(prof_units_t *u, prof_wire_t *w, uint32_t *nmembers)
{
    uint32_t     i, n;
    prof_wire_t  members;

    n = prof_wire_get_u32(w);

    if (w->failed || n > PROF_WIRE_SOURCES) {
        return PROF_ERROR;
    }

    u->labels = calloc(n + PROF_WIRE_MEMBERS, sizeof(prof_units_label_t));
    if (u->labels == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < n; i++) {
        u->labels[i].text = prof_wire_get_text(w);
        u->labels[i].symbols = prof_wire_get_text(w);

        if (u->labels[i].text == NULL || u->labels[i].symbols == NULL) {
            return PROF_ERROR;
        }
    }

    u->nlabels = n;

    *nmembers = prof_wire_get_u32(w);

    if (w->failed || *nmembers > PROF_WIRE_MEMBERS) {
        return PROF_ERROR;
    }

    members = *w;

    for (i = 0; i < *nmembers; i++) {
        (void) prof_wire_get_u64(&members);

        if (prof_wire_get_text(&members) == NULL) {
            return PROF_ERROR;
        }
    }

    return members.failed || members.pos != members.end ? PROF_ERROR : PROF_OK;
}


static int
prof_units_infer(prof_units_t *u, prof_wire_t *w, uint32_t nmembers)
{
    uint32_t  i, n;

    if (prof_units_read(u) != PROF_OK) {
        return PROF_ERROR;
    }

    n = u->nfunctions + u->nsymbols + u->nlabels + nmembers;

    u->parents = malloc(n * sizeof(uint32_t));
    u->sets = calloc(n, sizeof(prof_units_set_t));

    if (u->parents == NULL || u->sets == NULL) {
        return PROF_ERROR;
    }

    for (i = 0; i < n; i++) {
        u->parents[i] = i;
    }

    if (prof_units_label_symbols(u) < PROF_UNITS_FILES) {
        return PROF_ERROR;
    }

    prof_units_members(u, w, nmembers);
    prof_units_data(u);

    if (prof_units_code(u) != PROF_OK) {
        return PROF_ERROR;
    }

    prof_units_between(u, u->sets);

    return prof_units_count(u, u->sets);
}


/* returns the number of files of which the object has a symbol */

static uint32_t
prof_units_label_symbols(prof_units_t *u)
{
    uint32_t              i, f, label, n;
    prof_units_symbol_t  *s;

    n = 0;

    for (i = 0; i < u->nsymbols; i++) {
        s = &u->symbols[i];

        f = prof_units_function(u, s->start);
        label = prof_units_label(u, s->name);

        s->function = f != PROF_NONE;
        s->listed = label != PROF_NONE;

        if (s->function) {
            prof_units_join(u, f, u->nfunctions + i);
        }

        if (s->listed) {
            n += !u->labels[label].used;
            u->labels[label].used = 1;

            prof_units_join(u, u->nfunctions + u->nsymbols + label,
                            u->nfunctions + i);
        }
    }

    return n;
}


static uint32_t
prof_units_label(const prof_units_t *u, const char *symbol)
{
    uint32_t  i;

    for (i = 0; i < u->nlabels; i++) {

        if (u->labels[i].symbols
            ? prof_units_listed(u->labels[i].symbols, symbol)
            : strcmp(u->labels[i].text, symbol) == 0)
        {
            return i;
        }
    }

    return PROF_NONE;
}


static int
prof_units_listed(const char *symbols, const char *name)
{
    size_t       len;
    const char  *p;

    len = strlen(name);

    for (p = symbols; len && (p = strstr(p, name)) != NULL; p += len) {

        if ((p == symbols || p[-1] == ' ')
            && (p[len] == ' ' || p[len] == '\0'))
        {
            return 1;
        }
    }

    return 0;
}


/* functions whose files the question contains */

static void
prof_units_members(prof_units_t *u, prof_wire_t *w, uint32_t n)
{
    uint32_t     f, label;
    uint64_t     address;
    const char  *name;

    while (n--) {
        address = prof_wire_get_u64(w);
        name = prof_wire_get_text(w);

        f = prof_units_function(u, address);

        if (f == PROF_NONE || u->functions[f].visible) {
            continue;
        }

        label = prof_units_label(u, name);

        if (label == PROF_NONE) {
            label = u->nlabels++;
            u->labels[label].text = name;
        }

        prof_units_join(u, f, u->nfunctions + u->nsymbols + label);
    }
}


uint32_t
prof_units_function(const prof_units_t *u, uint64_t address)
{
    uint32_t                      lo, hi, mid;
    const prof_units_function_t  *f;

    lo = 0;
    hi = u->nfunctions;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        f = &u->functions[mid];

        if (address < f->start) {
            hi = mid;

        } else if (address - f->start < f->len) {
            return mid;

        } else {
            lo = mid + 1;
        }
    }

    return PROF_NONE;
}


void
prof_units_join(prof_units_t *u, uint32_t one, uint32_t two)
{
    u->parents[prof_units_root(u, one)] = prof_units_root(u, two);
}


static uint32_t
prof_units_root(const prof_units_t *u, uint32_t i)
{
    while (u->parents[i] != i) {
        u->parents[i] = u->parents[u->parents[i]];
        i = u->parents[i];
    }

    return i;
}


/* joins the functions between the first one and the last one of each set */

static void
prof_units_between(prof_units_t *u, prof_units_set_t *sets)
{
    uint32_t  i, of, last, root;

    for (i = 0; i < u->nfunctions; i++) {
        if (u->functions[i].ordered) {
            sets[prof_units_root(u, i)].last = i;
        }
    }

    of = PROF_NONE;
    last = 0;

    for (i = 0; i < u->nfunctions; i++) {

        if (!u->functions[i].ordered) {
            continue;
        }

        root = prof_units_root(u, i);

        if (of != PROF_NONE && i <= last) {

            /* the root of a joined set has the last function of all its sets */

            if (sets[root].last > last) {
                last = sets[root].last;
            }

            u->parents[prof_units_root(u, of)] = root;
            sets[root].last = last;

        } else {
            of = i;
            last = sets[root].last;
        }
    }
}


/*
 * PROF_ERROR: two files are in one set, so the rules do not hold for this
 * object.
 */

static int
prof_units_count(prof_units_t *u, prof_units_set_t *sets)
{
    uint32_t           i;
    prof_units_set_t  *set;

    for (i = 0; i < u->nsymbols; i++) {
        set = &sets[prof_units_root(u, u->nfunctions + i)];

        set->visible += u->symbols[i].function;
        set->listed += u->symbols[i].function && u->symbols[i].listed;
    }

    for (i = 0; i < u->nlabels; i++) {
        set = &sets[prof_units_root(u, u->nfunctions + u->nsymbols + i)];

        if (u->labels[i].symbols) {
            set->files++;
            set->label = i;

        } else {
            set->others++;

            if (set->files == 0) {
                set->label = i;
            }
        }

        if (set->files > 1 || set->others > PROF_UNITS_LABELS) {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


/*
 * The label of a function, or PROF_NONE.  If most exported functions of the
 * file are not listed, it is another file, to which functions were moved.
 */

static uint32_t
prof_units_of(const prof_units_t *u, uint32_t i)
{
    const prof_units_set_t  *set;

    set = &u->sets[prof_units_root(u, i)];

    if (set->files == 0) {
        return set->others == 1 ? set->label : PROF_NONE;
    }

    return set->visible <= 2 * set->listed ? set->label : PROF_NONE;
}


/* functions in a row have the same file */

static void
prof_units_write(prof_buf_t *b, const prof_units_t *u)
{
    uint32_t                i, next, label, n;
    prof_units_function_t  *f;

    f = u->functions;
    n = 0;

    prof_wire_u32(b, PROF_WIRE_UNITS);

    for (i = 0; i < u->nfunctions; i = next) {
        label = prof_units_of(u, i);

        for (next = i + 1;
             next < u->nfunctions && prof_units_of(u, next) == label;
             next++)
        {
            /* void */
        }

        if (label != PROF_NONE && n < PROF_WIRE_RANGES) {
            prof_wire_u64(b, f[i].start);
            prof_wire_u64(b, f[next - 1].start);
            prof_wire_text(b, u->labels[label].text);
            n++;
        }
    }
}
