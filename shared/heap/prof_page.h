
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Pages that the loader has made read-only (RELRO), opened for a moment.
 *
 * The loader lists an object before it writes the object's slots, and makes
 * these pages read-only when it has written all of them.  So one that can be
 * written still belongs to a thread that is in dlopen(): if it were made
 * read-only, the loader's next write would fail.  One that is read-only remains
 * so until the object is unmapped.
 *
 * Context: a callback of dl_iterate_phdr(), during which no object is unmapped.
 */


#ifndef _PROF_PAGE_H_INCLUDED_
#define _PROF_PAGE_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/*
 * Makes a page writable that is read-only.  1: done, 0: the loader is at work
 * there and nothing was changed, PROF_ERROR: it cannot be done.
 */
int prof_page_open(uintptr_t page, uintptr_t size);

void prof_page_close(uintptr_t page, uintptr_t size);

PROF_HIDDEN_END


#endif /* _PROF_PAGE_H_INCLUDED_ */
