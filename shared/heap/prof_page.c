
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "heap/prof_page.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>


static int prof_page_writable(uintptr_t page);


int
prof_page_open(uintptr_t page, uintptr_t size)
{
    int  writable;

    writable = prof_page_writable(page);

    if (writable) {
        return (writable == 1) ? 0 : PROF_ERROR;
    }

    return mprotect((void *) page, size, PROT_READ|PROT_WRITE) ? PROF_ERROR : 1;
}


void
prof_page_close(uintptr_t page, uintptr_t size)
{
    (void) mprotect((void *) page, size, PROT_READ);
}


/*
 * The kernel atomically adds 0 to the page's first word, and fails with EFAULT
 * if the page is read-only.  No thread waits for either word, so the call
 * wakes no thread.
 */

static int
prof_page_writable(uintptr_t page)
{
    static uint32_t  other;

    if (syscall(SYS_futex, &other, FUTEX_WAKE_OP|FUTEX_PRIVATE_FLAG, 0, NULL,
                (void *) page, FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0))
        != -1)
    {
        return 1;
    }

    return (errno == EFAULT) ? 0 : PROF_ERROR;
}
