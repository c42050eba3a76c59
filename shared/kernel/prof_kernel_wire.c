
/*
 * Copyright (C) The ngx_http_profile_module authors
 */


#include "kernel/prof_kernel_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>


/* aligned as the kernel's headers of control messages */

typedef union {
    char            bytes[CMSG_SPACE(sizeof(struct ucred))
                          + CMSG_SPACE(4 * sizeof(int))];
    struct cmsghdr  align;
} prof_kernel_control_t;


static void prof_kernel_control(struct msghdr *msg, int *fd, int *pid);


int
prof_kernel_send(int sock, const void *data, size_t size, int fd)
{
    ssize_t                 n;
    struct iovec            iov;
    struct msghdr           msg;
    struct cmsghdr         *cmsg;
    prof_kernel_control_t   control;

    iov.iov_base = (void *) (uintptr_t) data;
    iov.iov_len = size;

    memset(&msg, 0, sizeof(struct msghdr));
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;

    if (fd != -1) {
        memset(&control, 0, sizeof(prof_kernel_control_t));

        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int));

        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
    }

    do {
        n = sendmsg(sock, &msg, MSG_DONTWAIT|MSG_NOSIGNAL);
    } while (n == -1 && errno == EINTR);

    return n == (ssize_t) size ? PROF_OK : PROF_ERROR;
}


int
prof_kernel_receive(int sock, void *data, size_t size, int *fd, int *pid)
{
    int                     who;
    ssize_t                 n;
    struct iovec            iov;
    struct msghdr           msg;
    prof_kernel_control_t   control;

    iov.iov_base = data;
    iov.iov_len = size;

    memset(&msg, 0, sizeof(struct msghdr));
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.bytes;
    msg.msg_controllen = sizeof(control.bytes);

    *fd = -1;
    who = 0;

    do {
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        return PROF_ERROR;
    }

    prof_kernel_control(&msg, fd, &who);

    if (pid) {
        *pid = who;
    }

    if (n == 0) {
        return PROF_LIMIT;
    }

    errno = 0;

    return (n == (ssize_t) size && !(msg.msg_flags & MSG_TRUNC))
           ? PROF_OK : PROF_ERROR;
}


/* if there are several descriptors, all but the first are closed */

static void
prof_kernel_control(struct msghdr *msg, int *fd, int *pid)
{
    int              one;
    size_t           i, n;
    struct ucred     cred;
    struct cmsghdr  *cmsg;

    for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {

        if (cmsg->cmsg_level != SOL_SOCKET) {
            continue;
        }

        if (cmsg->cmsg_type == SCM_CREDENTIALS
            && cmsg->cmsg_len == CMSG_LEN(sizeof(struct ucred)))
        {
            memcpy(&cred, CMSG_DATA(cmsg), sizeof(struct ucred));
            *pid = cred.pid;
            continue;
        }

        if (cmsg->cmsg_type != SCM_RIGHTS) {
            continue;
        }

        n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (i = 0; i < n; i++) {
            memcpy(&one, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));

            if (*fd == -1) {
                *fd = one;

            } else {
                (void) close(one);
            }
        }
    }
}
