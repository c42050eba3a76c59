
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * rooms: formats
 * runs: beside
 */


#include "tap.h"

#include "formats/prof_accept.h"


typedef struct {
    const char  *accept;
    const char  *def;
    const char  *want;
} test_type_t;


typedef struct {
    const char  *accept;
    int          want;
} test_gzip_t;


static const test_type_t  test_types[] = {

    /* headers that select no format */

    { "", "speedscope", "speedscope" },
    { "", "pprof", "pprof" },
    { "*/*", "speedscope", "speedscope" },
    { "*/*", "folded", "folded" },
    { "*", "folded", "folded" },
    { "*/*;q=0.1", "folded", "folded" },

    /* one type */

    { "text/plain", "speedscope", "folded" },
    { "application/json", "folded", "speedscope" },
    { "application/octet-stream", "speedscope", "pprof" },
    { "application/vnd.google.protobuf", "speedscope", "pprof" },
    { "application/x-protobuf", "speedscope", "pprof" },
    { "application/protobuf", "speedscope", "pprof" },
    { "TEXT/Plain", "speedscope", "folded" },
    { " \ttext/plain \t", "speedscope", "folded" },
    { "text/plain; charset=utf-8", "speedscope", "folded" },
    { "text/html", "speedscope", "html" },
    { "image/svg+xml", "speedscope", "svg" },
    { "image/png, image/*;q=0.5", "folded", "svg" },
    { "text/*", "pprof", "folded" },
    { "Text/*", "pprof", "folded" },

    /* qualities */

    { "text/plain, application/json", "speedscope", "speedscope" },
    { "text/plain, application/json", "folded", "folded" },
    { "text/plain, application/json", "pprof", "folded" },
    { "application/json, text/plain", "pprof", "speedscope" },
    { "text/plain;q=0.5, application/json", "folded", "speedscope" },
    { "text/plain;q=0.5, application/json;q=0.4", "speedscope", "folded" },
    { "text/plain;q=0.5, application/json;q=0.501", "folded", "speedscope" },
    { "text/plain; q=1.000, application/json;q=0.999", "speedscope",
      "folded" },
    { "text/plain;Q=0.5,application/json;Q=0.6", "folded", "speedscope" },
    { "text/plain;level=1;q=0.5;ext=2, application/json;q=0.6", "folded",
      "speedscope" },
    { "text/plain;q=.2, application/json;q=.3", "folded", "speedscope" },
    { "text/plain;q=0.3333333333, application/json;q=0.334", "folded",
      "speedscope" },

    /*
     * Exact types are preferred to wildcards, which are preferred to no match.
     */

    { "text/plain, */*", "speedscope", "folded" },
    { "text/*, */*", "speedscope", "folded" },
    { "text/*, application/json", "folded", "speedscope" },
    { "*/*, text/plain;q=0.5", "folded", "speedscope" },
    { "*/*;q=0.5, text/plain;q=0.4", "folded", "speedscope" },
    { "text/*;q=0.9, text/plain;q=0.1, */*;q=0.5", "folded", "html" },
    { "text/*;q=0.9, text/plain;q=0.1, text/html;q=0.2, */*;q=0.5", "folded",
      "speedscope" },
    { "text/plain;q=0.1, text/html;q=0.2, text/*;q=0.9, */*;q=0.5", "folded",
      "speedscope" },

    /* refusals */

    { "application/json;q=0, */*", "speedscope", "pprof" },
    { "application/*;q=0, */*;q=0.1", "speedscope", "folded" },
    { "application/json;q=0", "speedscope", "speedscope" },
    { "text/plain;q=0", "speedscope", "speedscope" },
    { "*/*;q=0", "folded", "folded" },
    { "text/plain;q=0.0, */*;q=0", "pprof", "pprof" },

    /* unknown types only */

    { "image/png", "speedscope", "speedscope" },
    { "audio/mpeg, audio/*;q=0.5", "folded", "folded" },
    { "application/*+json", "folded", "folded" },
    { "text/plainer, text/plai, text", "speedscope", "speedscope" },
    { "text/**, */plain, text/", "speedscope", "speedscope" },

    /* headers of browsers, and of one for an <img> */

    { "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
      "speedscope", "html" },
    { "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,"
      "image/webp,image/apng,*/*;q=0.8", "speedscope", "html" },
    { "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
      "speedscope", "svg" },

    /* headers of a Java library, of jQuery, of Prometheus */

    { "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "folded",
      "html" },
    { "application/json, text/javascript, */*; q=0.01", "folded",
      "speedscope" },
    { "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4"
      ";q=0.5,*/*;q=0.1", "speedscope", "folded" },

    /* quotes */

    { "image/png;a=\", text/plain\", application/json", "folded",
      "speedscope" },
    { "text/plain;a=\"\\\", x\";q=0.1, application/json;q=0.2", "folded",
      "speedscope" },
    { "text/plain;a=\";q=0.1\";q=0.3, application/json;q=0.2", "speedscope",
      "folded" },
    { "image/png;a=\"text/plain", "speedscope", "speedscope" },
    { "image/png;a=\"\\", "speedscope", "speedscope" },

    /* malformed elements are ignored */

    { "text/plain;q=2, application/json;q=0.1", "folded", "speedscope" },
    { "text/plain;q=1.1, application/json;q=0.1", "folded", "speedscope" },
    { "text/plain;q=-1, application/json;q=0.1", "folded", "speedscope" },
    { "text/plain;q=x, application/json;q=0.1", "folded", "speedscope" },
    { "text/plain;q=0.x, application/json;q=0.1", "folded", "speedscope" },
    { "text/plain;q=01, application/json;q=0.1", "folded", "speedscope" },
    { "text/plain;q=, application/json;q=0.1", "folded", "speedscope" },
    { ",,, ,;,;q=1,text/plain,,", "speedscope", "folded" },
    { "text/plain;;;q=0.5;", "speedscope", "folded" },
    { NULL, NULL, NULL }
};


static const test_gzip_t  test_gzips[] = {
    { "", 0 },
    { "gzip", 1 },
    { "GZip", 1 },
    { "x-gzip", 1 },
    { "gzip, deflate, br", 1 },
    { "deflate, gzip;q=1.0, *;q=0.5", 1 },
    { "br;q=1.0, gzip;q=0.001", 1 },
    { "gzip;q=0", 0 },
    { "gzip;q=0.000, *", 0 },
    { "*, gzip;q=0", 0 },
    { "*", 1 },
    { "*;q=0", 0 },
    { "identity", 0 },
    { "identity, gzip", 1 },
    { "identity;q=1, gzip;q=0.5", 0 },
    { "identity;q=0.5, gzip", 1 },
    { "identity;q=0.5, *;q=0.1", 0 },
    { "identity;q=0, *;q=0.1", 1 },
    { "deflate, br", 0 },
    { "gzipped, gzi", 0 },
    { "gzip;q=2", 0 },
    { NULL, 0 }
};


static const prof_encoder_t *find(const char *name);
static char *exact(const char *s, size_t len);


int
main(void)
{
    char                  *s;
    size_t                 len;
    const test_type_t     *t;
    const test_gzip_t     *g;
    const prof_encoder_t  *e;

    for (t = test_types; t->accept; t++) {
        len = strlen(t->accept);
        s = exact(t->accept, len);

        e = prof_accept_encoder(s, len, find(t->def));
        is_str(e->name, t->want, "\"%s\" or %s selects the format",
               t->accept, t->def);

        free(s);
    }

    for (g = test_gzips; g->accept; g++) {
        len = strlen(g->accept);
        s = exact(g->accept, len);

        is_int(prof_accept_gzip(s, len), g->want,
               "gzip is chosen as asked: \"%s\"", g->accept);

        free(s);
    }

    return done_testing();
}


static const prof_encoder_t *
find(const char *name)
{
    const prof_encoder_t  *e;

    e = prof_encoder_find(name, strlen(name));
    if (e == NULL) {
        abort();
    }

    return e;
}


/* without a null byte at its end, for tools that check memory */

static char *
exact(const char *s, size_t len)
{
    char  *copy;

    copy = malloc(len ? len : 1);
    if (copy == NULL) {
        abort();
    }

    memcpy(copy, s, len);

    return copy;
}
