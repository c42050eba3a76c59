
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The configuration of all rooms.  nginx makes configurations when it reads its
 * files, and nothing changes them afterwards.  Directives and their defaults
 * are in the file ngx_http_profile_<room>_conf.c of each room.
 */


#ifndef _NGX_HTTP_PROFILE_CONF_H_INCLUDED_
#define _NGX_HTTP_PROFILE_CONF_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "prof.h"


#define NGX_HTTP_PROFILE_MAX_CAPTURES  16


extern ngx_module_t  ngx_http_profile_module;


/* appends the console's page of the profile to b */
typedef void (*ngx_http_profile_page_pt)(ngx_http_request_t *r, u_char *id,
    prof_buf_t *b);

typedef struct ngx_http_profile_store_s      ngx_http_profile_store_t;
typedef struct ngx_http_profile_keep_conf_s  ngx_http_profile_keep_conf_t;
typedef struct ngx_http_profile_continuous_s
                                             ngx_http_profile_continuous_t;


/* tells whether a query may contain a trigger of any server */

typedef struct {
    size_t                      more;         /* the query is longer than this;
                                                 NGX_MAX_SIZE_T_VALUE: there
                                                 are no names */
    size_t                      before;       /* bytes before the rarest */
    int                         rare;         /* rarest byte of the name; -1:
                                                 there are several names */
} ngx_http_profile_query_t;


typedef struct {
    ngx_array_t                 headers;      /* of ngx_str_t: names in use */
    ngx_http_profile_query_t    query;
    ngx_uint_t                  nlocations;   /* with profile_endpoint on */
    ngx_uint_t                  nconsoles;    /* with profile_console */
    ngx_uint_t                  nmetrics;     /* with profile_metrics */
    ngx_uint_t                  accounting;   /* a server tracks requests */
    ngx_uint_t                  untracked;    /* a server tracks no requests
                                                 without a capture */
    ngx_uint_t                  nkeeps;       /* with profile_keep */
    ngx_uint_t                  watch_frequency;  /* Hz; 0: no watch */
    ngx_msec_t                  stall;        /* threshold; 0: off */
    ngx_shm_zone_t             *stall_zone;   /* NULL: off */
    ngx_uint_t                  places;       /* profile_metrics: maximum of
                                                 locations with their own
                                                 counters; 0: off */
    ngx_array_t                 locations;    /* ngx_http_profile_location_t:
                                                 all of them, for metrics and
                                                 for the turn log */
    ngx_uint_t                  max_captures;
    ngx_array_t                *local;        /* the default list of
                                                 profile_allow; NULL: unused */
    ngx_array_t                 hosts;        /* ngx_str_t: names of servers
                                                 that the default list admits;
                                                 ".a.b" is a wildcard */
    ngx_array_t                 names;        /* ngx_http_profile_name_t */
    ngx_array_t                 functions;    /* of scripts, for contents */
    ngx_http_profile_store_t   *store;        /* NULL: no store */
    ngx_http_profile_continuous_t
                               *continuous;   /* NULL: off */
    ngx_str_t                   symbolizer;   /* path; empty: off; no data:
                                                 beside the module */
    ngx_flag_t                  kernel;       /* profile_kernel; unset: off */
    ngx_flag_t                  context;      /* profile_context */
    size_t                      turn_log;     /* bytes of runs for a worker; 0:
                                                 off */

    /* the phase engine's entries, from init_process on */

    ngx_uint_t                  nphases;
    ngx_uint_t                  precontent;   /* index of the first one */
    ngx_http_phase_handler_pt  *checkers;     /* nginx's own */
    ngx_http_handler_pt        *handlers;     /* by entry of the engine */
    ngx_str_t                  *phases;       /* names of their spans */
} ngx_http_profile_main_conf_t;


/* a phase handler or filter, and the name of the module that registered it */

typedef struct {
    uintptr_t                  handler;
    ngx_uint_t                 role;         /* ngx_http_profile_role_e */
    char                      *module;
} ngx_http_profile_name_t;


typedef struct {
    ngx_array_t                locations;    /* of loc conf *: enabled ones */
    ngx_uint_t                 conditional;  /* profile_if is in one of them */
    ngx_str_t                  console;      /* its URL, or empty */
    ngx_str_t                 *viewer;       /* viewer of the console */
    ngx_http_profile_page_pt   page;         /* appends the console's page of a
                                                profile */
    ngx_flag_t                 accounting;
    ngx_uint_t                 keep_share;   /* of 10000 requests that
                                                profile_keep takes notes of: the
                                                largest of its locations; 0:
                                                off */
    ngx_uint_t                 track;        /* all requests are tracked, by
                                                this or another directive */
} ngx_http_profile_srv_conf_t;


/* profile_arg and profile_header are those of the server in all locations */

typedef struct {
    ngx_flag_t                 enable;
    ngx_http_profile_keep_conf_t
                              *keep;         /* NULL: off */
    ngx_uint_t                 keep_own;     /* flag: it is not inherited */
    ngx_array_t               *allow;        /* of ngx_cidr_t */
    ngx_http_complex_value_t  *condition;
    ngx_array_t               *redact;       /* of ngx_str_t; NULL: off */
    ngx_uint_t                 mode;
    ngx_uint_t                 frequency;
    ngx_uint_t                 format;       /* index in prof_encoders[] */
    ngx_str_t                  arg;
    ngx_uint_t                 arg_rare;     /* index of its byte that is the
                                                rarest in queries */
    ngx_str_t                  header;
    ngx_flag_t                 spans;
    ngx_msec_t                 timeout;
    size_t                     buffer;
    size_t                     object_interval;
    ngx_msec_t                 object_grace;
    ngx_str_t                  viewer;       /* directory; empty: none */
    ngx_uint_t                 console;      /* profile_console; it is not
                                                inherited */
    ngx_uint_t                 metrics;      /* profile_metrics; it is not
                                                inherited */
    uint16_t                   entry;        /* in the turn log: its index in
                                                "locations" and 1; 0: none */
    ngx_uint_t                 place;        /* of its metrics; the master sets
                                                it before it starts workers */
    ngx_uint_t                 number;       /* identifies the location, or the
                                                server outside of locations,
                                                in all workers; blocks "if" and
                                                "limit_except" have the number
                                                of their location */
} ngx_http_profile_loc_conf_t;


/*
 * Returns whether requests of the location are for the profiler.  They are not
 * among "all requests": the profiler's own work is not that of the site.
 */

#define ngx_http_profile_is_own(plcf)  ((plcf)->console || (plcf)->metrics)


/* a location, or a server outside of its locations, by the names of both */

typedef struct {
    ngx_str_t                     server;
    ngx_str_t                     name;
    ngx_http_profile_loc_conf_t  *conf;
} ngx_http_profile_location_t;


/* a directive with a number, and the bounds of the number */

typedef struct {
    char                      *(*set)(ngx_conf_t *cf, ngx_command_t *cmd,
                                      void *conf);
    ngx_uint_t                   min;
    ngx_uint_t                   max;
    const char                  *takes;
} ngx_http_profile_limit_t;


PROF_HIDDEN_BEGIN

/* a setter of directives; cmd->post is the ngx_http_profile_limit_t */
char *ngx_http_profile_limited(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Compiles a condition.  A condition without variables is "0", "1" or empty,
 * since a word such as "off" would be true.
 */
char *ngx_http_profile_condition(ngx_conf_t *cf, ngx_str_t *directive,
    ngx_str_t *value, ngx_http_complex_value_t *condition);

/* returns whether the condition's value is neither empty nor "0" */
ngx_uint_t ngx_http_profile_holds(ngx_http_request_t *r,
    ngx_http_complex_value_t *condition);

/*
 * Adds shared memory.  Returns NULL after an error, which is logged: memory is
 * short, or the configuration has other shared memory with this name, also of
 * this module.
 */
ngx_shm_zone_t *ngx_http_profile_shared_memory(ngx_conf_t *cf,
    ngx_str_t *name, size_t size, ngx_shm_zone_init_pt init);

/*
 * Returns the URL of the server's console, escaped, with a slash at its end,
 * or NULL.  The console is that of the first location with profile_console and
 * a plain prefix.
 */
ngx_str_t *ngx_http_profile_console_url(ngx_http_request_t *r);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_CONF_H_INCLUDED_ */
