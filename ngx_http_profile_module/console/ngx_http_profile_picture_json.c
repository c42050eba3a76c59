
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The facts of one profile as JSON, without its stacks.
 *
 * Context: a thread.
 */


#include "console/ngx_http_profile_routes.h"


static int ngx_http_profile_picture_item(void *data,
    const prof_summary_t *item);
static json_t *ngx_http_profile_picture_formats(void);


/* readers of JSON have exact numbers up to 2^53: 104 days in nanoseconds */

json_t *
ngx_http_profile_entry_json(ngx_http_profile_stored_t *st)
{
    json_t  *json;

    json = json_pack("{s:s%, s:I, s:o, s:o, s:o, s:o, s:i, s:s, s:I, s:I, "
                     "s:I, s:I, s:I, s:I, s:i, s:I, s:b}",
                     "id", st->id, (size_t) NGX_HTTP_PROFILE_ID_LEN,
                     "start", (json_int_t) st->start,
                     "scope", ngx_http_profile_json_text(&st->scope),
                     "method", ngx_http_profile_json_text(&st->method),
                     "host", ngx_http_profile_json_text(&st->host),
                     "uri", ngx_http_profile_json_text(&st->uri),
                     "status", (int) st->status,
                     "mode", prof_mode_name(st->mode),
                     "wall", (json_int_t) st->wall,
                     "cpu", (json_int_t) st->cpu,
                     "waited", (json_int_t) st->waited,
                     "no_processor", (json_int_t) st->no_processor,
                     "blocked", (json_int_t) st->blocked,
                     "samples", (json_int_t) st->samples,
                     "worker", (int) st->worker,
                     "size", (json_int_t) st->size,
                     "pinned", (int) st->pinned);

    if (st->mode == PROF_MODE_OBJECT) {
        (void) json_object_update_new(json,
                   json_pack("{s:I, s:I, s:I}",
                             "allocated", (json_int_t) st->allocated,
                             "allocations", (json_int_t) st->allocations,
                             "in_use", (json_int_t) st->in_use));
    }

    return json;
}


json_t *
ngx_http_profile_json_text(ngx_str_t *s)
{
    char    *text;
    size_t   len;
    json_t  *json;

    len = s->len;

    text = prof_text_utf8((char *) s->data, &len);
    if (text == NULL) {
        return NULL;
    }

    json = json_stringn_nocheck(text, len);
    free(text);

    return json;
}


/* writes the facts of the store and the facts of the profile */

int
ngx_http_profile_picture_json(ngx_http_profile_picture_t *pic,
    prof_profile_t **p)
{
    int      rc;
    json_t  *json, *summary;

    json = ngx_http_profile_entry_json(pic->st[0]);
    summary = json_array();

    rc = prof_summary(p[0], ngx_http_profile_picture_item, summary);

    if (json_object_set_new(json, "title", json_string(p[0]->title)) != 0) {
        (void) json_object_set_new(json, "title", json_string("?"));
    }

    if (json_object_set_new(json, "summary", summary) != 0
        || json_object_set_new(json, "formats",
                               ngx_http_profile_picture_formats())
           != 0
        || json_object_set_new(json, "turns", json_boolean(p[0]->turns_len))
           != 0)
    {
        rc = PROF_ERROR;
    }

    if (rc != PROF_OK) {
        json_decref(json);
        return rc;
    }

    return ngx_http_profile_picture_dump(pic, json);
}


int
ngx_http_profile_picture_dump(ngx_http_profile_picture_t *pic, json_t *json)
{
    char  *text;

    text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);

    if (text == NULL) {
        return PROF_ERROR;
    }

    prof_buf_puts(&pic->out, text);
    free(text);

    return PROF_OK;
}


static int
ngx_http_profile_picture_item(void *data, const prof_summary_t *item)
{
    json_t *summary = data;

    char    *text;
    size_t   len;
    json_t  *json;

    static const char  *units[] = {
        "", "count", "hz", "ns", "bytes"
    };

    json = json_pack("{s:s, s:s}", "name", item->name,
                     "text", item->text ? item->text : item->name);

    if (item->unit != PROF_SUMMARY_TEXT) {
        (void) json_object_set_new(json, "value",
                                   json_integer((json_int_t) item->number));
        (void) json_object_set_new(json, "unit",
                                   json_string(units[item->unit]));

    } else {
        len = strlen(item->value);
        text = prof_text_utf8(item->value, &len);

        (void) json_object_set_new(json, "value",
                                   json_string(text ? text : ""));
        free(text);
    }

    return json_array_append_new(summary, json) == 0 ? PROF_OK : PROF_ERROR;
}


static json_t *
ngx_http_profile_picture_formats(void)
{
    json_t      *list;
    ngx_uint_t   i;

    list = json_array();

    for (i = 0; prof_encoders[i]; i++) {
        (void) json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}",
                         "name", prof_encoders[i]->name,
                         "text", prof_encoders[i]->text,
                         "extension", prof_encoders[i]->extension,
                         "download", (int) prof_encoders[i]->download));
    }

    return list;
}
