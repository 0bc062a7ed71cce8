#include "gateway/base/fd_message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for one descriptor, aligned as CMSG_FIRSTHDR wants it. */
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

bool fd_message_send(int socket, const void *body, size_t len, int fd)
{
	union control control = { { 0 } };
	struct iovec part = { (void *)(uintptr_t)body, len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* The descriptor that came with the message, -1 if none did. */
static int received_fd(struct msghdr *message)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(header), sizeof(int));
	return fd;
}

bool fd_message_receive(int socket, void *body, size_t len, int *fd)
{
	union control control;
	struct iovec part = { body, len };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	*fd = -1;
	if (got < 0)
		return false;
	*fd = received_fd(&message);
	if (got == (ssize_t)len && (message.msg_flags & MSG_TRUNC) == 0)
		return true;
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = got == 0 ? ECONNRESET : EBADMSG;
	return false;
}
