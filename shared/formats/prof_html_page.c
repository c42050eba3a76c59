
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "formats/prof_html_page.h"
#include "formats/prof_text.h"

#include <string.h>


/* without an icon, browsers request one from the site */

#define PROF_HTML_ICON                                                        \
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' "           \
    "viewBox='0 0 16 16'%3E"                                                  \
    "%3Cpath fill='%23e8825f' d='M1 1h14v4H1z'/%3E"                           \
    "%3Cpath fill='%23f2b55c' d='M1 6h9v4H1z'/%3E"                            \
    "%3Cpath fill='%234db394' d='M4 11h6v4H4z'/%3E%3C/svg%3E"


void
prof_html_page_open(prof_buf_t *b, const char *title, const char *suffix)
{
    prof_buf_puts(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                     "<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" "
                     "content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"color-scheme\" content=\"light dark\">\n"
                     "<link rel=\"icon\" href=\"" PROF_HTML_ICON "\">\n"
                     "<title>");
    prof_html_text(b, title);
    prof_buf_puts(b, suffix);
    prof_buf_puts(b, "</title>\n<style>");
    prof_asset_append(b, &prof_asset_theme_css);
    prof_buf_puts(b, "</style>\n<style>");
    prof_asset_append(b, &prof_asset_flame_css);
    prof_buf_puts(b, "</style>\n<style>");
    prof_asset_append(b, &prof_asset_page_css);

    prof_buf_puts(b, "</style>\n</head>\n<body class=\"prof-page\">\n"
                     "<header>\n<h1>");
    prof_html_text(b, title);
    prof_buf_puts(b, "</h1>\n");
}


void
prof_html_page_close(prof_buf_t *b)
{
    prof_buf_puts(b, "</main>\n<script>");
    prof_asset_append(b, &prof_asset_flame_js);
    prof_buf_puts(b, "</script>\n<script>");
    prof_asset_append(b, &prof_asset_page_js);
    prof_buf_puts(b, "</script>\n</body>\n</html>\n");
}


void
prof_html_text(prof_buf_t *b, const char *s)
{
    prof_markup_text(b, s, strlen(s), PROF_HTML_TEXT_MAX);
}


void
prof_html_note(void *data, const prof_buf_t *line, int warning)
{
    prof_buf_t *b = data;

    prof_buf_puts(b, warning ? "<li class=\"warn\">" : "<li>");
    prof_markup_text(b, line->data, line->len, PROF_HTML_TEXT_MAX);
    prof_buf_puts(b, "</li>\n");
}
