
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Messages between a process and its helper for names, over a socket.  A
 * message is its length, of 32 bits, and that many bytes.  Numbers are in the
 * byte order of the machine; a text is its length, its bytes and a null; a text
 * without bytes stands for none.
 *
 *     helper:   PROF_WIRE_HELLO
 *     process:  dev, ino, build-id, path, debug root, number of addresses;
 *               of each: pc, function, own name
 *     helper:   of each address of which it knows anything, in order: index,
 *               known, line, start line, name, file, number of inlines; of
 *               each: line, start line, name, file
 *     helper:   PROF_WIRE_END
 *
 * Either side checks whatever it reads.
 *
 * Context: any thread; not in a signal.
 */


#ifndef _PROF_WIRE_H_INCLUDED_
#define _PROF_WIRE_H_INCLUDED_


#include "base/prof_base.h"
#include "base/prof_buf.h"


/* changes with the messages: a helper of another version is not asked */

#define PROF_WIRE_HELLO      0x70726f31
#define PROF_WIRE_END        UINT32_MAX

#define PROF_WIRE_ADDRESSES  512            /* of one question */
#define PROF_WIRE_TEXT       4096           /* longer ones are left out */
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

/* 0 or NULL once anything was not there */
uint32_t prof_wire_get_u32(prof_wire_t *w);
uint64_t prof_wire_get_u64(prof_wire_t *w);
const char *prof_wire_get_text(prof_wire_t *w);

/*
 * A whole message, until the deadline (CLOCK_MONOTONIC, ns).  PROF_OK;
 * PROF_LIMIT: there was no time; or PROF_ERROR: the other side is gone, the
 * message is too long, or memory is short.  What is received is in b->data.
 */
int prof_wire_send(int fd, const prof_buf_t *b, uint64_t deadline);
int prof_wire_receive(int fd, prof_buf_t *b, uint64_t deadline);

/* CLOCK_MONOTONIC, ns */
uint64_t prof_wire_now(void);

PROF_HIDDEN_END


#endif /* _PROF_WIRE_H_INCLUDED_ */
