
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Makes pages writable for a moment that the loader has made read-only
 * (RELRO).
 *
 * The loader lists an object before it writes the object's imports, and makes
 * these pages read-only when it has written all of them.  So a writable page
 * still belongs to a thread that is in dlopen(): if it were made read-only,
 * the loader's next write would fail.  A read-only page remains read-only
 * until the object is unmapped.
 *
 * Context: a callback of dl_iterate_phdr(), during which no object is
 * unmapped.
 */


#ifndef _PROF_PAGE_H_INCLUDED_
#define _PROF_PAGE_H_INCLUDED_


#include "base/prof_base.h"


PROF_HIDDEN_BEGIN

/*
 * Makes a read-only page writable.  Returns 1, or 0 if the loader is still
 * writing to the page and nothing was changed, or PROF_ERROR if the page
 * cannot be made writable.
 */
int prof_page_open(uintptr_t page, uintptr_t size);

void prof_page_close(uintptr_t page, uintptr_t size);

PROF_HIDDEN_END


#endif /* _PROF_PAGE_H_INCLUDED_ */
