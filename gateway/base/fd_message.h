/* fd_message.h - messages between this program's own processes, each with a descriptor or without one.
 *
 * Over pairs of SOCK_SEQPACKET sockets: one message is one send. Neither call waits. The peer may be a
 * process that somebody else has taken over: what comes is a message of the size that is expected, and
 * nothing is known about the bytes in it. */
#ifndef GATEWAY_BASE_FD_MESSAGE_H
#define GATEWAY_BASE_FD_MESSAGE_H

#include "codec/base/attr.h"

#include <stdbool.h>
#include <stddef.h>

/* `fd` stays the caller's; -1: none is sent. False with errno: the peer does not get it. */
MUST_USE bool fd_message_send(int socket, const void *body, size_t len, int fd);

/* The next message, which has `len` bytes, and in *fd the caller's own copy of the descriptor that came
 * with it, or -1. False with errno: EAGAIN, there is none now; EBADMSG, one of another size was dropped;
 * ECONNRESET, the peer is gone. */
MUST_USE bool fd_message_receive(int socket, void *body, size_t len, int *fd);

#endif
