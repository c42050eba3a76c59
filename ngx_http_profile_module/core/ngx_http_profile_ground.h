
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The ground that the module stands on: whether this nginx has the structures
 * that the module was compiled with.
 *
 * nginx compares the version and the signature of a module with its own, but a
 * distribution may change a structure and leave both.  The module is known to
 * fit if nginx has the build-id that was recorded when the module was built.
 * For another nginx the structures are checked, each before the module uses it:
 * when the module is loaded, before the first directive, when a worker starts,
 * and with the first request of a worker.  Nothing is armed before.  If a
 * structure differs, the module is off: it accepts its directives, has no
 * effect, and logs one line.
 */


#ifndef _NGX_HTTP_PROFILE_GROUND_H_INCLUDED_
#define _NGX_HTTP_PROFILE_GROUND_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"


#define NGX_HTTP_PROFILE_GROUND_FITS  0    /* known, or checked completely */
#define NGX_HTTP_PROFILE_GROUND_OPEN  1    /* the first request decides */
#define NGX_HTTP_PROFILE_GROUND_OFF   2

#define ngx_http_profile_is_off()                                             \
    (ngx_http_profile_ground == NGX_HTTP_PROFILE_GROUND_OFF)


PROF_HIDDEN_BEGIN

/* one of the above, for the calling process */

extern ngx_uint_t  ngx_http_profile_ground;


/*
 * The checks, in the order of time.  They read only memory that the kernel
 * confirms to be readable, and set ngx_http_profile_ground.
 */

/* called by a constructor, before nginx reads the modules' structures */
void ngx_http_profile_ground_load(ngx_module_t **modules,
    ngx_http_variable_t *vars);

/* called when http {} begins */
void ngx_http_profile_ground_conf(ngx_conf_t *cf);

/* called in the preconfiguration of the module with this configuration */
void ngx_http_profile_ground_http(ngx_conf_t *cf, ngx_module_t *module,
    void *main_conf);

/* called in a worker when it starts, after nginx's event module */
void ngx_http_profile_ground_process(ngx_cycle_t *cycle);

/* called with a request in the POST_READ phase, whose entry in the engine is
 * ph; sets FITS or OFF */
void ngx_http_profile_ground_request(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);


/* logs why the module is off; one process logs it for all */
void ngx_http_profile_ground_log(ngx_cycle_t *cycle);

/* returns a static text for the console's status */
const char *ngx_http_profile_ground_state(void);

/* replaces directives by such without an effect, adds empty variables */
void ngx_http_profile_ground_ignore(ngx_command_t *commands);
ngx_int_t ngx_http_profile_ground_add_variables(ngx_conf_t *cf);

/* for the functions that create configurations, while the module is off */
void *ngx_http_profile_ground_nothing(void);

/* answers a request to a location of the module while the module is off */
ngx_int_t ngx_http_profile_ground_answer(ngx_http_request_t *r);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_GROUND_H_INCLUDED_ */
