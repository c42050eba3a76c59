
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Checks of documents with embedded styles and scripts.
 */


#ifndef _PROF_DOCUMENT_H_INCLUDED_
#define _PROF_DOCUMENT_H_INCLUDED_


#include "base/prof_buf.h"
#include "formats/prof_encode.h"
#include "profile/prof_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define DOCUMENT_UNUSED  __attribute__((unused))


DOCUMENT_UNUSED static char *document_create(const prof_encoder_t *encoder,
    const prof_profile_t *p);
DOCUMENT_UNUSED static int document_count(const char *text, const char *part);
DOCUMENT_UNUSED static void document_policy(const char *text,
    const prof_encoder_t *encoder);
DOCUMENT_UNUSED static void document_xml(const char *text, const char *name);
DOCUMENT_UNUSED static prof_profile_t *document_hostile(void);
DOCUMENT_UNUSED static prof_profile_t *document_many(void);
static size_t document_embedded(const char *text, const char *open,
    const char *close, const char *csp);
static int document_run(const char *command, const char *in, size_t len,
    char *out, size_t size);


/*
 * Returns a string for free(); an output with zero bytes gives an empty
 * string.
 */

static char *
document_create(const prof_encoder_t *encoder, const prof_profile_t *p)
{
    char        *text;
    prof_buf_t   b;

    prof_buf_init(&b);
    is_int(encoder->encode(p, &b), PROF_OK, "%s: encode", encoder->name);
    ok(memchr(b.data, 0, b.len) == NULL, "%s: no zero bytes", encoder->name);

    text = strndup(b.data, b.len);
    if (text == NULL) {
        abort();
    }

    prof_buf_free(&b);

    return text;
}


static int
document_count(const char *text, const char *part)
{
    int  n;

    n = 0;

    for (text = strstr(text, part); text; text = strstr(text + 1, part)) {
        n++;
    }

    return n;
}


/* the hashes in the policy are those of the style and the script */

static void
document_policy(const char *text, const prof_encoder_t *encoder)
{
    size_t       n;
    const char  *name;

    name = encoder->name;

    ok(strstr(encoder->csp, "default-src 'none'") != NULL,
       "%s: nothing is permitted by default", name);
    ok(strstr(encoder->csp, "unsafe") == NULL, "%s: nothing unsafe", name);
    ok(strstr(encoder->csp, "sandbox allow-scripts") != NULL,
       "%s: sandbox", name);

    n = document_embedded(text, "<style>", "</style>", encoder->csp);

    if (strstr(text, "<![CDATA[")) {
        n += document_embedded(text, "<script><![CDATA[", "]]></script>",
                               encoder->csp);

    } else {
        n += document_embedded(text, "<script>", "</script>", encoder->csp);
    }

    is_int(document_count(encoder->csp, "sha256-"), n,
           "%s: nothing else is permitted", name);
    is_int(document_count(text, "<style") + document_count(text, "<script"),
           n, "%s: nothing else is embedded", name);
}


static size_t
document_embedded(const char *text, const char *open, const char *close,
    const char *csp)
{
    char         hash[128];
    size_t       n;
    const char  *end;

    n = 0;

    for (text = strstr(text, open); text; text = strstr(text, open)) {
        text += strlen(open);
        end = strstr(text, close);

        if (end == NULL
            || document_run("openssl dgst -sha256 -binary"
                            " | openssl base64 -A",
                            text, end - text, hash, sizeof(hash)))
        {
            ok(0, "hash of what is in %s", open);
            return n;
        }

        n++;
        ok(strstr(csp, hash) != NULL,
           "%s %zu is permitted (else run tools/update-asset-hashes)", open,
           n);

        text = end;
    }

    return n;
}


static void
document_xml(const char *text, const char *name)
{
    char  out[256];

    if (system("xmllint --version > /dev/null 2>&1") != 0) {
        diag("no xmllint, %s is not read", name);
        return;
    }

    is_int(document_run("xmllint --noout --nonet - 2>&1", text, strlen(text),
                        out, sizeof(out)),
           0, "%s: well-formed", name);
    is_str(out, "", "%s: nothing to complain about", name);
}


/* returns the exit status of a command whose input is a file */

static int
document_run(const char *command, const char *in, size_t len, char *out,
    size_t size)
{
    int     fd, rc;
    char    line[512], path[64];
    FILE   *f;
    size_t  n;

    (void) snprintf(path, sizeof(path), "/tmp/prof_document_XXXXXX");

    fd = mkstemp(path);

    if (fd == -1 || write(fd, in, len) != (ssize_t) len || close(fd) != 0) {
        abort();
    }

    (void) snprintf(line, sizeof(line), "{ %s; } < %s", command, path);

    f = popen(line, "r");
    if (f == NULL) {
        abort();
    }

    n = fread(out, 1, size - 1, f);
    out[n] = '\0';

    rc = pclose(f);
    (void) unlink(path);

    return rc;
}


/* texts that look like markup, in all places of a profile */

static prof_profile_t *
document_hostile(void)
{
    size_t              i;
    uint32_t            frame, node, object;
    prof_profile_t     *p;

    static const char  *names[] = {
        "</title><script>alert('evil')</script>",
        "]]></script><script>alert('evil')</script>",
        "\" onclick=\"alert('evil')\" x=\"",
        "' onclick='alert(\"evil\")' x='",
        "</text></svg><img src=x onerror=alert('evil')>",
        "<!--", "-->", "<![CDATA[", "&lt;evil&gt;", "&evil;",
        "line\nfeed\r\ttab\x01\x1f\x7f",
        "\xff\xc3\xed\xa0\x80\xf4\x90\x80\x80",
        "\xef\xbf\xbe\xef\xbf\xbf",
        "\xe2\x80\xaelive\xe2\x81\xa6",
        "std::map<std::string, int>::operator[](std::string const&)"
    };

    p = fixture_create(names[0]);
    object = fixture_object(p, "/usr/lib/\"<evil>'&\xff.so", "\"<evil>");
    node = PROF_NONE;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        frame = i % 2 ? fixture_frame(p, object, 8 + i, names[i])
                      : fixture_name(p, PROF_TYPE_STAGE, names[i]);
        p->frames[frame].file = fixture_copy("/src/\"<evil>'&\xff.c");
        p->frames[frame].line = 7;

        node = fixture_node(p, node, frame);

        (void) prof_profile_fact(p, names[i], names[i], strlen(names[i]));
    }

    fixture_entry(p, node, PROF_ENTRY_SAMPLE, 1000000, 1000000);

    return p;
}


/* 100,000 samples with stacks of 22 frames, nearly all of them different */

static prof_profile_t *
document_many(void)
{
    char             name[64];
    uint32_t         d, first, frame[500], i, nodes[22], o[3], parent, random;
    prof_profile_t  *p;

    p = fixture_create("GET /many");

    o[0] = fixture_object(p, "/usr/sbin/server", "");
    o[1] = fixture_object(p, "/usr/lib/libc.so.6", "");
    o[2] = fixture_object(p, "/usr/lib/libssl.so.3", "");

    for (i = 0; i < 500; i++) {
        (void) snprintf(name, sizeof(name), "a_function_named_%" PRIu32, i);
        frame[i] = fixture_frame(p, o[i % 3], 0x1000 + 16 * i, name);
    }

    random = 1;

    for (i = 0; i < 100000; i++) {
        random = random * 1103515245 + 12345;

        /* some of the frames are those of the previous stack */

        first = i ? (random >> 16) % 22 : 0;
        parent = first ? nodes[first - 1] : PROF_NONE;

        for (d = first; d < 22; d++) {
            random = random * 1103515245 + 12345;
            parent = fixture_node(p, parent, frame[(random >> 16) % 500]);
            nodes[d] = parent;
        }

        fixture_entry(p, parent, PROF_ENTRY_SAMPLE, 100000 + i % 1000,
                      90000);
    }

    return p;
}


#endif /* _PROF_DOCUMENT_H_INCLUDED_ */
