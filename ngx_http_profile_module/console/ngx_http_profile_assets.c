
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Pages, styles and scripts of the console and of the bar.  The compiler
 * includes the files of the directory "assets" and prof_theme.css of the core
 * unchanged.
 *
 * Styles and scripts are served below "assets/HASH/", so each version has a
 * URL of its own.  Pages contain placeholders:
 *
 *     {{}}           the URL of the console
 *     {{NAME}}       the URL of the asset NAME, or its text if it is HTML
 *     {{:id}}        the id of a profile
 *     {{:status}}    the status of an error
 *     {{:text}}      the text of an error
 *     {{:viewer}}    "on" if there is a viewer, or "off"
 *     {{:at NAME}}   on the page NAME: the attribute of links to that page
 *     {{:on}}        an attribute that hides what needs metrics
 *     {{:off}}       an attribute that hides what to do for metrics
 *     {{:content}}   nothing: code inserts the content of the page here
 */


#include "console/ngx_http_profile_routes.h"
#include "continuous/ngx_http_profile_continuous.h"


/* each line: a name for C, the directory, the file */

#define NGX_HTTP_PROFILE_ASSETS(x)                                            \
    x(theme_css,      "assets/",  "prof_theme.css")                           \
    x(icon_svg,       "assets/",  "icon.svg")                                 \
    x(console_css,    "assets/",  "console.css")                              \
    x(console_js,     "assets/",  "console.js")                               \
    x(head_html,      "assets/",  "head.html")                                \
    x(top_html,       "assets/",  "top.html")                                 \
    x(overview_html,  "assets/",  "overview.html")                            \
    x(overview_js,    "assets/",  "overview.js")                              \
    x(profiles_html,  "assets/",  "profiles.html")                            \
    x(profiles_js,    "assets/",  "profiles.js")                              \
    x(capture_js,     "assets/",  "capture.js")                               \
    x(profile_html,   "assets/",  "profile.html")                             \
    x(profile_js,     "assets/",  "profile.js")                               \
    x(diff_html,      "assets/",  "diff.html")                                \
    x(diff_js,        "assets/",  "diff.js")                                  \
    x(hour_html,      "assets/",  "hour.html")                                \
    x(hour_js,        "assets/",  "hour.js")                                  \
    x(turns_html,     "assets/",  "turns.html")                               \
    x(turns_log_js,   "assets/",  "turns_log.js")                             \
    x(turns_map_js,   "assets/",  "turns_map.js")                             \
    x(turns_js,       "assets/",  "turns.js")                                 \
    x(status_html,    "assets/",  "status.html")                              \
    x(status_js,      "assets/",  "status.js")                                \
    x(help_html,      "assets/",  "help.html")                                \
    x(help_js,        "assets/",  "help.js")                                  \
    x(pprof_html,     "assets/",  "pprof.html")                               \
    x(error_html,     "assets/",  "error.html")                               \
    x(bar_css,        "assets/",  "bar.css")                                  \
    x(bar_dom_js,     "assets/",  "bar_dom.js")                               \
    x(bar_facts_js,   "assets/",  "bar_facts.js")                             \
    x(bar_orders_js,  "assets/",  "bar_orders.js")                            \
    x(bar_panels_js,  "assets/",  "bar_panels.js")                            \
    x(bar_js,         "assets/",  "bar.js")


/* the maximum length of HASH/NAME in a URL */

#define NGX_HTTP_PROFILE_ASSET_MAX  64


typedef struct {
    const char  *name;
    u_char      *start;
    u_char      *end;
    char         path[NGX_HTTP_PROFILE_ASSET_MAX];  /* empty until used */
} ngx_http_profile_asset_t;


/* the values of placeholders; the page contains them escaped */

typedef struct {
    ngx_str_t                        root;    /* URL of the console */
    ngx_str_t                        id;      /* id of a profile, or empty */
    ngx_str_t                        text;    /* of an error */
    ngx_uint_t                       status;  /* of an error */
    ngx_uint_t                       viewer;
    ngx_msec_t                       keep;    /* of the continuous profile; 0
                                                 if it is off */
    const char                      *name;    /* set by .._profile_page() */
    size_t                           content; /* place of {{:content}} */
} ngx_http_profile_page_t;


static ngx_http_profile_asset_t *ngx_http_profile_asset_find(
    const char *name, size_t len);
static void ngx_http_profile_asset_type(ngx_http_profile_asset_t *asset,
    ngx_http_profile_answer_t *answer);
static void ngx_http_profile_page_init(ngx_http_profile_page_t *page,
    ngx_http_profile_call_t *call);
static ngx_msec_t ngx_http_profile_page_keep(ngx_http_request_t *r);
static void ngx_http_profile_page(const char *name,
    ngx_http_profile_page_t *page, prof_buf_t *b);
static void ngx_http_profile_page_fill(ngx_http_profile_page_t *page,
    ngx_http_profile_asset_t *asset, prof_buf_t *b);
static void ngx_http_profile_page_put(ngx_http_profile_page_t *page,
    u_char *name, size_t len, prof_buf_t *b);
static void ngx_http_profile_page_value(ngx_http_profile_page_t *page,
    u_char *name, size_t len, prof_buf_t *b);
static void ngx_http_profile_page_time(ngx_msec_t ms, prof_buf_t *b);


/* the assembler searches the include path of the compiler */

#define NGX_HTTP_PROFILE_ASSET_DATA(id, dir, file)                            \
    __asm__(".pushsection .rodata\n"                                          \
            ".hidden ngx_http_profile_asset_" #id "_start\n"                  \
            ".globl ngx_http_profile_asset_" #id "_start\n"                   \
            "ngx_http_profile_asset_" #id "_start:\n"                         \
            ".incbin \"" dir file "\"\n"                                      \
            ".hidden ngx_http_profile_asset_" #id "_end\n"                    \
            ".globl ngx_http_profile_asset_" #id "_end\n"                     \
            "ngx_http_profile_asset_" #id "_end:\n"                           \
            ".byte 0\n"                                                       \
            ".popsection\n");                                                 \
                                                                              \
    extern u_char  ngx_http_profile_asset_##id##_start[]                      \
        __attribute__((visibility("hidden")));                                \
    extern u_char  ngx_http_profile_asset_##id##_end[]                        \
        __attribute__((visibility("hidden")));

NGX_HTTP_PROFILE_ASSETS(NGX_HTTP_PROFILE_ASSET_DATA)


#define NGX_HTTP_PROFILE_ASSET_ENTRY(id, dir, file)                           \
    { file, ngx_http_profile_asset_##id##_start,                              \
      ngx_http_profile_asset_##id##_end, "" },

static ngx_http_profile_asset_t  ngx_http_profile_assets[] = {
    NGX_HTTP_PROFILE_ASSETS(NGX_HTTP_PROFILE_ASSET_ENTRY)
    { NULL, NULL, NULL, "" }
};


static ngx_http_profile_asset_t *
ngx_http_profile_asset_find(const char *name, size_t len)
{
    uint32_t                   crc;
    ngx_http_profile_asset_t  *asset;

    for (asset = ngx_http_profile_assets; asset->name; asset++) {

        if (ngx_strlen(asset->name) != len
            || ngx_strncmp(asset->name, name, len) != 0)
        {
            continue;
        }

        if (asset->path[0] == '\0') {
            crc = ngx_crc32_long(asset->start, asset->end - asset->start);

            (void) ngx_snprintf((u_char *) asset->path,
                                NGX_HTTP_PROFILE_ASSET_MAX,
                                "assets/%08xD/%s%Z", crc, asset->name);
        }

        return asset;
    }

    return NULL;
}


void
ngx_http_profile_asset(const char *name, ngx_str_t *text)
{
    ngx_http_profile_asset_t  *asset;

    asset = ngx_http_profile_asset_find(name, ngx_strlen(name));

    text->data = asset->start;
    text->len = asset->end - asset->start;
}


/*
 * Any hash is accepted: a page that a browser loaded before an upgrade asks
 * for the hash of another version, and gets the current file.
 */

ngx_int_t
ngx_http_profile_asset_route(ngx_http_profile_call_t *call)
{
    u_char                     *name, *last;
    ngx_http_profile_asset_t   *asset;
    ngx_http_profile_answer_t   answer;

    last = call->rest.data + call->rest.len;
    name = ngx_strlchr(call->rest.data, last, '/');

    asset = name ? ngx_http_profile_asset_find((char *) name + 1,
                                               last - name - 1)
                 : NULL;

    if (asset == NULL || ngx_strstr(asset->name, ".html")) {
        return ngx_http_profile_answer_error(call, NGX_HTTP_NOT_FOUND,
                                    "the console has no asset \"%V\"",
                                    &call->rest);
    }

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    answer.body.data = asset->start;
    answer.body.len = asset->end - asset->start;
    answer.compressible = 1;
    answer.immutable = ngx_strlen(asset->path) == call->path.len
                       && ngx_strncmp(asset->path, call->path.data,
                                      call->path.len)
                          == 0;

    ngx_http_profile_asset_type(asset, &answer);

    return ngx_http_profile_answer(call, &answer);
}


static void
ngx_http_profile_asset_type(ngx_http_profile_asset_t *asset,
    ngx_http_profile_answer_t *answer)
{
    const char  *suffix;

    suffix = strrchr(asset->name, '.');

    if (ngx_strcmp(suffix, ".css") == 0) {
        ngx_str_set(&answer->type, "text/css; charset=utf-8");

    } else if (ngx_strcmp(suffix, ".js") == 0) {
        ngx_str_set(&answer->type, "text/javascript; charset=utf-8");

    } else {
        ngx_str_set(&answer->type, "image/svg+xml");
    }
}


ngx_int_t
ngx_http_profile_answer_page(ngx_http_profile_call_t *call, const char *name)
{
    prof_buf_t                 b;
    ngx_http_profile_answer_t  answer;

    prof_buf_init(&b);

    (void) ngx_http_profile_call_page(call, name, &b);

    ngx_memzero(&answer, sizeof(ngx_http_profile_answer_t));

    ngx_str_set(&answer.type, "text/html; charset=utf-8");
    answer.csp = NGX_HTTP_PROFILE_CSP_PAGE;
    answer.compressible = 1;

    return ngx_http_profile_answer_buf(call, &answer, &b);
}


size_t
ngx_http_profile_call_page(ngx_http_profile_call_t *call, const char *name,
    prof_buf_t *b)
{
    ngx_http_profile_page_t  page;

    ngx_http_profile_page_init(&page, call);
    ngx_http_profile_page(name, &page, b);

    return page.content;
}


void
ngx_http_profile_error_page(ngx_http_profile_call_t *call, ngx_uint_t status,
    ngx_str_t *text, prof_buf_t *b)
{
    ngx_http_profile_page_t  page;

    ngx_http_profile_page_init(&page, call);

    page.status = status;
    page.text = *text;

    ngx_http_profile_page("error.html", &page, b);
}


static void
ngx_http_profile_page_init(ngx_http_profile_page_t *page,
    ngx_http_profile_call_t *call)
{
    ngx_http_profile_loc_conf_t  *plcf;

    plcf = ngx_http_get_module_loc_conf(call->request,
                                        ngx_http_profile_module);

    ngx_memzero(page, sizeof(ngx_http_profile_page_t));

    page->root.data = (u_char *) (*call->root ? call->root : "./");
    page->root.len = ngx_strlen(page->root.data);
    page->id = call->rest;
    page->viewer = plcf->viewer.len != 0;
    page->keep = ngx_http_profile_page_keep(call->request);
}


static ngx_msec_t
ngx_http_profile_page_keep(ngx_http_request_t *r)
{
    ngx_http_profile_main_conf_t  *pmcf;

    pmcf = ngx_http_get_module_main_conf(r, ngx_http_profile_module);

    return pmcf->continuous ? pmcf->continuous->keep : 0;
}


void
ngx_http_profile_console_page(ngx_http_request_t *r, u_char *id, prof_buf_t *b)
{
    ngx_http_profile_page_t  page;

    ngx_memzero(&page, sizeof(ngx_http_profile_page_t));

    page.root = *ngx_http_profile_console_url(r);
    page.id.data = id;
    page.id.len = NGX_HTTP_PROFILE_ID_LEN;
    page.viewer = ngx_http_profile_console_viewer(r);
    page.keep = ngx_http_profile_page_keep(r);

    ngx_http_profile_page("profile.html", &page, b);
}


static void
ngx_http_profile_page(const char *name, ngx_http_profile_page_t *page,
    prof_buf_t *b)
{
    ngx_http_profile_asset_t  *asset;

    asset = ngx_http_profile_asset_find(name, ngx_strlen(name));
    page->name = asset->name;

    ngx_http_profile_page_fill(page, asset, b);
}


static void
ngx_http_profile_page_fill(ngx_http_profile_page_t *page,
    ngx_http_profile_asset_t *asset, prof_buf_t *b)
{
    u_char  *p, *open, *close;

    for (p = asset->start; /* void */ ; p = close + 2) {

        open = ngx_strlcasestrn(p, asset->end, (u_char *) "{{", 1);
        close = open ? ngx_strlcasestrn(open, asset->end, (u_char *) "}}", 1)
                     : NULL;

        if (close == NULL) {
            break;
        }

        prof_buf_append(b, p, open - p);
        ngx_http_profile_page_put(page, open + 2, close - open - 2, b);
    }

    prof_buf_append(b, p, asset->end - p);
}


static void
ngx_http_profile_page_put(ngx_http_profile_page_t *page, u_char *name,
    size_t len, prof_buf_t *b)
{
    ngx_http_profile_asset_t  *asset;

    if (len && name[0] == ':') {
        ngx_http_profile_page_value(page, name + 1, len - 1, b);
        return;
    }

    asset = ngx_http_profile_asset_find((char *) name, len);

    if (asset && ngx_strstr(asset->name, ".html")) {
        ngx_http_profile_page_fill(page, asset, b);
        return;
    }

    prof_markup_text(b, (char *) page->root.data, page->root.len,
                     page->root.len);

    if (asset) {
        prof_buf_puts(b, asset->path);
    }
}


static void
ngx_http_profile_page_value(ngx_http_profile_page_t *page, u_char *name,
    size_t len, prof_buf_t *b)
{
    static ngx_str_t  at = ngx_string("at ");

    if (len > at.len && ngx_strncmp(name, at.data, at.len) == 0) {

        if (ngx_strlen(page->name) == len - at.len
            && ngx_strncmp(page->name, name + at.len, len - at.len) == 0)
        {
            prof_buf_puts(b, " aria-current=\"page\"");
        }

        return;
    }

    if (ngx_strncmp(name, "content", len) == 0) {
        page->content = b->len;
        return;
    }

    if (ngx_strncmp(name, "on", len) == 0
        || ngx_strncmp(name, "off", len) == 0)
    {
        prof_buf_puts(b, (len == 2) == ngx_http_profile_metrics_on()
                         ? "" : " hidden");
        return;
    }

    if (ngx_strncmp(name, "hour", len) == 0) {
        prof_buf_puts(b, page->keep ? "" : " hidden");
        return;
    }

    if (ngx_strncmp(name, "keep", len) == 0) {
        ngx_http_profile_page_time(page->keep, b);
        return;
    }

    if (ngx_strncmp(name, "id", len) == 0) {
        prof_markup_text(b, (char *) page->id.data, page->id.len,
                         NGX_HTTP_PROFILE_ID_LEN);
        return;
    }

    if (ngx_strncmp(name, "status", len) == 0) {
        prof_buf_printf(b, "%u", (unsigned) page->status);
        return;
    }

    if (ngx_strncmp(name, "text", len) == 0) {
        prof_markup_text(b, (char *) page->text.data, page->text.len,
                         page->text.len);
        return;
    }

    prof_buf_puts(b, page->viewer ? "on" : "off");
}


/* "hour", "4 minutes": the largest unit of which the time is a multiple */

static void
ngx_http_profile_page_time(ngx_msec_t ms, prof_buf_t *b)
{
    ngx_uint_t  i, n;

    static const struct {
        const char  *name;
        ngx_uint_t   ms;
    } units[] = {
        { "day", 86400000 }, { "hour", 3600000 }, { "minute", 60000 },
        { "second", 1000 }
    };

    if (ms == 0) {
        ms = 3600000;
    }

    for (i = 0; i < 3 && ms % units[i].ms; i++) { /* void */ }

    n = ms / units[i].ms;

    if (n != 1) {
        prof_buf_printf(b, "%u ", (unsigned) n);
    }

    prof_buf_printf(b, "%s%s", units[i].name, n == 1 ? "" : "s");
}
