
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Collapsed stacks, "root;caller;leaf 1234", which most flamegraph tools read.
 * Weights have the unit of the measure that is shown first.  Their sum is the
 * profile's total.
 */


#include "formats/prof_encode.h"
#include "formats/prof_text.h"
#include "views/prof_summary.h"
#include "views/prof_view.h"

#include <stdlib.h>
#include <string.h>


static int prof_encode_folded_encode(const prof_profile_t *p, prof_buf_t *b);
static void prof_encode_folded_line(const prof_view_t *v, uint32_t node,
    uint32_t *stack, uint64_t weight, prof_buf_t *b);
static void prof_encode_folded_none(const prof_profile_t *p,
    uint32_t measure, prof_buf_t *b);
static char *prof_encode_folded_name(const char *name);


const prof_encoder_t  prof_encode_folded = {
    "folded",
    "Folded stacks",
    "text/plain; charset=utf-8",
    "folded.txt",
    prof_encode_folded_encode,
    NULL,
    1
};


static int
prof_encode_folded_encode(const prof_profile_t *p, prof_buf_t *b)
{
    size_t                   start;
    uint32_t                 i, measure, *stack;
    uint64_t                 weight;
    prof_view_t             *v;
    const prof_view_node_t  *node;

    measure = prof_measure_first(p);

    v = prof_view_create(p, prof_encode_folded_name, &measure, 1);
    if (v == NULL) {
        return PROF_ERROR;
    }

    stack = malloc(((size_t) v->depth + 1) * sizeof(uint32_t));

    if (stack == NULL || prof_view_order(v, 0) != PROF_OK) {
        free(stack);
        prof_view_destroy(v);
        return PROF_ERROR;
    }

    /* depth first, each node before its children */

    start = b->len;
    i = v->root;

    while (i != PROF_NONE) {
        node = &v->nodes[i];

        weight = prof_view_self(v, i, 0);

        if (weight) {
            prof_encode_folded_line(v, i, stack, weight, b);
        }

        if (node->child != PROF_NONE) {
            i = node->child;
            continue;
        }

        while (node->next == PROF_NONE && node->parent != PROF_NONE) {
            node = &v->nodes[node->parent];
        }

        i = node->next;
    }

    if (b->len == start && prof_measures[measure].none) {
        prof_encode_folded_none(p, measure, b);
    }

    free(stack);
    prof_view_destroy(v);

    return prof_buf_failed(b) ? PROF_ERROR : PROF_OK;
}


/* writes a line of the weight 0: an empty file would look like a failure */

static void
prof_encode_folded_none(const prof_profile_t *p, uint32_t measure,
    prof_buf_t *b)
{
    uint32_t  i;

    for (i = 0; i < p->nfacts; i++) {
        if (strcmp(p->facts[i].name, "allocations_not_counted") == 0) {
            prof_buf_puts(b, "[allocations were not counted] 0\n");
            return;
        }
    }

    prof_buf_printf(b, "[%s", prof_measures[measure].none);

    if (prof_summary_not_counted(p)) {
        prof_buf_puts(b, ", not counted: ");
        prof_buf_puts(b, prof_summary_not_counted(p));
    }

    prof_buf_puts(b, "] 0\n");
}


static void
prof_encode_folded_line(const prof_view_t *v, uint32_t node, uint32_t *stack,
    uint64_t weight, prof_buf_t *b)
{
    uint32_t  n;

    n = 0;

    for ( /* void */ ; node != PROF_NONE; node = v->nodes[node].parent) {
        stack[n++] = v->nodes[node].function;
    }

    for ( ;; ) {
        prof_buf_puts(b, v->functions[stack[--n]].name);

        if (n == 0) {
            break;
        }

        prof_buf_append(b, ";", 1);
    }

    prof_buf_append(b, " ", 1);
    prof_buf_number(b, weight);
    prof_buf_append(b, "\n", 1);
}


/*
 * Returns the name without separators.  The format has no escapes, so a name
 * must not look like the end of a line or like two frames.  Readers differ in
 * the other characters that they take for separators.
 */

static char *
prof_encode_folded_name(const char *name)
{
    char           *p, *text;
    size_t          len;
    unsigned char   c;

    if (name[0] == '\0') {
        return strdup("?");
    }

    len = strlen(name);

    text = prof_text_utf8(name, &len);
    if (text == NULL) {
        return NULL;
    }

    for (p = text; *p; p++) {
        c = (unsigned char) *p;

        if (c == ';') {
            *p = ':';

        } else if (c < 0x20 || c == 0x7f) {
            *p = '?';
        }
    }

    return text;
}
