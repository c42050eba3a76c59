
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The part of the ring that runs in the signal handler.  The kernel writes the
 * ring in interrupts of this thread, so a record does not change while the
 * handler reads it.  Newer records are written at "head" only.
 */


#include "kernel/prof_kernel.h"

#include <linux/perf_event.h>
#include <string.h>


/*
 * The longest distance from the start of a system call's instruction to its
 * end: a call that is interrupted while it waits is restarted at its start.
 */
#define PROF_KERNEL_INSN  4

#define prof_kernel_word(ring, pos)                                           \
    (*(const uint64_t *) ((ring)->data + ((pos) & (ring)->mask)))


static uint32_t prof_kernel_record(const prof_kernel_ring_t *ring,
    uint64_t pos, uint64_t end, uintptr_t pc, uintptr_t sp, uintptr_t *pcs);
static int prof_kernel_entry(const prof_kernel_ring_t *ring, uint64_t addr);


uint32_t
prof_kernel_take(prof_kernel_ring_t *ring, uintptr_t pc, uintptr_t sp,
    uintptr_t *pcs)
{
    uint32_t                      n;
    uint64_t                      head, tail, size, word;
    struct perf_event_header      header;
    struct perf_event_mmap_page  *page;

    page = __atomic_load_n(&ring->page, __ATOMIC_ACQUIRE);

    if (page == NULL) {
        return 0;
    }

    head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    tail = page->data_tail;
    n = 0;

    while (tail < head) {
        word = prof_kernel_word(ring, tail);
        memcpy(&header, &word, sizeof(header));

        size = header.size;

        if (size < sizeof(header) || size % 8 || size > head - tail) {
            break;
        }

        if (header.type == PERF_RECORD_SAMPLE) {
            n = prof_kernel_record(ring, tail + sizeof(header), tail + size,
                                   pc, sp, pcs);
        }

        tail += size;
    }

    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);

    return n;
}


/*
 * A record consists of the number of addresses, the addresses, the ABI of the
 * registers, sp and pc.  The addresses above the interrupt are the kernel's way
 * to the tracepoint.
 */

static uint32_t
prof_kernel_record(const prof_kernel_ring_t *ring, uint64_t pos,
    uint64_t end, uintptr_t pc, uintptr_t sp, uintptr_t *pcs)
{
    int       inside;
    uint32_t  n;
    uint64_t  addr, count, regs, at;

    count = prof_kernel_word(ring, pos);
    pos += 8;

    if (count > (end - pos) / 8 || end - pos != 8 * count + 24) {
        return 0;
    }

    regs = pos + 8 * count;
    at = prof_kernel_word(ring, regs + 16);

    if (prof_kernel_word(ring, regs) == PERF_SAMPLE_REGS_ABI_NONE
        || prof_kernel_word(ring, regs + 8) != sp
        || at < pc || at - pc > PROF_KERNEL_INSN)
    {
        return 0;
    }

    inside = 0;
    n = 0;

    for ( /* void */ ; pos < regs && n < PROF_KERNEL_DEPTH; pos += 8) {
        addr = prof_kernel_word(ring, pos);

        /* a mark of the kernel between parts of a stack */

        if (addr >= (uint64_t) PERF_CONTEXT_MAX) {
            continue;
        }

        if (!prof_frame_is_kernel(addr)) {
            break;
        }

        if (inside) {
            pcs[n++] = addr;

        } else {
            inside = prof_kernel_entry(ring, addr);
        }
    }

    return n;
}


static int
prof_kernel_entry(const prof_kernel_ring_t *ring, uint64_t addr)
{
    uint32_t  i;

    for (i = 0; i < ring->nentries; i++) {

        if (addr >= ring->entries[i].start && addr < ring->entries[i].end) {
            return 1;
        }
    }

    return 0;
}
