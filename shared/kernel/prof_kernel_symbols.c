
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The kernel's functions, as /proc/kallsyms lists them.  The list has all
 * functions of the kernel and of its modules, but no sizes.  So a function ends
 * where the next symbol begins, and the end of the last function of a section
 * is unknown.
 */


#include "kernel/prof_kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* upper bounds of the size of a list, and of a function */

#define PROF_KERNEL_TEXT_MAX      (256 * 1024 * 1024)
#define PROF_KERNEL_FUNCTION_MAX  (1024 * 1024)


static char *prof_kernel_text(int fd);
static uint32_t prof_kernel_lines(const char *text);
static int prof_kernel_line(char **text, prof_kernel_symbol_t *sym);
static int prof_kernel_cmp(const void *one, const void *two);


int
prof_kernel_symbols_read(prof_kernel_symbols_t *syms, int fd)
{
    char      *p;
    uint32_t   i, n;

    memset(syms, 0, sizeof(prof_kernel_symbols_t));

    syms->text = prof_kernel_text(fd);

    if (syms->text == NULL) {
        return PROF_ERROR;
    }

    syms->symbols = malloc(((size_t) prof_kernel_lines(syms->text) + 1)
                           * sizeof(prof_kernel_symbol_t));

    if (syms->symbols == NULL) {
        prof_kernel_symbols_free(syms);
        return PROF_ERROR;
    }

    p = syms->text;
    n = 0;

    while (*p) {
        n += prof_kernel_line(&p, &syms->symbols[n]);
    }

    if (n == 0) {
        prof_kernel_symbols_free(syms);
        return PROF_ERROR;
    }

    qsort(syms->symbols, n, sizeof(prof_kernel_symbol_t), prof_kernel_cmp);

    for (i = 0; i < n; i++) {
        syms->symbols[i].end = i + 1 < n ? syms->symbols[i + 1].start
                                         : syms->symbols[i].start;
    }

    syms->n = n;

    return PROF_OK;
}


void
prof_kernel_symbols_free(prof_kernel_symbols_t *syms)
{
    free(syms->symbols);
    free(syms->text);

    memset(syms, 0, sizeof(prof_kernel_symbols_t));
}


/* the whole file with a null byte at its end, or NULL */

static char *
prof_kernel_text(int fd)
{
    char     *text, *p;
    size_t    len, size;
    ssize_t   n;

    size = 0;
    len = 0;
    text = NULL;

    do {
        if (size - len < 2) {
            size = size ? 2 * size : 1024 * 1024;
            p = size <= PROF_KERNEL_TEXT_MAX ? realloc(text, size) : NULL;

            if (p == NULL) {
                free(text);
                return NULL;
            }

            text = p;
        }

        n = read(fd, text + len, size - len - 1);

        if (n == -1 && errno != EINTR) {
            free(text);
            return NULL;
        }

        len += n > 0 ? n : 0;

    } while (n != 0);

    text[len] = '\0';

    return text;
}


static uint32_t
prof_kernel_lines(const char *text)
{
    uint32_t  n;

    for (n = 0; *text; text++) {
        n += (*text == '\n');
    }

    return n;
}


/*
 * "ffffffff81000000 t name\t[module]".  Goes to the next line; returns 1 for a
 * symbol in code.  A reader without permission gets addresses of 0.
 */

static int
prof_kernel_line(char **text, prof_kernel_symbol_t *sym)
{
    char  *p, *type, *name, *next;

    p = *text;
    next = strchr(p, '\n');

    if (next == NULL) {
        *text = p + strlen(p);
        return 0;
    }

    *next = '\0';
    *text = next + 1;

    sym->start = strtoull(p, &type, 16);

    if (type == p || type[0] != ' ' || type[1] == '\0' || type[2] != ' '
        || strchr("tTwW", type[1]) == NULL
        || !prof_frame_is_kernel(sym->start))
    {
        return 0;
    }

    name = type + 3;
    name[strcspn(name, "\t ")] = '\0';

    sym->name = name;
    sym->end = 0;

    return name[0] != '\0';
}


/* the list's first symbol precedes other symbols with the same address */

static int
prof_kernel_cmp(const void *one, const void *two)
{
    const prof_kernel_symbol_t  *s1 = one, *s2 = two;

    if (s1->start != s2->start) {
        return s1->start < s2->start ? -1 : 1;
    }

    return s1->name < s2->name ? -1 : s1->name > s2->name;
}


const prof_kernel_symbol_t *
prof_kernel_symbol(const prof_kernel_symbols_t *syms, uint64_t addr)
{
    uint32_t                     low, high, i;
    const prof_kernel_symbol_t  *sym;

    low = 0;
    high = syms->n;

    while (low < high) {
        i = low + (high - low) / 2;

        if (syms->symbols[i].end <= addr) {
            low = i + 1;

        } else {
            high = i;
        }
    }

    if (low == syms->n) {
        return NULL;
    }

    sym = &syms->symbols[low];

    return addr >= sym->start
           && sym->end - sym->start <= PROF_KERNEL_FUNCTION_MAX ? sym : NULL;
}
