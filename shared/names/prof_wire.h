
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Messages between a process and its helper for names, over a socket.  A
 * message consists of its length (32 bits) and its bytes.  Numbers are in the
 * byte order of the machine.  A text is its length, its bytes and a null byte;
 * an empty text means NULL.
 *
 *     helper:   PROF_WIRE_HELLO
 *
 *     process:  PROF_WIRE_NAMES, dev, ino, build-id, path, debug root, number
 *               of addresses; of each: pc, function, own name
 *     helper:   of each address with an answer, in order: index, known, line,
 *               start line, name, file, number of inlined functions; of each:
 *               line, start line, name, file
 *     helper:   PROF_WIRE_END, 1 if there is a debug file or debugging
 *               information, else 0
 *
 *     process:  PROF_WIRE_UNITS, dev, ino, build-id, path, debug root, number
 *               of source files; of each: its name, its symbols; number of
 *               members; of each: function, unit
 *     helper:   PROF_WIRE_UNITS; of each range of functions, in order: the
 *               first function, the last function, their unit
 *     helper:   PROF_WIRE_END, 0
 *
 * Both sides check all data that they read.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_WIRE_H_INCLUDED_
#define _PROF_WIRE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"


/* changes with the messages; a helper of another version is not used */

#define PROF_WIRE_HELLO      0x70726f33

/* questions: the first number of a message to the helper */

#define PROF_WIRE_NAMES      1
#define PROF_WIRE_UNITS      2

#define PROF_WIRE_END        UINT32_MAX

/* the maximum of one question or answer */

#define PROF_WIRE_ADDRESSES  512
#define PROF_WIRE_SOURCES    1024
#define PROF_WIRE_MEMBERS    8192
#define PROF_WIRE_RANGES     16384

#define PROF_WIRE_TEXT       4096           /* longer texts are omitted */
#define PROF_WIRE_MAX        (4 * 1024 * 1024)


typedef struct {
    const char     *pos;
    const char     *end;
    unsigned        failed:1;
} prof_wire_t;


PROF_HIDDEN_BEGIN

void prof_wire_u32(prof_buf_t *b, uint32_t n);
void prof_wire_u64(prof_buf_t *b, uint64_t n);
void prof_wire_text(prof_buf_t *b, const char *s);

/* read the next number or text; return 0 or NULL after an error */
uint32_t prof_wire_get_u32(prof_wire_t *w);
uint64_t prof_wire_get_u64(prof_wire_t *w);
const char *prof_wire_get_text(prof_wire_t *w);

/*
 * Send a whole message, and receive a whole message into b->data, until the
 * deadline (CLOCK_MONOTONIC, ns).  Return PROF_OK; PROF_LIMIT if the deadline
 * has passed; PROF_ERROR if the other side has closed the socket, the message
 * is too long, or memory is short.
 */
int prof_wire_send(int fd, const prof_buf_t *b, uint64_t deadline);
int prof_wire_receive(int fd, prof_buf_t *b, uint64_t deadline);

/*
 * Waits of threads end at this time at the latest, as if their deadline had
 * passed: of all threads, or of those for which no client waits.  A later call
 * replaces the time.  UINT64_MAX: no limit.
 */
void prof_wire_limit(uint64_t all, uint64_t idle);

/* returns whether the limit of the calling thread has passed */
int prof_wire_late(void);

/* no client waits for the calling thread */
void prof_wire_idle(void);

PROF_HIDDEN_END


#endif /* _PROF_WIRE_H_INCLUDED_ */
