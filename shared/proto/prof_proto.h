
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The messages of profile.proto, as protobuf-c's compiler generates them.
 *
 * The generated declarations have no visibility attributes.  The header of the
 * library is included first, because its functions must stay visible.
 */


#ifndef _PROF_PROTO_H_INCLUDED_
#define _PROF_PROTO_H_INCLUDED_


#include "base/prof_base.h"

#include <protobuf-c/protobuf-c.h>

PROF_HIDDEN_BEGIN

#include "proto/profile.pb-c.h"

PROF_HIDDEN_END


#endif /* _PROF_PROTO_H_INCLUDED_ */
