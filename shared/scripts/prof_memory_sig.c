
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Context: signal handler.
 */


#include "scripts/prof_memory.h"

#include <string.h>


/* addresses of a process have 47 bits */
#define PROF_MEMORY_END  ((uintptr_t) 1 << 47)


static int prof_memory_page(prof_walk_t *w, uintptr_t page);


void
prof_memory_prepare(prof_walk_t *w)
{
    if (w->nchains == 0) {
        memset(w->pages, 0, sizeof(w->pages));
        w->names = PROF_WALK_NAMES;
    }
}


int
prof_memory_readable(prof_walk_t *w, uintptr_t addr, size_t size)
{
    uintptr_t  end, page;

    end = addr + size;

    if (addr < PROF_WALK_PAGE || end < addr || end >= PROF_MEMORY_END) {
        return 0;
    }

    page = addr & ~(uintptr_t) (PROF_WALK_PAGE - 1);

    for ( /* void */ ; page < end; page += PROF_WALK_PAGE) {
        if (!prof_memory_page(w, page)) {
            return 0;
        }
    }

    return 1;
}


static int
prof_memory_page(prof_walk_t *w, uintptr_t page)
{
    uintptr_t  *known;

    known = &w->pages[page / PROF_WALK_PAGE % PROF_WALK_PAGES];

    if (*known == page) {
        return 1;
    }

    if (w->looks < PROF_WALK_LOOK_CODE) {
        w->looks = 0;
        return 0;
    }

    w->looks -= PROF_WALK_LOOK_CODE;

    if (!prof_arch_readable(page)) {
        return 0;
    }

    *known = page;

    return 1;
}
