
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Content negotiation: the headers Accept and Accept-Encoding of HTTP (RFC
 * 9110, 12.5), with their qualities.
 *
 * Headers are not trusted: malformed elements are ignored.  A client that
 * accepts none of the formats gets the default.
 *
 * Context: any.
 */


#ifndef _PROF_ACCEPT_H_INCLUDED_
#define _PROF_ACCEPT_H_INCLUDED_


#include "base/prof_base.h"
#include "formats/prof_encode.h"


PROF_HIDDEN_BEGIN

/*
 * Returns the format for a value of Accept, "text/html, text/plain;q=0.1": the
 * format with the highest quality.  Among equals, the most exact type wins,
 * then def, then the first one in the header.
 */
const prof_encoder_t *prof_accept_encoder(const char *s, size_t len,
    const prof_encoder_t *def);

/*
 * Returns the index of the type for a value of Accept: the type with the
 * highest quality; among equals the one that is named most exactly; then the
 * first of the list, then the one that the value names first.  The list ends
 * with NULL.
 */
unsigned prof_accept_type(const char *s, size_t len, const char **types);

/*
 * Returns whether a value of Accept-Encoding accepts gzip, and does not prefer
 * plain text.
 */
int prof_accept_gzip(const char *s, size_t len);

PROF_HIDDEN_END


#endif /* _PROF_ACCEPT_H_INCLUDED_ */
