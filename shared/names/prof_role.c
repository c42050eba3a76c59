
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The table of roles is one block of memory: objects, roles, and all strings.
 */


#include "names/prof_role.h"
#include "names/prof_wire.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef struct {
    uint64_t             function;
    const char          *text;
    const char          *unit;          /* NULL: unknown */
} prof_role_entry_t;


typedef struct {
    const char          *path;
    const char          *build_id;      /* lower-case hex */
    prof_role_entry_t   *entries;       /* sorted */
    uint32_t             n;
} prof_role_object_t;


typedef struct {
    uint32_t             n;
    prof_role_object_t   objects[];
} prof_role_table_t;


static prof_role_table_t *prof_role_table(const prof_role_t *roles,
    uint32_t n);
static int prof_role_same(const prof_role_object_t *one,
    const prof_role_object_t *two);
static int prof_role_begins(const prof_role_t *roles, uint32_t i);
static char *prof_role_hex(char *p, const prof_role_t *role);
static char *prof_role_text(char *p, const char *text);
static const prof_role_object_t *prof_role_object(
    const prof_profile_object_t *o);
static int prof_role_is(const prof_role_object_t *ro,
    const prof_profile_object_t *o);
static const char *prof_role_added(const prof_profile_object_t *o,
    uint64_t function);
static const char *prof_role_find(const prof_role_object_t *o,
    uint64_t function);


static pthread_mutex_t     prof_role_lock = PTHREAD_MUTEX_INITIALIZER;
static prof_role_table_t  *prof_roles;

/* roles that were added, each in a table of its own */

static prof_role_table_t  *prof_roles_added[PROF_ROLE_ADDED];
static uint32_t            prof_nroles_added;


int
prof_profile_roles(const prof_role_t *roles, uint32_t n)
{
    prof_role_table_t  *table, *old;

    table = NULL;

    if (n) {
        table = prof_role_table(roles, n);
        if (table == NULL) {
            return PROF_ERROR;
        }
    }

    (void) pthread_mutex_lock(&prof_role_lock);

    old = prof_roles;
    prof_roles = table;

    while (prof_nroles_added) {
        free(prof_roles_added[--prof_nroles_added]);
    }

    (void) pthread_mutex_unlock(&prof_role_lock);

    free(old);

    return PROF_OK;
}


void
prof_profile_add_role(const prof_role_t *role)
{
    uint32_t            i;
    prof_role_table_t  *table;

    table = prof_role_table(role, 1);
    if (table == NULL) {
        return;
    }

    (void) pthread_mutex_lock(&prof_role_lock);

    for (i = 0; i < prof_nroles_added; i++) {

        if (prof_role_same(prof_roles_added[i]->objects, table->objects)) {
            break;
        }
    }

    if (i == PROF_ROLE_ADDED) {
        free(table);

    } else {
        if (i == prof_nroles_added) {
            prof_nroles_added++;

        } else {
            free(prof_roles_added[i]);
        }

        prof_roles_added[i] = table;
    }

    (void) pthread_mutex_unlock(&prof_role_lock);
}


/* returns whether the first roles of two objects name the same function */

static int
prof_role_same(const prof_role_object_t *one, const prof_role_object_t *two)
{
    return one->entries[0].function == two->entries[0].function
           && strcmp(one->build_id, two->build_id) == 0
           && strcmp(one->path, two->path) == 0;
}


static prof_role_table_t *
prof_role_table(const prof_role_t *roles, uint32_t n)
{
    char                *p;
    size_t               size;
    uint32_t             i, nobjects;
    prof_role_entry_t   *e;
    prof_role_table_t   *table;
    prof_role_object_t  *o;

    nobjects = 0;
    size = 0;

    for (i = 0; i < n; i++) {
        size += strlen(roles[i].text) + 1
                + (roles[i].unit ? strlen(roles[i].unit) + 1 : 0);

        if (prof_role_begins(roles, i)) {
            nobjects++;
            size += strlen(roles[i].path) + 1 + 2 * roles[i].build_id_len + 1;
        }
    }

    table = malloc(sizeof(prof_role_table_t)
                   + nobjects * sizeof(prof_role_object_t)
                   + n * sizeof(prof_role_entry_t) + size);
    if (table == NULL) {
        return NULL;
    }

    table->n = nobjects;

    o = NULL;
    e = (prof_role_entry_t *) &table->objects[nobjects];
    p = (char *) &e[n];

    for (i = 0; i < n; i++) {

        if (prof_role_begins(roles, i)) {
            o = o ? o + 1 : table->objects;
            o->n = 0;
            o->entries = &e[i];

            o->path = p;
            p = prof_role_text(p, roles[i].path);

            o->build_id = p;
            p = prof_role_hex(p, &roles[i]);
        }

        e[i].function = roles[i].function;
        e[i].text = p;
        p = prof_role_text(p, roles[i].text);

        e[i].unit = NULL;

        if (roles[i].unit) {

            e[i].unit = p;
            p = prof_role_text(p, roles[i].unit);
        }

        o->n++;
    }

    return table;
}


/* returns whether the role is the first one of its object */

static int
prof_role_begins(const prof_role_t *roles, uint32_t i)
{
    return i == 0
           || roles[i].build_id_len != roles[i - 1].build_id_len
           || memcmp(roles[i].build_id, roles[i - 1].build_id,
                     roles[i].build_id_len) != 0
           || strcmp(roles[i].path, roles[i - 1].path) != 0;
}


static char *
prof_role_hex(char *p, const prof_role_t *role)
{
    uint32_t  i;

    for (i = 0; i < role->build_id_len; i++) {
        *p++ = "0123456789abcdef"[role->build_id[i] >> 4];
        *p++ = "0123456789abcdef"[role->build_id[i] & 0xf];
    }

    *p++ = '\0';

    return p;
}


static char *
prof_role_text(char *p, const char *text)
{
    size_t  len;

    len = strlen(text) + 1;
    memcpy(p, text, len);

    return p + len;
}


int
prof_role_name(const prof_profile_t *p, prof_frame_t *f)
{
    int                           rc;
    char                         *name;
    const char                   *text;
    const prof_profile_object_t  *o;

    if (f->object == PROF_NONE || f->function == 0) {
        return PROF_OK;
    }

    o = &p->objects[f->object];
    rc = PROF_OK;
    name = NULL;

    (void) pthread_mutex_lock(&prof_role_lock);

    text = prof_role_find(prof_role_object(o), f->function);

    if (text == NULL) {
        text = prof_role_added(o, f->function);
    }

    if (text && asprintf(&name, "%s (%s+0x%" PRIx64 ")", text,
                         prof_path_file(o->path), f->function) == -1)
    {
        name = NULL;
        rc = PROF_ERROR;
    }

    (void) pthread_mutex_unlock(&prof_role_lock);

    if (name) {
        free(f->name);
        f->name = name;
        f->source = PROF_SOURCE_ROLE;
    }

    return rc;
}


static const prof_role_object_t *
prof_role_object(const prof_profile_object_t *o)
{
    uint32_t                   i;
    const prof_role_object_t  *ro;

    for (i = 0; prof_roles && i < prof_roles->n; i++) {
        ro = &prof_roles->objects[i];

        if (prof_role_is(ro, o)) {
            return ro;
        }
    }

    return NULL;
}


static int
prof_role_is(const prof_role_object_t *ro, const prof_profile_object_t *o)
{
    return strcmp(ro->build_id, o->build_id) == 0
           && (o->build_id[0] || strcmp(ro->path, o->path) == 0);
}


static const char *
prof_role_added(const prof_profile_object_t *o, uint64_t function)
{
    uint32_t             i;
    prof_role_object_t  *ro;

    for (i = 0; i < prof_nroles_added; i++) {
        ro = prof_roles_added[i]->objects;

        if (ro->entries[0].function == function && prof_role_is(ro, o)) {
            return ro->entries[0].text;
        }
    }

    return NULL;
}


static const char *
prof_role_find(const prof_role_object_t *o, uint64_t function)
{
    uint32_t                  lo, hi, mid;
    const prof_role_entry_t  *e;

    if (o == NULL) {
        return NULL;
    }

    lo = 0;
    hi = o->n;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;

        if (o->entries[mid].function < function) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    e = &o->entries[lo];

    return lo < o->n && e->function == function ? e->text : NULL;
}


int
prof_role_has(const prof_profile_object_t *o)
{
    int  has;

    (void) pthread_mutex_lock(&prof_role_lock);

    has = prof_role_object(o) != NULL;

    (void) pthread_mutex_unlock(&prof_role_lock);

    return has;
}


void
prof_role_members(prof_buf_t *b, const prof_profile_object_t *o)
{
    uint32_t                   i, n;
    const prof_role_object_t  *ro;

    (void) pthread_mutex_lock(&prof_role_lock);

    ro = prof_role_object(o);
    n = 0;

    for (i = 0; ro && i < ro->n && n < PROF_WIRE_MEMBERS; i++) {
        n += ro->entries[i].unit != NULL;
    }

    prof_wire_u32(b, n);

    for (i = 0; n; i++) {

        if (ro->entries[i].unit) {
            prof_wire_u64(b, ro->entries[i].function);
            prof_wire_text(b, ro->entries[i].unit);
            n--;
        }
    }

    (void) pthread_mutex_unlock(&prof_role_lock);
}
