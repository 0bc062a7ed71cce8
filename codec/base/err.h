/* err.h - what the world can cause: one row of tbl/errors.h per outcome.
 *
 * ERR_OK is 0. A function that returns MUST_USE enum err writes its results only on success. */
#ifndef CODEC_BASE_ERR_H
#define CODEC_BASE_ERR_H

#include "codec/base/slice.h"

#include <stdint.h>

enum err {
	ERR_OK = 0,
#define ERROR(symbol, code, status, reason, text) ERR_##symbol,
#include "codec/tbl/errors.h"
#undef ERROR
	ERR_COUNT
};

struct err_info {
	int code;           /* JSON-RPC error.code */
	uint16_t status;    /* HTTP */
	const char *reason; /* stable name */
	const char *text;   /* for the caller's developer */
};

/* `err` below ERR_COUNT; ERR_OK gives reason "ok" and status 200. Static, never NULL. */
const struct err_info *err_info(enum err err);

enum { FAULT_NO_OFFSET = UINT32_MAX };

/* An error with its particulars. `path` and `detail` may be absent or NULL; they are static or live
 * as long as the request's arena. Nothing in it is a provider's text, a key or a prompt. */
struct fault {
	enum err err;
	uint32_t offset;    /* byte of the body, FAULT_NO_OFFSET when none */
	struct slice path;  /* JSON path such as $.params.messages[2].content */
	const char *detail; /* what exactly is wrong; replaces the row's text */
};

/* Particulars of an error for whoever gets it, in whatever format. Members that are zero or absent are not known. */
struct error_data {
	int64_t retry_after_ms;           /* < 0: not known */
	int provider_status;              /* HTTP; 0: not known */
	int retryable;                    /* a truth value; < 0: not known */
	struct slice provider_request_id; /* any bytes */
	const char *limit;                /* which limit refused; NULL: none */
	const char *scope;                /* and whose it is; NULL: not known */
	const char *rule;                 /* which policy rule refused; NULL: none */
	struct slice extra; /* members of an object as ready JSON text ("\"k\":v"); absent: none */
};

/* Nothing is known. */
extern const struct error_data error_data_none;

#endif
