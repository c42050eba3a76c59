
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Hides the values of arguments whose names say that they are secret: names in
 * which a word of the table occurs, and the names of "profile_redact".
 *
 * Context: the worker's event loop.
 */


#include "core/ngx_http_profile_redact.h"


#define NGX_HTTP_PROFILE_HIDDEN  "***"


static ngx_uint_t ngx_http_profile_redacted(ngx_array_t *names, u_char *p,
    u_char *last);
static ngx_uint_t ngx_http_profile_secret(u_char *p, u_char *last);
static ngx_uint_t ngx_http_profile_same_name(ngx_str_t *name, u_char *p,
    u_char *last);
static u_char ngx_http_profile_name_char(u_char **p, u_char *last);


/*
 * Words of names, by their first letter.  A "$" stands for the end of a word of
 * the name: "key$" is in "api_key" and in "sshkey[0]", but not in "keyboard".
 * The words are those that Rails and GitLab hide, and those of OAuth, of signed
 * URLs and of sessions.
 */

static const char *const  ngx_http_profile_secrets['z' - 'a' + 1][10] = {
    ['a' - 'a'] = { "accesskey", "assertion", "auth$", "authentic",
                    "authoriz" },
    ['b' - 'a'] = { "bearer" },
    ['c' - 'a'] = { "certificate", "code$", "cookie", "credential", "crypt",
                    "csrf", "cvc$", "cvv$" },
    ['d' - 'a'] = { "dsn$" },
    ['e' - 'a'] = { "email" },
    ['h' - 'a'] = { "hmac", "hook$" },
    ['i' - 'a'] = { "import_url" },
    ['j' - 'a'] = { "jwt" },
    ['k' - 'a'] = { "key$" },
    ['o' - 'a'] = { "otp$" },
    ['p' - 'a'] = { "pass$", "passcode", "passphrase", "passw", "pin$",
                    "private", "pwd" },
    ['s' - 'a'] = { "salt", "saml", "secret", "sessid", "session", "sid$",
                    "sig$", "signature", "ssn$" },
    ['t' - 'a'] = { "token" },
    ['x' - 'a'] = { "xsrf" }
};

/* only the words of the table */

ngx_array_t  ngx_http_profile_redact_words;


char *
ngx_http_profile_redact_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_profile_loc_conf_t *plcf = conf;

    ngx_str_t   *value, *name;
    ngx_uint_t   i;

    if (plcf->redact != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        plcf->redact = NULL;
        return NGX_CONF_OK;
    }

    plcf->redact = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                    sizeof(ngx_str_t));
    if (plcf->redact == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (value[i].len == 0
            || strcspn((char *) value[i].data, "&;=?# ") != value[i].len)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V\" in \"%V\" directive, it "
                               "must be the name of an argument, or \"off\"",
                               &value[i], &cmd->name);
            return NGX_CONF_ERROR;
        }

        /* the array has space for all names */

        name = ngx_array_push(plcf->redact);
        *name = value[i];
    }

    return NGX_CONF_OK;
}


u_char *
ngx_http_profile_redact(ngx_http_request_t *r, ngx_str_t *text)
{
    u_char                       *p, *name, *value, *end, *copy, *last, *done;
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(r, ngx_http_profile_module);

    done = text->data;
    end = text->data + text->len;
    p = ngx_strlchr(text->data, end, '?');

    if (plcf->redact == NULL || p == NULL) {
        return NULL;
    }

    copy = NULL;
    last = NULL;

    /* a space ends the URI of a request line */

    while (p < end && *p != ' ') {
        name = p + 1;

        /* some applications also separate arguments by ";" */

        for (p = name; p < end; p++) {
            if (*p == '&' || *p == ';' || *p == '?' || *p == ' ') {
                break;
            }
        }

        value = ngx_strlchr(name, p, '=');

        if (value == NULL
            || !ngx_http_profile_redacted(plcf->redact, name, value))
        {
            continue;
        }

        /* an application may take ";" as a part of the value */

        while (p < end && *p != '&' && *p != ' ') {
            p++;
        }

        if (copy == NULL) {

            /* the shortest arguments have two bytes: "a=" or "a&" */

            copy = ngx_alloc(text->len + (text->len / 2 + 1)
                             * (sizeof(NGX_HTTP_PROFILE_HIDDEN) - 1),
                             ngx_cycle->log);
            if (copy == NULL) {
                text->len = ngx_strlchr(text->data, end, '?') - text->data;
                return NULL;
            }

            last = copy;
        }

        last = ngx_cpymem(last, done, value + 1 - done);
        last = ngx_cpymem(last, NGX_HTTP_PROFILE_HIDDEN,
                          sizeof(NGX_HTTP_PROFILE_HIDDEN) - 1);
        done = p;
    }

    if (copy) {
        last = ngx_cpymem(last, done, end - done);

        text->data = copy;
        text->len = last - copy;
    }

    return copy;
}


static ngx_uint_t
ngx_http_profile_redacted(ngx_array_t *names, u_char *p, u_char *last)
{
    ngx_str_t   *name;
    ngx_uint_t   i;

    name = names->elts;

    for (i = 0; i < names->nelts; i++) {

        if (ngx_http_profile_same_name(&name[i], p, last)) {
            return 1;
        }
    }

    return ngx_http_profile_secret(p, last);
}


static ngx_uint_t
ngx_http_profile_secret(u_char *p, u_char *last)
{
    u_char       c, *next;
    const char  *word, *const *words;

    while (p < last) {
        c = ngx_http_profile_name_char(&p, last);

        if (c < 'a' || c > 'z') {
            continue;
        }

        for (words = ngx_http_profile_secrets[c - 'a']; *words; words++) {
            next = p;

            for (word = *words + 1; *word; word++) {
                c = 0;

                if (next < last) {
                    c = ngx_http_profile_name_char(&next, last);
                }

                if (*word == '$' ? (c >= 'a' && c <= 'z') : (c != *word)) {
                    break;
                }
            }

            if (*word == '\0') {
                return 1;
            }
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_profile_same_name(ngx_str_t *name, u_char *p, u_char *last)
{
    size_t  n;
    u_char  c;

    for (n = 0; p < last; n++) {
        c = ngx_http_profile_name_char(&p, last);

        if (n == name->len || c != ngx_tolower(name->data[n])) {
            return 0;
        }
    }

    return n == name->len;
}


/* applications decode the names of arguments, and some ignore their case */

static u_char
ngx_http_profile_name_char(u_char **p, u_char *last)
{
    u_char     c;
    ngx_int_t  code;

    c = *(*p)++;

    if (c == '%' && last - *p >= 2) {
        code = ngx_hextoi(*p, 2);

        if (code != NGX_ERROR) {
            c = (u_char) code;
            *p += 2;
        }
    }

    return ngx_tolower(c);
}
