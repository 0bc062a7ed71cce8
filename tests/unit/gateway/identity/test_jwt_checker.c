#include "gateway/identity/jwt_checker.h"

#include "tests/unit/gateway/token_rig.h"

static int set_up(void **state)
{
	struct token_rig *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	token_rig_init(t, TOKEN_CONFIG("{id: acme, names: [acme, org-1]}, {id: plain}, "
				       "{id: gone, disabled: true}"));
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	token_rig_fini(*state);
	free(*state);
	return 0;
}

static enum jwt_fault ask_at(struct token_rig *t, const char *token, uint64_t now_s,
			     struct jwt_caller *out)
{
	return jwt_checker_ask(t->checker, slice_str(token), slice_of(NULL, 0), now_s, t->work,
			       NULL, out);
}

static void expect(struct token_rig *t, const char *token, enum jwt_fault wanted)
{
	struct jwt_caller caller;
	const enum jwt_fault got = ask_at(t, token, TOKEN_NOW, &caller);

	if (got != wanted)
		fail_msg("%s instead of %s", got == JWT_OK ? "ok" : jwt_fault_reason(got),
			 wanted == JWT_OK ? "ok" : jwt_fault_reason(wanted));
}

static char *token_for(struct token_rig *t, const char *claims)
{
	return sign_token(t->key, TOKEN_HEADER, claims);
}

static void names_lead_to_their_tenant(void **state)
{
	static const struct {
		const char *claims, *tenant, *server; /* tenant NULL: nobody */
	} rows[] = {
		{ TOKEN_CLAIMS("\"tenant\":\"acme\""), "acme", NULL },
		{ TOKEN_CLAIMS("\"tenant\":\"org-1\",\"azp\":\"billing\""), "acme", "billing" },
		{ TOKEN_CLAIMS("\"tenant\":\"plain\""), "plain", NULL },
		{ TOKEN_CLAIMS("\"tenant\":\"Plain\""), NULL, NULL },
		{ TOKEN_CLAIMS("\"tenant\":\"gone\""), NULL, NULL },
		{ TOKEN_CLAIMS("\"tenant\":\"nobody\""), NULL, NULL },
	};
	struct token_rig *t = *state;
	struct jwt_caller caller;

	token_rig_tell(t, t->key);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char *token = token_for(t, rows[i].claims);
		if (rows[i].tenant == NULL) {
			expect(t, token, JWT_TENANT_UNKNOWN);
			free(token);
			continue;
		}
		for (int again = 0; again < 2; again++) {
			assert_int_equal(ask_at(t, token, TOKEN_NOW, &caller), JWT_OK);
			assert_slice(caller.tenant->id, rows[i].tenant);
			assert_int_equal(slice_absent(caller.server), rows[i].server == NULL);
			if (rows[i].server != NULL)
				assert_slice(caller.server, rows[i].server);
		}
		free(token);
	}
}

static void a_signature_is_checked_once(void **state)
{
	struct token_rig *t = *state;
	char *token = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\""));
	struct jwt_caller caller;

	token_rig_tell(t, t->key);
	for (int i = 0; i < 5; i++)
		expect(t, token, JWT_OK);
	assert_int_equal(jwt_checker_count(t->checker, JWT_OK), 1);
	assert_int_equal(jwt_checker_count(t->checker, JWT_REMEMBERED), 4);
	assert_int_equal(ask_at(t, token, TOKEN_NOW + 599, &caller), JWT_OK);
	assert_int_equal(ask_at(t, token, TOKEN_NOW + 600, &caller), JWT_EXPIRED);
	free(token);
}

static enum jwt_fault ask_for(struct token_rig *t, const char *token, const char *resource)
{
	struct jwt_caller caller;

	return jwt_checker_ask(t->checker, slice_str(token), slice_str(resource), TOKEN_NOW,
			       t->work, NULL, &caller);
}

/* Also once its signature is remembered. */
static void a_token_for_one_resource_is_good_there_alone(void **state)
{
	struct token_rig *t = *state;
	char *token = token_for(t, "{\"iss\":\"https://id.example\",\"aud\":[\"u/a\",\"u/b\"],"
				   "\"exp\":1790000600,\"tenant\":\"acme\"}");
	char *wide = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\""));

	token_rig_tell(t, t->key);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(ask_for(t, token, NULL), JWT_AUDIENCE);
		assert_int_equal(ask_for(t, token, "u/a"), JWT_OK);
		assert_int_equal(ask_for(t, token, "u/b"), JWT_OK);
		assert_int_equal(ask_for(t, token, "u/c"), JWT_AUDIENCE);
		assert_int_equal(ask_for(t, token, ""), JWT_AUDIENCE);
		assert_int_equal(ask_for(t, wide, "u/a"), JWT_OK);
		assert_int_equal(ask_for(t, wide, NULL), JWT_OK);
	}
	assert_int_equal(jwt_checker_count(t->checker, JWT_OK), 3);
	assert_int_equal(jwt_checker_count(t->checker, JWT_REMEMBERED), 5);
	free(token);
	free(wide);
}

static void without_keys_there_is_nobody_and_nobody_is_asked(void **state)
{
	struct token_rig *t = *state;
	char *token = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\""));
	struct jwt_keys *none = NULL;

	expect(t, token, JWT_NO_KEYS);
	token_rig_tell(t, t->key);
	expect(t, token, JWT_OK);
	jwt_checker_set_keys(t->checker, SLICE(TOKEN_PLACE), &none);
	expect(t, token, JWT_NO_KEYS);
	assert_int_equal(jwt_checker_take_refetches(t->checker), 0);
	assert_int_equal(jwt_checker_count(t->checker, JWT_NO_KEYS), 2);
	free(token);
}

static void an_unknown_key_asks_for_a_refetch(void **state)
{
	struct token_rig *t = *state;
	char *token = sign_token(t->key, "{\"alg\":\"EdDSA\",\"kid\":\"new\"}",
				 TOKEN_CLAIMS("\"tenant\":\"acme\""));

	token_rig_tell(t, t->key);
	expect(t, token, JWT_KEY_UNKNOWN);
	expect(t, token, JWT_KEY_UNKNOWN);
	assert_int_equal(jwt_checker_take_refetches(t->checker), 1);
	assert_int_equal(jwt_checker_take_refetches(t->checker), 0);
	free(token);
}

static void a_wrong_signature_asks_for_none(void **state)
{
	struct token_rig *t = *state;
	EVP_PKEY *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	char *token = sign_token(other, TOKEN_HEADER, TOKEN_CLAIMS("\"tenant\":\"acme\""));

	token_rig_tell(t, t->key);
	expect(t, token, JWT_SIGNATURE);
	assert_int_equal(jwt_checker_take_refetches(t->checker), 0);
	EVP_PKEY_free(other);
	free(token);
}

static void a_wrong_signature_is_checked_once_until_the_keys_change(void **state)
{
	struct token_rig *t = *state;
	EVP_PKEY *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	char *token = sign_token(other, TOKEN_HEADER, TOKEN_CLAIMS("\"tenant\":\"acme\""));
	struct jwt_caller caller;

	token_rig_tell(t, t->key);
	for (int i = 0; i < 2000; i++) /* far more than are looked at in a second */
		expect(t, token, JWT_SIGNATURE);
	char *right = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\""));
	expect(t, right, JWT_OK);
	assert_int_equal(ask_at(t, token, TOKEN_NOW + 600, &caller), JWT_EXPIRED);
	token_rig_tell(t, other);
	expect(t, token, JWT_OK);
	EVP_PKEY_free(other);
	free(right);
	free(token);
}

static void a_token_of_nobody_s_tenant_is_checked_once_until_the_configuration_changes(void **state)
{
	static const char *const tenants[] = { "nobody", "gone" };
	struct token_rig *t = *state;
	struct rig next;
	struct jwt_caller caller;
	char *tokens[COUNT_OF(tenants)], claims[200];

	token_rig_tell(t, t->key);
	for (size_t n = 0; n < COUNT_OF(tenants); n++) {
		(void)snprintf(claims, sizeof(claims), TOKEN_CLAIMS("\"tenant\":\"%s\""),
			       tenants[n]);
		tokens[n] = token_for(t, claims);
		for (int i = 0; i < 2000; i++) /* more signatures than are looked at in a second */
			expect(t, tokens[n], JWT_TENANT_UNKNOWN);
		assert_int_equal(ask_at(t, tokens[n], TOKEN_NOW + 600, &caller), JWT_EXPIRED);
	}
	rig_load_good(&next, TOKEN_CONFIG("{id: nobody}, {id: gone}"));
	jwt_checker_use_config(t->checker, next.config);
	rig_fini(&t->rig);
	t->rig = next;
	for (size_t n = 0; n < COUNT_OF(tenants); n++) {
		assert_int_equal(ask_at(t, tokens[n], TOKEN_NOW, &caller), JWT_OK);
		assert_slice(caller.tenant->id, tenants[n]);
		free(tokens[n]);
	}
}

static void only_so_many_wrong_signatures_are_looked_at_in_a_second(void **state)
{
	struct token_rig *t = *state;
	EVP_PKEY *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	char *known = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\"")), claims[256];
	char *fresh = token_for(t, TOKEN_CLAIMS("\"tenant\":\"plain\""));
	struct jwt_caller caller;
	uint32_t wrong = 0, busy = 0;

	token_rig_tell(t, t->key);
	expect(t, known, JWT_OK);
	for (int i = 0; i < 600; i++) {
		(void)snprintf(claims, sizeof(claims),
			       TOKEN_CLAIMS("\"tenant\":\"acme\",\"jti\":%d"), i);
		char *token = sign_token(other, TOKEN_HEADER, claims);
		const enum jwt_fault fault = ask_at(t, token, TOKEN_NOW, &caller);
		wrong += fault == JWT_SIGNATURE;
		busy += fault == JWT_BUSY;
		free(token);
	}
	assert_int_equal(wrong, 500);
	assert_int_equal(busy, 100);
	expect(t, known, JWT_OK); /* remembered ones do not notice */
	expect(t, fresh, JWT_BUSY);
	assert_int_equal(ask_at(t, fresh, TOKEN_NOW + 1, &caller), JWT_OK);
	EVP_PKEY_free(other);
	free(fresh);
	free(known);
}

/* So many of `count` tokens that key signs for that tenant, the first of them number `first`, all of them wrong,
 * are looked at for that connection. */
static uint32_t looked_at(struct token_rig *t, EVP_PKEY *key, const char *tenant, int first,
			  int count, uint64_t now_s, struct tally *connection)
{
	const enum jwt_fault wanted = key == t->key ? JWT_TENANT_UNKNOWN : JWT_SIGNATURE;
	char claims[200];
	struct jwt_caller caller;
	uint32_t wrong = 0;

	for (int i = first; i < first + count; i++) {
		(void)snprintf(claims, sizeof(claims), TOKEN_CLAIMS("\"tenant\":\"%s\",\"jti\":%d"),
			       tenant, i);
		char *token = sign_token(key, TOKEN_HEADER, claims);
		const enum jwt_fault fault =
			jwt_checker_ask(t->checker, slice_str(token), slice_of(NULL, 0), now_s,
					t->work, connection, &caller);
		assert_true(fault == wanted || fault == JWT_BUSY);
		wrong += fault == wanted;
		free(token);
	}
	return wrong;
}

static void wrong_tokens_are_bounded_by_connection_too(void **state)
{
	struct token_rig *t = *state;
	EVP_PKEY *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	struct tally a = { 0 }, b = { 0 };
	struct jwt_caller caller;
	char *good = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\""));

	token_rig_tell(t, t->key);
	assert_int_equal(looked_at(t, other, "acme", 0, 30, TOKEN_NOW, &a), 16);
	assert_int_equal(looked_at(t, other, "acme", 100, 30, TOKEN_NOW, &a), 0);
	assert_int_equal(looked_at(t, other, "acme", 200, 30, TOKEN_NOW, &b), 16);
	assert_int_equal(jwt_checker_ask(t->checker, slice_str(good), slice_of(NULL, 0), TOKEN_NOW,
					 t->work, &a, &caller),
			 JWT_BUSY);
	assert_int_equal(jwt_checker_ask(t->checker, slice_str(good), slice_of(NULL, 0), TOKEN_NOW,
					 t->work, NULL, &caller),
			 JWT_OK);
	assert_int_equal(jwt_checker_ask(t->checker, slice_str(good), slice_of(NULL, 0), TOKEN_NOW,
					 t->work, &a, &caller),
			 JWT_OK); /* it is remembered */
	assert_int_equal(looked_at(t, other, "acme", 300, 30, TOKEN_NOW + 1, &a), 16);
	/* those of nobody's tenant by all connections together: nobody guesses there, and one may be a proxy's */
	assert_int_equal(looked_at(t, t->key, "nobody", 400, 600, TOKEN_NOW + 2, &a), 500);
	assert_int_equal(looked_at(t, t->key, "gone", 1000, 30, TOKEN_NOW + 2, &b), 0);
	EVP_PKEY_free(other);
	free(good);
}

static void another_set_of_keys_ends_what_the_last_one_let_in(void **state)
{
	struct token_rig *t = *state;
	EVP_PKEY *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	char *token = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\""));

	token_rig_tell(t, t->key);
	expect(t, token, JWT_OK);
	token_rig_tell(t, other);
	expect(t, token, JWT_SIGNATURE);
	EVP_PKEY_free(other);
	free(token);
}

static void another_configuration_ends_what_the_last_one_let_in_and_keeps_the_keys(void **state)
{
	struct token_rig *t = *state;
	struct rig next, last;
	char *token = token_for(t, TOKEN_CLAIMS("\"tenant\":\"acme\""));
	struct jwt_caller caller;

	token_rig_tell(t, t->key);
	expect(t, token, JWT_OK);
	rig_load_good(&next, TOKEN_CONFIG("{id: x}, {id: acme}"));
	jwt_checker_use_config(t->checker, next.config);
	rig_fini(&t->rig); /* nothing of it is read any more */
	assert_int_equal(ask_at(t, token, TOKEN_NOW, &caller), JWT_OK);
	assert_ptr_equal(caller.tenant, tenants_by_id(&next.config->tenants, SLICE("acme")));
	rig_load_good(&last, "listen: [{address: \"127.0.0.1:8080\"}]\n" RIG_PROVIDERS RIG_MODELS);
	jwt_checker_use_config(t->checker, last.config);
	rig_fini(&next);
	assert_int_equal(ask_at(t, token, TOKEN_NOW, &caller), JWT_ISSUER);
	t->rig = last;
	free(token);
}

static void keys_of_a_place_that_nobody_has_are_let_go_of(void **state)
{
	struct token_rig *t = *state;
	char problem[160];
	struct jwt_keys *keys =
		jwt_keys_new(SLICE("{\"keys\":[]}"), t->work, NULL, problem, sizeof(problem));

	assert_non_null(keys);
	jwt_checker_set_keys(t->checker, SLICE("https://other.example/jwks|"), &keys);
	assert_null(keys); /* LeakSanitizer would tell */
}

static void every_result_has_a_label(void **state)
{
	(void)state;
	assert_string_equal(jwt_result_name(JWT_OK), "verified");
	assert_string_equal(jwt_result_name(JWT_EXPIRED), "expired");
	assert_string_equal(jwt_result_name(JWT_REMEMBERED), "remembered");
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FRESH(names_lead_to_their_tenant),
		FRESH(a_signature_is_checked_once),
		FRESH(a_token_for_one_resource_is_good_there_alone),
		FRESH(without_keys_there_is_nobody_and_nobody_is_asked),
		FRESH(an_unknown_key_asks_for_a_refetch),
		FRESH(a_wrong_signature_asks_for_none),
		FRESH(a_wrong_signature_is_checked_once_until_the_keys_change),
		FRESH(a_token_of_nobody_s_tenant_is_checked_once_until_the_configuration_changes),
		FRESH(only_so_many_wrong_signatures_are_looked_at_in_a_second),
		FRESH(wrong_tokens_are_bounded_by_connection_too),
		FRESH(another_set_of_keys_ends_what_the_last_one_let_in),
		FRESH(another_configuration_ends_what_the_last_one_let_in_and_keeps_the_keys),
		FRESH(keys_of_a_place_that_nobody_has_are_let_go_of),
		FRESH(every_result_has_a_label),
	};

	return cmocka_run_group_tests_name("jwt_checker", tests, NULL, NULL);
}
