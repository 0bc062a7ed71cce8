/* sim_spec.h - how the simulated provider behaves for one request.
 *
 * Written as words joined by '-', each perhaps with an argument: "latency-20ms-size-4096",
 * "error-429-retry-2-first-1". The same words serve --default, a model name after "sim-", the
 * header X-Sim and POST /default. sim_spec.c has the table; sim_spec_print shows it. */
#ifndef BENCH_SIM_SIM_SPEC_H
#define BENCH_SIM_SIM_SPEC_H

#include <stdint.h>
#include <stdio.h>

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/slice.h"

#define SIM_SPEC_CODE_MAX 48
#define SIM_SPEC_SIZE_MAX (UINT64_C(64) << 20)

/* What goes wrong; the order is that of the counters in GET /stats. */
enum sim_fault {
	SIM_FAULT_NONE,
	SIM_FAULT_ERROR,   /* answers `status` with the provider's error body */
	SIM_FAULT_HANG,    /* takes the request and never answers */
	SIM_FAULT_CLOSE,   /* closes before the answer */
	SIM_FAULT_RESET,   /* the same with RST */
	SIM_FAULT_CUT,     /* closes in the middle of the body or stream */
	SIM_FAULT_CUTHEAD, /* closes in the middle of the headers */
	SIM_FAULT_BADJSON, /* 200 with a body that is not JSON, or such an event */
	SIM_FAULT_EMPTY,   /* 200 with no body, or a stream without events */
	SIM_FAULT_HTML,    /* `status`, else 502, with a page of a proxy */
	SIM_FAULT_GARBAGE, /* bytes that are not HTTP */
	SIM_FAULT_MIDWAY,  /* an error event in the middle of a stream */
	SIM_FAULT_STALL,   /* stops in the middle of the body or stream, and stays connected */
	SIM_FAULT_COUNT,
};

struct sim_spec {
	uint64_t fault; /* enum sim_fault */
	uint64_t status;
	nsec_t retry_after;           /* sent as whole seconds; NSEC_NEVER: no header */
	nsec_t retry_ms;              /* header retry-after-ms; NSEC_NEVER: none */
	nsec_t retry_date;            /* Retry-After as a date so far ahead; NSEC_NEVER: none */
	uint64_t should_retry;        /* x-should-retry of an error: 0, 1; UINT64_MAX: none */
	char code[SIM_SPEC_CODE_MAX]; /* error code in the body; "" = what the status usually has */
	uint64_t context;             /* the error is that of a full context window */

	nsec_t latency; /* before the first byte of the answer */
	nsec_t pace;    /* between two events of a stream */
	nsec_t dribble; /* between two single bytes of the answer; 0: not dribbled */

	uint64_t size;    /* bytes of text */
	uint64_t chunk;   /* bytes of text in an event */
	uint64_t stamp;   /* the text of an event is when it was written */
	uint64_t calls;   /* tool calls in one answer */
	uint64_t loop;    /* calls tools again after results, for ever */
	uint64_t length;  /* ends for the token limit */
	uint64_t refusal; /* ends as refused */
	uint64_t obey;    /* cuts the text at the request's token limit */
	uint64_t input;   /* reported tokens; UINT64_MAX: bytes / 4 */
	uint64_t output;  /* the same */
	uint64_t nousage; /* reports none */
	uint64_t chunked; /* a plain answer without Content-Length */
	uint64_t lines;   /* a good answer has all the header lines of a real one */
	uint64_t once;    /* closes the connection after a good answer */
	uint64_t uses;    /* closes a connection after its n-th answer; 0: never */

	/* whom the fault hits: all of these must hold (sim_due.h) */
	uint64_t every;              /* each n-th request; 0, 1: all */
	uint64_t first_only;         /* the first n requests; 0: all */
	uint64_t every_connection;   /* requests of each n-th connection; 0, 1: of all */
	char key[SIM_SPEC_CODE_MAX]; /* requests with a key that ends so; "": all */
	nsec_t after, lasts; /* requests from `since` + after on, for so long; lasts 0: for ever */
	nsec_t since;        /* when this became the default behaviour */

	/* what a key may do in each window (sim_keys.h) */
	uint64_t quota, token_quota; /* requests, tokens; 0: as many as it likes */
	nsec_t window;

	uint64_t sick; /* GET /health fails, whatever the rest does */
	uint64_t well; /* it does not, whatever the rest does */
};

/* 256 bytes of text at once, in events of 16 bytes, no fault. */
extern const struct sim_spec sim_spec_default;

/* Applies `words` on top of *spec. On an unknown word or a bad argument *spec is unchanged and
 * *wrong the word. No words change nothing. */
MUST_USE bool sim_spec_parse(struct sim_spec *spec, struct slice words, struct slice *wrong);

/* Name of a fault, as in GET /stats. */
const char *sim_spec_fault_name(enum sim_fault fault);

/* The table of words, for --help. */
void sim_spec_print(FILE *out);

#endif
