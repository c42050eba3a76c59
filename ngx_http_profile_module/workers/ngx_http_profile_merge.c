
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Merges the profiles of workers into one, and encodes it.
 *
 * Context: a thread, unless stated otherwise.
 */


#include "request/ngx_http_profile_object.h"
#include "workers/ngx_http_profile_asker.h"

#include <sys/mman.h>


#define NGX_HTTP_PROFILE_NO_WAITS                                             \
    "not known, since \"profile_accounting\" is off"


static prof_profile_t *ngx_http_profile_asker_sum(
    ngx_http_profile_asker_t *s);
static ngx_int_t ngx_http_profile_asker_add(ngx_http_profile_asker_t *s,
    prof_merge_t *merge, ngx_http_profile_member_t *member);
static prof_profile_t *ngx_http_profile_asker_read(int fd);
static void ngx_http_profile_asker_name(ngx_http_profile_asker_t *s,
    ngx_http_profile_member_t *member);
static const char *ngx_http_profile_asker_why(
    ngx_http_profile_member_t *member);
static void ngx_http_profile_asker_text(char *list, size_t size,
    const char *fmt, ngx_http_profile_member_t *member, const char *why);
static void ngx_http_profile_asker_facts(ngx_http_profile_asker_t *s,
    prof_profile_t *p);


void
ngx_http_profile_asker_merge(void *data)
{
    ngx_http_profile_asker_t *s = data;

    prof_profile_t  *p;

    p = ngx_http_profile_asker_sum(s);

    if (p == NULL) {
        s->merged.failed = 1;
        return;
    }

    if (s->merged.nworkers && !ngx_http_profile_asker_is_empty(s)) {
        ngx_http_profile_asker_facts(s, p);

        if (prof_profile_symbolize(p) != PROF_OK) {
            s->merged.failed = 1;

        } else if (s->wanted.store) {
            s->merged.stored = ngx_http_profile_asker_keep(s, p);
        }

        if (s->merged.failed || ngx_http_profile_asker_is_kept(s)) {
            prof_profile_destroy(p);
            return;
        }

        if (s->wanted.format->encode(p, &s->out) != PROF_OK
            || prof_buf_failed(&s->out))
        {
            s->merged.failed = 1;

        } else {
            ngx_http_profile_gzip(&s->out, &s->gzip);
        }
    }

    prof_profile_destroy(p);
}


static prof_profile_t *
ngx_http_profile_asker_sum(ngx_http_profile_asker_t *s)
{
    ngx_uint_t     i;
    prof_merge_t  *merge;

    merge = prof_merge_create(ngx_http_profile_asker_title(&s->wanted), 0);
    if (merge == NULL) {
        return NULL;
    }

    for (i = 0; i < s->nmembers; i++) {

        if (ngx_http_profile_asker_add(s, merge, &s->members[i]) == NGX_ERROR)
        {
            prof_merge_destroy(merge);
            return NULL;
        }

        ngx_http_profile_asker_name(s, &s->members[i]);
    }

    return prof_merge_finish(merge);
}


const char *
ngx_http_profile_asker_title(ngx_http_profile_wanted_t *wanted)
{
    ngx_http_profile_filter_t  *f;

    f = &wanted->filter;

    if (wanted->title[0]) {
        return wanted->title;
    }

    if (f->enabled) {
        return f->location[0] ? f->location
                              : f->uri[0] ? f->uri
                                          : f->server[0] ? f->server
                                                         : "all requests";
    }

    return wanted->worker == -1 ? "all workers" : "worker";
}


/*
 * Adds the archive of a worker to the profile.  Returns NGX_DECLINED if the
 * archive has no samples, and NGX_ERROR if memory is short.
 */

static ngx_int_t
ngx_http_profile_asker_add(ngx_http_profile_asker_t *s, prof_merge_t *merge,
    ngx_http_profile_member_t *member)
{
    int                 rc;
    char                number[NGX_INT_T_LEN + 1];
    prof_profile_t     *p;
    prof_merge_label_t  label;

    if (member->state != NGX_HTTP_PROFILE_MEMBER_DONE
        || (member->report != NGX_HTTP_PROFILE_DONE
            && member->report != NGX_HTTP_PROFILE_EARLY
            && member->report != NGX_HTTP_PROFILE_STUCK))
    {
        return NGX_DECLINED;
    }

    p = ngx_http_profile_asker_read(member->fd);

    if (p == NULL) {
        member->report = NGX_HTTP_PROFILE_FAILED;
        return NGX_DECLINED;
    }

    if (s->wanted.filter.enabled) {
        ngx_http_profile_asker_take_times(s, p);
    }

    *ngx_sprintf((u_char *) number, "%ui", member->worker) = '\0';

    label.name = "worker";
    label.value = number;
    label.unit = NULL;

    rc = prof_merge_add(merge, p, &label, 1);

    prof_profile_destroy(p);

    if (rc != PROF_OK) {
        return NGX_ERROR;
    }

    s->merged.nworkers++;

    return NGX_OK;
}


/*
 * Reads a worker's archive.  The archive is not trusted, because the worker
 * may have been killed while it wrote the archive.
 */

static prof_profile_t *
ngx_http_profile_asker_read(int fd)
{
    void            *data;
    struct stat      st;
    prof_profile_t  *p;

    if (fstat(fd, &st) == -1 || st.st_size <= 0
        || st.st_size > NGX_HTTP_PROFILE_SHARE_MAX)
    {
        return NULL;
    }

    data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return NULL;
    }

    p = prof_archive_read(data, st.st_size, NULL);

    (void) munmap(data, st.st_size);

    return p;
}


/* lists the worker with those that took part, or with those left out */

static void
ngx_http_profile_asker_name(ngx_http_profile_asker_t *s,
    ngx_http_profile_member_t *member)
{
    const char                 *why;
    ngx_http_profile_merged_t  *m;

    m = &s->merged;
    why = ngx_http_profile_asker_why(member);

    if (why) {
        ngx_http_profile_asker_text(m->left_out, sizeof(m->left_out),
                                     "%s%P (%s)", member, why);
        return;
    }

    ngx_http_profile_asker_text(m->took_part, sizeof(m->took_part),
                                 "%s%P%s", member,
                                 member->report == NGX_HTTP_PROFILE_EARLY
                                     ? " (until it exited)"
                                 : member->report == NGX_HTTP_PROFILE_STUCK
                                     ? " (busy with one event)" : "");
}


/* returns why the worker was left out, or NULL if it took part */

static const char *
ngx_http_profile_asker_why(ngx_http_profile_member_t *member)
{
    switch (member->state) {

    case NGX_HTTP_PROFILE_MEMBER_GONE:
        return "died";

    case NGX_HTTP_PROFILE_MEMBER_REFUSED:
        return "not reached";

    case NGX_HTTP_PROFILE_MEMBER_DONE:
        break;

    default:
        return (member->held && !member->begun)
               ? "busy with one event, which the modes cpu and wall show"
               : "no answer";
    }

    switch (member->report) {

    case NGX_HTTP_PROFILE_DONE:
    case NGX_HTTP_PROFILE_EARLY:
    case NGX_HTTP_PROFILE_STUCK:
        return NULL;

    case NGX_HTTP_PROFILE_BUSY:
        return "too many captures";

    case NGX_HTTP_PROFILE_LATE:
        return "busy until the end";

    default:
        return "failed, see its log";
    }
}


static void
ngx_http_profile_asker_text(char *list, size_t size, const char *fmt,
    ngx_http_profile_member_t *member, const char *why)
{
    size_t  len;

    len = ngx_strlen(list);

    *ngx_slprintf((u_char *) list + len, (u_char *) list + size - 1, fmt,
                  len ? ", " : "", member->pid, why) = '\0';
}


/* adds facts; errors are ignored, since a profile without facts is useful */

static void
ngx_http_profile_asker_facts(ngx_http_profile_asker_t *s, prof_profile_t *p)
{
    ngx_http_profile_merged_t     *m;
    ngx_http_profile_main_conf_t  *pmcf;

    m = &s->merged;
    pmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                               ngx_http_profile_module);

    p->first = s->wanted.inuse ? PROF_MEASURE_INUSE_SPACE : PROF_NONE;

    if (s->wanted.filter.enabled) {
        (void) prof_profile_scope(p, "endpoint");
        ngx_http_profile_asker_spread(s, p);

    } else {
        (void) prof_profile_scope(p, s->wanted.worker == -1 ? "all"
                                                            : "worker");
    }

    if (s->wanted.conf.mode == PROF_MODE_OBJECT) {
        ngx_http_profile_not_counted(p);
    }

    (void) prof_profile_fact(p, "workers", m->took_part,
                             ngx_strlen(m->took_part));

    if (m->left_out[0]) {
        (void) prof_profile_fact(p, "left_out", m->left_out,
                                 ngx_strlen(m->left_out));
    }

    if (p->mode == PROF_MODE_WALL && !s->wanted.filter.enabled
        && !pmcf->accounting)
    {
        (void) prof_profile_fact(p, "requests_wait_for",
                                 NGX_HTTP_PROFILE_NO_WAITS,
                                 sizeof(NGX_HTTP_PROFILE_NO_WAITS) - 1);
    }

    (void) prof_profile_fact(p, "software", NGINX_VER, sizeof(NGINX_VER) - 1);
}
