/* state_redis_wire.h - what state/state_load.lua and state/state_save.lua are asked, as bytes, and what they answer.
 *
 * Pure, but for memory. What Redis says is believed only as far as its form goes: anything else is as if
 * it had said nothing. */
#ifndef GATEWAY_STATE_STATE_REDIS_WIRE_H
#define GATEWAY_STATE_STATE_REDIS_WIRE_H

#include "gateway/base/config.h"
#include "gateway/redis/redis_call.h"
#include "gateway/state/state.h"

/* Whether its blocks are to be kept: there are some, and they are not too large. */
bool state_wire_keeps(const struct state_save *save, const struct config_blocks *blocks);

void state_wire_load(const struct redis_script_run *run, const struct state_load *load,
		     const struct config_blocks *blocks);
void state_wire_save(const struct redis_script_run *run, const struct state_save *save,
		     const struct config_blocks *blocks);
/* The blocks of a turn are of no use to anybody: an empty text takes their place, which tells that to whoever
 * else has them. */
void state_wire_drop(struct redis_buffer *to, const struct state_key *tenant,
		     const struct state_key *of, const struct config_blocks *blocks);

/* Fills in what was asked. False: it is no answer to that, and what was filled in does not count. */
MUST_USE bool state_wire_loaded(const struct redisReply *reply, struct state_load *load);
MUST_USE bool state_wire_saved(const struct redisReply *reply, bool *ended);

#endif
