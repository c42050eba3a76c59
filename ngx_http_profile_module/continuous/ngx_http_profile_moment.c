
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Times in the query of a request.
 */


#include "continuous/ngx_http_profile_continuous.h"

#include <time.h>


/* the longest time before now, and the last second that is a time */
#define NGX_HTTP_PROFILE_MOMENT_AGO   (366 * 24 * 60 * 60)
#define NGX_HTTP_PROFILE_MOMENT_LAST  253402300799      /* year 9999 */


static uint64_t ngx_http_profile_moment_ago(ngx_str_t *text, uint64_t now);
static uint64_t ngx_http_profile_moment_date(char *text);
static char *ngx_http_profile_moment_fraction(char *p, uint64_t *ms);


uint64_t
ngx_http_profile_moment(ngx_str_t *text, uint64_t now)
{
    char      *p;
    uint64_t   sec, ms;

    /*
     * A null character would hide the rest of the text, and strptime() skips
     * other control characters.
     */

    if (ngx_http_profile_controls(text->data, text->len)) {
        return 0;
    }

    if (ngx_http_profile_str_eq(text, "now", 3)) {
        return now;
    }

    if (text->data[0] == '-') {
        return ngx_http_profile_moment_ago(text, now);
    }

    sec = 0;
    ms = 0;

    for (p = (char *) text->data;
         *p >= '0' && *p <= '9' && sec <= NGX_HTTP_PROFILE_MOMENT_LAST;
         p++)
    {
        sec = sec * 10 + (*p - '0');
    }

    if (p == (char *) text->data) {
        return 0;
    }

    if (*p == '-') {
        return ngx_http_profile_moment_date((char *) text->data);
    }

    p = ngx_http_profile_moment_fraction(p, &ms);

    return (p != (char *) text->data + text->len
            || sec > NGX_HTTP_PROFILE_MOMENT_LAST) ? 0 : sec * 1000 + ms;
}


static uint64_t
ngx_http_profile_moment_ago(ngx_str_t *text, uint64_t now)
{
    ngx_int_t  sec;
    ngx_str_t  s;

    s.data = text->data + 1;
    s.len = text->len - 1;

    sec = s.len ? ngx_parse_time(&s, 1) : NGX_ERROR;

    return (sec == NGX_ERROR || sec > NGX_HTTP_PROFILE_MOMENT_AGO)
           ? 0 : now - (uint64_t) sec * 1000;
}


/* parses a date of RFC 3339; returns milliseconds since the Epoch, or 0 */

static uint64_t
ngx_http_profile_moment_date(char *text)
{
    int         hours, minutes, n;
    char       *p;
    int64_t     sec;
    uint64_t    ms;
    struct tm   tm;

    ngx_memzero(&tm, sizeof(struct tm));

    ms = 0;
    p = strptime(text, "%Y-%m-%d", &tm);

    if (p == NULL || (*p != 'T' && *p != 't')) {
        return 0;
    }

    p = strptime(p + 1, "%H:%M:%S", &tm);

    if (p == NULL) {
        return 0;
    }

    p = ngx_http_profile_moment_fraction(p, &ms);
    sec = timegm(&tm);

    if (*p == '+' || *p == '-') {
        n = 0;

        if (sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || n != 5
            || hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
        {
            return 0;
        }

        sec += (*p == '+' ? -60 : 60) * (hours * 60 + minutes);
        p += 1 + n;

    } else if (*p == 'Z' || *p == 'z') {
        p++;

    } else {
        return 0;
    }

    return (*p || sec <= 0 || sec > NGX_HTTP_PROFILE_MOMENT_LAST)
           ? 0 : (uint64_t) sec * 1000 + ms;
}


/* reads ".123"; further digits are ignored */

static char *
ngx_http_profile_moment_fraction(char *p, uint64_t *ms)
{
    uint64_t  unit;

    if (*p != '.') {
        return p;
    }

    unit = 100;

    for (p++; *p >= '0' && *p <= '9'; p++) {
        *ms += (*p - '0') * unit;
        unit /= 10;
    }

    return p;
}


u_char *
ngx_http_profile_moment_text(u_char *p, uint64_t ms)
{
    ngx_tm_t  tm;

    ngx_gmtime((time_t) (ms / 1000), &tm);

    return ngx_sprintf(p, "%4d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                       tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                       tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                       (int) (ms % 1000));
}
