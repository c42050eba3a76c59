
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "heap/prof_redirect.h"
#include "heap/prof_import.h"
#include "heap/prof_page.h"

#include <string.h>
#include <unistd.h>


static void prof_redirect_visit(void *data, const prof_import_batch_t *batch);


int
prof_redirect_find(prof_redirect_t *rd, const char *name, const void *inside,
    const void *real)
{
    uint64_t  adds, subs;

    memset(rd, 0, sizeof(prof_redirect_t));

    rd->names[0] = name;
    rd->inside = (uintptr_t) inside;
    rd->real = (uintptr_t) real;

    prof_import_each(rd->names, prof_redirect_visit, rd, &adds, &subs);

    if (rd->n != 1) {
        rd->at = NULL;
    }

    return rd->at ? PROF_OK : PROF_ERROR;
}


/*
 * An import that is not bound yet leads to a stub in its object, which binds
 * the function at the first call.
 */

static void
prof_redirect_visit(void *data, const prof_import_batch_t *batch)
{
    prof_redirect_t *rd = data;

    uint32_t   i;
    uintptr_t  word;

    if (rd->inside < batch->start || rd->inside >= batch->end) {
        return;
    }

    rd->start = batch->start;
    rd->end = batch->end;

    for (i = 0; i < batch->n; i++) {
        word = *batch->imports[i].at;
        rd->n++;

        if (word == rd->real || (word >= batch->start && word < batch->end)) {
            rd->at = batch->imports[i].at;
            rd->own = word;
            rd->relro = batch->imports[i].relro;
        }
    }
}


int
prof_redirect_set(prof_redirect_t *rd, const void *fn)
{
    uintptr_t  size, page, word;

    word = *rd->at;

    if (fn == NULL && (rd->set == 0 || word != rd->set)) {
        return rd->set ? PROF_ERROR : PROF_OK;
    }

    /* a call may have bound the import since it was found */

    if (fn && word == rd->real) {
        rd->own = word;
    }

    if (fn && word != rd->own) {
        return PROF_ERROR;
    }

    size = (uintptr_t) sysconf(_SC_PAGESIZE);
    page = (uintptr_t) rd->at & ~(size - 1);

    if (rd->relro && prof_page_open(page, size) != 1) {
        return PROF_ERROR;
    }

    *rd->at = fn ? (uintptr_t) fn : rd->own;
    rd->set = (uintptr_t) fn;

    if (rd->relro) {
        prof_page_close(page, size);
    }

    return PROF_OK;
}
