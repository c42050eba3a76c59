
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The profiler core's only public header.  The core samples the stacks of the
 * calling thread while that thread runs a "turn" of a capture, and makes a
 * profile of it; what a turn belongs to is its caller's business.
 *
 * Life of a capture:
 *
 *     prof_process_init()             once, before fork()
 *     s = prof_sampler_create()       when the first capture of a thread begins
 *     c = prof_capture_create()
 *     prof_turn_run(s, c, ...)        any number of times, captures by turns
 *     p = prof_capture_finish(c)      a draft; then in any thread:
 *     prof_profile_symbolize(p), encoder->encode(p)
 *     prof_sampler_destroy(s)         when the last capture is gone
 *
 * What a capture's turns allocate is counted by a "heap", while there is one:
 *
 *     prof_capture_heap(c, s, conf)   from now on
 *     p = prof_capture_finish(c)
 *     prof_capture_settle(c, p)       the profile has its allocations, too
 *
 * A heap of its own counts what all threads of the process allocate:
 *
 *     h = prof_heap_create(conf)
 *     p = prof_heap_finish(h)
 *
 * All times are nanoseconds of CLOCK_MONOTONIC or, for "cpu", of
 * CLOCK_THREAD_CPUTIME_ID.
 */


#ifndef _PROF_H_INCLUDED_
#define _PROF_H_INCLUDED_


#include "archive/prof_archive.h"
#include "base/prof_base.h"
#include "base/prof_buf.h"
#include "base/prof_spare.h"
#include "base/prof_stats.h"
#include "base/prof_trace.h"
#include "capture/prof_capture.h"
#include "capture/prof_queue.h"
#include "capture/prof_stuck.h"
#include "context/prof_context.h"
#include "formats/prof_accept.h"
#include "views/prof_diff.h"
#include "formats/prof_encode.h"
#include "formats/prof_gzip.h"
#include "formats/prof_root.h"
#include "formats/prof_text.h"
#include "heap/prof_heap.h"
#include "heap/prof_redirect.h"
#include "html/prof_html.h"
#include "html/prof_inflate.h"
#include "kernel/prof_kernel.h"
#include "names/prof_later.h"
#include "names/prof_role.h"
#include "names/prof_symbolize.h"
#include "names/prof_unit.h"
#include "profile/prof_merge.h"
#include "profile/prof_profile.h"
#include "scripts/prof_engine.h"
#include "scripts/prof_lua.h"
#include "scripts/prof_scripts.h"
#include "stacks/prof_tables.h"
#include "turns/prof_turns.h"
#include "turns/prof_turns_culprits.h"
#include "turns/prof_turns_snapshot.h"
#include "unwind/prof_unwind.h"
#include "views/prof_summary.h"
#include "views/prof_totals.h"


#endif /* _PROF_H_INCLUDED_ */
