
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The CPU time of worker processes, with all of their threads.  The difference
 * to the sum of the CPU times of requests is the time of work for no request.
 *
 * A worker does not count its CPU time: the kernel does, and any process can
 * read the clock of another one.  Each reader stores what it has read in the
 * page of the worker, so the time survives the worker.  The history is such a
 * reader, so at most ten seconds of a killed worker are lost.
 */


#include "core/ngx_http_profile_alive.h"
#include "metrics/ngx_http_profile_metrics_private.h"


/* the page of this process, or NULL */
static ngx_http_profile_counters_t  *ngx_http_profile_worker_page;


static uint64_t ngx_http_profile_worker_read(
    ngx_http_profile_counters_t *page);
static ngx_int_t ngx_http_profile_worker_clock(uint64_t process,
    uint64_t *ns);


/*
 * The CPU time of the new owner is added to the times of earlier owners.  A
 * process without a master may have used CPU time before it gets this page.
 */

void
ngx_http_profile_worker_in(ngx_http_profile_counters_t *page)
{
    uint64_t  self, used;

    self = ngx_http_profile_alive_self();

    if (page && page->owner != self) {

        if (ngx_http_profile_worker_clock(self, &used) != NGX_OK) {
            used = 0;
        }

        page->before = page->cpu - used;

        /* a reader that sees the new owner also sees the new "before" */

        __atomic_store_n(&page->owner, self, __ATOMIC_RELEASE);
    }

    ngx_http_profile_worker_page = page;
}


void
ngx_http_profile_worker_end(void)
{
    if (ngx_http_profile_worker_page) {
        (void) ngx_http_profile_worker_read(ngx_http_profile_worker_page);
    }
}


ngx_int_t
ngx_http_profile_worker_times(ngx_http_profile_directory_t *dir,
    ngx_uint_t worker, ngx_http_profile_worker_times_t *times)
{
    ngx_int_t                     rc;
    ngx_uint_t                    i;
    ngx_http_profile_counters_t  *page;

    ngx_memzero(times, sizeof(ngx_http_profile_worker_times_t));
    rc = NGX_DECLINED;

    for (i = 0; i < dir->npages; i++) {
        page = dir->pages[i];

        if (page->worker == worker) {
            times->cpu += ngx_http_profile_worker_read(page);
            times->idle += ngx_http_profile_counter(&page->idle);
            rc = NGX_OK;
        }
    }

    return rc;
}


/* returns the CPU time of all owners of the page, which never decreases */

static uint64_t
ngx_http_profile_worker_read(ngx_http_profile_counters_t *page)
{
    uint64_t  owner, used, cpu, known;

    owner = __atomic_load_n(&page->owner, __ATOMIC_ACQUIRE);
    known = ngx_http_profile_counter(&page->cpu);

    if (!ngx_http_profile_alive(owner)
        || ngx_http_profile_worker_clock(owner, &used) != NGX_OK)
    {
        return known;
    }

    cpu = page->before + used;

    while (cpu > known) {
        if (__atomic_compare_exchange_n(&page->cpu, &known, cpu, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        {
            return cpu;
        }
    }

    return known;
}


static ngx_int_t
ngx_http_profile_worker_clock(uint64_t process, uint64_t *ns)
{
    clockid_t        clock;
    struct timespec  ts;

    if (clock_getcpuclockid((pid_t) ngx_http_profile_alive_pid(process),
                            &clock)
        != 0
        || clock_gettime(clock, &ts) == -1)
    {
        return NGX_ERROR;
    }

    *ns = (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;

    return NGX_OK;
}
