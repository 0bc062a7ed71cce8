#include "gateway/redis/redis_call.h"

#include "codec/base/must.h"
#include "gateway/redis/redis_link.h"

#include <hiredis/hiredis.h>
#include <string.h>

void redis_put_script(const struct redis_script_run *run, uint32_t keys, uint32_t arguments)
{
	enum { FIXED = 3 };
	const struct redis_script *script = run->script;

	redis_put_count(run->to, FIXED + keys + arguments);
	redis_put(run->to, run->by_text ? SLICE("EVAL") : SLICE("EVALSHA"));
	redis_put(run->to, run->by_text ? script->text : slice_str(script->sha1));
	redis_put_number(run->to, keys);
}

/* `told`: who is told of it, `call` or nobody. `to` NULL: the link takes none. */
static bool run_script(struct redis_link *link, struct redis_script *script,
		       struct redis_call *call, struct redis_call *told, struct redis_buffer *to)
{
	const uint64_t generation = redis_link_generation(link);
	const bool by_text = script->generation != generation;
	const struct redis_script_run run = { to, script, by_text };

	if (to == NULL)
		return false;
	call->type->put(call, &run);
	if (!redis_link_send(link, &(struct redis_command){ told, script, by_text, script->aside }))
		return false;
	script->generation =
		generation; /* Redis knows it by the time that it gets to what follows this */
	return true;
}

bool redis_script_run(struct redis_link *link, struct redis_script *script, struct redis_call *call)
{
	return run_script(link, script, call, call, redis_link_begin(link));
}

bool redis_script_run_slow(struct redis_link *link, struct redis_script *script,
			   struct redis_call *call, nsec_t patience)
{
	return run_script(link, script, call, call, redis_link_begin_slow(link, patience));
}

bool redis_script_send(struct redis_link *link, struct redis_script *script,
		       struct redis_call *call)
{
	return run_script(link, script, call, NULL, redis_link_begin(link));
}

void redis_call_forget(struct redis_link *link, struct redis_call *call)
{
	if (!redis_call_pending(call))
		return;
	must(redis_link_command(link, call->ticket)->call == call);
	redis_link_command(link, call->ticket)->call = NULL;
	call->ticket = 0;
}

bool redis_command_lacks_text(const struct redis_command *command, const struct redisReply *reply)
{
	return command->script != NULL && !command->by_text && reply->type == REDIS_REPLY_ERROR &&
	       strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

void redis_command_end(struct redis_link *link, const struct redis_command *command,
		       enum redis_outcome outcome, const struct redisReply *reply)
{
	struct redis_call *call = command->call;

	if (call != NULL)
		call->ticket = 0;
	if (outcome == REDIS_REFUSED && redis_command_lacks_text(command, reply)) {
		command->script->generation = 0;
		if (call != NULL &&
		    run_script(link, command->script, call, call, redis_link_begin_again(link)))
			return;
	}
	if (call != NULL)
		call->type->done(call, outcome, reply);
}
