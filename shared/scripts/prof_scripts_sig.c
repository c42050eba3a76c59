
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A hash table with open addressing.  Look-ups take no lock.  An entry is
 * complete before its bucket is set, and does not change afterwards.  Entries
 * are added under the lock.  If the lock is taken, a call adds nothing, because
 * this call may have interrupted the call that holds the lock.
 *
 * A key has the index of the entry plus one, and above it the number of times
 * that the table was emptied.
 */


#include "scripts/prof_scripts.h"
#include "base/prof_hash.h"

#include <string.h>


#define PROF_SCRIPTS_MAX      16384
#define PROF_SCRIPTS_BUCKETS  (2 * PROF_SCRIPTS_MAX)
#define PROF_SCRIPTS_TEXT     (1024 * 1024)

#define PROF_SCRIPTS_BITS     24
#define PROF_SCRIPTS_MASK     (((uintptr_t) 1 << PROF_SCRIPTS_BITS) - 1)


typedef struct {
    uint32_t                hash;
    uint32_t                text;       /* offset of the file, after which the
                                           function follows */
    uint32_t                line;
    uint32_t                start_line;
    uint32_t                file_len;
    uint32_t                function_len;
} prof_scripts_entry_t;


typedef struct {
    uint32_t                lock;
    uint32_t                n;
    uint32_t                used;       /* bytes of text */
    uint32_t                emptied;
    uint32_t                buckets[PROF_SCRIPTS_BUCKETS];
                                        /* index + 1, or 0 */
    prof_scripts_entry_t    entries[PROF_SCRIPTS_MAX];

    /*
     * The texts, and space behind them: a look-up reads at most this far if
     * the table is emptied meanwhile.
     */

    char                    text[PROF_SCRIPTS_TEXT + 2 * PROF_SCRIPT_TEXT_MAX];
} prof_scripts_t;


static uint32_t prof_scripts_lookup(const prof_script_t *s, uint32_t hash,
    uint32_t *bucket);
static uint32_t prof_scripts_add(const prof_script_t *s, uint32_t hash,
    uint32_t bucket);
static uintptr_t prof_scripts_key(uint32_t number);


static prof_scripts_t  prof_scripts;


uintptr_t
prof_script_key(const prof_script_t *s, prof_stats_t *st)
{
    uint32_t       hash, number, bucket;
    uint64_t       h;
    prof_script_t  cut;

    cut = *s;

    if (cut.function_len == 0) {
        cut.function = "";
    }

    if (cut.file_len == 0) {
        cut.file = "";
    }

    if (cut.function_len > PROF_SCRIPT_TEXT_MAX) {
        cut.function_len = PROF_SCRIPT_TEXT_MAX;
    }

    if (cut.file_len > PROF_SCRIPT_TEXT_MAX) {
        cut.file += cut.file_len - PROF_SCRIPT_TEXT_MAX;
        cut.file_len = PROF_SCRIPT_TEXT_MAX;
    }

    h = ((uint64_t) cut.start_line << 32) + cut.line;
    h = prof_hash_bytes(h, cut.file, cut.file_len);
    h = prof_hash_bytes(h, cut.function, cut.function_len);
    hash = (uint32_t) (h >> 32);

    number = prof_scripts_lookup(&cut, hash, &bucket);

    if (number) {
        return prof_scripts_key(number);
    }

    if (__atomic_exchange_n(&prof_scripts.lock, 1, __ATOMIC_ACQUIRE)) {
        st->lost_scripts++;
        return PROF_FRAME_SCRIPT;
    }

    /* another thread may have added the place before this one got the lock */

    number = prof_scripts_lookup(&cut, hash, &bucket);

    if (number == 0) {
        number = prof_scripts_add(&cut, hash, bucket);
    }

    __atomic_store_n(&prof_scripts.lock, 0, __ATOMIC_RELEASE);

    if (number == 0) {
        st->lost_scripts++;
        return PROF_FRAME_SCRIPT;
    }

    return prof_scripts_key(number);
}


/* returns the index of the entry plus one; or 0, and the free bucket for it */

static uint32_t
prof_scripts_lookup(const prof_script_t *s, uint32_t hash, uint32_t *bucket)
{
    uint32_t                     i, number;
    const char                  *text;
    const prof_scripts_entry_t  *e;

    /* at most half of the buckets are used, so the search ends */

    for (i = hash % PROF_SCRIPTS_BUCKETS; /* void */ ;
         i = (i + 1) % PROF_SCRIPTS_BUCKETS)
    {
        number = __atomic_load_n(&prof_scripts.buckets[i], __ATOMIC_ACQUIRE);

        if (number == 0) {
            *bucket = i;
            return 0;
        }

        e = &prof_scripts.entries[number - 1];

        if (e->hash != hash || e->line != s->line
            || e->start_line != s->start_line || e->file_len != s->file_len
            || e->function_len != s->function_len)
        {
            continue;
        }

        text = prof_scripts.text + e->text;

        if (memcmp(text, s->file, s->file_len) == 0
            && memcmp(text + s->file_len, s->function, s->function_len) == 0)
        {
            return number;
        }
    }
}


/* the caller has the lock; returns 0 if the table is full */

static uint32_t
prof_scripts_add(const prof_script_t *s, uint32_t hash, uint32_t bucket)
{
    char                  *text;
    prof_scripts_entry_t  *e;

    if (prof_scripts.n == PROF_SCRIPTS_MAX
        || s->file_len + s->function_len
           > PROF_SCRIPTS_TEXT - prof_scripts.used)
    {
        return 0;
    }

    e = &prof_scripts.entries[prof_scripts.n];

    e->hash = hash;
    e->text = prof_scripts.used;
    e->line = s->line;
    e->start_line = s->start_line;
    e->file_len = s->file_len;
    e->function_len = s->function_len;

    text = prof_scripts.text + e->text;

    memcpy(text, s->file, s->file_len);
    memcpy(text + s->file_len, s->function, s->function_len);

    prof_scripts.used += s->file_len + s->function_len;
    prof_scripts.n++;

    __atomic_store_n(&prof_scripts.buckets[bucket], prof_scripts.n,
                     __ATOMIC_RELEASE);

    return prof_scripts.n;
}


static uintptr_t
prof_scripts_key(uint32_t number)
{
    uintptr_t  emptied;

    emptied = (uintptr_t) prof_scripts.emptied & PROF_SCRIPTS_MASK;

    return PROF_FRAME_SCRIPT | emptied << PROF_SCRIPTS_BITS | number;
}


int
prof_script_find(uintptr_t key, prof_script_t *s)
{
    uintptr_t                    number;
    const prof_scripts_entry_t  *e;

    number = key & PROF_SCRIPTS_MASK;

    if (number == 0
        || number > __atomic_load_n(&prof_scripts.n, __ATOMIC_RELAXED)
        || key != prof_scripts_key(number))
    {
        return PROF_ERROR;
    }

    e = &prof_scripts.entries[number - 1];

    s->file = prof_scripts.text + e->text;
    s->file_len = e->file_len;
    s->function = s->file + e->file_len;
    s->function_len = e->function_len;
    s->line = e->line;
    s->start_line = e->start_line;

    return PROF_OK;
}


void
prof_scripts_reuse(void)
{
    if (prof_scripts.n < PROF_SCRIPTS_MAX / 2
        && prof_scripts.used < PROF_SCRIPTS_TEXT / 2)
    {
        return;
    }

    /* another thread may still take a stack for a heap that was destroyed */

    if (__atomic_exchange_n(&prof_scripts.lock, 1, __ATOMIC_ACQUIRE)) {
        return;
    }

    memset(prof_scripts.buckets, 0, sizeof(prof_scripts.buckets));

    prof_scripts.n = 0;
    prof_scripts.used = 0;
    prof_scripts.emptied++;

    __atomic_store_n(&prof_scripts.lock, 0, __ATOMIC_RELEASE);
}
