
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The generated code, compiled with the declarations that hide it.
 */


#include "proto/prof_proto.h"

#include "proto/profile.pb-c.c"
