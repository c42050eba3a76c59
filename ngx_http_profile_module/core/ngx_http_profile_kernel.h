
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The directive profile_kernel: starts a process that keeps its privileges,
 * and opens the events for workers by which samples have stacks of the kernel
 * (kernel/prof_kernel.h).
 */


#ifndef _NGX_HTTP_PROFILE_KERNEL_H_INCLUDED_
#define _NGX_HTTP_PROFILE_KERNEL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "core/ngx_http_profile_conf.h"


PROF_HIDDEN_BEGIN

/*
 * Starts the process for the workers of a configuration.  The process of the
 * previous configuration ends when its workers have ended.  Called in the
 * master, before the workers start.
 */
void ngx_http_profile_kernel_init(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf);

/* closes the calling process's connection to the process with privileges */
void ngx_http_profile_kernel_close(void);

/*
 * Returns "on", "off", or the reason why samples have no stacks of the kernel,
 * a static text.
 */
const char *ngx_http_profile_kernel_state(void);

PROF_HIDDEN_END


#endif /* _NGX_HTTP_PROFILE_KERNEL_H_INCLUDED_ */
