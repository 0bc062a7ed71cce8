#include "tenants/jwks.h"

#include "tenants/base64url.h"

static const struct json_limits limits = { .depth_max = 16, .keys_max = 256 };

/* A set is an object with "keys" among other members: what comes after that is looked at at the end. */
void jwks_open(struct jwks_reader *reader, struct slice text, struct json_work *work)
{
	struct json_reader *r = &reader->json;
	struct slice key;

	reader->skipped = NULL;
	json_open(r, text, &limits, work);
	if (!json_enter_object(r))
		return;
	while (json_next_key(r, &key)) {
		if (json_str_eq(key, SLICE("keys"))) {
			(void)json_enter_array(r);
			return;
		}
		if (!json_skip(r, NULL))
			return;
	}
	(void)json_fail(r, ERR_JSON, "no member \"keys\"");
}

/* The members that matter, raw and without quotes; absent: not there, or no string. */
struct members {
	struct slice kty, kid, use, alg, crv, n, e, x, y;
	struct slice key_ops; /* any kind */
};

static bool read_member(struct json_reader *r, struct slice key, struct members *out)
{
	const struct {
		struct slice name, *at;
	} texts[] = {
		{ SLICE("kty"), &out->kty }, { SLICE("kid"), &out->kid },
		{ SLICE("use"), &out->use }, { SLICE("alg"), &out->alg },
		{ SLICE("crv"), &out->crv }, { SLICE("n"), &out->n },
		{ SLICE("e"), &out->e },     { SLICE("x"), &out->x },
		{ SLICE("y"), &out->y },
	};

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (json_str_eq(key, texts[i].name))
			return json_string(r, texts[i].at);
	return json_skip(r, json_str_eq(key, SLICE("key_ops")) ? &out->key_ops : NULL);
}

static bool read_members(struct json_reader *r, struct members *out)
{
	struct slice key;

	*out = (struct members){ 0 };
	if (!json_enter_object(r))
		return false;
	while (json_next_key(r, &key))
		if (!read_member(r, key, out))
			return false;
	return r->fault.err == ERR_OK;
}

static bool is(struct slice raw, struct slice plain)
{
	return !slice_absent(raw) && json_str_eq(raw, plain);
}

/* `key_ops`, which was validated, is there and does not list verify. */
static bool for_other_operations(struct slice key_ops)
{
	struct json_reader r;
	struct slice raw;
	bool verify = false;

	if (slice_absent(key_ops))
		return false;
	json_open(&r, key_ops, &limits, NULL);
	if (json_peek(&r) != JSON_ARRAY || !json_enter_array(&r))
		return true;
	while (json_next_item(&r)) {
		if (json_peek(&r) != JSON_STRING || !json_string(&r, &raw))
			return true;
		verify |= json_str_eq(raw, SLICE("verify"));
	}
	return !verify;
}

/* A key is for one algorithm: what it says of itself must agree with what it is. */
static const char *choose_alg(const struct members *m, enum jwt_alg *out)
{
	for (int i = 0; i < JWT_ALGS; i++) {
		const struct jwt_alg_info *info = jwt_alg_info((enum jwt_alg)i);
		if (!is(m->kty, info->kty) || (!slice_absent(info->crv) && !is(m->crv, info->crv)))
			continue;
		if (!slice_absent(m->alg) && !json_str_eq(m->alg, info->name))
			return "it is for another algorithm";
		*out = (enum jwt_alg)i;
		return NULL;
	}
	return "it is of another kind";
}

/* base64url in a JSON string: an escape would be none of its characters. */
static bool number(struct slice raw, uint8_t *out, size_t room, size_t *len)
{
	*len = slice_absent(raw) ? SIZE_MAX : base64url_decode(raw, out, room);
	return *len != SIZE_MAX && *len != 0;
}

static bool read_numbers(const struct members *m, struct jwk *out)
{
	const size_t coordinate = 32;

	out->b_len = 0;
	switch (out->alg) {
	case JWT_RS256:
		return number(m->n, out->a, JWK_NUMBER_MAX, &out->a_len) &&
		       number(m->e, out->b, JWK_EXPONENT_MAX, &out->b_len);
	case JWT_ES256:
		return number(m->x, out->a, coordinate, &out->a_len) && out->a_len == coordinate &&
		       number(m->y, out->b, coordinate, &out->b_len) && out->b_len == coordinate;
	case JWT_EDDSA:
		return number(m->x, out->a, coordinate, &out->a_len) && out->a_len == coordinate;
	case JWT_ALGS:
		break;
	}
	return false;
}

/* NULL when *out is a key that can be tried. */
static const char *make_key(const struct members *m, struct jwk *out)
{
	const char *skipped = choose_alg(m, &out->alg);

	if (skipped != NULL)
		return skipped;
	if (!slice_absent(m->use) && !json_str_eq(m->use, SLICE("sig")))
		return "it is not for signatures";
	if (for_other_operations(m->key_ops))
		return "it is not for verifying";
	const struct slice kid = json_str_fit(m->kid, out->kid, sizeof(out->kid));
	if (kid.len > sizeof(out->kid) || (slice_absent(kid) && m->kid.len != 0))
		return "its kid is over 256 bytes";
	if (kid.len != 0)
		(void)memmove(out->kid, kid.at, kid.len);
	out->kid_len = kid.len;
	return read_numbers(m, out) ? NULL : "its numbers are missing, malformed or too large";
}

/* After the keys: other members, and the end. */
static enum jwks_next finish(struct json_reader *r)
{
	struct slice key;

	while (json_next_key(r, &key))
		if (!json_skip(r, NULL))
			return JWKS_BAD;
	return json_finish(r) ? JWKS_END : JWKS_BAD;
}

enum jwks_next jwks_next(struct jwks_reader *reader, struct jwk *key)
{
	struct members members;

	if (reader->json.fault.err != ERR_OK)
		return JWKS_BAD;
	if (!json_next_item(&reader->json))
		return reader->json.fault.err == ERR_OK ? finish(&reader->json) : JWKS_BAD;
	if (!read_members(&reader->json, &members))
		return JWKS_BAD;
	reader->skipped = make_key(&members, key);
	return reader->skipped == NULL ? JWKS_KEY : JWKS_SKIPPED;
}
