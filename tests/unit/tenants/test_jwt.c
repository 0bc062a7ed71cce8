#include "codec/set.h"
#include "tenants/jwt.h"

#include "tests/support/jwt_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NOW = 1000000 };
#define ALL_ALGS ((UINT32_C(1) << JWT_ALGS) - 1)

static const struct jwt_issuer issuers[] = {
	{ SLICE_INIT("https://id.example"), SLICE_INIT("sluice"), SLICE_INIT("tenant"),
	  SLICE_INIT("azp"), ALL_ALGS, 60 },
	{ SLICE_INIT("ec only"),
	  SLICE_INIT("sluice"),
	  SLICE_INIT("org.name"),
	  { NULL, 0 },
	  UINT32_C(1) << JWT_ES256,
	  0 },
	{ SLICE_INIT("dotted"), SLICE_INIT("sluice"), SLICE_INIT("https://x.example/tenant"),
	  SLICE_INIT("a.b.c"), ALL_ALGS, 0 },
};

struct bench {
	struct json_work *work;
	struct jwt_space space;
	struct jwt_token token;
};

static int set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->work = json_work_new(codec_set_best());
	assert_non_null(b->work);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	json_work_free(b->work);
	free(b);
	return 0;
}

static enum jwt_fault read_for(struct bench *b, struct slice text, struct slice resource)
{
	/* exactly as long, so that ASan sees a byte read too far */
	char *copy = malloc(text.len + (text.len == 0));

	assert_non_null(copy);
	if (text.len != 0)
		(void)memcpy(copy, text.at, text.len);
	const enum jwt_fault fault = jwt_read(slice_of(copy, text.len), issuers, COUNT_OF(issuers),
					      resource, NOW, b->work, &b->space, &b->token);
	if (fault == JWT_OK) /* the one slice of the token itself */
		assert_true(b->token.input.at == copy && b->token.input.len < text.len);
	free(copy);
	return fault;
}

static enum jwt_fault read_text(struct bench *b, struct slice text)
{
	return read_for(b, text, slice_of(NULL, 0));
}

static enum jwt_fault read_parts(struct bench *b, const char *header, const char *claims)
{
	char *input = jwt_text_input(header, claims);
	char *text = jwt_text_join(input, SLICE("signature"));
	const enum jwt_fault fault = read_text(b, slice_str(text));

	free(input);
	free(text);
	return fault;
}

static void expect(const char *name, enum jwt_fault got, enum jwt_fault wanted)
{
	if (got != wanted)
		fail_msg("%s: %s instead of %s", name, got == JWT_OK ? "ok" : jwt_fault_reason(got),
			 wanted == JWT_OK ? "ok" : jwt_fault_reason(wanted));
}

#define HEADER "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"k1\"}"
#define ISS "\"iss\":\"https://id.example\""
#define AUD "\"aud\":\"sluice\""
#define EXP "\"exp\":1000600"
#define TENANT "\"tenant\":\"acme\""

static void a_right_token_is_taken_apart(void **state)
{
	struct bench *b = *state;

	expect("plain",
	       read_parts(b, HEADER, "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":\"billing\"}"),
	       JWT_OK);
	assert_int_equal(b->token.alg, JWT_RS256);
	assert_int_equal(b->token.issuer, 0);
	assert_true(slice_eq(b->token.kid, SLICE("k1")));
	assert_true(slice_eq(b->token.tenant, SLICE("acme")));
	assert_true(slice_eq(b->token.server, SLICE("billing")));
	assert_true(slice_eq(b->token.signature, SLICE("signature")));
	assert_int_equal(b->token.good_until_s, 1000660);
}

/* A token for the resource, by name; JWT_AUDIENCE anywhere else. */
static void an_audience_may_be_the_resource(void **state)
{
	static const struct {
		const char *name, *aud, *resource;
		enum jwt_fault fault;
		bool for_resource;
	} rows[] = {
		{ "the resource", "\"https://x/mcp/a\"", "https://x/mcp/a", JWT_OK, true },
		{ "among others", "[\"y\",\"https://x/mcp/a\"]", "https://x/mcp/a", JWT_OK, true },
		{ "in escapes", "\"https:\\/\\/x\\/mcp/\\u0061\"", "https://x/mcp/a", JWT_OK,
		  true },
		{ "both", "[\"https://x/mcp/a\",\"sluice\"]", "https://x/mcp/a", JWT_OK, false },
		{ "the issuer's", "\"sluice\"", "https://x/mcp/a", JWT_OK, false },
		{ "another server", "\"https://x/mcp/b\"", "https://x/mcp/a", JWT_AUDIENCE, false },
		{ "its beginning", "\"https://x/mcp/\"", "https://x/mcp/a", JWT_AUDIENCE, false },
		{ "longer", "\"https://x/mcp/a/\"", "https://x/mcp/a", JWT_AUDIENCE, false },
		{ "other case", "\"https://X/mcp/a\"", "https://x/mcp/a", JWT_AUDIENCE, false },
		{ "no resource", "\"https://x/mcp/a\"", NULL, JWT_AUDIENCE, false },
		{ "an empty one", "\"\"", NULL, JWT_AUDIENCE, false },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char claims[200];
		(void)snprintf(claims, sizeof(claims), "{" ISS ",\"aud\":%s," EXP "," TENANT "}",
			       rows[i].aud);
		char *input = jwt_text_input(HEADER, claims);
		char *text = jwt_text_join(input, SLICE("signature"));
		const struct slice resource = slice_str(rows[i].resource);
		b->token = (struct jwt_token){ 0 };
		expect(rows[i].name, read_for(b, slice_str(text), resource), rows[i].fault);
		assert_int_equal(b->token.for_resource, rows[i].for_resource);
		free(input);
		free(text);
	}
}

static void headers_are_judged(void **state)
{
	static const struct {
		const char *name, *header;
		enum jwt_fault fault;
	} rows[] = {
		{ "RS256", "{\"alg\":\"RS256\"}", JWT_OK },
		{ "ES256", "{\"alg\":\"ES256\"}", JWT_OK },
		{ "EdDSA", "{\"alg\":\"EdDSA\"}", JWT_OK },
		{ "in escapes", "{\"\\u0061lg\":\"\\u0052S256\"}", JWT_OK },
		{ "an unknown member",
		  "{\"alg\":\"RS256\",\"x5t\":\"abc\",\"jwk\":{\"kty\":\"oct\"}}", JWT_OK },
		{ "a member that names other keys", "{\"alg\":\"RS256\",\"jku\":\"https://evil\"}",
		  JWT_OK },
		{ "none", "{\"alg\":\"none\"}", JWT_ALGORITHM },
		{ "None", "{\"alg\":\"None\"}", JWT_ALGORITHM },
		{ "no alg in capitals", "{\"alg\":\"rs256\"}", JWT_ALGORITHM },
		{ "a MAC", "{\"alg\":\"HS256\"}", JWT_ALGORITHM },
		{ "PSS", "{\"alg\":\"PS256\"}", JWT_ALGORITHM },
		{ "another curve", "{\"alg\":\"ES384\"}", JWT_ALGORITHM },
		{ "a longer hash", "{\"alg\":\"RS512\"}", JWT_ALGORITHM },
		{ "an empty one", "{\"alg\":\"\"}", JWT_ALGORITHM },
		{ "a very long one", "{\"alg\":\"RS256RS256RS256RS256RS256RS256RS256\"}",
		  JWT_ALGORITHM },
		{ "a NUL behind it", "{\"alg\":\"RS256\\u0000\"}", JWT_ALGORITHM },
		{ "no alg", "{\"kid\":\"x\"}", JWT_MALFORMED },
		{ "alg is a number", "{\"alg\":256}", JWT_MALFORMED },
		{ "alg twice", "{\"alg\":\"RS256\",\"alg\":\"ES256\"}", JWT_MALFORMED },
		{ "alg twice, once escaped", "{\"alg\":\"RS256\",\"\\u0061lg\":\"none\"}",
		  JWT_MALFORMED },
		{ "crit", "{\"alg\":\"RS256\",\"crit\":[\"b64\"],\"b64\":false}", JWT_CRITICAL },
		{ "crit that is empty", "{\"alg\":\"RS256\",\"crit\":[]}", JWT_CRITICAL },
		{ "crit that is null", "{\"alg\":\"RS256\",\"crit\":null}", JWT_CRITICAL },
		{ "kid is a number", "{\"alg\":\"RS256\",\"kid\":1}", JWT_MALFORMED },
		{ "kid is empty", "{\"alg\":\"RS256\",\"kid\":\"\"}", JWT_MALFORMED },
		{ "an array", "[\"alg\",\"RS256\"]", JWT_MALFORMED },
		{ "empty", "", JWT_MALFORMED },
		{ "not JSON", "alg=RS256", JWT_MALFORMED },
		{ "text behind it", "{\"alg\":\"RS256\"}x", JWT_MALFORMED },
		{ "not UTF-8", "{\"alg\":\"RS256\",\"kid\":\"\xff\"}", JWT_MALFORMED },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		expect(rows[i].name,
		       read_parts(b, rows[i].header, "{" ISS "," AUD "," EXP "," TENANT "}"),
		       rows[i].fault);
}

static void claims_are_judged(void **state)
{
	static const struct {
		const char *name, *claims;
		enum jwt_fault fault;
	} rows[] = {
		{ "no iss", "{" AUD "," EXP "," TENANT "}", JWT_ISSUER },
		{ "iss is another", "{\"iss\":\"https://id.example/\"," AUD "," EXP "," TENANT "}",
		  JWT_ISSUER },
		{ "iss begins like ours", "{\"iss\":\"https://id\"," AUD "," EXP "," TENANT "}",
		  JWT_ISSUER },
		{ "iss is in escapes",
		  "{\"iss\":\"https:\\/\\/id.example\"," AUD "," EXP "," TENANT "}", JWT_OK },
		{ "iss is an array", "{\"iss\":[\"https://id.example\"]," AUD "}", JWT_MALFORMED },
		{ "iss twice", "{" ISS "," ISS "," AUD "," EXP "," TENANT "}", JWT_MALFORMED },
		{ "no aud", "{" ISS "," EXP "," TENANT "}", JWT_AUDIENCE },
		{ "aud is another", "{" ISS ",\"aud\":\"sluic\"," EXP "," TENANT "}",
		  JWT_AUDIENCE },
		{ "aud among others",
		  "{" ISS ",\"aud\":[\"x\",\"sluice\",\"y\"]," EXP "," TENANT "}", JWT_OK },
		{ "aud is not among others", "{" ISS ",\"aud\":[\"x\",\"y\"]," EXP "," TENANT "}",
		  JWT_AUDIENCE },
		{ "aud is an empty array", "{" ISS ",\"aud\":[]," EXP "," TENANT "}",
		  JWT_AUDIENCE },
		{ "aud has a number", "{" ISS ",\"aud\":[\"sluice\",1]," EXP "," TENANT "}",
		  JWT_AUDIENCE },
		{ "aud is an object", "{" ISS ",\"aud\":{\"sluice\":1}," EXP "," TENANT "}",
		  JWT_AUDIENCE },
		{ "no exp", "{" ISS "," AUD "," TENANT "}", JWT_NO_EXPIRY },
		{ "exp is a text", "{" ISS "," AUD ",\"exp\":\"1000600\"," TENANT "}",
		  JWT_MALFORMED },
		{ "exp is null", "{" ISS "," AUD ",\"exp\":null," TENANT "}", JWT_MALFORMED },
		{ "exp is now, within the skew", "{" ISS "," AUD ",\"exp\":1000000," TENANT "}",
		  JWT_OK },
		{ "exp at the skew's last second", "{" ISS "," AUD ",\"exp\":999941," TENANT "}",
		  JWT_OK },
		{ "exp at the skew's end", "{" ISS "," AUD ",\"exp\":999940," TENANT "}",
		  JWT_EXPIRED },
		{ "exp below 0", "{" ISS "," AUD ",\"exp\":-1e300," TENANT "}", JWT_EXPIRED },
		{ "exp has a fraction", "{" ISS "," AUD ",\"exp\":1000600.75," TENANT "}", JWT_OK },
		{ "exp beyond all times", "{" ISS "," AUD ",\"exp\":1e400," TENANT "}", JWT_OK },
		{ "nbf at the skew's end", "{" ISS "," AUD "," EXP ",\"nbf\":1000060," TENANT "}",
		  JWT_OK },
		{ "nbf behind it", "{" ISS "," AUD "," EXP ",\"nbf\":1000061," TENANT "}",
		  JWT_EARLY },
		{ "nbf beyond all times", "{" ISS "," AUD "," EXP ",\"nbf\":1e400," TENANT "}",
		  JWT_EARLY },
		{ "nbf is a text", "{" ISS "," AUD "," EXP ",\"nbf\":\"0\"," TENANT "}",
		  JWT_MALFORMED },
		{ "iat behind the skew", "{" ISS "," AUD "," EXP ",\"iat\":1000061," TENANT "}",
		  JWT_EARLY },
		{ "no tenant", "{" ISS "," AUD "," EXP "}", JWT_NO_TENANT },
		{ "tenant is empty", "{" ISS "," AUD "," EXP ",\"tenant\":\"\"}", JWT_NO_TENANT },
		{ "tenant is a number", "{" ISS "," AUD "," EXP ",\"tenant\":7}", JWT_NO_TENANT },
		{ "tenant is an array", "{" ISS "," AUD "," EXP ",\"tenant\":[\"acme\"]}",
		  JWT_NO_TENANT },
		{ "tenant twice", "{" ISS "," AUD "," EXP "," TENANT ",\"tenant\":\"other\"}",
		  JWT_MALFORMED },
		{ "tenant twice, once escaped",
		  "{" ISS "," AUD "," EXP "," TENANT ",\"t\\u0065nant\":\"other\"}",
		  JWT_MALFORMED },
		{ "server is a number", "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":1}",
		  JWT_SERVER },
		{ "server is null", "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":null}",
		  JWT_SERVER },
		{ "server is empty", "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":\"\"}",
		  JWT_SERVER },
		{ "server has a space", "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":\"a b\"}",
		  JWT_SERVER },
		{ "server has a quote", "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":\"a\\\"b\"}",
		  JWT_SERVER },
		{ "an array", "[" ISS "]", JWT_MALFORMED },
		{ "too deep",
		  "{" ISS "," AUD "," EXP "," TENANT ",\"x\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}",
		  JWT_MALFORMED },
		{ "an algorithm that is another issuer's",
		  "{\"iss\":\"ec only\"," AUD "," EXP ",\"org\":{\"name\":\"acme\"}}",
		  JWT_ALGORITHM },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		expect(rows[i].name, read_parts(b, HEADER, rows[i].claims), rows[i].fault);
}

/* Tokens of one user by one client have the same subject, whenever they were issued. */
static void a_subject_is_of_issuer_user_and_client(void **state)
{
	static const char *const rows[] = {
		"\"iss\":\"https://id.example\"",
		"\"iss\":\"https://id.example\",\"sub\":\"ana\"",
		"\"iss\":\"https://id.example\",\"sub\":\"bob\"",
		"\"iss\":\"https://id.example\",\"sub\":\"ana\",\"azp\":\"app\"",
		"\"iss\":\"https://id.example\",\"sub\":\"ana\",\"client_id\":\"app\"",
		"\"iss\":\"https://id.example\",\"sub\":\"\"",
		"\"iss\":\"https://id.example\",\"azp\":\"ana\"",
		"\"iss\":\"dotted\",\"sub\":\"ana\"",
	};
	uint8_t subjects[COUNT_OF(rows)][JWT_SUBJECT_BYTES];
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (int later = 0; later < 2; later++) {
			char claims[512];
			(void)snprintf(claims, sizeof(claims),
				       "{\"exp\":200000%d,\"jti\":\"%d\",%s,\"aud\":\"sluice\","
				       "\"tenant\":\"t\","
				       "\"https://x.example/tenant\":\"t\"}",
				       later, later, rows[i]);
			expect(rows[i], read_parts(b, "{\"alg\":\"EdDSA\"}", claims), JWT_OK);
			if (later != 0)
				assert_memory_equal(b->token.subject, subjects[i],
						    JWT_SUBJECT_BYTES);
			(void)memcpy(subjects[i], b->token.subject, JWT_SUBJECT_BYTES);
		}
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(subjects[i], subjects[k], JWT_SUBJECT_BYTES);
}

static void claims_are_found_by_their_whole_name_or_by_a_path(void **state)
{
	static const struct {
		const char *name, *iss, *rest, *tenant, *server; /* tenant NULL: refused */
	} rows[] = {
		{ "a path", "ec only", "\"org\":{\"name\":\"acme\"}", "acme", NULL },
		{ "a name with the path's text", "ec only", "\"org.name\":\"acme\"", "acme", NULL },
		{ "the name comes first", "ec only",
		  "\"org\":{\"name\":\"path\"},\"org.name\":\"whole\"", "whole", NULL },
		{ "a path that ends too early", "ec only", "\"org\":\"acme\"", NULL, NULL },
		{ "a path through an array", "ec only", "\"org\":[{\"name\":\"acme\"}]", NULL,
		  NULL },
		{ "a path to an object", "ec only", "\"org\":{\"name\":{}}", NULL, NULL },
		{ "a name that is a URL", "dotted", "\"https://x.example/tenant\":\"acme\"", "acme",
		  NULL },
		{ "a long path", "dotted",
		  "\"https://x.example/tenant\":\"acme\",\"a\":{\"b\":{\"c\":\"s\"}}", "acme",
		  "s" },
		{ "in escapes", "ec only", "\"org\":{\"n\\u0061me\":\"\\u0061cm\\u00e9\"}",
		  "acm\xc3\xa9", NULL },
	};
	struct bench *b = *state;
	char claims[512];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(claims, sizeof(claims), "{\"iss\":\"%s\"," AUD "," EXP ",%s}",
			       rows[i].iss, rows[i].rest);
		expect(rows[i].name, read_parts(b, "{\"alg\":\"ES256\"}", claims),
		       rows[i].tenant == NULL ? JWT_NO_TENANT : JWT_OK);
		if (rows[i].tenant == NULL)
			continue;
		if (!slice_eq(b->token.tenant, slice_str(rows[i].tenant)) ||
		    slice_absent(b->token.server) != (rows[i].server == NULL) ||
		    !slice_eq(b->token.server, slice_str(rows[i].server)))
			fail_msg("%s: tenant %.*s", rows[i].name, (int)b->token.tenant.len,
				 b->token.tenant.at);
	}
}

static void texts_that_are_no_tokens_are_malformed(void **state)
{
	static const struct {
		const char *name;
		struct slice text;
	} rows[] = {
		{ "nothing", SLICE_INIT("") },
		{ "one part", SLICE_INIT("e30") },
		{ "two parts", SLICE_INIT("e30.e30") },
		{ "four parts", SLICE_INIT("e30.e30.e30.e30") },
		{ "five parts, as of an encrypted one", SLICE_INIT("e30.e30.e30.e30.e30") },
		{ "empty parts", SLICE_INIT("..") },
		{ "padding", SLICE_INIT("e30=.e30.e30") },
		{ "spaces", SLICE_INIT("e30 .e30.e30") },
		{ "a NUL", SLICE_INIT("e30\0.e30.e30") },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		expect(rows[i].name, read_text(b, rows[i].text), JWT_MALFORMED);
}

/* A token of exactly `len` bytes, by a claim that fills it up; to be freed. */
static char *token_of(size_t len)
{
	char *text = NULL;

	for (size_t fill = len / 2; fill < len; fill++) {
		char *claims, *input;
		assert_true(asprintf(&claims, "{" ISS "," AUD "," EXP "," TENANT ",\"x\":\"%0*d\"}",
				     (int)fill, 0) > 0);
		input = jwt_text_input(HEADER, claims);
		free(text);
		text = jwt_text_join(input, SLICE("signature"));
		free(input);
		free(claims);
		if (strlen(text) >= len)
			break;
	}
	return text;
}

static void the_longest_token_fits_and_no_longer_one(void **state)
{
	struct bench *b = *state;
	char *text = token_of(JWT_BYTES_MAX - 1), *long_one = token_of(JWT_BYTES_MAX + 1);

	assert_in_range(strlen(text), JWT_BYTES_MAX - 1, JWT_BYTES_MAX);
	expect("the longest", read_text(b, slice_str(text)), JWT_OK);
	assert_true(strlen(long_one) > JWT_BYTES_MAX);
	expect("longer", read_text(b, slice_str(long_one)), JWT_TOO_LARGE);
	free(text);
	free(long_one);
}

static void names_are_bounded(void **state)
{
	struct bench *b = *state;
	char text[1024];

	for (int over = 0; over <= 1; over++) {
		(void)snprintf(text, sizeof(text), "{\"alg\":\"RS256\",\"kid\":\"%0*d\"}",
			       JWT_KID_MAX + over, 0);
		expect("kid", read_parts(b, text, "{" ISS "," AUD "," EXP "," TENANT "}"),
		       over ? JWT_MALFORMED : JWT_OK);
		(void)snprintf(text, sizeof(text), "{" ISS "," AUD "," EXP ",\"tenant\":\"%0*d\"}",
			       JWT_TENANT_MAX + over, 0);
		expect("tenant", read_parts(b, HEADER, text), over ? JWT_NO_TENANT : JWT_OK);
		(void)snprintf(text, sizeof(text),
			       "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":\"%0*d\"}",
			       JWT_SERVER_MAX + over, 0);
		expect("server", read_parts(b, HEADER, text), over ? JWT_SERVER : JWT_OK);
		(void)snprintf(text, sizeof(text),
			       "{" ISS "," AUD "," EXP "," TENANT ",\"azp\":\"\\u0078%0*d\"}",
			       JWT_SERVER_MAX - 1 + over, 0);
		expect("server with an escape", read_parts(b, HEADER, text),
		       over ? JWT_SERVER : JWT_OK);
	}
}

static void every_fault_has_a_reason_of_its_own(void **state)
{
	(void)state;
	for (int i = JWT_OK + 1; i < JWT_FAULTS; i++) {
		assert_true(strlen(jwt_fault_text((enum jwt_fault)i)) > 10);
		for (int j = JWT_OK + 1; j < i; j++)
			assert_string_not_equal(jwt_fault_reason((enum jwt_fault)i),
						jwt_fault_reason((enum jwt_fault)j));
	}
}

static void only_what_begins_like_a_token_is_looked_at(void **state)
{
	(void)state;
	assert_true(jwt_plausible(SLICE("eyJhbGciOiJSUzI1NiJ9.e30.x")));
	assert_true(jwt_plausible(SLICE("e30..")));
	assert_false(jwt_plausible(SLICE("sk-0123.4567.89")));
	assert_false(jwt_plausible(SLICE("eyJhbGciOiJSUzI1NiJ9.e30")));
	assert_false(jwt_plausible(SLICE("eyJhbGciOiJSUzI1NiJ9")));
	assert_false(jwt_plausible(SLICE("")));
	assert_false(jwt_plausible((struct slice){ NULL, 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_token_is_taken_apart),
		cmocka_unit_test(an_audience_may_be_the_resource),
		cmocka_unit_test(headers_are_judged),
		cmocka_unit_test(claims_are_judged),
		cmocka_unit_test(a_subject_is_of_issuer_user_and_client),
		cmocka_unit_test(claims_are_found_by_their_whole_name_or_by_a_path),
		cmocka_unit_test(texts_that_are_no_tokens_are_malformed),
		cmocka_unit_test(the_longest_token_fits_and_no_longer_one),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(every_fault_has_a_reason_of_its_own),
		cmocka_unit_test(only_what_begins_like_a_token_is_looked_at),
	};

	return cmocka_run_group_tests_name("jwt", tests, set_up, tear_down);
}
