
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_kernel.h"


static void ngx_http_profile_kernel_title(void);


/* set in the master, and inherited by workers */

static ngx_socket_t   ngx_http_profile_kernel_sock = (ngx_socket_t) -1;
static const char    *ngx_http_profile_kernel_err = "off";


void
ngx_http_profile_kernel_init(ngx_cycle_t *cycle,
    ngx_http_profile_main_conf_t *pmcf)
{
    ngx_http_profile_kernel_close();

    if (pmcf->kernel != 1 || ngx_test_config) {
        return;
    }

    ngx_http_profile_kernel_sock = prof_kernel_opener(
                                               ngx_http_profile_kernel_title,
                                               &ngx_http_profile_kernel_err);

    prof_kernel_use(ngx_http_profile_kernel_sock);
}


static void
ngx_http_profile_kernel_title(void)
{
    ngx_setproctitle("profile kernel opener");
}


void
ngx_http_profile_kernel_close(void)
{
    if (ngx_http_profile_kernel_sock != (ngx_socket_t) -1) {
        (void) close(ngx_http_profile_kernel_sock);
        ngx_http_profile_kernel_sock = (ngx_socket_t) -1;
    }

    ngx_http_profile_kernel_err = "off";

    prof_kernel_use(-1);
}


const char *
ngx_http_profile_kernel_state(void)
{
    const char  *err;

    if (ngx_http_profile_kernel_err) {
        return ngx_http_profile_kernel_err;
    }

    err = prof_kernel_error();

    return err ? err : "on";
}
