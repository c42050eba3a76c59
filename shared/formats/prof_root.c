
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_hex.h"
#include "formats/prof_root.h"
#include "formats/prof_svg_plot.h"
#include "formats/prof_text.h"
#include "views/prof_view.h"

#include <stdlib.h>
#include <string.h>


#define PROF_ROOT_SEED   0x811c9dc5u
#define PROF_ROOT_PRIME  0x01000193u


static int prof_root_find(const prof_view_t *v, uint32_t hash,
    uint8_t *below, const char **name);
static uint32_t prof_root_hash(uint32_t hash, const char *s, size_t len);
static void prof_root_entries(prof_profile_t *p, const prof_view_t *v,
    const uint8_t *below);


int
prof_root_parse(const char *text, size_t len, uint32_t *hash)
{
    uint64_t  value;

    if (len == 0 || len > 8 || prof_hex_parse(text, len, &value) != PROF_OK) {
        return PROF_ERROR;
    }

    *hash = (uint32_t) value;

    return PROF_OK;
}


int
prof_root_keep(prof_profile_t *p, uint32_t hash)
{
    int           rc;
    uint8_t      *below;
    const char   *name;
    prof_view_t  *v;

    v = prof_view_create(p, NULL, NULL, 0);
    if (v == NULL) {
        return PROF_ERROR;
    }

    below = calloc((size_t) v->nnodes + 1, 1);

    rc = below ? prof_root_find(v, hash, below, &name) : PROF_ERROR;

    if (rc == PROF_OK) {
        rc = prof_profile_fact(p, "root", name, strlen(name));
    }

    if (rc == PROF_OK) {
        prof_root_entries(p, v, below);
    }

    free(below);
    prof_view_destroy(v);

    return rc;
}


/* marks the box and all nodes below it: parents precede their children */

static int
prof_root_find(const prof_view_t *v, uint32_t hash, uint8_t *below,
    const char **name)
{
    uint32_t                 i, *hashes;
    prof_buf_t               b;
    const char              *text;
    const prof_view_node_t  *node;

    hashes = malloc(((size_t) v->nnodes + 1) * sizeof(uint32_t));
    if (hashes == NULL) {
        return PROF_ERROR;
    }

    *name = NULL;

    prof_buf_init(&b);

    for (i = 0; i < v->nnodes; i++) {
        node = &v->nodes[i];
        text = v->functions[node->function].name;

        b.len = 0;
        prof_markup_text(&b, text, strlen(text), PROF_SVG_NAME_MAX);
        prof_buf_puts(&b, ";");

        hashes[i] = prof_root_hash(node->parent == PROF_NONE
                                   ? PROF_ROOT_SEED : hashes[node->parent],
                                   b.data, b.len);

        below[i] = node->parent != PROF_NONE && below[node->parent];

        if (hashes[i] == hash && !below[i]) {
            below[i] = 1;
            *name = text;
        }
    }

    free(hashes);

    if (prof_buf_failed(&b)) {
        prof_buf_free(&b);
        return PROF_ERROR;
    }

    prof_buf_free(&b);

    return *name ? PROF_OK : PROF_LIMIT;
}


static uint32_t
prof_root_hash(uint32_t hash, const char *s, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char) s[i]) * PROF_ROOT_PRIME;
    }

    return hash;
}


static void
prof_root_entries(prof_profile_t *p, const prof_view_t *v,
    const uint8_t *below)
{
    uint32_t        i, k, n;
    prof_entry_t   *e;
    prof_series_t  *s;

    for (k = 0; k < PROF_SERIES_MAX; k++) {
        s = &p->series[k];
        n = 0;

        for (i = 0; i < s->n; i++) {
            e = prof_series_entry(s, i);

            if (below[v->map[e->node]]) {
                memmove(prof_series_entry(s, n++), e, s->size);
            }
        }

        s->n = n;
    }

    p->aggregated = 1;
}
