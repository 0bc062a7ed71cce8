/* Tokens and key sets. What is read lies where it should, and means the same the second time. The first
 * byte says which of the two the rest is; a token's parts may come plain (a header and claims that no
 * mutation of base64 would find) or as they are sent. */
#include "codec/base/must.h"
#include "codec/set.h"
#include "tenants/jwks.h"
#include "tests/support/jwt_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1000000 };

static const struct jwt_issuer issuers[] = {
	{ SLICE_INIT("i"), SLICE_INIT("a"), SLICE_INIT("t"), SLICE_INIT("s.u"), 7, 60 },
	{ SLICE_INIT("j"), SLICE_INIT("a"), SLICE_INIT("o.t"), { NULL, 0 }, 1, 0 },
};

static bool inside(struct slice part, const void *begin, size_t len)
{
	const char *at = begin;

	return part.at >= at && part.at + part.len <= at + len;
}

static void check(const struct jwt_token *token, const struct jwt_space *space, struct slice text)
{
	must(token->issuer < COUNT_OF(issuers) && token->alg < JWT_ALGS);
	must((issuers[token->issuer].algorithms >> token->alg & 1) == 1);
	must(token->good_until_s > NOW);
	must(token->input.at == text.at && token->input.len < text.len);
	must(inside(token->signature, space->parts, sizeof(space->parts)));
	must(token->tenant.len >= 1 && token->tenant.len <= JWT_TENANT_MAX);
	must(inside(token->tenant, space, sizeof(*space)));
	must(slice_absent(token->kid) || inside(token->kid, space, sizeof(*space)));
	must(slice_absent(token->server) ||
	     (token->server.len <= JWT_SERVER_MAX && inside(token->server, space, sizeof(*space))));
}

static void read_token(struct slice text, struct json_work *work)
{
	static struct jwt_space space, other;
	struct jwt_token token, again;
	const struct slice resource = SLICE("r"), none = { NULL, 0 };
	const enum jwt_fault fault =
		jwt_read(text, issuers, COUNT_OF(issuers), resource, NOW, work, &space, &token);

	must((unsigned)fault < JWT_FAULTS);
	must(jwt_read(text, issuers, COUNT_OF(issuers), resource, NOW, work, &other, &again) ==
	     fault);
	if (fault != JWT_OK)
		return;
	/* Nothing but the audience is another one's without the resource. */
	must(jwt_read(text, issuers, COUNT_OF(issuers), none, NOW, work, &other, &again) ==
	     (token.for_resource ? JWT_AUDIENCE : JWT_OK));
	must(jwt_read(text, issuers, COUNT_OF(issuers), resource, NOW, work, &other, &again) ==
	     JWT_OK);
	check(&token, &space, text);
	must(slice_eq(token.tenant, again.tenant) && slice_eq(token.server, again.server) &&
	     slice_eq(token.kid, again.kid) && token.good_until_s == again.good_until_s);
}

/* "header|claims", in the clear. */
static void read_plain(struct slice text, struct json_work *work)
{
	const struct slice header = slice_cut(&text, '|');
	char *first = jwt_text_base64url(header);
	char *second = jwt_text_base64url(slice_absent(text) ? SLICE("") : text), *token;

	must(asprintf(&token, "%s.%s.c2ln", first, second) > 0);
	read_token(slice_str(token), work);
	free(token);
	free(first);
	free(second);
}

static void read_set(struct slice text, struct json_work *work)
{
	struct jwks_reader reader;
	struct jwk key;

	for (jwks_open(&reader, text, work);;) {
		switch (jwks_next(&reader, &key)) {
		case JWKS_KEY:
			must(key.alg < JWT_ALGS && key.kid_len <= JWT_KID_MAX);
			must(key.a_len >= 1 && key.a_len <= JWK_NUMBER_MAX);
			must(key.b_len <= JWK_NUMBER_MAX);
			must(key.alg == JWT_RS256 || key.a_len == 32);
			break;
		case JWKS_SKIPPED:
			must(reader.skipped != NULL);
			break;
		case JWKS_END:
			must(json_valid(text, NULL, work, NULL));
			return;
		case JWKS_BAD:
			must(reader.json.fault.err != ERR_OK);
			return;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work;

	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	if (size == 0)
		return 0;
	const struct slice text = slice_of((const char *)data + 1, size - 1);
	if (data[0] == 'T')
		read_token(text, work);
	else if (data[0] == 'P')
		read_plain(text, work);
	else
		read_set(text, work);
	return 0;
}
