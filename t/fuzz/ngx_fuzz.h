
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * nginx within a fuzzer: a configuration that nginx has read, and requests for
 * the module's functions.  Each allocation from a pool is a malloc(), so the
 * sanitizer detects reads past its end.
 */


#ifndef _NGX_FUZZ_H_INCLUDED_
#define _NGX_FUZZ_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <stdlib.h>


#define fuzz_check(condition)                                                 \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__,      \
                    #condition);                                              \
            abort();                                                          \
        }                                                                     \
    } while (0)


/*
 * Reads a configuration with this text in its http block, as nginx does when
 * it starts, in a new directory.  "%s" in the text is that directory, once.
 * Ends the process on errors.
 */
ngx_cycle_t *fuzz_nginx(const char *text);

/* removes the directory; to be called before the process ends */
void fuzz_remove(void);

/*
 * Makes a request of the input's lines.  The first line is the method, a space
 * and the URI, and each other line is a header, "Name: value".  The list of
 * headers has parts of "part" headers.  The main, server and location
 * configurations are those of the first server.
 */
ngx_http_request_t *fuzz_request(ngx_cycle_t *cycle, const uint8_t *data,
    size_t size, ngx_uint_t part);

/* frees the request and its memory */
void fuzz_request_free(ngx_http_request_t *r);

/* returns a copy of exactly this size, which ends with its memory */
u_char *fuzz_copy(ngx_pool_t *pool, const uint8_t *data, size_t size);


#endif /* _NGX_FUZZ_H_INCLUDED_ */
