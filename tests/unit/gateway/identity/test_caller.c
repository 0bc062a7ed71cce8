/* Who asks: by key, token and certificate. */
#include "gateway/identity/caller.h"

#include "gateway/base/bounds.h"
#include "gateway/tls/tls_names.h"
#include "tests/unit/gateway/token_rig.h"

#define KEY "acme-key-0123456789"

struct bench {
	struct token_rig tokens;
	struct arena_pool pool;
	struct arena arena;
	struct caller caller;
	struct caller_refusal why;
	struct tls_names *names; /* of the caller's certificate */
	char *token;             /* of tenant beta */
	struct key_cache *keys;
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
	b->keys = key_cache_new();
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
	key_cache_free(b->keys);
	free(b->names);
	free(b->token);
	token_rig_fini(&b->tokens);
	free(b);
	return 0;
}

static struct caller_sources sources_of(struct bench *b)
{
	return (struct caller_sources){ .config = b->reloaded != NULL ? b->reloaded
								      : b->tokens.rig.config,
					.json = b->tokens.work,
					.tokens = b->tokens.checker,
					.keys = b->keys,
					.wall_s = TOKEN_NOW };
}

static struct credentials shown_by(struct bench *b, const char *secret, bool certified)
{
	return (struct credentials){ .shown = secret != NULL,
				     .secret = slice_str(secret),
				     .names = certified ? b->names : NULL };
}

/* Shows that key or token (NULL: none), and a certificate if `certified`. */
static bool ask(struct bench *b, const char *secret, bool certified)
{
	const struct caller_sources sources = sources_of(b);
	const struct credentials shown = shown_by(b, secret, certified);

	arena_give(&b->arena);
	arena_init(&b->arena, &b->pool, REQUEST_ARENA_MAX);
	return caller_find(&sources, &shown, &b->arena, &b->caller, &b->why);
}

static void each_way_leads_to_its_tenant(void **state)
{
	struct bench *b = *state;

	assert_true(ask(b, KEY, false));
	assert_slice(b->caller.tenant, "acme");
	assert_slice(b->caller.server, "billing");
	for (int again = 0; again < 2; again++) {
		assert_true(ask(b, b->token, false));
		assert_slice(b->caller.tenant, "beta");
		assert_slice(b->caller.server, "crm");
		assert_ptr_equal(b->caller.plan, b->caller.account->plan);
	}
	assert_true(ask(b, NULL, true));
	assert_slice(b->caller.tenant, "gamma");
	assert_slice(b->caller.server, "spiffe://x/gamma");
}

/* Two users of one tenant are told apart, and a key or a certificate is nobody's token. */
static void a_token_says_whom_it_stands_for(void **state)
{
	static const uint8_t nobody[JWT_SUBJECT_BYTES];
	struct bench *b = *state;
	uint8_t first[JWT_SUBJECT_BYTES];
	char *other =
		sign_token(b->tokens.key, TOKEN_HEADER,
			   TOKEN_CLAIMS("\"tenant\":\"beta\",\"azp\":\"crm\",\"sub\":\"ana\""));

	assert_true(ask(b, b->token, false));
	(void)memcpy(first, b->caller.subject, sizeof(first));
	assert_memory_not_equal(first, nobody, sizeof(nobody));
	assert_true(ask(b, other, false));
	assert_memory_not_equal(b->caller.subject, first, sizeof(first));
	assert_true(ask(b, b->token, false)); /* it is remembered */
	assert_memory_equal(b->caller.subject, first, sizeof(first));
	assert_true(ask(b, KEY, false));
	assert_memory_equal(b->caller.subject, nobody, sizeof(nobody));
	assert_true(ask(b, NULL, true));
	assert_memory_equal(b->caller.subject, nobody, sizeof(nobody));
	free(other);
}

/* A token that names what is asked for as its audience, now and before a further attempt. */
static void a_token_for_one_resource_leads_to_its_tenant_there(void **state)
{
	struct bench *b = *state;
	const struct caller_sources sources = sources_of(b);
	char *token = sign_token(b->tokens.key, TOKEN_HEADER,
				 "{\"iss\":\"https://id.example\",\"aud\":\"https://x/mcp/a\","
				 "\"exp\":1790000600,\"tenant\":\"beta\"}");
	struct credentials shown = shown_by(b, token, false);

	shown.resource = SLICE("https://x/mcp/a");
	arena_init(&b->arena, &b->pool, REQUEST_ARENA_MAX);
	assert_true(caller_find(&sources, &shown, &b->arena, &b->caller, &b->why));
	assert_slice(b->caller.tenant, "beta");
	assert_true(caller_find_again(&sources, &shown, &b->caller));
	assert_false(ask(b, token, false));
	assert_int_equal(b->why.token, JWT_AUDIENCE);
	free(token);
}

/* Its connection may be days old. */
static void a_certificate_counts_until_it_expires(void **state)
{
	struct bench *b = *state;

	assert_true(ask(b, NULL, true));
	b->names->good_until_s = TOKEN_NOW;
	assert_false(ask(b, NULL, true));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
}

static void who_shows_something_is_judged_by_it_alone(void **state)
{
	struct bench *b = *state;
	char *expired = sign_token(b->tokens.key, TOKEN_HEADER,
				   "{\"iss\":\"https://id.example\",\"aud\":\"sluice\",\"exp\":1,"
				   "\"tenant\":\"beta\"}");

	assert_true(ask(b, KEY, true));
	assert_slice(b->caller.tenant, "acme");
	assert_true(ask(b, b->token, true));
	assert_slice(b->caller.tenant, "beta");
	assert_false(ask(b, "0123456789abcdef", true));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	assert_false(ask(b, expired, true));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	assert_false(ask(b, "", true));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	assert_false(ask(b, NULL, false));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	free(expired);
}

static void a_token_is_told_why_and_a_key_is_not(void **state)
{
	struct bench *b = *state;
	char *token = strdup(b->token);

	assert_non_null(token);
	char *digit = &token[strlen(token) - 3];
	*digit = *digit == 'A' ? 'B' : 'A';
	assert_false(ask(b, token, false));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	assert_int_equal(b->why.token, JWT_SIGNATURE);
	assert_false(ask(b, "0123456789abcdef", false));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	assert_int_equal(b->why.token, JWT_OK);
	free(token);
}

/* A key is looked for first: one that looks like a token is still a key. */
static void where_no_tokens_are_taken_they_are_keys_that_nobody_has(void **state)
{
	struct bench *b = *state;
	struct jwt_checker *checker = b->tokens.checker;

	b->tokens.checker = NULL;
	assert_false(ask(b, b->token, false));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	assert_int_equal(b->why.token, JWT_OK);
	assert_true(ask(b, KEY, false));
	b->tokens.checker = checker;
	assert_int_equal(jwt_checker_count(checker, JWT_OK), 0);
}

static void a_remembered_key_is_good_as_long_as_the_configuration_has_it(void **state)
{
	struct bench *b = *state;
	struct config without_keys = *b->tokens.rig.config;

	for (int again = 0; again < 2; again++) {
		assert_true(ask(b, KEY, false));
		assert_slice(b->caller.tenant, "acme");
	}
	assert_non_null(key_cache_find(b->keys, SLICE(KEY)));
	without_keys.tenants = (struct tenants){ 0 };
	b->reloaded = &without_keys;
	assert_false(ask(b, KEY, false));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	b->reloaded = NULL;
	assert_true(ask(b, KEY, false));
}

static void a_key_that_nobody_has_is_not_remembered(void **state)
{
	struct bench *b = *state;

	assert_false(ask(b, "0123456789abcdef", false));
	assert_int_equal(b->why.err, ERR_UNAUTHORIZED);
	assert_null(key_cache_find(b->keys, SLICE("0123456789abcdef")));
}

/* Before a further attempt, by the configuration in force then. */
static void a_caller_is_found_again_as_long_as_it_is_the_same(void **state)
{
	struct bench *b = *state;
	struct config without = *b->tokens.rig.config;
	const struct caller_sources sources = sources_of(b);
	const struct credentials shown = shown_by(b, KEY, false);
	const struct tenant *account;
	const struct plan *plan;

	assert_true(ask(b, KEY, false));
	assert_true(caller_find_again(&sources, &shown, &b->caller));
	const struct credentials other = shown_by(b, b->token, false);
	assert_false(caller_find_again(&sources, &other, &b->caller));
	assert_true(caller_account(&b->caller, &without, &account, &plan));
	assert_ptr_equal(account, b->caller.account);
	assert_ptr_equal(plan, b->caller.plan);
	struct tenant *off = calloc(without.tenants.count, sizeof(*off));
	assert_non_null(off);
	for (size_t i = 0; i < without.tenants.count; i++) {
		off[i] = without.tenants.tenants[i];
		off[i].disabled = true;
	}
	without.tenants.tenants = off;
	assert_false(caller_account(&b->caller, &without, &account, &plan));
	free(off);
	without.tenants = (struct tenants){ 0 };
	b->reloaded = &without;
	const struct caller_sources reloaded = sources_of(b);
	assert_false(caller_find_again(&reloaded, &shown, &b->caller));
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FRESH(each_way_leads_to_its_tenant),
		FRESH(a_token_says_whom_it_stands_for),
		FRESH(a_certificate_counts_until_it_expires),
		FRESH(a_token_for_one_resource_leads_to_its_tenant_there),
		FRESH(who_shows_something_is_judged_by_it_alone),
		FRESH(a_token_is_told_why_and_a_key_is_not),
		FRESH(where_no_tokens_are_taken_they_are_keys_that_nobody_has),
		FRESH(a_remembered_key_is_good_as_long_as_the_configuration_has_it),
		FRESH(a_key_that_nobody_has_is_not_remembered),
		FRESH(a_caller_is_found_again_as_long_as_it_is_the_same),
	};

	return cmocka_run_group_tests_name("caller", tests, NULL, NULL);
}
