
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the unwind entries (FDEs) in the .eh_frame of one loaded object.
 *
 * An FDE covers one range of code and holds the call frame instructions for
 * it; what many FDEs share is in a CIE.  .eh_frame_hdr normally has a table of
 * all FDEs sorted by address.  Where it has none, .eh_frame is read from its
 * start to its end.
 *
 * Context: not in a signal; the object must stay loaded.
 */


#ifndef _PROF_EH_H_INCLUDED_
#define _PROF_EH_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_read.h"


typedef struct {
    const uint8_t  *hdr;            /* NULL: the object has none */
    const uint8_t  *frame;          /* .eh_frame */
    const uint8_t  *frame_end;      /* at latest: that of its segment */
    const uint8_t  *table;          /* pairs of 32-bit offsets from hdr: code,
                                       FDE.  NULL: no table */
    size_t          n;              /* pairs */
} prof_eh_t;


typedef struct {
    const uint8_t  *start;
    const uint8_t  *insn;           /* initial instructions */
    const uint8_t  *insn_end;
    uint64_t        code_align;
    int64_t         data_align;
    uint64_t        ra;             /* DWARF number of the return address */
    uint8_t         encoding;       /* of the FDEs' addresses */
    unsigned        augmented:1;    /* FDEs carry augmentation data */
    unsigned        signal:1;       /* FDEs are of signal trampolines */
} prof_cie_t;


typedef struct {
    uintptr_t       start;          /* code */
    uintptr_t       end;
    const uint8_t  *insn;
    const uint8_t  *insn_end;
} prof_fde_t;


/* an FDE in a list */

typedef struct {
    uintptr_t       start;
    const uint8_t  *p;
} prof_eh_fde_t;


/* how many FDEs so many bytes can hold: length, CIE, start and size at least */

#define prof_eh_max(len)  ((len) / 12)


PROF_HIDDEN_BEGIN

/*
 * Reads the .eh_frame_hdr at [hdr, hdr_end).  eh->frame_end is left to the
 * caller, who knows the segments.  PROF_ERROR: unknown form.
 */
int prof_eh_init(prof_eh_t *eh, const uint8_t *hdr, const uint8_t *hdr_end);

/*
 * Reads the entry at *p and moves *p to the next one.  PROF_OK: an FDE;
 * PROF_LIMIT: a CIE, or an FDE that cannot be read; PROF_ERROR: the end.
 * The cie is an in/out cache of the last CIE; zero-filled at first.
 */
int prof_eh_entry(const prof_eh_t *eh, const uint8_t **p, prof_cie_t *cie,
    prof_fde_t *fde);

/* i-th pair of the table: the address of its FDE */
const uint8_t *prof_eh_table(const prof_eh_t *eh, size_t i);

/*
 * The FDEs of an object without a table, by address; their number.  fdes has
 * room for prof_eh_max() of .eh_frame.
 */
size_t prof_eh_list(const prof_eh_t *eh, prof_eh_fde_t *fdes);

PROF_HIDDEN_END


#endif /* _PROF_EH_H_INCLUDED_ */
