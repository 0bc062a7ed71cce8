/* sampling_exchange.h - the messages of an exchange, for a caller that keeps a history (DESIGN 4.3,
 * `sluice/exchange`).
 *
 * Appended to a history they are closed: the request's messages behind its last assistant turn (what was
 * before is in the history already, and so is the result of a `__schema__` call), the answer as the result
 * has it, and behind a call of `__schema__` a minimal result, as nobody else gives one. Other calls are
 * the caller's to answer. */
#ifndef CODEC_MCP_SAMPLING_EXCHANGE_H
#define CODEC_MCP_SAMPLING_EXCHANGE_H

#include "codec/mcp/sampling.h"

struct exchange {
	struct slice
		request; /* messages as they stand in the body, with the commas between; may be empty */
	bool structured; /* the answer's calls are those of `__schema__` */
};

/* Of a request that was read: `params` are its own, as jsonrpc has them. Points into them. */
struct exchange exchange_of(struct slice params, bool structured);

/* The list as JSON. `revision` and `tools_present` are those of the result. */
void exchange_write(struct gather *g, const struct exchange *exchange,
		    const struct sampling_result *result, enum revision revision,
		    bool tools_present);

/* private to sampling_write.c and this: the answer's content by the output shape rule; *one is the only
 * call of it, where the rule leaves one of several, else NULL. */
void sampling_write_content(struct gather *g, const struct sampling_result *result,
			    enum revision revision, bool tools_present,
			    const struct result_block **one);

#endif
