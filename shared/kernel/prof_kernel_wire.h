
/*
 * Copyright (C) The ngx_http_profile_module authors
 *
 * Messages between a process and its opener.
 *
 * A question has a descriptor: the socket for the answer.  The kernel adds the
 * id of the asking process (SCM_CREDENTIALS).  An answer has the requested
 * descriptor, unless the answer is an error.
 */


#ifndef _PROF_KERNEL_WIRE_H_INCLUDED_
#define _PROF_KERNEL_WIRE_H_INCLUDED_


#include "kernel/prof_kernel.h"


typedef enum {
    PROF_KERNEL_ASK_EVENT = 1,
    PROF_KERNEL_ASK_SYMBOLS
} prof_kernel_ask_e;


typedef struct {
    uint32_t              what;         /* prof_kernel_ask_e */
    int32_t               tid;          /* of an event */
    int32_t               signo;
} prof_kernel_question_t;


typedef struct {
    int32_t               err;          /* errno, or 0 */
    uint32_t              nentries;
    prof_kernel_range_t   entries[PROF_KERNEL_ENTRIES];
} prof_kernel_answer_t;


PROF_HIDDEN_BEGIN

/*
 * Sends a message with a descriptor, or without a descriptor (-1).  Returns
 * PROF_OK, or PROF_ERROR with errno set.  The function does not wait.
 */
int prof_kernel_send(int sock, const void *data, size_t size, int fd);

/*
 * Receives a message of this size.  *fd is its descriptor or -1; the caller
 * owns the descriptor also after an error.  *pid, if pid is not NULL, is the
 * process id of the sender, or 0.  Returns PROF_OK; PROF_ERROR with errno set,
 * or with an errno of 0 for a message of another size; or PROF_LIMIT if no
 * sender is left.
 */
int prof_kernel_receive(int sock, void *data, size_t size, int *fd, int *pid);

PROF_HIDDEN_END


#endif /* _PROF_KERNEL_WIRE_H_INCLUDED_ */
