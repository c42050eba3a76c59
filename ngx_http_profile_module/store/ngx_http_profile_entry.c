
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The record of a stored profile, which is the same in memory and in files.
 */


#include "store/ngx_http_profile_zone.h"


static uint32_t ngx_http_profile_entry_crc(ngx_http_profile_entry_t *record,
    ngx_str_t *texts, ngx_uint_t n);


static u_char  ngx_http_profile_entry_magic[] = "ngxprof2";


void
ngx_http_profile_entry_make(ngx_http_profile_entry_t *record,
    ngx_http_profile_stored_t *st, ngx_str_t *texts)
{
    ngx_uint_t   i;
    ngx_time_t  *tp;

    static size_t  max[] = NGX_HTTP_PROFILE_TEXTS;

    ngx_memzero(record, sizeof(ngx_http_profile_entry_t));

    texts[0] = st->scope;
    texts[1] = st->method;
    texts[2] = st->host;
    texts[3] = st->uri;

    for (i = 0; i < 4; i++) {
        texts[i].len = ngx_min(texts[i].len, max[i]);
        record->texts[i] = (uint16_t) texts[i].len;
    }

    tp = ngx_timeofday();

    ngx_memcpy(record->magic, ngx_http_profile_entry_magic,
               sizeof(record->magic));

    record->stored = (uint64_t) tp->sec * 1000 + tp->msec;
    record->start = st->start;
    record->status = st->status;
    record->mode = st->mode;
    record->worker = st->worker;
    record->wall = st->wall;
    record->cpu = st->cpu;
    record->waited = st->waited;
    record->samples = st->samples;
    record->allocated = st->allocated;
    record->allocations = st->allocations;
    record->in_use = st->in_use;
    record->size = st->size;

    ngx_memcpy(record->id, st->id, NGX_HTTP_PROFILE_ID_LEN);

    record->archive_crc = ngx_crc32_long(st->archive, st->size);
    record->crc = ngx_http_profile_entry_crc(record, texts, 4);
}


ngx_int_t
ngx_http_profile_entry_valid(ngx_http_profile_entry_t *record,
    u_char *texts)
{
    ngx_str_t  all;

    if (ngx_memcmp(record->magic, ngx_http_profile_entry_magic,
                   sizeof(record->magic))
        != 0
        || record->pinned > 1)
    {
        return NGX_ERROR;
    }

    all.data = texts;
    all.len = ngx_http_profile_entry_texts(record);

    return (record->crc == ngx_http_profile_entry_crc(record, &all, 1))
           ? NGX_OK : NGX_ERROR;
}


static uint32_t
ngx_http_profile_entry_crc(ngx_http_profile_entry_t *record,
    ngx_str_t *texts, ngx_uint_t n)
{
    size_t      skip;
    uint32_t    crc;
    ngx_uint_t  i;

    skip = offsetof(ngx_http_profile_entry_t, archive_crc);

    ngx_crc32_init(crc);
    ngx_crc32_update(&crc, (u_char *) record + skip,
                     sizeof(ngx_http_profile_entry_t) - skip);

    for (i = 0; i < n; i++) {
        ngx_crc32_update(&crc, texts[i].data, texts[i].len);
    }

    ngx_crc32_final(crc);

    return crc;
}


size_t
ngx_http_profile_entry_texts(ngx_http_profile_entry_t *record)
{
    return (size_t) record->texts[0] + record->texts[1] + record->texts[2]
           + record->texts[3];
}


void
ngx_http_profile_entry_read(ngx_http_profile_entry_t *record,
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
        text[i]->len = record->texts[i];
        texts += record->texts[i];
    }

    st->start = record->start;
    st->status = record->status;
    st->mode = record->mode;
    st->wall = record->wall;
    st->cpu = record->cpu;
    st->waited = record->waited;
    st->samples = record->samples;
    st->allocated = record->allocated;
    st->allocations = record->allocations;
    st->in_use = record->in_use;
    st->order = 0;
    st->worker = record->worker;
    st->pinned = record->pinned != 0;
    st->size = (size_t) record->size;

    ngx_memcpy(st->id, record->id, NGX_HTTP_PROFILE_ID_LEN);
}
