
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Finds the unwind entries (FDEs) in the .eh_frame of one loaded object.
 *
 * An FDE covers one range of code and contains its call frame instructions.  A
 * CIE contains the common part of many FDEs.  .eh_frame_hdr normally has a
 * table of all FDEs sorted by address.  Without the table, .eh_frame is read
 * from start to end.
 *
 * Context: not in a signal; the object must stay loaded.
 */


#ifndef _PROF_EH_H_INCLUDED_
#define _PROF_EH_H_INCLUDED_


#include "base/prof_base.h"
#include "unwind/prof_read.h"


typedef struct {
    const uint8_t  *hdr;            /* NULL: not in the object */
    const uint8_t  *frame;          /* .eh_frame */
    const uint8_t  *frame_end;      /* an upper bound: the end of the
                                       segment */
    const uint8_t  *table;          /* pairs of 32-bit offsets from hdr: code,
                                       FDE.  NULL: no table */
    size_t          n;              /* the number of pairs */
} prof_eh_t;


typedef struct {
    const uint8_t  *start;
    const uint8_t  *insn;           /* initial instructions */
    const uint8_t  *insn_end;
    uint64_t        code_align;
    int64_t         data_align;
    uint64_t        ra;             /* DWARF number of the return address */
    uint8_t         encoding;       /* encoding of the FDEs' addresses */
    unsigned        augmented:1;    /* the FDEs have augmentation data */
    unsigned        signal:1;       /* the FDEs describe signal trampolines */
} prof_cie_t;


typedef struct {
    uintptr_t       start;          /* range of code */
    uintptr_t       end;
    const uint8_t  *insn;
    const uint8_t  *insn_end;
} prof_fde_t;


/* an FDE in a list */

typedef struct {
    uintptr_t       start;
    const uint8_t  *p;
} prof_eh_fde_t;


/*
 * The maximum number of FDEs in this number of bytes.  Each FDE has at least a
 * length, a CIE, a start and a size.
 */

#define prof_eh_max(len)  ((len) / 12)


PROF_HIDDEN_BEGIN

/*
 * Reads the .eh_frame_hdr at [hdr, hdr_end).  The caller knows the segments
 * and sets eh->frame_end.  Returns PROF_ERROR if the form is unknown.
 */
int prof_eh_init(prof_eh_t *eh, const uint8_t *hdr, const uint8_t *hdr_end);

/*
 * Reads the entry at *p and moves *p to the next one.  Returns PROF_OK for an
 * FDE, PROF_LIMIT for a CIE or an unreadable FDE, PROF_ERROR at the end. *cie
 * is a cache of the last CIE; the caller sets it to zero before the first
 * call.
 */
int prof_eh_entry(const prof_eh_t *eh, const uint8_t **p, prof_cie_t *cie,
    prof_fde_t *fde);

/* returns the address of the FDE in the i-th pair of the table */
const uint8_t *prof_eh_table(const prof_eh_t *eh, size_t i);

/*
 * Lists the FDEs of an object without a table, by address, and returns their
 * number.  The caller allocates prof_eh_max() elements for .eh_frame.
 */
size_t prof_eh_list(const prof_eh_t *eh, prof_eh_fde_t *fdes);

PROF_HIDDEN_END


#endif /* _PROF_EH_H_INCLUDED_ */
