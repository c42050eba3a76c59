
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * __cxa_demangle() of the C++ runtime reads C++ names.  The helper is written
 * in C.  It loads the runtime when the first such name appears, if the system
 * has the runtime: most profiles have no such name.
 *
 * Rust's older encoding is that of a nested C++ name whose last part is a
 * hash.  This file reads it, because the result is better than that of the C++
 * runtime.
 */


#include "names/prof_mangled.h"
#include "symbolizer/prof_demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* "17h" and 16 hex digits */

#define PROF_DEMANGLE_HASH  17


typedef char *(*prof_demangle_pt)(const char *name, char *buf, size_t *len,
    int *status);


typedef struct {
    const char  *code;
    size_t       len;
    const char  *text;
} prof_demangle_escape_t;


static void prof_demangle_init(void);
static char *prof_demangle_cxx(const char *name);
static char *prof_demangle_rust(const char *name);
static const char *prof_demangle_rust_part(const char *p, size_t *len);
static int prof_demangle_rust_hash(const char *p, size_t len);
static char *prof_demangle_rust_copy(char *dst, const char *p, size_t len);


static int               prof_demangle_loaded;
static prof_demangle_pt  prof_demangle_runtime;


static const prof_demangle_escape_t  prof_demangle_escapes[] = {
    { "$SP$", 4, "@" },
    { "$BP$", 4, "*" },
    { "$RF$", 4, "&" },
    { "$LT$", 4, "<" },
    { "$GT$", 4, ">" },
    { "$LP$", 4, "(" },
    { "$RP$", 4, ")" },
    { "$C$", 3, "," },
    { "$u20$", 5, " " },
    { "$u22$", 5, "\"" },
    { "$u27$", 5, "'" },
    { "$u2b$", 5, "+" },
    { "$u3b$", 5, ";" },
    { "$u5b$", 5, "[" },
    { "$u5d$", 5, "]" },
    { "$u7b$", 5, "{" },
    { "$u7d$", 5, "}" },
    { "$u7e$", 5, "~" },
    { "..", 2, "::" },
    { NULL, 0, NULL }
};


int
prof_demangle(char **name)
{
    int    rc;
    char  *at, *out, *text;

    if (!prof_mangled(*name)) {
        return PROF_OK;
    }

    /* "@plt" is not part of the encoding */

    at = strchr(*name, '@');

    if (at) {
        *at = '\0';
    }

    text = prof_demangle_rust(*name);

    if (text == NULL) {
        text = prof_demangle_cxx(*name);
    }

    if (at) {
        *at = '@';
    }

    if (text == NULL) {
        return prof_mangled_mark(name);
    }

    rc = asprintf(&out, "%s%s", text, at ? at : "");

    free(text);

    if (rc == -1) {
        return PROF_ERROR;
    }

    free(*name);
    *name = out;

    return PROF_OK;
}


static char *
prof_demangle_cxx(const char *name)
{
    int    status;
    char  *text;

    if (!prof_demangle_loaded) {
        prof_demangle_loaded = 1;
        prof_demangle_init();
    }

    if (prof_demangle_runtime == NULL) {
        return NULL;
    }

    text = prof_demangle_runtime(name, NULL, NULL, &status);

    if (text && prof_mangled(text)) {
        free(text);
        return NULL;
    }

    return text;
}


static void
prof_demangle_init(void)
{
    void  *lib, *sym;

    sym = NULL;
    lib = dlopen("libstdc++.so.6", RTLD_LAZY|RTLD_LOCAL);

    if (lib) {
        sym = dlsym(lib, "__cxa_demangle");
    }

    /* C has no cast from an object pointer to a function pointer */

    memcpy(&prof_demangle_runtime, &sym, sizeof(sym));
}


/* "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE": core::fmt::Write:... */

static char *
prof_demangle_rust(const char *name)
{
    char        *dst, *text;
    size_t       len, parts;
    const char  *end, *p, *part;

    if (strncmp(name, "_ZN", 3) != 0) {
        return NULL;
    }

    parts = 0;
    part = NULL;
    len = 0;

    for (p = name + 3; *p != 'E'; p = part + len) {
        part = prof_demangle_rust_part(p, &len);
        if (part == NULL) {
            return NULL;
        }

        parts++;
    }

    end = p;

    if (parts < 2 || !prof_demangle_rust_hash(part, len)) {
        return NULL;
    }

    /* an escape is never shorter than its text, and "::" replaces digits */

    text = malloc(2 * strlen(name) + 1);
    if (text == NULL) {
        return NULL;
    }

    dst = text;

    for (p = name + 3; parts > 1; parts--, p = part + len) {
        part = prof_demangle_rust_part(p, &len);

        if (dst != text) {
            *dst++ = ':';
            *dst++ = ':';
        }

        dst = prof_demangle_rust_copy(dst, part, len);
    }

    /*
     * Keep the compiler's suffix after the "E" (".cold"), drop LLVM's numbers.
     */

    if (end[1] == '.' && strncmp(end + 1, ".llvm.", 6) != 0) {
        dst = stpcpy(dst, end + 1);
    }

    *dst = '\0';

    return text;
}


/* the text of a part, "5Write", and its length */

static const char *
prof_demangle_rust_part(const char *p, size_t *len)
{
    size_t  n;

    if (!isdigit((unsigned char) *p)) {
        return NULL;
    }

    for (n = 0; isdigit((unsigned char) *p); p++) {
        n = n * 10 + (*p - '0');

        if (n > 65535) {
            return NULL;
        }
    }

    if (n == 0 || strnlen(p, n) < n) {
        return NULL;
    }

    *len = n;

    return p;
}


static int
prof_demangle_rust_hash(const char *p, size_t len)
{
    size_t  i;

    if (len != PROF_DEMANGLE_HASH || p[0] != 'h') {
        return 0;
    }

    for (i = 1; i < len; i++) {
        if (!isxdigit((unsigned char) p[i])) {
            return 0;
        }
    }

    return 1;
}


static char *
prof_demangle_rust_copy(char *dst, const char *p, size_t len)
{
    const char                    *last;
    const prof_demangle_escape_t  *e;

    last = p + len;

    /*
     * A part with an escape at its start has an underscore before the escape.
     */

    if (len > 1 && p[0] == '_' && p[1] == '$') {
        p++;
    }

    while (p < last) {

        for (e = prof_demangle_escapes; e->code; e++) {
            if (e->len <= (size_t) (last - p)
                && memcmp(p, e->code, e->len) == 0)
            {
                break;
            }
        }

        if (e->code == NULL) {
            *dst++ = *p++;
            continue;
        }

        p += e->len;
        dst = stpcpy(dst, e->text);
    }

    return dst;
}
