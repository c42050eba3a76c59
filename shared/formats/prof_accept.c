
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_accept.h"

#include <string.h>
#include <strings.h>


/* qualities are in thousandths */

#define PROF_ACCEPT_MAX      1000
#define PROF_ACCEPT_INVALID  -1


/* an element of a list: "text/html;level=1;q=0.5" */

typedef struct {
    const char   *name;
    size_t        len;
    int           q;
} prof_accept_item_t;


/* how well a header matches a type */

typedef struct {
    int           q;            /* 0: refused, or not in the header */
    unsigned      level;        /* 1: by wildcard, 2: by type, 3: exactly */
    unsigned      position;     /* position in the header */
} prof_accept_rank_t;


/* other names of a type */

typedef struct {
    const char   *alias;
    const char   *type;
} prof_accept_alias_t;


static prof_accept_rank_t prof_accept_rank(const char *s, size_t len,
    const char *type);
static unsigned prof_accept_level(const prof_accept_item_t *item,
    const char *type);
static int prof_accept_is_type(const prof_accept_item_t *item,
    const char *type);
static int prof_accept_better(const prof_accept_rank_t *one,
    const prof_accept_rank_t *two);
static int prof_accept_next(const char **s, const char *last,
    prof_accept_item_t *item);
static const char *prof_accept_part(const char *s, const char *last,
    char end);
static int prof_accept_q(const char *s, const char *last);
static void prof_accept_trim(const char **s, const char **last);
static int prof_accept_eq(const prof_accept_item_t *item, const char *name,
    size_t len);


static const prof_accept_alias_t  prof_accept_aliases[] = {
    { "application/vnd.google.protobuf", "application/octet-stream" },
    { "application/x-protobuf", "application/octet-stream" },
    { "application/protobuf", "application/octet-stream" },
    { NULL, NULL }
};


const prof_encoder_t *
prof_accept_encoder(const char *s, size_t len, const prof_encoder_t *def)
{
    size_t                 i;
    prof_accept_rank_t     best, rank;
    const prof_encoder_t  *e;

    e = def;
    best = prof_accept_rank(s, len, def->content_type);

    /*
     * Among equal formats the default wins, also if another format is named
     * before.  The position only decides between other formats.
     */

    best.position = 0;

    for (i = 0; prof_encoders[i]; i++) {

        if (prof_encoders[i] == def) {
            continue;
        }

        rank = prof_accept_rank(s, len, prof_encoders[i]->content_type);

        if (prof_accept_better(&rank, &best)) {
            best = rank;
            e = prof_encoders[i];
        }
    }

    return e;
}


unsigned
prof_accept_type(const char *s, size_t len, const char **types)
{
    unsigned            i, chosen;
    prof_accept_rank_t  best, rank;

    chosen = 0;
    best = prof_accept_rank(s, len, types[0]);
    best.position = 0;

    for (i = 1; types[i]; i++) {

        rank = prof_accept_rank(s, len, types[i]);

        if (prof_accept_better(&rank, &best)) {
            best = rank;
            chosen = i;
        }
    }

    return chosen;
}


int
prof_accept_gzip(const char *s, size_t len)
{
    int                  all, gzip, identity;
    const char          *last;
    prof_accept_item_t   item;

    all = PROF_ACCEPT_INVALID;
    gzip = PROF_ACCEPT_INVALID;
    identity = PROF_ACCEPT_INVALID;

    last = s + len;

    while (prof_accept_next(&s, last, &item)) {

        if (prof_accept_eq(&item, "gzip", 4)
            || prof_accept_eq(&item, "x-gzip", 6))
        {
            gzip = item.q;

        } else if (prof_accept_eq(&item, "identity", 8)) {
            identity = item.q;

        } else if (prof_accept_eq(&item, "*", 1)) {
            all = item.q;
        }
    }

    if (gzip == PROF_ACCEPT_INVALID) {
        gzip = all;
    }

    return gzip > 0 && gzip >= identity;
}


static prof_accept_rank_t
prof_accept_rank(const char *s, size_t len, const char *type)
{
    unsigned             level, position;
    const char          *last;
    prof_accept_item_t   item;
    prof_accept_rank_t   rank;

    memset(&rank, 0, sizeof(prof_accept_rank_t));

    last = s + len;
    position = 0;

    while (prof_accept_next(&s, last, &item)) {

        level = prof_accept_level(&item, type);
        position++;

        /* a header may refuse an exact name and accept its type */

        if (level > rank.level) {
            rank.level = level;
            rank.position = position;
            rank.q = item.q;
        }
    }

    return rank;
}


static unsigned
prof_accept_level(const prof_accept_item_t *item, const char *type)
{
    size_t                      len;
    const prof_accept_alias_t  *a;

    /* some old clients send "*" for all types */

    if (prof_accept_eq(item, "*/*", 3) || prof_accept_eq(item, "*", 1)) {
        return 1;
    }

    if (prof_accept_is_type(item, type)) {
        return 3;
    }

    for (a = prof_accept_aliases; a->alias; a++) {
        if (strcmp(a->type, type) == 0
            && prof_accept_eq(item, a->alias, strlen(a->alias)))
        {
            return 3;
        }
    }

    len = strcspn(type, "/") + 1;

    if (item->len == len + 1 && item->name[len] == '*'
        && strncasecmp(item->name, type, len) == 0)
    {
        return 2;
    }

    return 0;
}


/* returns whether the item has this type, without the type's parameters */

static int
prof_accept_is_type(const prof_accept_item_t *item, const char *type)
{
    return prof_accept_eq(item, type, strcspn(type, ";"));
}


static int
prof_accept_better(const prof_accept_rank_t *one,
    const prof_accept_rank_t *two)
{
    if (one->q != two->q) {
        return one->q > two->q;
    }

    if (one->q == 0) {
        return 0;
    }

    if (one->level != two->level) {
        return one->level > two->level;
    }

    return one->position < two->position;
}


/* reads the next well-formed element; returns 0 at the end */

static int
prof_accept_next(const char **s, const char *last, prof_accept_item_t *item)
{
    const char  *p, *end, *param;

    while (*s < last) {

        p = *s;
        end = prof_accept_part(p, last, ',');
        *s = end < last ? end + 1 : last;

        param = prof_accept_part(p, end, ';');

        item->q = prof_accept_q(param, end);
        item->name = p;

        prof_accept_trim(&item->name, &param);

        item->len = param - item->name;

        if (item->len && item->q != PROF_ACCEPT_INVALID) {
            return 1;
        }
    }

    return 0;
}


/* returns the place of the character outside of quotes, or the end */

static const char *
prof_accept_part(const char *s, const char *last, char end)
{
    int  quoted;

    quoted = 0;

    for ( /* void */ ; s < last; s++) {

        if (quoted && *s == '\\') {

            if (++s == last) {
                break;
            }

            continue;
        }

        if (*s == '"') {
            quoted = !quoted;

        } else if (*s == end && !quoted) {
            break;
        }
    }

    return s;
}


/* returns the quality "q" in *( ";" name "=" value ), which ends the list */

static int
prof_accept_q(const char *s, const char *last)
{
    int          q, unit;
    const char  *p, *end;

    while (s < last) {

        p = s + 1;
        s = prof_accept_part(p, last, ';');
        end = s;

        prof_accept_trim(&p, &end);

        if (end - p < 2 || (*p != 'q' && *p != 'Q') || p[1] != '=') {
            continue;
        }

        p += 2;
        q = 0;

        if (p == end) {
            return PROF_ACCEPT_INVALID;
        }

        if (*p == '0' || *p == '1') {
            q = (*p++ - '0') * PROF_ACCEPT_MAX;

        } else if (*p != '.') {
            return PROF_ACCEPT_INVALID;
        }

        if (p < end && *p++ != '.') {
            return PROF_ACCEPT_INVALID;
        }

        for (unit = PROF_ACCEPT_MAX / 10; p < end; p++, unit /= 10) {

            if (*p < '0' || *p > '9') {
                return PROF_ACCEPT_INVALID;
            }

            q += (*p - '0') * unit;
        }

        return q <= PROF_ACCEPT_MAX ? q : PROF_ACCEPT_INVALID;
    }

    return PROF_ACCEPT_MAX;
}


static void
prof_accept_trim(const char **s, const char **last)
{
    while (*s < *last && (**s == ' ' || **s == '\t')) {
        (*s)++;
    }

    while (*s < *last && ((*last)[-1] == ' ' || (*last)[-1] == '\t')) {
        (*last)--;
    }
}


static int
prof_accept_eq(const prof_accept_item_t *item, const char *name, size_t len)
{
    return item->len == len && strncasecmp(item->name, name, len) == 0;
}
