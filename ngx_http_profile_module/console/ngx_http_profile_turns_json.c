
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A snapshot of the turn log as JSON: the runs and requests of each worker, and
 * who delayed whom.
 *
 * Context: a thread.
 */


#include "console/ngx_http_profile_routes.h"


#define NGX_HTTP_PROFILE_TURNS_NONE    ((int32_t) -1)


/* one victim and one culprit of the table of blame, by index */

typedef struct {
    int32_t       victim;       /* locations */
    int32_t       culprit;      /* location, or NONE */
    int32_t       handler;      /* of a culprit without a location */
    int32_t       what;         /* 0: a run, 1: the event loop, 2: the log was
                                   overwritten */
    uint64_t      ns;
    uint64_t      times;
    uint64_t      worst;        /* ns of one victim by one run */
    uint32_t      worst_worker;
    uint32_t      worst_victim;    /* numbers of requests */
    uint32_t      worst_culprit;
} ngx_http_profile_blame_t;


typedef struct {
    prof_turns_snapshot_t     *snapshot;
    prof_turns_lane_t         *lane;     /* that is blamed */
    ngx_http_profile_blame_t  *cells;
    uint32_t                   n;
    uint32_t                   size;
    ngx_uint_t                 failed;
} ngx_http_profile_blames_t;


static void ngx_http_profile_turns_names_json(prof_turns_snapshot_t *s,
    prof_buf_t *b);
static void ngx_http_profile_turns_lane_json(prof_turns_lane_t *lane,
    prof_buf_t *b);
static void ngx_http_profile_turns_run_json(const prof_turns_run_t *run,
    prof_buf_t *b);
static void ngx_http_profile_turns_request_json(
    const prof_turns_request_t *row, prof_buf_t *b);
static void ngx_http_profile_turns_address_json(prof_buf_t *b,
    const char *name, const prof_turns_address_t *address);
static int ngx_http_profile_turns_blame_json(prof_turns_snapshot_t *s,
    prof_buf_t *b);
static void ngx_http_profile_turns_blamed(void *data, size_t victim,
    size_t culprit, uint64_t ns);
static ngx_http_profile_blame_t *ngx_http_profile_turns_cell(
    ngx_http_profile_blames_t *blames, ngx_http_profile_blame_t *key);


/* numbers of locations and handlers are indices plus 1 */

#define ngx_http_profile_turns_index(number)  ((int32_t) (number) - 1)


int
ngx_http_profile_turns_json(prof_turns_snapshot_t *s, prof_buf_t *b)
{
    uint32_t  i;

    static const char  *reasons[] = {
        "asked", "request", "stall", "death"
    };

    prof_buf_printf(b, "{\"version\":%d,\"seconds\":%.3f,\"now\":%llu,"
                       "\"reason\":\"%s\",\"cut\":%s,",
                    PROF_TURNS_VERSION, (double) s->length / 1e9,
                    (unsigned long long) s->now, reasons[s->reason],
                    s->cut ? "true" : "false");

    if (s->request || s->run) {
        prof_buf_printf(b, "\"about\":{\"worker\":%u,\"request\":%u,"
                           "\"start\":%llu},",
                        s->worker, s->request, (unsigned long long) s->run);
    }

    prof_buf_puts(b, "\"columns\":[\"start\",\"length\",\"stall\",\"request\","
                     "\"location\",\"handler\",\"cause\",\"kind\",\"flags\"],"
                     "\"kinds\":[\"run\",\"sleep\",\"begin\",\"end\"],"
                     "\"flags\":{");
    prof_buf_printf(b, "\"first\":%d,\"last\":%d,\"subrequest\":%d,"
                       "\"nested\":%d,\"accept\":%d,\"tls\":%d,\"timer\":%d,"
                       "\"died\":%d,\"open\":%d},",
                    PROF_TURNS_FIRST, PROF_TURNS_LAST, PROF_TURNS_SUBREQUEST,
                    PROF_TURNS_NESTED, PROF_TURNS_ACCEPT, PROF_TURNS_TLS,
                    PROF_TURNS_TIMER, PROF_TURNS_DIED, PROF_TURNS_OPEN);

    ngx_http_profile_turns_names_json(s, b);

    prof_buf_puts(b, ",\"workers\":[");

    for (i = 0; i < s->nlanes; i++) {
        prof_buf_puts(b, i ? "," : "");
        ngx_http_profile_turns_lane_json(&s->lanes[i], b);
    }

    prof_buf_puts(b, "],\"blame\":[");

    if (ngx_http_profile_turns_blame_json(s, b) != PROF_OK) {
        return PROF_ERROR;
    }

    prof_buf_puts(b, "]}\n");

    return PROF_OK;
}


static void
ngx_http_profile_turns_names_json(prof_turns_snapshot_t *s, prof_buf_t *b)
{
    char                   *name;
    uint32_t                i;
    prof_turns_location_t  *l;

    prof_buf_puts(b, "\"locations\":[");

    for (i = 0; i < s->nlocations; i++) {
        l = &s->locations[i];

        prof_buf_puts(b, i ? ",{\"server\":" : "{\"server\":");
        prof_text_json(b, l->server, strlen(l->server));
        prof_buf_puts(b, ",\"location\":");
        prof_text_json(b, l->name, strlen(l->name));
        prof_buf_puts(b, "}");
    }

    prof_buf_puts(b, "],\"handlers\":[");

    for (i = 0; i < s->nhandlers; i++) {
        name = s->handlers[i];

        prof_buf_puts(b, i ? "," : "");
        prof_text_json(b, name ? name : "", name ? strlen(name) : 0);
    }

    prof_buf_puts(b, "]");
}


static void
ngx_http_profile_turns_lane_json(prof_turns_lane_t *lane, prof_buf_t *b)
{
    size_t              i;
    prof_turns_copy_t  *copy;

    copy = &lane->copy;

    prof_buf_printf(b, "{\"worker\":%u,\"pid\":%u,\"alive\":%s,\"ended\":%s,"
                       "\"began\":%llu,\"epoch\":%llu,\"from\":%llu,"
                       "\"written\":%llu,\"runs\":[",
                    lane->worker, lane->pid,
                    lane->alive ? "true" : "false",
                    copy->log.ended ? "true" : "false",
                    (unsigned long long) copy->log.began,
                    (unsigned long long) copy->log.wall,
                    (unsigned long long) copy->from,
                    (unsigned long long) copy->log.written);

    for (i = 0; i < copy->nruns; i++) {
        prof_buf_puts(b, i ? "," : "");
        ngx_http_profile_turns_run_json(&copy->runs[i], b);
    }

    prof_buf_puts(b, "],\"requests\":[");

    for (i = 0; i < copy->nrequests; i++) {
        prof_buf_puts(b, i ? "," : "");
        ngx_http_profile_turns_request_json(&copy->requests[i], b);
    }

    prof_buf_puts(b, "]}");
}


static void
ngx_http_profile_turns_run_json(const prof_turns_run_t *run, prof_buf_t *b)
{
    prof_buf_number(b, run->start);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->end - run->start);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->stall);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->request);
    prof_buf_printf(b, ",%d,%d,", ngx_http_profile_turns_index(run->location),
                    ngx_http_profile_turns_index(run->handler));
    prof_buf_number(b, run->cause);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->kind);
    prof_buf_puts(b, ",");
    prof_buf_number(b, run->flags);
}


static void
ngx_http_profile_turns_request_json(const prof_turns_request_t *row,
    prof_buf_t *b)
{
    size_t   i;
    uint8_t  any;

    prof_buf_printf(b, "{\"number\":%u,\"start\":%llu,\"location\":%d,"
                       "\"text\":",
                    row->number, (unsigned long long) row->start,
                    ngx_http_profile_turns_index(row->location));
    prof_text_json(b, row->text, row->len);

    if (row->cut) {
        prof_buf_printf(b, ",\"cut\":%u", row->cut);
    }

    if (row->status) {
        prof_buf_printf(b, ",\"status\":%u,\"bytes\":%llu", row->status,
                        (unsigned long long) row->bytes);

        ngx_http_profile_turns_address_json(b, "client", &row->client);
        ngx_http_profile_turns_address_json(b, "upstream", &row->upstream);

        any = 0;

        for (i = 0; i < sizeof(row->id); i++) {
            any |= row->id[i];
        }

        if (any) {
            prof_buf_puts(b, ",\"id\":\"");

            for (i = 0; i < sizeof(row->id); i++) {
                prof_buf_printf(b, "%02x", row->id[i]);
            }

            prof_buf_puts(b, "\"");
        }
    }

    prof_buf_puts(b, "}");
}


static void
ngx_http_profile_turns_address_json(prof_buf_t *b, const char *name,
    const prof_turns_address_t *address)
{
    size_t                len;
    struct sockaddr_in    sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6   sin6;
#endif
    u_char                text[NGX_SOCKADDR_STRLEN];

    len = 0;

    if (address->family == AF_INET) {
        ngx_memzero(&sin, sizeof(struct sockaddr_in));

        sin.sin_family = AF_INET;
        sin.sin_port = address->port;
        ngx_memcpy(&sin.sin_addr, address->address, 4);

        len = ngx_sock_ntop((struct sockaddr *) &sin,
                            sizeof(struct sockaddr_in), text, sizeof(text), 1);
    }

#if (NGX_HAVE_INET6)
    if (address->family == AF_INET6) {
        ngx_memzero(&sin6, sizeof(struct sockaddr_in6));

        sin6.sin6_family = AF_INET6;
        sin6.sin6_port = address->port;
        ngx_memcpy(&sin6.sin6_addr, address->address, 16);

        len = ngx_sock_ntop((struct sockaddr *) &sin6,
                            sizeof(struct sockaddr_in6), text, sizeof(text),
                            1);
    }
#endif

    if (len) {
        prof_buf_printf(b, ",\"%s\":", name);
        prof_text_json(b, (char *) text, len);
    }
}


static int
ngx_http_profile_turns_blame_json(prof_turns_snapshot_t *s, prof_buf_t *b)
{
    uint32_t                    i;
    ngx_http_profile_blame_t   *cell;
    ngx_http_profile_blames_t   blames;

    static const char  *what[] = { "run", "loop", "overwritten" };

    ngx_memzero(&blames, sizeof(ngx_http_profile_blames_t));

    for (i = 0; i < s->nlanes && !blames.failed; i++) {
        blames.lane = &s->lanes[i];

        if (prof_turns_blame(&blames.lane->copy, ngx_http_profile_turns_blamed,
                             &blames)
            != PROF_OK)
        {
            blames.failed = 1;
        }
    }

    for (i = 0; i < blames.n; i++) {
        cell = &blames.cells[i];

        prof_buf_printf(b, "%s{\"victim\":%d,\"what\":\"%s\",\"culprit\":%d,"
                           "\"handler\":%d,\"ns\":%llu,\"times\":%llu,"
                           "\"worst\":{\"ns\":%llu,\"worker\":%u,"
                           "\"victim\":%u,\"culprit\":%u}}",
                        i ? "," : "", cell->victim, what[cell->what],
                        cell->culprit, cell->handler,
                        (unsigned long long) cell->ns,
                        (unsigned long long) cell->times,
                        (unsigned long long) cell->worst,
                        cell->worst_worker, cell->worst_victim,
                        cell->worst_culprit);
    }

    free(blames.cells);

    return blames.failed ? PROF_ERROR : PROF_OK;
}


static void
ngx_http_profile_turns_blamed(void *data, size_t victim, size_t culprit,
    uint64_t ns)
{
    ngx_http_profile_blames_t *blames = data;

    const prof_turns_run_t    *v, *by;
    ngx_http_profile_blame_t   key, *cell;

    v = &blames->lane->copy.runs[victim];
    by = NULL;

    ngx_memzero(&key, sizeof(ngx_http_profile_blame_t));

    key.victim = ngx_http_profile_turns_index(v->location);
    key.culprit = NGX_HTTP_PROFILE_TURNS_NONE;
    key.handler = NGX_HTTP_PROFILE_TURNS_NONE;

    if (culprit == PROF_TURNS_LOOP) {
        key.what = 1;

    } else if (culprit == PROF_TURNS_OVERWRITTEN) {
        key.what = 2;

    } else {
        by = &blames->lane->copy.runs[culprit];
        key.culprit = ngx_http_profile_turns_index(by->location);

        if (key.culprit == NGX_HTTP_PROFILE_TURNS_NONE) {
            key.handler = ngx_http_profile_turns_index(by->handler);
        }
    }

    cell = ngx_http_profile_turns_cell(blames, &key);

    if (cell == NULL) {
        blames->failed = 1;
        return;
    }

    cell->ns += ns;
    cell->times++;

    if (ns > cell->worst) {
        cell->worst = ns;
        cell->worst_worker = blames->lane->worker;
        cell->worst_victim = v->request;
        cell->worst_culprit = by ? by->request : 0;
    }
}


/* the table is small: as many rows as pairs of locations that met */

static ngx_http_profile_blame_t *
ngx_http_profile_turns_cell(ngx_http_profile_blames_t *blames,
    ngx_http_profile_blame_t *key)
{
    uint32_t                   i, size;
    ngx_http_profile_blame_t  *cell, *cells;

    for (i = 0; i < blames->n; i++) {
        cell = &blames->cells[i];

        if (cell->victim == key->victim && cell->culprit == key->culprit
            && cell->handler == key->handler && cell->what == key->what)
        {
            return cell;
        }
    }

    if (blames->n == blames->size) {
        size = blames->size ? 2 * blames->size : 64;
        cells = realloc(blames->cells,
                        size * sizeof(ngx_http_profile_blame_t));

        if (cells == NULL) {
            return NULL;
        }

        blames->cells = cells;
        blames->size = size;
    }

    blames->cells[blames->n] = *key;

    return &blames->cells[blames->n++];
}
