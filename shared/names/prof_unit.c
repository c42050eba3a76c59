
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "base/prof_clock.h"
#include "base/prof_hash.h"
#include "names/prof_helper.h"
#include "names/prof_names.h"
#include "names/prof_role.h"
#include "names/prof_unit.h"
#include "names/prof_wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef struct {
    uint64_t             first;
    uint64_t             last;
    const char          *text;
} prof_unit_range_t;


struct prof_unit_table_s {
    prof_buf_t           answer;    /* has the texts */
    prof_unit_range_t   *ranges;    /* sorted */
    uint32_t             n;
};


static int prof_unit_ask(prof_unit_table_t *t, const prof_buf_t *members,
    const prof_profile_object_t *o, const char *debug_root,
    uint64_t deadline);
static int prof_unit_read(prof_unit_table_t *t);


static const prof_source_file_t  *prof_unit_files;


void
prof_profile_sources(const prof_source_file_t *files)
{
    prof_unit_files = files;
}


int
prof_unit_find(prof_unit_table_t **table, prof_names_object_t *names,
    const prof_profile_object_t *o, const char *debug_root, uint64_t deadline)
{
    int                        rc;
    uint32_t                   n;
    uint64_t                   hash;
    prof_buf_t                 question;
    prof_unit_table_t         *t;
    const prof_source_file_t  *file;

    *table = NULL;

    t = calloc(1, sizeof(prof_unit_table_t));
    if (t == NULL) {
        return PROF_ERROR;
    }

    prof_buf_init(&question);

    for (n = 0; prof_unit_files && prof_unit_files[n].file; n++) {
        /* void */
    }

    prof_wire_u32(&question, n);

    for (file = prof_unit_files; n; n--, file++) {
        prof_wire_text(&question, file->file);
        prof_wire_text(&question, file->symbols);
    }

    prof_role_members(&question, o);

    hash = prof_hash_bytes(0, question.data, question.len);

    /* an answer of the cache is checked as one of the helper */

    rc = prof_names_units(names, hash, &t->answer);

    if (rc == PROF_OK) {
        rc = prof_unit_read(t);
    }

    if (rc != PROF_OK && prof_clock(CLOCK_MONOTONIC) >= deadline) {
        rc = PROF_LIMIT;

    } else if (rc != PROF_OK) {
        t->n = 0;
        t->answer.len = 0;

        rc = prof_unit_ask(t, &question, o, debug_root, deadline);

        if (rc == PROF_OK && t->answer.len) {
            prof_names_units_put(names, hash, &t->answer);
        }
    }

    prof_buf_free(&question);

    if (rc == PROF_OK && t->answer.len) {
        *table = t;
        return PROF_OK;
    }

    prof_unit_free(t);

    return rc;
}


/* asks the helper; the answer is empty if there is no helper */

static int
prof_unit_ask(prof_unit_table_t *t, const prof_buf_t *members,
    const prof_profile_object_t *o, const char *debug_root, uint64_t deadline)
{
    int         rc;
    prof_buf_t  question;

    prof_buf_init(&question);

    prof_helper_begin(&question, PROF_WIRE_UNITS, o, debug_root);
    prof_buf_append(&question, members->data, members->len);

    rc = prof_helper_exchange(&question, &t->answer, deadline);

    prof_buf_free(&question);

    return rc == PROF_OK && t->answer.len ? prof_unit_read(t) : rc;
}


/* reads the answer; returns PROF_LIMIT if the answer is invalid */

static int
prof_unit_read(prof_unit_table_t *t)
{
    uint32_t            max;
    prof_wire_t         w;
    prof_unit_range_t  *r, *ranges;

    w.pos = t->answer.data;
    w.end = t->answer.data + t->answer.len;
    w.failed = 0;

    if (prof_wire_get_u32(&w) != PROF_WIRE_UNITS) {
        return PROF_LIMIT;
    }

    for (max = 0; w.pos != w.end; t->n++) {

        if (t->n == PROF_WIRE_RANGES) {
            return PROF_LIMIT;
        }

        if (t->n == max) {
            max = max ? 2 * max : 1024;

            ranges = realloc(t->ranges, max * sizeof(prof_unit_range_t));
            if (ranges == NULL) {
                return PROF_ERROR;
            }

            t->ranges = ranges;
        }

        r = &t->ranges[t->n];

        r->first = prof_wire_get_u64(&w);
        r->last = prof_wire_get_u64(&w);
        r->text = prof_wire_get_text(&w);

        if (w.failed || r->text == NULL || r->last < r->first
            || (t->n && r->first <= r[-1].last))
        {
            return PROF_LIMIT;
        }
    }

    return PROF_OK;
}


int
prof_unit_name(const prof_unit_table_t *table, const prof_profile_t *p,
    prof_frame_t *f)
{
    char                     *name;
    uint32_t                  lo, hi, mid;
    const prof_unit_range_t  *r;

    if (table == NULL || f->function == 0) {
        return PROF_OK;
    }

    lo = 0;
    hi = table->n;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        r = &table->ranges[mid];

        if (f->function < r->first) {
            hi = mid;
            continue;
        }

        if (f->function > r->last) {
            lo = mid + 1;
            continue;
        }

        if (asprintf(&name, "%s (%s+0x%" PRIx64 ")", r->text,
                     prof_path_file(p->objects[f->object].path), f->function)
            == -1)
        {
            return PROF_ERROR;
        }

        free(f->name);
        f->name = name;
        f->source = PROF_SOURCE_UNIT;

        break;
    }

    return PROF_OK;
}


void
prof_unit_free(prof_unit_table_t *table)
{
    if (table) {
        prof_buf_free(&table->answer);
        free(table->ranges);
        free(table);
    }
}
