/* command_direct.c - `explain` and `translate` of a request in a provider's own API (--front messages|chat). */
#include "codec/set.h"
#include "gateway/command/command_walk_parts.h"

#include "codec/base/must.h"
#include "gateway/flow/flow_steps.h"

#include <ctype.h>
#include <math.h>

static const struct walk_front {
	const char *name;
	enum api api;
	const struct sampling_front *sampling;
} fronts[] = {
	{ "messages", API_MESSAGES, &direct_messages_sampling },
	{ "chat", API_CHAT, &direct_chat_sampling },
};

const struct walk_front *walk_front_named(struct slice name)
{
	for (size_t i = 0; i < COUNT_OF(fronts); i++)
		if (slice_eq(name, slice_str(fronts[i].name)))
			return &fronts[i];
	return NULL;
}

/* ---- the request ---- */

/* The headers of the command line as the head of a request, which is how HTTP keeps one whose body is still to come. */
static void make_head(struct walk *walk)
{
	struct arena *into = &walk->direct.arena;
	struct gather lines;

	gather_init(&lines, into);
	for (size_t i = 0; i < walk->header_count; i++) {
		struct slice rest = slice_str(walk->headers[i]);
		const struct slice name = slice_trim(slice_cut(&rest, ':'));
		char *lower = arena_take(into, name.len + 1);
		must(lower != NULL);
		for (size_t at = 0; at < name.len; at++)
			lower[at] = (char)tolower((unsigned char)name.at[at]);
		gather_raw(&lines, slice_of(lower, name.len));
		gather_lit(&lines, ": ");
		gather_raw(&lines, slice_trim(rest));
		gather_lit(&lines, "\r\n");
	}
	gather_lit(&lines, "\r\n");
	must(gather_done(&lines) == ERR_OK);
	walk->head = gather_flat(&lines, into);
	must(!slice_absent(walk->head));
	walk->in.early = true;
	walk->in.fields = &walk->head;
}

void walk_run_direct(struct walk *walk, const struct flow_env *env,
		     const uint8_t random[SAMPLING_CHANCE_BYTES])
{
	struct direct_call *call = &walk->direct;

	arena_init(&call->arena, &walk->pool, REQUEST_ARENA_MAX);
	make_head(walk);
	walk->host = (struct front_host){ .config = walk->config, .json = walk->work };
	call->host = &walk->host;
	call->api = walk->front->api;
	sampling_ids_make(&call->ids, random, (struct slice){ NULL, 0 });
	direct_init(call, &walk->in, env->wall_ns);
	call->caller = walk->call.caller;
	call->ask.caller = &call->caller;
	if ((call->caller.plan->fronts & FRONT_DIRECT) == 0) {
		(void)direct_refuse_err(call, ERR_FRONT_FORBIDDEN);
		return;
	}
	if (!direct_read_body(call, &walk->host))
		return;
	walk->asked = *call->ask.request;
	flow_init(&walk->flow, &call->ask, walk->front->sampling, call);
	walk->refused = flow_run(&walk->flow, env, FLOW_START) != FLOW_RESERVE;
	if (walk->refused)
		direct_write(call, &walk->flow.out);
}

bool walk_is_named(struct walk *walk, struct bitset *out)
{
	if (walk->flow.ask == NULL || walk->flow.ask->raw == NULL)
		return false;
	walk->flow.caller.plan =
		walk->call.caller.plan; /* a flow that reserves has none any more */
	return flow_raw_models(&walk->flow, walk->config, out);
}

/* Only who leaves the choice to routing has priorities (direct_auto.c). */
static bool has_named_one(const struct log_route *route)
{
	return isnan(route->cost) && isnan(route->speed) && isnan(route->intelligence);
}

void walk_log_front(struct walk *walk)
{
	const struct walk_front *front = walk_front_named(walk->logged.front);
	struct direct_call *call = &walk->direct;

	if (front == NULL)
		return;
	call->asked = arena_zero(&walk->call.arena, sizeof(*call->asked));
	must(call->asked != NULL);
	call->asked->raw = (struct sampling_raw){
		.dialect = api_is_anthropic(front->api) ? DIALECT_ANTHROPIC : DIALECT_OPENAI,
	};
	if (has_named_one(&walk->logged.route))
		call->asked->raw.model = walk->logged.route.hint;
	call->ask.raw = &call->asked->raw;
	walk->flow.ask = &call->ask;
}

/* ---- what became of it ---- */

/* The value of a member of an object; absent: it has none of that name. */
static struct slice member_of(struct slice object, struct slice name, struct json_work *work)
{
	struct json_reader r;
	struct slice key, value;

	json_open(&r, object, NULL, work);
	if (!json_enter_object(&r))
		return slice_of(NULL, 0);
	while (json_next_key(&r, &key) && json_skip(&r, &value))
		if (slice_eq(key, name))
			return value;
	return slice_of(NULL, 0);
}

struct walk_list {
	const char *quote, *between;
	bool first;
};

static void put_change(struct walk_list *list, struct slice name, const char *how)
{
	(void)fputs(list->first ? "" : list->between, stdout);
	(void)fputs(list->quote, stdout);
	walk_print_slice(name);
	(void)printf(" %s%s", how, list->quote);
	list->first = false;
}

/* What `to` has that `from` has not, or has otherwise where `other` says how that is called. */
static void put_changes(struct walk *walk, struct walk_list *list, struct slice from,
			struct slice to, const char *absent, const char *other)
{
	struct json_work *work = json_work_new(codec_set_best());
	struct json_reader r;
	struct slice key, value;

	must(work != NULL);
	json_open(&r, to, NULL, work);
	must(json_enter_object(&r));
	while (json_next_key(&r, &key) && json_skip(&r, &value)) {
		const struct slice before = member_of(from, key, walk->work);
		if (slice_absent(before))
			put_change(list, key, absent);
		else if (other != NULL && !slice_eq(before, value))
			put_change(list, key, other);
	}
	json_work_free(work);
}

void walk_print_changes(struct walk *walk, const char *quote, const char *between)
{
	const struct slice sent = gather_flat(&walk->flow.made->encoded.body, &walk->direct.arena);
	struct walk_list list = { quote, between, true };

	must(!slice_absent(sent));
	put_changes(walk, &list, walk->body, sent, "added", "changed");
	put_changes(walk, &list, sent, walk->body, "removed", NULL);
	if (list.first && *quote == '\0')
		(void)fputs("none", stdout);
}
