
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The only user of jansson.
 *
 * The published schema permits members of our own: "profile_info" has the
 * summary.
 */


#include "formats/prof_speedscope_json.h"
#include "formats/prof_text.h"
#include "names/prof_mangled.h"
#include "views/prof_summary.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>


#define PROF_SPEEDSCOPE_SCHEMA                                                \
    "https://www.speedscope.app/file-format-schema.json"

#define PROF_SPEEDSCOPE_EXPORTER  "ngx_http_profile_module@" PROF_VERSION

#define PROF_SPEEDSCOPE_FLAGS     (JSON_COMPACT|JSON_ENCODE_ANY)


static json_t *prof_speedscope_frame(const prof_profile_t *p,
    const prof_view_function_t *func);
static void prof_speedscope_modules(const prof_profile_t *p,
    const prof_view_t *v, prof_buf_t *b);
static int prof_speedscope_item(void *data, const prof_summary_t *item);
static json_t *prof_speedscope_text(const char *s, size_t len);
static void prof_speedscope_dump(json_t *json, size_t flags, prof_buf_t *b);
static int prof_speedscope_write(const char *data, size_t len, void *arg);


void
prof_speedscope_head(prof_buf_t *b, const prof_profile_t *p, uint32_t active)
{
    json_t  *head;

    head = json_pack("{s:s, s:s, s:o, s:i}",
                     "$schema", PROF_SPEEDSCOPE_SCHEMA,
                     "exporter", PROF_SPEEDSCOPE_EXPORTER,
                     "name", prof_speedscope_text(p->title, strlen(p->title)),
                     "activeProfileIndex", (int) active);

    prof_speedscope_dump(head, PROF_SPEEDSCOPE_FLAGS|JSON_EMBED, b);
}


void
prof_speedscope_string(prof_buf_t *b, const char *s, size_t len)
{
    prof_speedscope_dump(prof_speedscope_text(s, len), PROF_SPEEDSCOPE_FLAGS,
                         b);
}


void
prof_speedscope_frames(prof_buf_t *b, const prof_profile_t *p,
    const prof_view_t *v)
{
    uint32_t  i;

    prof_buf_puts(b, ",\n\"shared\":{\"frames\":[");

    for (i = 0; i < v->nfunctions; i++) {
        prof_buf_puts(b, i ? ",\n" : "\n");
        prof_speedscope_dump(
                            prof_speedscope_frame(p, &v->functions[i]),
                            PROF_SPEEDSCOPE_FLAGS, b);
    }

    prof_speedscope_modules(p, v, b);

    prof_buf_puts(b, "\n]}");
}


static void
prof_speedscope_modules(const prof_profile_t *p, const prof_view_t *v,
    prof_buf_t *b)
{
    uint32_t     i;
    const char  *path, *name;

    for (i = 0; i < p->nobjects; i++) {
        path = p->objects[i].path;
        name = strrchr(path, '/');
        name = name ? name + 1 : path;

        prof_buf_puts(b, i || v->nfunctions ? ",\n" : "\n");
        prof_speedscope_dump(
            json_pack("{s:o, s:o}",
                      "name", prof_speedscope_text(name,
                                                            strlen(name)),
                      "file", prof_speedscope_text(path,
                                                            strlen(path))),
            PROF_SPEEDSCOPE_FLAGS, b);
    }
}


static json_t *
prof_speedscope_frame(const prof_profile_t *p,
    const prof_view_function_t *func)
{
    json_t              *json;
    const char          *file;
    prof_buf_t           name;
    const prof_frame_t  *f;

    f = &p->frames[func->frame];

    prof_buf_init(&name);

    /*
     * The viewer demangles names by their prefix, "_Release" as well, and its
     * importer never ends if its policy forbids WebAssembly.
     */

    if (strncmp(func->name, "_R", 2) == 0
        || prof_mangled(func->name))
    {
        prof_buf_puts(&name, " ");
    }

    prof_buf_puts(&name, func->name);

    json = json_object();

    if (prof_buf_failed(&name)
        || json_object_set_new(json, "name",
                               prof_speedscope_text(name.data,
                                                             name.len)))
    {
        goto failed;
    }

    /* without a source file, the object serves; it also chooses the color */

    file = func->file;

    if (file == NULL && f->object != PROF_NONE) {
        file = p->objects[f->object].path;
    }

    if (file
        && json_object_set_new(json, "file",
                               prof_speedscope_text(file, strlen(file))))
    {
        goto failed;
    }

    if (func->file && func->line
        && json_object_set_new(json, "line", json_integer(func->line)))
    {
        goto failed;
    }

    prof_buf_free(&name);

    return json;

failed:

    prof_buf_free(&name);
    json_decref(json);

    return NULL;
}


void
prof_speedscope_info(prof_buf_t *b, const prof_profile_t *p)
{
    json_t  *info;

    info = json_object();

    if (info && prof_summary(p, prof_speedscope_item, info) != PROF_OK)
    {
        json_decref(info);
        info = NULL;
    }

    prof_buf_puts(b, ",\n\"profile_info\":");
    prof_speedscope_dump(info, PROF_SPEEDSCOPE_FLAGS, b);
}


static int
prof_speedscope_item(void *data, const prof_summary_t *item)
{
    int      rc;
    char    *name;
    size_t   len;
    json_t  *info, *value;

    info = data;

    if (item->unit == PROF_SUMMARY_TEXT) {
        value = prof_speedscope_text(item->value,
                                              strlen(item->value));

    } else {
        value = json_integer(item->number < INT64_MAX
                             ? (json_int_t) item->number : INT64_MAX);
    }

    len = strlen(item->name);

    name = prof_text_utf8(item->name, &len);
    if (name == NULL) {
        json_decref(value);
        return PROF_ERROR;
    }

    rc = json_object_set_new(info, name, value) ? PROF_ERROR : PROF_OK;

    free(name);

    return rc;
}


static json_t *
prof_speedscope_text(const char *s, size_t len)
{
    char    *text;
    json_t  *json;

    text = prof_text_utf8(s, &len);
    if (text == NULL) {
        return NULL;
    }

    json = json_stringn(text, len);

    free(text);

    return json;
}


/* consumes the value, which may be NULL when memory was short */

static void
prof_speedscope_dump(json_t *json, size_t flags, prof_buf_t *b)
{
    if (json == NULL
        || json_dump_callback(json, prof_speedscope_write, b, flags))
    {
        b->failed = 1;
    }

    json_decref(json);
}


static int
prof_speedscope_write(const char *data, size_t len, void *arg)
{
    prof_buf_append(arg, data, len);

    return 0;
}
