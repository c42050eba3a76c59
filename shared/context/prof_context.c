
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * The context of the process: its header and its payload are in one mapping.
 */


#include "context/prof_context.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA            0x53564d41
#define PR_SET_VMA_ANON_NAME  0
#endif


#define PROF_CONTEXT_NAME     "OTEL_CTX"
#define PROF_CONTEXT_VERSION  2
#define PROF_CONTEXT_SIZE     4096

/* a payload is a few short texts */
#define PROF_CONTEXT_PAYLOAD  512

/* wire type 2 of protobuf: bytes with a length */
#define prof_context_tag(field)  ((uint8_t) ((field) << 3 | 2))

/*
 * Fields of the messages ProcessContext, Resource, KeyValue, AnyValue and
 * ArrayValue of opentelemetry-proto.
 */

#define PROF_CONTEXT_RESOURCE    1
#define PROF_CONTEXT_EXTRA       2
#define PROF_CONTEXT_ATTRIBUTES  1
#define PROF_CONTEXT_KEY         1
#define PROF_CONTEXT_VALUE       2
#define PROF_CONTEXT_STRING      1
#define PROF_CONTEXT_ARRAY       5
#define PROF_CONTEXT_VALUES      1


/* the header of OTEP 4719 */

typedef struct {
    char            signature[8];
    uint32_t        version;
    uint32_t        size;          /* of the payload */
    uint64_t        published;     /* ns of CLOCK_BOOTTIME */
    const uint8_t  *payload;
} prof_context_header_t;


/* a message of protobuf */

typedef struct {
    size_t          len;
    uint8_t         data[PROF_CONTEXT_PAYLOAD];
} prof_context_message_t;


static void prof_context_payload(prof_context_message_t *payload);
static void prof_context_pair(prof_context_message_t *m, uint8_t field,
    const char *key, uint8_t type, const void *value, size_t len);
static void prof_context_put(prof_context_message_t *m, uint8_t field,
    const void *data, size_t len);
static void *prof_context_map(void);


_Static_assert(sizeof(prof_context_record_t) == 128
               && offsetof(prof_context_record_t, valid) == 24
               && offsetof(prof_context_record_t, attributes) == 28,
               "records do not have the layout of OTEP 4947");


prof_context_record_t **prof_context_own(void);


PROF_HOT_DATA prof_context_record_t  **prof_context_attached;

static prof_context_header_t          *prof_context_process;


int
prof_context_open(void)
{
    uint8_t                 *payload;
    struct timespec          ts;
    prof_context_header_t   *h;
    prof_context_message_t   m;

    h = prof_context_map();
    if (h == NULL) {
        return PROF_ERROR;
    }

    prof_context_payload(&m);

    payload = (uint8_t *) &h[1];
    memcpy(payload, m.data, m.len);

    (void) clock_gettime(CLOCK_BOOTTIME, &ts);

    h->version = PROF_CONTEXT_VERSION;
    h->size = (uint32_t) m.len;
    h->published = (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
    h->payload = payload;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    memcpy(h->signature, PROF_CONTEXT_NAME, sizeof(h->signature));

    /* readers also notice this call; it may fail */

    (void) prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, h, PROF_CONTEXT_SIZE,
                 PROF_CONTEXT_NAME);

    prof_context_process = h;
    prof_context_attached = prof_context_own();
    prof_context_attach(NULL);

    return PROF_OK;
}


void
prof_context_close(void)
{
    if (prof_context_process == NULL) {
        return;
    }

    prof_context_attach(NULL);
    prof_context_attached = NULL;

    (void) munmap(prof_context_process, PROF_CONTEXT_SIZE);
    prof_context_process = NULL;
}


/* returns zeroed memory that readers find by its name, or NULL */

static void *
prof_context_map(void)
{
    int    fd, err;
    void  *p;

    fd = memfd_create(PROF_CONTEXT_NAME, MFD_CLOEXEC);

    if (fd == -1) {
        p = mmap(NULL, PROF_CONTEXT_SIZE, PROT_READ|PROT_WRITE,
                 MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    } else {
        p = MAP_FAILED;

        if (ftruncate(fd, PROF_CONTEXT_SIZE) == 0) {
            p = mmap(NULL, PROF_CONTEXT_SIZE, PROT_READ|PROT_WRITE,
                     MAP_PRIVATE, fd, 0);
        }

        err = errno;
        (void) close(fd);
        errno = err;
    }

    if (p == MAP_FAILED) {
        return NULL;
    }

    if (madvise(p, PROF_CONTEXT_SIZE, MADV_DONTFORK) == -1) {
        err = errno;
        (void) munmap(p, PROF_CONTEXT_SIZE);
        errno = err;
        return NULL;
    }

    return p;
}


/* the key of the route is the only one, so its index is 0 */

static void
prof_context_payload(prof_context_message_t *payload)
{
    static const char        service[] = "nginx";
    static const char        schema[] = "tlsdesc_v1_dev";
    static const char        route[] = "http.route";
    prof_context_message_t   message, value;

    payload->len = 0;

    message.len = 0;
    prof_context_pair(&message, PROF_CONTEXT_ATTRIBUTES, "service.name",
                      PROF_CONTEXT_STRING, service, sizeof(service) - 1);
    prof_context_put(payload, PROF_CONTEXT_RESOURCE, message.data,
                     message.len);

    prof_context_pair(payload, PROF_CONTEXT_EXTRA,
                      "threadlocal.schema_version", PROF_CONTEXT_STRING,
                      schema, sizeof(schema) - 1);

    value.len = 0;
    prof_context_put(&value, PROF_CONTEXT_STRING, route, sizeof(route) - 1);

    message.len = 0;
    prof_context_put(&message, PROF_CONTEXT_VALUES, value.data, value.len);

    prof_context_pair(payload, PROF_CONTEXT_EXTRA,
                      "threadlocal.attribute_key_map", PROF_CONTEXT_ARRAY,
                      message.data, message.len);
}


static void
prof_context_pair(prof_context_message_t *m, uint8_t field, const char *key,
    uint8_t type, const void *value, size_t len)
{
    prof_context_message_t  pair, any;

    any.len = 0;
    prof_context_put(&any, type, value, len);

    pair.len = 0;
    prof_context_put(&pair, PROF_CONTEXT_KEY, key, strlen(key));
    prof_context_put(&pair, PROF_CONTEXT_VALUE, any.data, any.len);

    prof_context_put(m, field, pair.data, pair.len);
}


/* texts of this file are shorter than 128 bytes: their length is one byte */

static void
prof_context_put(prof_context_message_t *m, uint8_t field, const void *data,
    size_t len)
{
    m->data[m->len++] = prof_context_tag(field);
    m->data[m->len++] = (uint8_t) len;

    memcpy(&m->data[m->len], data, len);
    m->len += len;
}


PROF_HOT void
prof_context_write(prof_context_record_t *record, const prof_trace_t *trace,
    uint8_t flags, const char *route, size_t len)
{
    uint64_t  high, low, span;

    high = trace ? htobe64(trace->high) : 0;
    low = trace ? htobe64(trace->low) : 0;
    span = trace ? htobe64(trace->span) : 0;

    memcpy(record->trace, &high, 8);
    memcpy(record->trace + 8, &low, 8);
    memcpy(record->span, &span, 8);

    record->flags = trace ? flags : 0;
    record->valid = 1;

    if (len > PROF_CONTEXT_ROUTE) {
        len = PROF_CONTEXT_ROUTE;

        /* bytes 10xxxxxx continue a character of UTF-8 */

        while (len && ((uint8_t) route[len] & 0xc0) == 0x80) {
            len--;
        }
    }

    record->attributes[0] = 0;
    record->attributes[1] = (uint8_t) len;
    memcpy(&record->attributes[2], route, len);

    record->size = len ? (uint16_t) (2 + len) : 0;
}
