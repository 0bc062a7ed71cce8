#include "gateway/tls/tls_memory.h"

#include <openssl/crypto.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A BUF_MEM grows to a third more than it was asked for. */
enum { PIECE_MAX = (TLS_MESSAGE_MAX + 16) / 3 * 4 };

static _Thread_local size_t piece_max = SIZE_MAX;

static void *on_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return size == 0 || size > piece_max ? NULL : malloc(size);
}

static void on_free(void *piece, const char *file, int line)
{
	(void)file;
	(void)line;
	free(piece);
}

static void *on_realloc(void *piece, size_t size, const char *file, int line)
{
	if (size == 0) {
		on_free(piece, file, line);
		return NULL;
	}
	return size > piece_max ? NULL : realloc(piece, size);
}

void tls_memory_install(void)
{
	if (CRYPTO_set_mem_functions(on_malloc, on_realloc, on_free) != 1)
		(void)fprintf(stderr, "sluice: OpenSSL does not let its memory be bounded\n");
}

void tls_memory_bound(void)
{
	piece_max = PIECE_MAX;
}
