#include "gateway/base/redis_fault.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

static const struct {
	const char *label, *words;
} faults[STORE_FAULTS] = {
#define STORE_FAULT(symbol, label, words) [STORE_FAULT_##symbol] = { label, words },
#include "gateway/base/tbl/redis_faults.h"
#undef STORE_FAULT
};

const char *store_fault_label(enum store_fault fault)
{
	must(fault > STORE_FAULT_NONE && fault < STORE_FAULTS);
	return faults[fault].label;
}

const char *store_fault_words(enum store_fault fault)
{
	must(fault > STORE_FAULT_NONE && fault < STORE_FAULTS);
	return faults[fault].words;
}

enum store_fault store_fault_of_error(const char *error)
{
	/* The first word; nothing but a node of a cluster says these. */
	static const struct slice words[] = { SLICE_INIT("MOVED "), SLICE_INIT("ASK "),
					      SLICE_INIT("CLUSTERDOWN "), SLICE_INIT("CROSSSLOT "),
					      SLICE_INIT("TRYAGAIN ") };

	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (slice_starts(slice_str(error), words[i]))
			return STORE_FAULT_CLUSTER;
	return STORE_FAULT_ERROR;
}

/* The least ClientHello there is: whoever speaks TLS answers it, most with an alert. */
static const char hello[] =
	"\x16\x03\x01\x00\x2d"             /* a record of 45 bytes: */
	"\x01\x00\x00\x29\x03\x03"         /* ClientHello of TLS 1.2, */
	"sluice asks which protocol it is" /* 32 bytes that ought to be chance, */
	"\x00"                             /* no session, */
	"\x00\x02\xc0\x2f"                 /* one cipher, */
	"\x01\x00";                        /* no compression */
_Static_assert(sizeof(hello) - 1 == 5 + 45, "the lengths are right");

struct slice store_fault_question(bool tls)
{
	return tls ? SLICE("PING\r\n") : slice_of(hello, sizeof(hello) - 1);
}

enum store_fault store_fault_of_answer(bool tls, struct slice answer)
{
	enum { ALERT = 0x15, HANDSHAKE = 0x16, VERSION = 0x03 };

	if (answer.len == 0)
		return STORE_FAULT_NONE;
	if (tls) /* +PONG, or an error: NOAUTH, DENIED */
		return answer.at[0] == '+' || answer.at[0] == '-' ? STORE_FAULT_PLAIN_PORT
								  : STORE_FAULT_NONE;
	return answer.len >= 2 && (answer.at[0] == ALERT || answer.at[0] == HANDSHAKE) &&
			       answer.at[1] == VERSION
		       ? STORE_FAULT_TLS_PORT
		       : STORE_FAULT_NONE;
}
