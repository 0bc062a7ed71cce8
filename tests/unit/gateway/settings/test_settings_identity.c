/* identity.jwt: issuers as the checker and the control thread have them. */
#include "tests/unit/gateway/ca_pem.h"
#include "tests/unit/gateway/settings/settings_rig.h"

#define WITH(issuers) "identity: {jwt: [" issuers "]}\n" RIG_PROVIDERS RIG_MODELS
#define ISSUER(rest) "{issuer: \"https://id.example\", audience: sluice, " rest "}"

static void an_issuer_has_its_defaults(void **state)
{
	struct rig rig;

	(void)state;
	rig_load_good(&rig, WITH(ISSUER("jwks: \"https://ID.example/jwks\"")));
	assert_int_equal(rig.config->jwt_issuer_count, 1);
	const struct jwt_issuer *issuer = &rig.config->jwt_issuers[0];
	const struct jwks_place *place = &rig.config->jwks[0];
	assert_slice(issuer->issuer, "https://id.example");
	assert_slice(issuer->audience, "sluice");
	assert_slice(issuer->tenant_claim, "tenant");
	assert_true(slice_absent(issuer->server_claim));
	assert_int_equal(issuer->algorithms, (1 << JWT_ALGS) - 1);
	assert_int_equal(issuer->skew_s, 60);
	assert_int_equal(place->refresh, 300 * SEC);
	assert_slice(place->name, "https://ID.example/jwks|");
	assert_slice(place->path, "/jwks");
	assert_slice(place->endpoint.host, "id.example");
	assert_slice(place->endpoint.authority, "id.example");
	assert_int_equal(place->endpoint.port, 443);
	assert_true(place->endpoint.tls);
	rig_fini(&rig);
}

static void an_issuer_has_what_the_file_says(void **state)
{
	struct rig rig;

	(void)state;
	rig_load_good(&rig,
		      WITH(ISSUER("jwks: \"http://[2001:db8::1]:8080/a/b/\", refresh: 1h, skew: 0s,"
				  " algorithms: [EdDSA, RS256], tenant_claim: \"org.id\","
				  " server_claim: azp")));
	const struct jwt_issuer *issuer = &rig.config->jwt_issuers[0];
	const struct jwks_place *place = &rig.config->jwks[0];
	assert_slice(issuer->tenant_claim, "org.id");
	assert_slice(issuer->server_claim, "azp");
	assert_int_equal(issuer->algorithms, 1 << JWT_EDDSA | 1 << JWT_RS256);
	assert_int_equal(issuer->skew_s, 0);
	assert_int_equal(place->refresh, 3600 * SEC);
	assert_slice(place->path, "/a/b/"); /* the last slash is part of it */
	assert_slice(place->endpoint.host, "2001:db8::1");
	assert_slice(place->endpoint.authority, "[2001:db8::1]:8080");
	assert_false(place->endpoint.tls);
	rig_fini(&rig);
}

static void a_place_without_a_path_is_the_root(void **state)
{
	struct rig rig;

	(void)state;
	rig_load_good(&rig, WITH(ISSUER("jwks: \"https://id.example\"")));
	assert_slice(rig.config->jwks[0].path, "/");
	rig_fini(&rig);
}

static void a_ca_tells_places_apart(void **state)
{
	static const char text[] = WITH(ISSUER("jwks: \"https://id.example/jwks\", ca: ca.pem"));
	const struct config_file files[] = {
		{ SLICE("conf/sluice.yaml"), slice_str(text) },
		{ SLICE("conf/ca.pem"), slice_str(test_ca) },
	};
	struct rig rig;
	uint8_t digest[SHA256_BYTES];
	char expected[128] = "https://id.example/jwks|";

	(void)state;
	rig_load_files(&rig, files, COUNT_OF(files));
	assert_string_equal(rig.problems, "");
	sha256(slice_str(test_ca), digest);
	sha256_hex(digest, 64, expected + strlen(expected));
	assert_slice(rig.config->jwks[0].name, expected);
	assert_slice(rig.config->jwks[0].endpoint.ca_pem, test_ca);
	rig_fini(&rig);
}

static void issuers_may_share_a_place_and_there_may_be_none(void **state)
{
	struct rig rig;

	(void)state;
	rig_load_good(
		&rig,
		WITH(ISSUER(
			"jwks: \"https://id.example/jwks\"") ", {issuer: other, audience: a,"
							     " jwks: \"https://id.example/jwks\", "
							     "refresh: 10s}"));
	assert_int_equal(rig.config->jwt_issuer_count, 2);
	assert_true(slice_eq(rig.config->jwks[0].name, rig.config->jwks[1].name));
	rig_fini(&rig);
	rig_load_good(&rig, WITH(""));
	assert_int_equal(rig.config->jwt_issuer_count, 0);
	rig_fini(&rig);
}

static void every_allocation_may_fail(void **state)
{
	static const char text[] =
		WITH(ISSUER("jwks: \"https://id.example/jwks\", algorithms: [ES256]"));
	(void)state;
	rig_load_without_memory(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_issuer_has_its_defaults),
		cmocka_unit_test(an_issuer_has_what_the_file_says),
		cmocka_unit_test(a_place_without_a_path_is_the_root),
		cmocka_unit_test(a_ca_tells_places_apart),
		cmocka_unit_test(issuers_may_share_a_place_and_there_may_be_none),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("settings_identity", tests, NULL, NULL);
}
