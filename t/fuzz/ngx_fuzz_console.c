
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Fuzzes requests to a server with everything on: the console and its URLs,
 * metrics, the bar, and triggers.  The input is sent as it is; the fuzzer adds
 * the end of the headers.  nginx serves the request in its event loop.  A
 * client that gets no answer for some time disconnects.
 *
 * No request fails with status 500 or leaves a connection.  The body has the
 * length that the headers announce, and JSON is JSON.
 */


#include "ngx_fuzz.h"

#include <jansson.h>


#define FUZZ_WAIT  50          /* ms until a client leaves */


int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_timeout(ngx_event_t *ev);
static int fuzz_connect(void);
static void fuzz_send(int fd, const uint8_t *data, size_t size);
static ngx_int_t fuzz_receive(int fd);
static void fuzz_answer(void);


static ngx_cycle_t  *fuzz_cycle;
static ngx_event_t   fuzz_timer;
static ngx_uint_t    fuzz_late;
static ngx_uint_t    fuzz_free;
static size_t        fuzz_len;
static char          fuzz_text[1024 * 1024];


int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    ngx_uint_t  i;

    fuzz_cycle = fuzz_nginx(
        "profile_zone fuzz:2m; profile_endpoint on; profile_allow all;"
        "profile_symbolizer off; profile_accounting on; profile_bar on;"
        "profile_continuous on wall=on size=1m;"
        "keepalive_timeout 0; default_type text/html;"
        "server { listen unix:%s/socket;"
        "location / { return 200 \"<html><body>text</body></html>\"; }"
        "location /-/profile/ { profile_console; }"
        "location = /metrics { profile_metrics; } }\n");

    for (i = 0; fuzz_cycle->modules[i]; i++) {

        if (fuzz_cycle->modules[i]->init_process) {
            fuzz_check(fuzz_cycle->modules[i]->init_process(fuzz_cycle)
                       == NGX_OK);
        }
    }

    fuzz_timer.handler = fuzz_timeout;
    fuzz_timer.log = fuzz_cycle->log;
    fuzz_timer.cancelable = 1;

    (void) signal(SIGPIPE, SIG_IGN);

    fuzz_free = fuzz_cycle->free_connection_n;

    return 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int         fd;
    ngx_uint_t  n;

    fd = fuzz_connect();
    fuzz_send(fd, data, size);

    fuzz_len = 0;
    fuzz_late = 0;

    ngx_time_update();
    ngx_add_timer(&fuzz_timer, FUZZ_WAIT);

    do {
        ngx_process_events_and_timers(fuzz_cycle);
    } while (fuzz_receive(fd) == NGX_AGAIN && !fuzz_late);

    if (!fuzz_late) {
        ngx_del_timer(&fuzz_timer);
        fuzz_answer();
    }

    (void) close(fd);

    /* the request ends, also without its client */

    for (n = 0; fuzz_cycle->free_connection_n < fuzz_free; n++) {
        fuzz_check(n < 1000);

        if (!fuzz_timer.timer_set) {
            ngx_add_timer(&fuzz_timer, FUZZ_WAIT);
        }

        ngx_process_events_and_timers(fuzz_cycle);
    }

    if (fuzz_timer.timer_set) {
        ngx_del_timer(&fuzz_timer);
    }

    return 0;
}


static void
fuzz_timeout(ngx_event_t *ev)
{
    fuzz_late = 1;
}


static int
fuzz_connect(void)
{
    int               fd;
    ngx_listening_t  *ls;

    ls = fuzz_cycle->listening.elts;

    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0);

    fuzz_check(fd != -1);
    fuzz_check(connect(fd, ls->sockaddr, ls->socklen) == 0);

    return fd;
}


static void
fuzz_send(int fd, const uint8_t *data, size_t size)
{
    static const char  end[] = "\nHost: localhost\nConnection: close\n\n";

    if (size) {
        fuzz_check(send(fd, data, size, 0) == (ssize_t) size);
    }

    fuzz_check(send(fd, end, sizeof(end) - 1, 0) == sizeof(end) - 1);
}


/* returns NGX_AGAIN, or NGX_OK if nginx has closed the connection */

static ngx_int_t
fuzz_receive(int fd)
{
    ssize_t  n;

    for ( ;; ) {
        n = recv(fd, fuzz_text + fuzz_len, sizeof(fuzz_text) - 1 - fuzz_len,
                 0);

        if (n == -1) {
            return ngx_socket_errno == NGX_EAGAIN ? NGX_AGAIN : NGX_OK;
        }

        if (n == 0) {
            return NGX_OK;
        }

        fuzz_len += n;
        fuzz_check(fuzz_len < sizeof(fuzz_text) - 1);
    }
}


static void
fuzz_answer(void)
{
    char    *body, *len;
    json_t  *json;

    fuzz_text[fuzz_len] = '\0';

    fuzz_check(ngx_strncmp(fuzz_text, "HTTP/1.1 500", 12) != 0);

    body = strstr(fuzz_text, "\r\n\r\n");

    if (body == NULL) {
        return;
    }

    *body = '\0';
    body += 4;

    len = strstr(fuzz_text, "\r\nContent-Length: ");

    if (len && body != fuzz_text + fuzz_len) {
        fuzz_check(atol(len + sizeof("\r\nContent-Length: ") - 1)
                   == fuzz_text + fuzz_len - body);
    }

    if (*body && strstr(fuzz_text, "\r\nContent-Type: application/json\r\n")
        && strstr(fuzz_text, "\r\nContent-Encoding: ") == NULL)
    {
        json = json_loads(body, JSON_DECODE_ANY, NULL);
        fuzz_check(json);
        json_decref(json);
    }
}
