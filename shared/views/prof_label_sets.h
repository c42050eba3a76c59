
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The sets of labels that entries have, with their weights: "worker 17, thread
 * pool".
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_LABEL_SETS_H_INCLUDED_
#define _PROF_LABEL_SETS_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "profile/prof_profile.h"
#include "profile/prof_measure.h"


typedef struct {
    uint32_t           labels;      /* index, or PROF_NONE */
    uint64_t           weight[PROF_MEASURE_MAX];
} prof_label_set_t;


typedef struct {
    prof_label_set_t  *sets;        /* owned; the heaviest is first */
    uint32_t           n;
} prof_label_sets_t;


PROF_HIDDEN_BEGIN

/* returns PROF_OK or PROF_ERROR (memory); call free() in both cases */
int prof_label_sets_init(prof_label_sets_t *s, const prof_profile_t *p);
void prof_label_sets_free(prof_label_sets_t *s);

/* appends the labels of a set as text of any bytes; nothing for PROF_NONE */
void prof_label_sets_text(const prof_profile_t *p, uint32_t labels,
    prof_buf_t *b);

PROF_HIDDEN_END


#endif /* _PROF_LABEL_SETS_H_INCLUDED_ */
