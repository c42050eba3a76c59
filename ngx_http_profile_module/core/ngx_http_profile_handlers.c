
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "core/ngx_http_profile_handlers.h"


PROF_HOT_DATA ngx_http_profile_handlers_t  ngx_http_profile_handlers;

uint64_t  ngx_http_profile_own_at;
