/* A request that goes ahead of what Redis says of its session, its loop, its copies and its limits: whatever
 * the answers are, it is answered as if it had waited for each, and has taken no more. The test is the driver
 * and the stores. */
#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"
#define SESSION "0123456789abcdef0123456789abcdef"

static const char config_text[] =
	"retries: {attempts: 1}\n"
	"providers:\n"
	"  ant: {dialect: anthropic, endpoints: [{url: \"http://127.0.0.1:9001\"}], keys: [sk]}\n"
	"models:\n"
	"  - {id: claude, provider: ant, context: 100000, price: {input: 3, output: 15}, "
	"intelligence: %s}\n"
	"  - {id: other, provider: ant, context: 100000, price: {input: 30, output: 150}, "
	"intelligence: 0.5}\n"
	"tenants:\n"
	"  - {id: acme, models: {allow: [\"*\"]}, capabilities: {tools: true}, keys: [{sha256: "
	"%%s}],\n"
	"     limits: {requests_per_minute: 60, concurrent: 8, tool_rounds: 3, tool_rounds_action: "
	"refuse,\n"
	"              loop_tokens: 100},\n"
	"     policy: {system_bytes: 8},\n"
	"     unknown_tool_calls: refuse}\n";

#define ASK                                                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":"          \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}},"      \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"," \
	"\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"toolUseId\":" \
	"\"a\",\"content\":[]}]}],\"tools\":[{\"name\":\"f\",\"inputSchema\":{\"type\":"           \
	"\"object\"}}],"                                                                           \
	"\"maxTokens\":50}}"
#define SAYS(content)                                    \
	"{\"id\":\"msg_1\",\"content\":[" content "],\"" \
	"usage\":{\"input_tokens\":10,\"output_tokens\":4}}"
#define THINKS "{\"type\":\"thinking\",\"thinking\":\"a long secret\",\"signature\":\"s\"},"
#define CALLS "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}"
#define TEXT "{\"type\":\"text\",\"text\":\"Hello\"}"

static struct config *load_config(const char *intelligence)
{
	static const char *const keys[] = { KEY, NULL };
	char text[sizeof(config_text) + 16];

	(void)snprintf(text, sizeof(text), config_text, intelligence);
	return bench_config(text, keys);
}

/* What the others say. */
enum session { KNOWN, OF_ANOTHER_REVISION, UNKNOWN, SESSIONS };
enum loop { AS_GUESSED, LARGER, SPENT, FORGED, ELSEWHERE, LOOPS };
enum limits { GRANTED, REFUSED, LIMITS };
static const enum idempotency_verdict verdicts[] = { IDEMPOTENCY_LEADS, IDEMPOTENCY_DONE,
						     IDEMPOTENCY_CONFLICT, IDEMPOTENCY_ELSEWHERE,
						     IDEMPOTENCY_ANSWERED };
struct answers {
	enum session session;
	enum idempotency_verdict copies;
	enum loop loop;
	enum limits limits;
};

struct scene {
	struct bench *b;
	struct answers say;
	uint32_t asked, undone, joined, left; /* limits; copies */
	struct slice thought;                 /* the record of an earlier answer; lives on */
	struct state_target elsewhere; /* a place of the model that is not chosen by itself */
};

/* ---- what there is to be known ---- */

/* Of the answer that began the loop: where it came from and what is kept of it. */
static struct state_save begin_loop(struct bench *b)
{
	static const char first[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":"
		"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}}"
		"],"
		"\"tools\":[{\"name\":\"f\",\"inputSchema\":{\"type\":\"object\"}}],"
		"\"maxTokens\":50}}";
	struct http_incoming in = incoming(KEY, first);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(provider_says(b, 200, SAYS(THINKS CALLS)), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	const struct state_save save = b->flow.state->save;
	release(b);
	return save;
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->b = bench_new(load_config("0.1"));
	s->b->stateful = true;
	s->elsewhere = begin_loop(s->b).target; /* of `other` */
	bench_use(s->b, load_config("0.9"));
	const struct state_save save = begin_loop(s->b);
	char *copy = malloc(save.blocks.len);
	assert_non_null(copy);
	(void)memcpy(copy, save.blocks.at, save.blocks.len);
	s->thought = slice_of(copy, save.blocks.len);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	bench_free(s->b);
	free((void *)(uintptr_t)s->thought.at);
	free(s);
	return 0;
}

static struct state_loop loop_of(const struct scene *s, enum loop loop)
{
	const struct state_key id = { { 1 } };

	switch (loop) {
	case SPENT:
		return (struct state_loop){ .id = id, .known = 1, .tokens = 100 };
	case FORGED:
		return (struct state_loop){ .known = 0 };
	case ELSEWHERE:
		return (struct state_loop){ .id = id, .known = 1, .target = s->elsewhere };
	case AS_GUESSED:
	case LARGER:
	case LOOPS:
		break;
	}
	return (struct state_loop){ .id = id, .known = 1, .tokens = 5 };
}

static void guess(struct scene *s, struct state_loop loop)
{
	struct state_load *load = &s->b->flow.state->load;

	assert_true(load->may_guess);
	load->session_is = STATE_SESSION_UNSURE;
	load->loop = loop;
	load->found = arena_zero(s->b->flow.arena, sizeof(*load->found));
	s->b->flow.awaited |= FLOW_PENDING_LOAD;
}

static void tell(struct scene *s)
{
	struct state_load *load = &s->b->flow.state->load;

	load->session_is = s->say.session == UNKNOWN ? STATE_SESSION_UNKNOWN : STATE_SESSION_KNOWN;
	load->revision =
		s->say.session == OF_ANOTHER_REVISION ? REVISION_2025_06_18 : REVISION_2025_11_25;
	load->loop = loop_of(s, s->say.loop);
	load->found = arena_zero(s->b->flow.arena, sizeof(*load->found));
	if (s->say.loop == LARGER)
		load->found[0] = s->thought;
}

/* ---- the driver ---- */

static void join(struct scene *s)
{
	s->joined++;
	s->b->flow.state->copy.verdict = IDEMPOTENCY_LEADS;
	s->b->flow.awaited |= FLOW_PENDING_CLAIM;
}

static void decide(struct scene *s)
{
	struct flow_state *state = s->b->flow.state;

	state->copy.verdict = s->say.copies;
	state->copy.answer = (struct idempotency_answer){ .err = ERR_OK,
							  .member = SLICE("\"result\":{}"),
							  .retry_after_s = -1 };
}

static void ask_limits(struct scene *s)
{
	struct limiter *limiter = &s->b->memory.limiter;
	struct reservation *reservation = &s->b->flow.reservation;

	s->asked++;
	if (s->say.limits == GRANTED) {
		assert_int_equal(limiter->reserve(limiter, reservation), LIMITER_DONE);
		assert_true(reservation->granted);
		return;
	}
	reservation->refusal = (struct limit_refusal){ .err = ERR_RATE_LIMITED,
						       .limit = "requests_per_minute",
						       .wait_ns = SEC };
}

static void give_back(struct scene *s)
{
	const unsigned taken = s->b->flow.state->ahead.taken;
	struct limiter *limiter = &s->b->memory.limiter;

	if ((taken & FLOW_PENDING_LIMITS) != 0 && s->b->flow.reservation.granted) {
		s->undone++;
		limiter->undo(limiter, &s->b->flow.reservation, s->b->now);
	}
	s->left += (taken & FLOW_PENDING_CLAIM) != 0;
}

/* What was awaited is there, in whatever order: only with the last of it the flow goes on. */
static enum flow_effect go_on(struct scene *s)
{
	static const enum flow_pending asks[] = { FLOW_PENDING_LIMITS, FLOW_PENDING_CLAIM,
						  FLOW_PENDING_LOAD };
	struct flow *flow = &s->b->flow;
	enum flow_event event;

	for (size_t i = 0; i < COUNT_OF(asks); i++)
		if ((flow->awaited & asks[i]) != 0 &&
		    flow_answered(flow, asks[i], s->b->now, &event))
			return run(s->b, event);
	fail_msg("nothing was awaited");
	return FLOW_END;
}

/* Up to where it waits for what it was ahead of, or, `known`, to its provider or its end. */
static enum flow_effect drive(struct scene *s, enum flow_effect effect, bool known)
{
	struct bench *b = s->b;

	for (int n = 0; n < 20; n++) {
		switch (effect) {
		case FLOW_LOAD:
			guess(s, loop_of(s, AS_GUESSED));
			effect = run(b, FLOW_LOADED);
			continue;
		case FLOW_JOIN:
			join(s);
			if (known) {
				b->flow.awaited = 0;
				decide(s);
			}
			effect = run(b, FLOW_JOINED);
			continue;
		case FLOW_RESERVE:
			if (!flow_has_reserved(&b->flow))
				ask_limits(s);
			if (b->flow.awaited != 0)
				return effect;
			effect = run(b, FLOW_RESERVED);
			continue;
		case FLOW_GIVE_BACK:
			give_back(s);
			effect = run(b, FLOW_GIVEN_BACK);
			continue;
		default:
			return effect;
		}
	}
	fail_msg("it has no end");
	return effect;
}

static struct http_incoming request(void)
{
	struct http_incoming in = incoming(KEY, ASK);

	in.headers[HTTP_SESSION_ID] = SLICE(SESSION);
	return in;
}

static enum flow_effect go_ahead(struct scene *s)
{
	const struct http_incoming in = request();

	s->b->now += 3600 * SEC; /* no limit remembers the last request */
	s->asked = s->undone = s->joined = s->left = 0;
	const enum flow_effect effect = drive(s, start(s->b, &in), false);
	assert_int_equal(s->b->flow.awaited, FLOW_PENDING_LOAD | FLOW_PENDING_CLAIM);
	return effect;
}

static enum flow_effect answers_come(struct scene *s)
{
	tell(s);
	decide(s);
	return drive(s, go_on(s), true);
}

/* ---- what is left ---- */

static void nothing_is_taken(struct scene *s, const struct limit_state *before)
{
	const struct limit_state after = limits_of(s->b, "acme");

	assert_int_equal(after.concurrent, 0);
	assert_int_equal(after.usd_day, before->usd_day);
	assert_true(after.requests.tat <= s->b->now && after.tokens.tat <= s->b->now);
}

/* The first in this order that says no: as where each is waited for. */
static enum err expected(const struct answers *say)
{
	static const enum err copies[] = { [IDEMPOTENCY_DONE] = ERR_DUPLICATE_DONE,
					   [IDEMPOTENCY_CONFLICT] = ERR_DUPLICATE_CONFLICT,
					   [IDEMPOTENCY_ELSEWHERE] = ERR_DUPLICATE_IN_FLIGHT };

	if (say->session == UNKNOWN)
		return ERR_SESSION_UNKNOWN;
	if (say->copies != IDEMPOTENCY_LEADS)
		return say->copies == IDEMPOTENCY_ANSWERED ? ERR_OK : copies[say->copies];
	if (say->loop == SPENT)
		return ERR_LOOP_TOKENS;
	if (say->loop == FORGED)
		return ERR_UNKNOWN_CALLS;
	return say->limits == REFUSED ? ERR_RATE_LIMITED : ERR_OK;
}

static void check_sent(struct scene *s, const struct limit_state *before)
{
	struct bench *b = s->b;
	const bool twice = s->say.session == OF_ANOTHER_REVISION || s->say.loop == ELSEWHERE;

	assert_int_equal(s->asked, twice ? 2 : 1);
	assert_int_equal(s->undone, twice ? 1 : 0);
	assert_int_equal(s->joined - s->left, 1);
	assert_true(slice_eq(b->flow.walk.model_id,
			     s->say.loop == ELSEWHERE ? SLICE("other") : SLICE("claude")));
	assert_int_equal(b->flow.made->encoded.replayed, s->say.loop == LARGER);
	assert_int_equal(b->flow.walk.draws, 1); /* as the log's seed gives them again */
	assert_int_equal(limits_of(b, "acme").concurrent, 1);
	assert_int_equal(provider_says(b, 200, SAYS(TEXT)), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 200);
	release(b);
	const struct limit_state after = limits_of(b, "acme");
	assert_int_equal(after.concurrent, 0);
	assert_int_equal(after.usd_day - before->usd_day, b->flow.totals.usd);
	assert_true(after.requests.tat > b->now);
}

static void check_end(struct scene *s, enum flow_effect effect, const struct limit_state *before)
{
	assert_int_equal(effect, FLOW_ANSWER);
	assert_int_equal(s->b->flow.end.err, expected(&s->say));
	assert_int_equal(s->b->flow.retries.attempts, 0);
	/* who is refused before it was routed is told of no model */
	assert_int_equal(slice_absent(s->b->flow.walk.model_id),
			 expected(&s->say) != ERR_RATE_LIMITED);
	assert_int_equal(s->left, s->joined - (s->say.session != UNKNOWN));
	nothing_is_taken(s, before);
}

static void every_answer_is_the_one_of_who_waits_for_each(void **state)
{
	struct scene *s = *state;
	uint32_t sent = 0, refused = 0;

	for (uint32_t n = 0; n < (uint32_t)SESSIONS * COUNT_OF(verdicts) * LOOPS * LIMITS; n++) {
		s->say = (struct answers){
			.session = (enum session)(n % SESSIONS),
			.copies = verdicts[n / SESSIONS % COUNT_OF(verdicts)],
			.loop = (enum loop)(n / SESSIONS / COUNT_OF(verdicts) % LOOPS),
			.limits = (enum limits)(n / SESSIONS / COUNT_OF(verdicts) / LOOPS),
		};
		const struct limit_state before = limits_of(s->b, "acme");
		assert_int_equal(go_ahead(s), FLOW_RESERVE);
		const enum flow_effect effect = answers_come(s);
		sent += effect == FLOW_SEND;
		refused += effect == FLOW_ANSWER;
		if (effect == FLOW_SEND && expected(&s->say) == ERR_OK)
			check_sent(s, &before);
		else
			check_end(s, effect, &before);
	}
	assert_int_equal(sent, 2 * 3); /* sessions, loops */
	assert_int_equal(sent + refused, SESSIONS * COUNT_OF(verdicts) * LOOPS * LIMITS);
}

static void who_leaves_while_it_is_ahead_has_taken_nothing(void **state)
{
	static const struct {
		const char *name;
		enum flow_event event;
		enum flow_effect ends;
		bool reserved; /* its limits were answered already, and not looked at */
	} cases[] = {
		{ "gone", FLOW_CLIENT_GONE, FLOW_END, false },
		{ "gone, with its limits", FLOW_CLIENT_GONE, FLOW_END, true },
		{ "cancelled", FLOW_CANCELLED, FLOW_ANSWER, false },
		{ "cancelled, with its limits", FLOW_CANCELLED, FLOW_ANSWER, true },
		{ "given up", FLOW_GIVEN_UP, FLOW_ANSWER, false },
		{ "given up, with its limits", FLOW_GIVEN_UP, FLOW_ANSWER, true },
	};
	struct scene *s = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct limit_state before = limits_of(s->b, "acme");
		print_message("%s\n", cases[i].name);
		s->say = (struct answers){ .limits = cases[i].reserved ? GRANTED : REFUSED };
		assert_int_equal(go_ahead(s), FLOW_RESERVE);
		s->b->flow.awaited = 0;
		assert_int_equal(drive(s, run(s->b, cases[i].event), true), cases[i].ends);
		assert_int_equal(s->undone, cases[i].reserved);
		assert_int_equal(s->left, 1);
		nothing_is_taken(s, &before);
	}
}

/* With which a request cannot go ahead as far as its limits. */
struct premise {
	const char *body; /* NULL: ASK */
	struct state_loop loop;
	enum idempotency_verdict here; /* among its copies in this process */
};

static void ahead_as_far_as(struct scene *s, struct premise premise)
{
	struct http_incoming in = request();

	if (premise.body != NULL)
		in.body = slice_str(premise.body);
	assert_int_equal(start(s->b, &in), FLOW_LOAD);
	guess(s, premise.loop);
	assert_int_equal(run(s->b, FLOW_LOADED), FLOW_JOIN);
	if (premise.here == IDEMPOTENCY_LEADS)
		join(s);
	else
		s->b->flow.state->copy.verdict = premise.here;
	assert_int_equal(run(s->b, FLOW_JOINED), FLOW_AWAIT);
	s->say = (struct answers){ .copies = IDEMPOTENCY_LEADS };
}

/* It was sent, and its caller leaves. */
static void leave(struct scene *s)
{
	assert_int_equal(run(s->b, FLOW_CLIENT_GONE), FLOW_SETTLE);
	(void)settle(s->b);
	release(s->b);
}

/* What one gateway's guess makes of a request is no reason to refuse it. */
static void nothing_is_refused_on_a_guess(void **state)
{
	const struct state_loop guesses[] = {
		{ .id = { { 1 } }, .known = 1, .tokens = 100 },
		{ .id = { { 1 } }, .known = 1, .rounds = 9 },
		{ .id = { { 1 } }, .known = 0 },
	};
	struct scene *s = *state;

	for (size_t i = 0; i < COUNT_OF(guesses); i++) {
		ahead_as_far_as(s,
				(struct premise){ .loop = guesses[i], .here = IDEMPOTENCY_LEADS });
		assert_int_not_equal(s->b->flow.end.err, ERR_OK);
		assert_int_equal(answers_come(s), FLOW_SEND);
		assert_int_equal(s->b->flow.end.err, ERR_OK);
		assert_int_equal(s->b->flow.ask->request->tool_rounds, 1);
		leave(s);
	}
}

/* What policy refuses while it is ahead is what it refuses once all is known. */
static void what_policy_refuses_it_refuses_when_all_is_known(void **state)
{
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\","
		"\"params\":{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"
		"\"text\",\"text\":\"Hi\"}}],\"systemPrompt\":\"More than eight\","
		"\"maxTokens\":50}}";
	struct scene *s = *state;

	ahead_as_far_as(s, (struct premise){ .body = body,
					     .loop = loop_of(s, AS_GUESSED),
					     .here = IDEMPOTENCY_LEADS });
	assert_int_equal(answers_come(s), FLOW_ANSWER);
	assert_int_equal(s->b->flow.end.err, ERR_POLICY);
	assert_true(slice_eq(s->b->flow.ask->request->system, SLICE("More than eight")));
}

/* It is asked again when its session is known: meanwhile it neither waits for others nor has taken anything. */
static void a_copy_of_another_waits_until_its_session_is_known(void **state)
{
	struct scene *s = *state;

	ahead_as_far_as(
		s, (struct premise){ .loop = loop_of(s, AS_GUESSED), .here = IDEMPOTENCY_WAITS });
	assert_false(s->b->flow.state->joined); /* it is no copy of anything, so far */
	tell(s);
	assert_int_equal(go_on(s), FLOW_JOIN);
	s->b->flow.state->copy.verdict = IDEMPOTENCY_DONE;
	assert_int_equal(run(s->b, FLOW_JOINED), FLOW_ANSWER);
	assert_int_equal(s->b->flow.end.err, ERR_DUPLICATE_DONE);
}

/* Another gateway's thoughts make the request larger: what it may cost at most counts if it cannot be known. */
static void what_was_not_reserved_is_owed(void **state)
{
	struct scene *s = *state;
	struct flow *flow = &s->b->flow;

	s->say = (struct answers){ .copies = IDEMPOTENCY_LEADS, .loop = LARGER };
	assert_int_equal(go_ahead(s), FLOW_RESERVE);
	const struct limit_ask ask = flow->reservation.ask;
	assert_int_equal(answers_come(s), FLOW_SEND);
	assert_int_equal(flow->reservation.ask.usd, ask.usd);
	const uint64_t bytes = flow->made->encoded.body.total - flow->made->encoded.body.images;
	const uint64_t usd =
		quota_usd_bound(bytes, 0, flow->made->encoded.max_tokens, &flow->made->price);
	const uint64_t tokens = quota_token_estimate(bytes, 0, flow->made->encoded.max_tokens);
	assert_true(usd > ask.usd && tokens > ask.tokens);
	flow->call.bytes_sent = true;
	assert_int_equal(run(s->b, FLOW_CLIENT_GONE), FLOW_SETTLE);
	assert_int_equal(flow->charge.usd, usd);
	assert_int_equal(flow->charge.tokens, tokens);
	(void)settle(s->b);
	assert_int_equal(flow->charge.overrun, usd - ask.usd);
	release(s->b);
}

static void a_reload_while_it_is_ahead_is_no_matter(void **state)
{
	static const enum loop loops[] = { AS_GUESSED, LARGER };
	struct scene *s = *state;

	for (size_t i = 0; i < COUNT_OF(loops); i++) {
		s->say = (struct answers){ .copies = IDEMPOTENCY_LEADS, .loop = loops[i] };
		assert_int_equal(go_ahead(s), FLOW_RESERVE);
		bench_use(
			s->b,
			load_config("0.9")); /* the sanitizer watches what is read of the old one */
		assert_int_equal(answers_come(s), FLOW_SEND);
		assert_int_equal(s->undone, 0);
		leave(s);
	}
}

/* Who answers something itself, or ends a session, has to know. */
static void small_methods_do_not_go_ahead(void **state)
{
	static const char *const bodies[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}",
	};
	struct scene *s = *state;

	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		struct http_incoming in = incoming(KEY, bodies[i]);
		in.headers[HTTP_SESSION_ID] = SLICE(SESSION);
		assert_int_equal(start(s->b, &in), FLOW_LOAD);
		assert_false(s->b->flow.state->load.may_guess);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_answer_is_the_one_of_who_waits_for_each),
		cmocka_unit_test(who_leaves_while_it_is_ahead_has_taken_nothing),
		cmocka_unit_test(nothing_is_refused_on_a_guess),
		cmocka_unit_test(what_policy_refuses_it_refuses_when_all_is_known),
		cmocka_unit_test(a_copy_of_another_waits_until_its_session_is_known),
		cmocka_unit_test(what_was_not_reserved_is_owed),
		cmocka_unit_test(a_reload_while_it_is_ahead_is_no_matter),
		cmocka_unit_test(small_methods_do_not_go_ahead),
	};

	return cmocka_run_group_tests_name("flow_speculate", tests, set_up, tear_down);
}
