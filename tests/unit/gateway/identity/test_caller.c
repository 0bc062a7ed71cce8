/* Who asks: the walk up to a ping's answer, by key, token and certificate. */
#include "gateway/flow/flow.h"

#include "gateway/tls/tls_names.h"
#include "tests/support/answer_field.h"
#include "tests/unit/gateway/token_rig.h"

#define KEY "acme-key-0123456789"

struct bench {
	struct token_rig tokens;
	struct arena_pool pool;
	struct arena arena;
	struct http_incoming in; /* the flow's */
	struct flow flow;
	struct tls_names *names; /* of the caller's certificate */
	char *token;             /* of tenant beta */
	struct key_memory *keys;
	const struct config *reloaded; /* in force instead of the first one; NULL: that is */
};

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	char config[4096], digest[65] = "";
	uint8_t bytes[SHA256_BYTES];

	assert_non_null(b);
	sha256(SLICE(KEY), bytes);
	sha256_hex(bytes, 64, digest);
	(void)snprintf(
		config, sizeof(config),
		TOKEN_CONFIG("{id: acme, keys: [{sha256: %s, server: billing}]}, {id: beta}, "
			     "{id: gamma, names: [\"spiffe://x/gamma\"]}"),
		digest);
	token_rig_init(&b->tokens, config);
	token_rig_tell(&b->tokens, b->tokens.key);
	b->token = sign_token(b->tokens.key, TOKEN_HEADER,
			      TOKEN_CLAIMS("\"tenant\":\"beta\",\"azp\":\"crm\""));
	b->keys = key_memory_new();
	assert_non_null(b->keys);
	b->names = calloc(1, sizeof(*b->names) + sizeof(b->names->at[0]));
	assert_non_null(b->names);
	b->names->count = 1;
	b->names->good_until_s = TOKEN_NOW + 1;
	b->names->at[0] = (struct tls_name){ TLS_NAME_URI, SLICE("spiffe://x/gamma") };
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	arena_give(&b->arena);
	arena_pool_fini(&b->pool);
	key_memory_free(b->keys);
	free(b->names);
	free(b->token);
	token_rig_fini(&b->tokens);
	free(b);
	return 0;
}

/* Sends a ping with that Authorization (NULL: none), with a certificate if `certified`. */
static int ask(struct bench *b, const char *authorization, bool certified)
{
	static const uint8_t random[FLOW_CHANCE_BYTES] = { 1 };
	const uint64_t wall_ns = TOKEN_NOW * SEC;
	const struct flow_env env = { .config = b->reloaded != NULL ? b->reloaded
								    : b->tokens.rig.config,
				      .json = b->tokens.work,
				      .tokens = b->tokens.checker,
				      .keys = b->keys,
				      .now = SEC,
				      .wall_ns = wall_ns };

	b->in = (struct http_incoming){
		.method = SLICE("POST"),
		.path = SLICE("/v1/sampling"),
		.body = SLICE("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"),
		.names = certified ? b->names : NULL,
	};
	b->in.headers[HTTP_AUTHORIZATION] = slice_str(authorization);
	b->in.headers[HTTP_CONTENT_TYPE] = SLICE("application/json");
	arena_give(&b->arena);
	arena_init(&b->arena, &b->pool, REQUEST_ARENA_MAX);
	flow_init(&b->flow, &b->in, &b->arena, random, SEC, wall_ns);
	assert_int_equal(flow_run(&b->flow, &env, FLOW_START), FLOW_ANSWER);
	return b->flow.answer.status;
}

static const char *bearer(const char *credentials)
{
	static char header[2048];

	(void)snprintf(header, sizeof(header), "Bearer %s", credentials);
	return header;
}

static void each_way_leads_to_its_tenant(void **state)
{
	struct bench *b = *state;

	assert_int_equal(ask(b, bearer(KEY), false), 200);
	assert_slice(b->flow.tenant, "acme");
	assert_slice(b->flow.server, "billing");
	for (int again = 0; again < 2; again++) {
		assert_int_equal(ask(b, bearer(b->token), false), 200);
		assert_slice(b->flow.tenant, "beta");
		assert_slice(b->flow.server, "crm");
		/* not the memory's, which the next request may change */
		assert_ptr_equal(b->flow.principal->server.at, b->flow.server.at);
		assert_ptr_equal(b->flow.plan, b->flow.principal->tenant->plan);
	}
	assert_int_equal(ask(b, NULL, true), 200);
	assert_slice(b->flow.tenant, "gamma");
	assert_slice(b->flow.server, "spiffe://x/gamma");
}

/* Its connection may be days old. */
static void a_certificate_counts_until_it_expires(void **state)
{
	struct bench *b = *state;

	assert_int_equal(ask(b, NULL, true), 200);
	b->names->good_until_s = TOKEN_NOW;
	assert_int_equal(ask(b, NULL, true), 401);
}

static void who_shows_something_is_judged_by_it_alone(void **state)
{
	struct bench *b = *state;
	char *expired = sign_token(b->tokens.key, TOKEN_HEADER,
				   "{\"iss\":\"https://id.example\",\"aud\":\"sluice\",\"exp\":1,"
				   "\"tenant\":\"beta\"}");

	assert_int_equal(ask(b, bearer(KEY), true), 200);
	assert_slice(b->flow.tenant, "acme");
	assert_int_equal(ask(b, bearer(b->token), true), 200);
	assert_slice(b->flow.tenant, "beta");
	assert_int_equal(ask(b, bearer("0123456789abcdef"), true), 401);
	assert_int_equal(ask(b, bearer(expired), true), 401);
	assert_int_equal(ask(b, "Basic eDp5", true), 401);
	assert_int_equal(ask(b, "", true), 401);
	assert_int_equal(ask(b, NULL, false), 401);
	free(expired);
}

static void a_token_is_told_why_and_a_key_is_not(void **state)
{
	struct bench *b = *state;
	char *token = strdup(b->token);

	assert_non_null(token);
	char *digit = &token[strlen(token) - 3];
	*digit = *digit == 'A' ? 'B' : 'A';
	assert_int_equal(ask(b, bearer(token), false), 401);
	struct slice body = gather_flat(&b->flow.answer.body, &b->arena);
	assert_true(slice_has_nocase(body, SLICE("\"reason\":\"unauthorized\"")));
	assert_true(slice_has_nocase(body, SLICE("\"token\":\"signature\"")));
	assert_true(slice_has_nocase(body, SLICE("\"id\":null")));
	assert_slice(answer_field(&b->flow.answer, SLICE("www-authenticate")),
		     "Bearer error=\"invalid_token\"");
	assert_string_equal(b->flow.detail, jwt_fault_text(JWT_SIGNATURE));
	assert_false(b->flow.authenticated);
	assert_int_equal(ask(b, bearer("0123456789abcdef"), false), 401);
	body = gather_flat(&b->flow.answer.body, &b->arena);
	assert_false(slice_has_nocase(body, SLICE("token\"")));
	assert_slice(answer_field(&b->flow.answer, SLICE("www-authenticate")), "Bearer");
	free(token);
}

/* A key is looked for first: one that looks like a token is still a key. */
static void where_no_tokens_are_taken_they_are_keys_that_nobody_has(void **state)
{
	struct bench *b = *state;
	struct jwt_checker *checker = b->tokens.checker;

	b->tokens.checker = NULL;
	assert_int_equal(ask(b, bearer(b->token), false), 401);
	assert_slice(answer_field(&b->flow.answer, SLICE("www-authenticate")), "Bearer");
	assert_int_equal(ask(b, bearer(KEY), false), 200);
	b->tokens.checker = checker;
	assert_int_equal(jwt_checker_count(checker, JWT_OK), 0);
}

static void a_remembered_key_is_good_as_long_as_the_configuration_has_it(void **state)
{
	struct bench *b = *state;
	struct config without_keys = *b->tokens.rig.config;

	for (int again = 0; again < 2; again++) {
		assert_int_equal(ask(b, bearer(KEY), false), 200);
		assert_slice(b->flow.tenant, "acme");
	}
	assert_non_null(key_memory_find(b->keys, SLICE(KEY)));
	without_keys.tenants = (struct tenants){ 0 };
	b->reloaded = &without_keys;
	assert_int_equal(ask(b, bearer(KEY), false), 401);
	b->reloaded = NULL;
	assert_int_equal(ask(b, bearer(KEY), false), 200);
}

static void a_key_that_nobody_has_is_not_remembered(void **state)
{
	struct bench *b = *state;

	assert_int_equal(ask(b, bearer("0123456789abcdef"), false), 401);
	assert_null(key_memory_find(b->keys, SLICE("0123456789abcdef")));
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FRESH(each_way_leads_to_its_tenant),
		FRESH(a_certificate_counts_until_it_expires),
		FRESH(who_shows_something_is_judged_by_it_alone),
		FRESH(a_token_is_told_why_and_a_key_is_not),
		FRESH(where_no_tokens_are_taken_they_are_keys_that_nobody_has),
		FRESH(a_remembered_key_is_good_as_long_as_the_configuration_has_it),
		FRESH(a_key_that_nobody_has_is_not_remembered),
	};

	return cmocka_run_group_tests_name("caller", tests, NULL, NULL);
}
