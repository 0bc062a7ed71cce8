/* redis_fault.h - why Redis is not in use, and how that is seen in what it says. Pure. */
#ifndef GATEWAY_BASE_REDIS_FAULT_H
#define GATEWAY_BASE_REDIS_FAULT_H

#include "codec/base/slice.h"

enum store_fault {
	STORE_FAULT_NONE,
#define STORE_FAULT(symbol, label, words) STORE_FAULT_##symbol,
#include "gateway/base/tbl/redis_faults.h"
#undef STORE_FAULT
	STORE_FAULTS
};

/* Of one that is not NONE; static. */
const char *store_fault_label(enum store_fault fault);
const char *store_fault_words(enum store_fault fault);

/* Of an error reply: CLUSTER or ERROR. */
enum store_fault store_fault_of_error(const char *error);

/* What is sent to a port that does not answer as store.url says (`tls`: rediss://), to see whether it speaks the other
 * protocol; and what the first bytes of its answer make of that: TLS_PORT, PLAIN_PORT or NONE. */
struct slice store_fault_question(bool tls);
enum store_fault store_fault_of_answer(bool tls, struct slice answer);

#endif
