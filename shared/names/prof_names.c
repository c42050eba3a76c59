
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * A record is its head and its content.  An entry of the index has some bits of
 * the key, and the place of a record: a number of bytes that only grows, of
 * which the ring has the last PROF_NAMES_MAX.
 */


#include "base/prof_hash.h"
#include "names/prof_names.h"
#include "names/prof_wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>


/* places are multiples of this; 48 bits of an entry are a place */

#define PROF_NAMES_ALIGN  8
#define PROF_NAMES_PLACE  ((1ULL << 48) - 1)

/* two hashes of one text that have nothing in common */

#define PROF_NAMES_SEED1  0x243f6a8885a308d3ULL
#define PROF_NAMES_SEED2  0x13198a2e03707344ULL


typedef enum {
    PROF_NAMES_OBJECT = 1,      /* the members of prof_names_object_t */
    PROF_NAMES_NAME,            /* a prof_name_t, as a message of the helper */
    PROF_NAMES_UNITS            /* an answer of the helper */
} prof_names_type_e;


typedef struct {
    uint64_t             key[3];    /* of the object; of the record in it */
    uint32_t             type;
    uint32_t             len;       /* of the content */
    uint64_t             check;
} prof_names_head_t;


typedef struct {
    uint64_t             layout;
    uint64_t             end;       /* the place behind the newest record */
    uint64_t             first;     /* 1: prof_names_first() was called */
    uint64_t             index[PROF_NAMES_BUCKETS][PROF_NAMES_WAYS];
    char                 ring[PROF_NAMES_MAX];
} prof_names_memory_t;


static prof_names_memory_t *prof_names_memory(void);
static prof_names_memory_t *prof_names_map(int flags);
static void prof_names_set(uint64_t *key, const prof_names_object_t *o,
    uint64_t record);
static int prof_names_read(const uint64_t *key, uint32_t type,
    prof_buf_t *content);
static void prof_names_write(const uint64_t *key, uint32_t type,
    const char *content, size_t len);
static uint64_t prof_names_hash(const uint64_t *key, uint32_t type);
static uint64_t prof_names_check(const prof_names_head_t *head, uint64_t place,
    const char *content);
static int prof_profile_text(char **copy, const char *text);


/* inherited, or made before the first use, and then not changed */

static prof_names_memory_t  *prof_names_shared;
static uint64_t              prof_names_key;
static prof_names_memory_t  *prof_names_own;
static pthread_mutex_t       prof_names_lock = PTHREAD_MUTEX_INITIALIZER;


int
prof_names_share(uint64_t key)
{
    prof_names_memory_t  *m;

    if (prof_names_shared && prof_names_key == key) {
        return PROF_OK;
    }

    prof_names_clear();

    m = prof_names_map(MAP_SHARED);

    prof_names_shared = m;
    prof_names_key = key;

    return m ? PROF_OK : PROF_ERROR;
}


void
prof_names_clear(void)
{
    if (prof_names_shared) {
        (void) munmap(prof_names_shared, sizeof(prof_names_memory_t));
        prof_names_shared = NULL;
    }

    if (prof_names_own) {
        (void) munmap(prof_names_own, sizeof(prof_names_memory_t));
        prof_names_own = NULL;
    }
}


/* shared memory with another layout is not used */

static prof_names_memory_t *
prof_names_memory(void)
{
    prof_names_memory_t  *m;

    m = prof_names_shared;

    if (m && __atomic_load_n(&m->layout, __ATOMIC_RELAXED)
             == PROF_NAMES_LAYOUT)
    {
        return m;
    }

    (void) pthread_mutex_lock(&prof_names_lock);

    if (prof_names_own == NULL) {
        prof_names_own = prof_names_map(MAP_PRIVATE);
    }

    m = prof_names_own;

    (void) pthread_mutex_unlock(&prof_names_lock);

    return m;
}


/* the kernel provides the pages when they are used first */

static prof_names_memory_t *
prof_names_map(int flags)
{
    prof_names_memory_t  *m;

    m = mmap(NULL, sizeof(prof_names_memory_t), PROT_READ|PROT_WRITE,
             flags|MAP_ANONYMOUS, -1, 0);

    if (m == MAP_FAILED) {
        return NULL;
    }

    m->layout = PROF_NAMES_LAYOUT;

    return m;
}


int
prof_names_first(void)
{
    prof_names_memory_t  *m;

    m = prof_names_memory();

    return m && __atomic_exchange_n(&m->first, 1, __ATOMIC_RELAXED) == 0;
}


void
prof_names_object(prof_names_object_t *o, const char *identity,
    const char *debug_root)
{
    uint64_t    key[3];
    prof_buf_t  b;

    memset(o, 0, sizeof(prof_names_object_t));

    key[0] = prof_hash_text(prof_hash_text(PROF_NAMES_SEED1, identity),
                            debug_root);
    key[1] = prof_hash_text(prof_hash_text(PROF_NAMES_SEED2, debug_root),
                            identity);
    key[2] = 0;

    prof_buf_init(&b);

    if (prof_names_read(key, PROF_NAMES_OBJECT, &b) == PROF_OK
        && b.len == sizeof(prof_names_object_t))
    {
        memcpy(o, b.data, sizeof(prof_names_object_t));
    }

    prof_buf_free(&b);

    o->key[0] = key[0];
    o->key[1] = key[1];
}


void
prof_names_object_put(const prof_names_object_t *o)
{
    uint64_t  key[3];

    prof_names_set(key, o, 0);

    prof_names_write(key, PROF_NAMES_OBJECT, (const char *) o,
                     sizeof(prof_names_object_t));
}


const prof_name_t *
prof_names_find(const prof_names_object_t *o, uint64_t pc, uint64_t function,
    prof_names_found_t *found)
{
    uint32_t        i;
    uint64_t        key[3];
    prof_name_t    *n;
    prof_wire_t     w;
    prof_inline_t  *in;

    prof_names_set(key, o, pc);

    if (prof_names_read(key, PROF_NAMES_NAME, &found->data) != PROF_OK) {
        return NULL;
    }

    n = &found->name;

    w.pos = found->data.data;
    w.end = found->data.data + found->data.len;
    w.failed = 0;

    n->pc = pc;
    n->function = prof_wire_get_u64(&w);
    n->call.number = prof_wire_get_u32(&w);
    n->call.stack = prof_wire_get_u32(&w);
    n->call.second = prof_wire_get_u32(&w);
    n->call.target = prof_wire_get_u64(&w);
    n->complete = prof_wire_get_u32(&w) != 0;
    n->source = prof_wire_get_u32(&w);
    n->line = prof_wire_get_u32(&w);
    n->start_line = prof_wire_get_u32(&w);
    n->name = (char *) (uintptr_t) prof_wire_get_text(&w);
    n->file = (char *) (uintptr_t) prof_wire_get_text(&w);
    n->ninlines = prof_wire_get_u32(&w);
    n->inlines = found->inlines;

    if (n->ninlines > PROF_MAX_INLINES || n->source >= PROF_SOURCE_MAX) {
        return NULL;
    }

    for (i = 0; i < n->ninlines; i++) {
        in = &n->inlines[i];

        in->line = prof_wire_get_u32(&w);
        in->start_line = prof_wire_get_u32(&w);
        in->name = (char *) (uintptr_t) prof_wire_get_text(&w);
        in->file = (char *) (uintptr_t) prof_wire_get_text(&w);

        if (in->name == NULL) {
            return NULL;
        }
    }

    return !w.failed && w.pos == w.end && n->function == function ? n : NULL;
}


void
prof_names_put(const prof_names_object_t *o, const prof_name_t *name)
{
    uint32_t    i;
    uint64_t    key[3];
    prof_buf_t  b;

    prof_names_set(key, o, name->pc);

    prof_buf_init(&b);

    prof_wire_u64(&b, name->function);
    prof_wire_u32(&b, name->call.number);
    prof_wire_u32(&b, name->call.stack);
    prof_wire_u32(&b, name->call.second);
    prof_wire_u64(&b, name->call.target);
    prof_wire_u32(&b, name->complete);
    prof_wire_u32(&b, name->source);
    prof_wire_u32(&b, name->line);
    prof_wire_u32(&b, name->start_line);
    prof_wire_text(&b, name->name);
    prof_wire_text(&b, name->file);
    prof_wire_u32(&b, name->ninlines);

    for (i = 0; i < name->ninlines; i++) {
        prof_wire_u32(&b, name->inlines[i].line);
        prof_wire_u32(&b, name->inlines[i].start_line);
        prof_wire_text(&b, name->inlines[i].name);
        prof_wire_text(&b, name->inlines[i].file);
    }

    /* a message omits texts that are too long; the cache would lose the name */

    if (!prof_buf_failed(&b)
        && (name->name == NULL || strlen(name->name) <= PROF_WIRE_TEXT))
    {
        prof_names_write(key, PROF_NAMES_NAME, b.data, b.len);
    }

    prof_buf_free(&b);
}


int
prof_names_units(const prof_names_object_t *o, uint64_t question,
    prof_buf_t *answer)
{
    uint64_t  key[3];

    prof_names_set(key, o, question);

    return prof_names_read(key, PROF_NAMES_UNITS, answer);
}


void
prof_names_units_put(const prof_names_object_t *o, uint64_t question,
    const prof_buf_t *answer)
{
    uint64_t  key[3];

    prof_names_set(key, o, question);

    prof_names_write(key, PROF_NAMES_UNITS, answer->data, answer->len);
}


static void
prof_names_set(uint64_t *key, const prof_names_object_t *o, uint64_t record)
{
    key[0] = o->key[0];
    key[1] = o->key[1];
    key[2] = record;
}


/* copies the content of a record; PROF_ERROR: there is no whole record */

static int
prof_names_read(const uint64_t *key, uint32_t type, prof_buf_t *content)
{
    size_t                at;
    uint32_t              i;
    uint64_t              end, entry, hash, place;
    prof_names_head_t     head;
    prof_names_memory_t  *m;

    m = prof_names_memory();

    if (m == NULL) {
        return PROF_ERROR;
    }

    hash = prof_names_hash(key, type);
    end = __atomic_load_n(&m->end, __ATOMIC_ACQUIRE);

    for (i = 0; i < PROF_NAMES_WAYS; i++) {

        entry = __atomic_load_n(&m->index[hash % PROF_NAMES_BUCKETS][i],
                                __ATOMIC_ACQUIRE);

        if (entry == 0 || entry >> 48 != hash >> 48) {
            continue;
        }

        /* a place that was overwritten, or that does not exist */

        place = (entry & PROF_NAMES_PLACE) * PROF_NAMES_ALIGN;
        at = place % PROF_NAMES_MAX;

        if (end - place > PROF_NAMES_MAX
            || at > PROF_NAMES_MAX - sizeof(prof_names_head_t))
        {
            continue;
        }

        memcpy(&head, m->ring + at, sizeof(prof_names_head_t));

        at += sizeof(prof_names_head_t);

        if (memcmp(head.key, key, sizeof(head.key)) != 0
            || head.type != type
            || head.len > PROF_NAMES_RECORD
            || head.len > PROF_NAMES_MAX - at)
        {
            continue;
        }

        content->len = 0;
        prof_buf_append(content, m->ring + at, head.len);

        if (prof_buf_failed(content)) {
            return PROF_ERROR;
        }

        if (prof_names_check(&head, place, content->data) != head.check) {
            continue;
        }

        if (end - place > PROF_NAMES_MAX / 2) {
            prof_names_write(key, type, content->data, content->len);
        }

        return PROF_OK;
    }

    return PROF_ERROR;
}


static void
prof_names_write(const uint64_t *key, uint32_t type, const char *content,
    size_t len)
{
    size_t                at, size;
    uint32_t              i;
    uint64_t              age, end, entry, hash, oldest, place, *bucket, *to;
    prof_names_head_t     head;
    prof_names_memory_t  *m;

    m = prof_names_memory();

    if (m == NULL || len > PROF_NAMES_RECORD) {
        return;
    }

    size = (sizeof(prof_names_head_t) + len + PROF_NAMES_ALIGN - 1)
           & ~(size_t) (PROF_NAMES_ALIGN - 1);

    /* a record does not wrap around the end of the ring; no place is 0 */

    end = __atomic_load_n(&m->end, __ATOMIC_RELAXED);

    do {
        place = end ? end & ~(uint64_t) (PROF_NAMES_ALIGN - 1)
                    : PROF_NAMES_ALIGN;
        at = place % PROF_NAMES_MAX;

        if (at + size > PROF_NAMES_MAX) {
            place += PROF_NAMES_MAX - at;
            at = 0;
        }

    } while (!__atomic_compare_exchange_n(&m->end, &end, place + size, 0,
                                          __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));

    memset(&head, 0, sizeof(prof_names_head_t));
    memcpy(head.key, key, sizeof(head.key));

    head.type = type;
    head.len = len;
    head.check = prof_names_check(&head, place, content);

    memcpy(m->ring + at, &head, sizeof(prof_names_head_t));
    memcpy(m->ring + at + sizeof(prof_names_head_t), content, len);

    /*
     * The record that has the same bits of a key, which almost always is an
     * older record of the key; else a free entry; else the oldest one.
     */

    hash = prof_names_hash(key, type);
    bucket = m->index[hash % PROF_NAMES_BUCKETS];
    to = bucket;
    oldest = 0;

    for (i = 0; i < PROF_NAMES_WAYS; i++) {
        entry = __atomic_load_n(&bucket[i], __ATOMIC_RELAXED);

        if (entry && entry >> 48 == hash >> 48) {
            to = &bucket[i];
            break;
        }

        age = entry ? place - (entry & PROF_NAMES_PLACE) * PROF_NAMES_ALIGN
                    : UINT64_MAX;

        if (age > oldest) {
            oldest = age;
            to = &bucket[i];
        }
    }

    entry = (hash >> 48 << 48)
            | (place / PROF_NAMES_ALIGN & PROF_NAMES_PLACE);

    __atomic_store_n(to, entry, __ATOMIC_RELEASE);
}


static uint64_t
prof_names_hash(const uint64_t *key, uint32_t type)
{
    return prof_hash_add(prof_hash_add(prof_hash_add(key[0], key[1]), key[2]),
                         type);
}


static uint64_t
prof_names_check(const prof_names_head_t *head, uint64_t place,
    const char *content)
{
    uint64_t  hash;

    hash = prof_hash_bytes(place, head, offsetof(prof_names_head_t, check));

    return prof_hash_bytes(hash, content, head->len);
}


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


/* replaces *copy by a copy of the text, unless the text is NULL */

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
