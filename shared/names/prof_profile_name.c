
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Copies a name to a frame of a profile.
 */


#include "names/prof_names.h"

#include <stdlib.h>
#include <string.h>


static int prof_profile_text(char **copy, const char *text);


int
prof_profile_name(prof_profile_t *p, prof_frame_t *f,
    const prof_name_t *name)
{
    uint32_t        i;
    prof_inline_t  *in;

    if (prof_profile_text(&f->name, name->name) != PROF_OK
        || prof_profile_text(&f->file, name->file) != PROF_OK)
    {
        return PROF_ERROR;
    }

    if (name->source > f->source) {
        f->source = name->source;
    }

    f->line = name->line;
    f->start_line = name->start_line;

    if (name->ninlines == 0) {
        return PROF_OK;
    }

    in = realloc(p->inlines, ((size_t) p->ninlines + name->ninlines)
                             * sizeof(prof_inline_t));
    if (in == NULL) {
        return PROF_ERROR;
    }

    p->inlines = in;

    f->inlines = p->ninlines;
    f->ninlines = 0;

    for (i = 0; i < name->ninlines; i++) {
        in = &p->inlines[p->ninlines];

        memset(in, 0, sizeof(prof_inline_t));

        in->line = name->inlines[i].line;
        in->start_line = name->inlines[i].start_line;

        p->ninlines++;
        f->ninlines++;

        if (prof_profile_text(&in->name, name->inlines[i].name) != PROF_OK
            || prof_profile_text(&in->file, name->inlines[i].file)
               != PROF_OK)
        {
            return PROF_ERROR;
        }
    }

    return PROF_OK;
}


/* if there is no text, *copy stays */

static int
prof_profile_text(char **copy, const char *text)
{
    char  *p;

    if (text == NULL) {
        return PROF_OK;
    }

    p = strdup(text);
    if (p == NULL) {
        return PROF_ERROR;
    }

    free(*copy);
    *copy = p;

    return PROF_OK;
}
