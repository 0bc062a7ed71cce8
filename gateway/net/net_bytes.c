#include "gateway/net/net_bytes.h"

#include <stdlib.h>
#include <string.h>

/* ---- input ---- */

bool net_buffer_reserve(struct net_buffer **buffer, size_t more)
{
	struct net_buffer *old = *buffer;

	if (old != NULL && old->begin != 0) {
		(void)memmove(old->bytes, old->bytes + old->begin, old->end - old->begin);
		old->end -= old->begin;
		old->begin = 0;
	}
	const size_t used = old == NULL ? 0 : old->end;
	if (old != NULL && old->room - used >= more)
		return true;
	size_t room = old == NULL ? more : old->room * 2;
	if (room < used + more)
		room = used + more;
	struct net_buffer *grown = realloc(old, sizeof(*grown) + room);
	if (grown == NULL)
		return false;
	if (old == NULL)
		grown->begin = grown->end = 0;
	grown->room = room;
	*buffer = grown;
	return true;
}

struct net_buffer *net_buffer_of(const char *bytes, size_t len)
{
	struct net_buffer *buffer = NULL;

	if (!net_buffer_reserve(&buffer, len))
		return NULL;
	if (len != 0)
		(void)memcpy(buffer->bytes, bytes, len);
	buffer->end = len;
	return buffer;
}

char *net_buffer_bytes(struct net_buffer *buffer, size_t *len)
{
	*len = buffer->end - buffer->begin;
	return buffer->bytes + buffer->begin;
}

void net_buffer_free(struct net_buffer *buffer)
{
	free(buffer);
}

/* ---- output ---- */

void net_output_advance(struct net_output *out, size_t sent)
{
	while (out->count != 0) {
		const size_t left = out->v->iov_len - out->offset;
		if (sent < left) {
			out->offset += sent;
			return;
		}
		sent -= left;
		out->v++;
		out->count--;
		out->offset = 0;
	}
}

bool net_output_own(struct net_output *out)
{
	if (out->count == 0)
		return true;
	if (out->own == NULL) {
		out->own = malloc(out->count * sizeof(*out->own));
		if (out->own == NULL)
			return false;
		(void)memcpy(out->own, out->v, out->count * sizeof(*out->own));
		out->v = out->own;
	}
	out->v->iov_base = (char *)out->v->iov_base + out->offset;
	out->v->iov_len -= out->offset;
	out->offset = 0;
	return true;
}

size_t net_output_flatten(struct net_output *out, char *to, size_t room)
{
	size_t len = 0;

	while (out->count != 0 && len < room) {
		const size_t left = out->v->iov_len - out->offset;
		const size_t take = left < room - len ? left : room - len;
		if (take != 0)
			(void)memcpy(to + len, (char *)out->v->iov_base + out->offset, take);
		len += take;
		net_output_advance(out, take);
	}
	return len;
}

void net_output_done(struct net_output *out)
{
	free(out->own);
	*out = (struct net_output){ 0 };
}
