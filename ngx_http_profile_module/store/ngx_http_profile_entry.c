
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The head of a stored profile, which is the same in memory and in files.
 */


#include "store/ngx_http_profile_zone.h"


static uint32_t ngx_http_profile_entry_crc(ngx_http_profile_entry_t *entry,
    ngx_str_t *texts, ngx_uint_t n);


void
ngx_http_profile_entry_make(ngx_http_profile_entry_t *entry,
    ngx_http_profile_stored_t *st, ngx_str_t *texts)
{
    ngx_uint_t   i;
    ngx_time_t  *tp;

    static size_t  max[] = NGX_HTTP_PROFILE_TEXTS;

    ngx_memzero(entry, sizeof(ngx_http_profile_entry_t));

    texts[0] = st->scope;
    texts[1] = st->method;
    texts[2] = st->host;
    texts[3] = st->uri;

    for (i = 0; i < 4; i++) {
        texts[i].len = ngx_min(texts[i].len, max[i]);
        entry->texts[i] = (uint16_t) texts[i].len;
    }

    tp = ngx_timeofday();

    ngx_memcpy(entry->magic, NGX_HTTP_PROFILE_MAGIC,
               sizeof(entry->magic));

    entry->stored = st->stored ? st->stored
                               : (uint64_t) tp->sec * 1000 + tp->msec;
    entry->start = st->start;
    entry->status = st->status;
    entry->mode = st->mode;
    entry->worker = st->worker;
    entry->wall = st->wall;
    entry->cpu = st->cpu;
    entry->waited = st->waited;
    entry->samples = st->samples;

    if (st->mode == PROF_MODE_OBJECT) {
        entry->allocated = st->allocated;
        entry->allocations = st->allocations;

    } else {
        entry->allocated = st->no_processor;
        entry->allocations = st->blocked;
    }

    entry->in_use = st->in_use;
    entry->size = st->size;

    ngx_memcpy(entry->id, st->id, NGX_HTTP_PROFILE_ID_LEN);

    entry->archive_crc = ngx_crc32_long(st->archive, st->size);
    entry->crc = ngx_http_profile_entry_crc(entry, texts, 4);
}


ngx_int_t
ngx_http_profile_entry_valid(ngx_http_profile_entry_t *entry,
    u_char *texts)
{
    ngx_str_t  all;

    if (ngx_memcmp(entry->magic, NGX_HTTP_PROFILE_MAGIC,
                   sizeof(entry->magic))
        != 0
        || entry->pinned > 1)
    {
        return NGX_ERROR;
    }

    all.data = texts;
    all.len = ngx_http_profile_entry_texts(entry);

    return (entry->crc == ngx_http_profile_entry_crc(entry, &all, 1))
           ? NGX_OK : NGX_ERROR;
}


static uint32_t
ngx_http_profile_entry_crc(ngx_http_profile_entry_t *entry,
    ngx_str_t *texts, ngx_uint_t n)
{
    size_t      skip;
    uint32_t    crc;
    ngx_uint_t  i;

    skip = offsetof(ngx_http_profile_entry_t, archive_crc);

    ngx_crc32_init(crc);
    ngx_crc32_update(&crc, (u_char *) entry + skip,
                     sizeof(ngx_http_profile_entry_t) - skip);

    for (i = 0; i < n; i++) {
        ngx_crc32_update(&crc, texts[i].data, texts[i].len);
    }

    ngx_crc32_final(crc);

    return crc;
}


size_t
ngx_http_profile_entry_texts(ngx_http_profile_entry_t *entry)
{
    return (size_t) entry->texts[0] + entry->texts[1] + entry->texts[2]
           + entry->texts[3];
}


void
ngx_http_profile_entry_read(ngx_http_profile_entry_t *entry,
    u_char *texts, ngx_http_profile_stored_t *st)
{
    ngx_uint_t   i;
    ngx_str_t   *text[4];

    text[0] = &st->scope;
    text[1] = &st->method;
    text[2] = &st->host;
    text[3] = &st->uri;

    for (i = 0; i < 4; i++) {
        text[i]->data = texts;
        text[i]->len = entry->texts[i];
        texts += entry->texts[i];
    }

    st->stored = entry->stored;
    st->start = entry->start;
    st->status = entry->status;
    st->mode = entry->mode;
    st->wall = entry->wall;
    st->cpu = entry->cpu;
    st->waited = entry->waited;
    st->samples = entry->samples;
    st->no_processor = 0;
    st->blocked = 0;
    st->allocated = 0;
    st->allocations = 0;

    if (st->mode == PROF_MODE_OBJECT) {
        st->allocated = entry->allocated;
        st->allocations = entry->allocations;

    } else {
        st->no_processor = entry->allocated;
        st->blocked = entry->allocations;
    }

    st->in_use = entry->in_use;
    st->order = 0;
    st->worker = entry->worker;
    st->pinned = entry->pinned != 0;
    st->size = (size_t) entry->size;

    ngx_memcpy(st->id, entry->id, NGX_HTTP_PROFILE_ID_LEN);
}
