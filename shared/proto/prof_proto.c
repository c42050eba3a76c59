
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Compiles the generated code with the declarations that hide it.
 */


#include "proto/prof_proto.h"

#include "proto/profile.pb-c.c"
