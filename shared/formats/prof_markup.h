
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Texts of any bytes in XML and HTML.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_MARKUP_H_INCLUDED_
#define _PROF_MARKUP_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"


PROF_HIDDEN_BEGIN

/*
 * Appends a text fit for the content of an element and for a quoted
 * attribute, in XML and in HTML.  What is no UTF-8, what XML forbids, line
 * ends and what reorders the text around it becomes U+FFFD.  A text of more
 * than max bytes is cut between characters and ends with an ellipsis.
 */
void prof_markup_text(prof_buf_t *b, const char *s, size_t len, size_t max);

/* a part of a whole in percent, with that many decimals: "12.3456" */
void prof_markup_percent(prof_buf_t *b, uint64_t part, uint64_t whole,
    uint32_t decimals);

PROF_HIDDEN_END


#endif /* _PROF_MARKUP_H_INCLUDED_ */
