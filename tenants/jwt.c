#include "tenants/jwt.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"
#include "tenants/base64url.h"

/* Nobody's claims are deeper or wider. */
static const struct json_limits limits = { .depth_max = 16, .keys_max = 256 };

/* ---- names ---- */

static const struct jwt_alg_info algs[JWT_ALGS] = {
	[JWT_RS256] = { SLICE_INIT("RS256"), SLICE_INIT("RSA"), { NULL, 0 } },
	[JWT_ES256] = { SLICE_INIT("ES256"), SLICE_INIT("EC"), SLICE_INIT("P-256") },
	[JWT_EDDSA] = { SLICE_INIT("EdDSA"), SLICE_INIT("OKP"), SLICE_INIT("Ed25519") },
};

const struct jwt_alg_info *jwt_alg_info(enum jwt_alg alg)
{
	must((unsigned)alg < JWT_ALGS);
	return &algs[alg];
}

bool jwt_alg_find(struct slice name, enum jwt_alg *out)
{
	for (int i = 0; i < JWT_ALGS; i++)
		if (slice_eq(algs[i].name, name)) {
			*out = (enum jwt_alg)i;
			return true;
		}
	return false;
}

static const struct {
	const char *reason, *text;
} faults[JWT_FAULTS] = {
#define JWT_FAULT(symbol, name, words) [JWT_##symbol] = { name, words },
#include "tenants/tbl/jwt_faults.h"
#undef JWT_FAULT
};

const char *jwt_fault_reason(enum jwt_fault fault)
{
	must(fault != JWT_OK && (unsigned)fault < JWT_FAULTS);
	return faults[fault].reason;
}

const char *jwt_fault_text(enum jwt_fault fault)
{
	must(fault != JWT_OK && (unsigned)fault < JWT_FAULTS);
	return faults[fault].text;
}

/* ---- values ---- */

/* A text's meaning in `buffer` of `room` bytes; absent when it is longer or empty. */
static struct slice plain_text(struct slice raw, char *buffer, size_t room)
{
	const struct slice plain = json_str_fit(raw, buffer, room);

	if (plain.len == 0 || plain.len > room)
		return (struct slice){ NULL, 0 };
	return plain;
}

/* A NumericDate, which may have a fraction (RFC 7519 2), in whole seconds: what is below 0 or beyond
 * all times is brought back. */
static uint64_t numeric_date(struct slice raw)
{
	const double beyond = 1e15, value = json_to_double(raw);

	return value <= 0 ? 0 : value >= beyond ? (uint64_t)beyond : (uint64_t)value;
}

/* Reads a member's value, or skips it. */
typedef bool member_fn(struct json_reader *r, struct slice key, void *out);

/* The whole text, an object; false when it is not JSON, or `take` has failed. */
static bool read_object(struct slice text, struct json_work *work, member_fn *take, void *out)
{
	struct json_reader r;
	struct slice key;

	json_open(&r, text, &limits, work);
	if (!json_enter_object(&r))
		return false;
	while (json_next_key(&r, &key))
		if (!take(&r, key, out))
			return false;
	return json_finish(&r);
}

/* ---- the header ---- */

struct header {
	struct slice alg, kid; /* raw */
	bool critical;
};

static bool header_member(struct json_reader *r, struct slice key, void *arg)
{
	struct header *out = arg;

	if (json_str_eq(key, SLICE("alg")))
		return json_string(r, &out->alg);
	if (json_str_eq(key, SLICE("kid")))
		return json_string(r, &out->kid);
	out->critical |= json_str_eq(key, SLICE("crit"));
	return json_skip(r, NULL);
}

static enum jwt_fault judge_header(struct slice text, struct json_work *work,
				   struct jwt_space *space, struct jwt_token *out)
{
	struct header header = { 0 };
	char name[16]; /* a longer one is none of ours */

	if (!read_object(text, work, header_member, &header) || slice_absent(header.alg))
		return JWT_MALFORMED;
	if (!jwt_alg_find(plain_text(header.alg, name, sizeof(name)), &out->alg))
		return JWT_ALGORITHM;
	if (header.critical)
		return JWT_CRITICAL;
	if (slice_absent(header.kid))
		return JWT_OK;
	out->kid = plain_text(header.kid, space->kid, sizeof(space->kid));
	return slice_absent(out->kid) ? JWT_MALFORMED : JWT_OK;
}

/* ---- the claims ---- */

struct claims {
	struct slice iss, aud, exp, nbf, iat; /* raw; aud a string or an array */
	struct slice sub, azp, client_id;     /* JSON text */
};

static bool claims_member(struct json_reader *r, struct slice key, void *arg)
{
	struct claims *out = arg;

	if (json_str_eq(key, SLICE("iss")))
		return json_string(r, &out->iss);
	if (json_str_eq(key, SLICE("aud")))
		return json_skip(r, &out->aud);
	if (json_str_eq(key, SLICE("exp")))
		return json_number(r, &out->exp);
	if (json_str_eq(key, SLICE("nbf")))
		return json_number(r, &out->nbf);
	if (json_str_eq(key, SLICE("iat")))
		return json_number(r, &out->iat);
	if (json_str_eq(key, SLICE("sub")))
		return json_skip(r, &out->sub);
	if (json_str_eq(key, SLICE("azp")))
		return json_skip(r, &out->azp);
	if (json_str_eq(key, SLICE("client_id")))
		return json_skip(r, &out->client_id);
	return json_skip(r, NULL);
}

/* `aud` was validated: a value of any kind. */
static bool names_audience(struct slice aud, struct slice audience)
{
	struct json_reader r;
	struct slice raw;
	bool found = false;

	if (slice_absent(aud))
		return false;
	json_open(&r, aud, &limits, NULL);
	if (json_peek(&r) == JSON_STRING)
		return json_string(&r, &raw) && json_str_eq(raw, audience);
	if (json_peek(&r) != JSON_ARRAY || !json_enter_array(&r))
		return false;
	while (json_next_item(&r)) {
		if (json_peek(&r) != JSON_STRING || !json_string(&r, &raw))
			return false;
		found |= json_str_eq(raw, audience);
	}
	return found;
}

static enum jwt_fault judge_times(const struct claims *claims, uint64_t skew_s, uint64_t now_s,
				  struct jwt_token *out)
{
	if (slice_absent(claims->exp))
		return JWT_NO_EXPIRY;
	out->good_until_s = numeric_date(claims->exp) + skew_s;
	if (now_s >= out->good_until_s)
		return JWT_EXPIRED;
	if (!slice_absent(claims->nbf) && numeric_date(claims->nbf) > now_s + skew_s)
		return JWT_EARLY;
	if (!slice_absent(claims->iat) && numeric_date(claims->iat) > now_s + skew_s)
		return JWT_EARLY;
	return JWT_OK;
}

static bool find_issuer(const struct jwt_issuer *issuers, uint32_t count, struct slice iss,
			uint32_t *out)
{
	for (uint32_t i = 0; !slice_absent(iss) && i < count; i++)
		if (json_str_eq(iss, issuers[i].issuer)) {
			*out = i;
			return true;
		}
	return false;
}

/* The value of member `name` of the object `text`, which was validated; absent when there is none. */
static struct slice member(struct slice text, struct slice name)
{
	struct json_reader r;
	struct slice key, value = { NULL, 0 };

	json_open(&r, text, &limits, NULL);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return value;
	while (json_next_key(&r, &key)) {
		if (json_str_eq(key, name))
			return json_skip(&r, &value) ? value : (struct slice){ NULL, 0 };
		if (!json_skip(&r, NULL))
			break;
	}
	return value;
}

/* Names such as "https://id.example/tenant" have dots, too: the whole comes first. */
static struct slice find_claim(struct slice claims, struct slice path)
{
	struct slice value = member(claims, path);

	if (!slice_absent(value))
		return value;
	for (value = claims; !slice_absent(path) && !slice_absent(value);)
		value = member(value, slice_cut(&path, '.'));
	return value;
}

/* Its meaning; absent when it is not there, no string, empty or too long. */
static struct slice claim_text(struct slice claims, struct slice path, char *buffer, size_t room)
{
	const struct slice value = find_claim(claims, path);

	if (value.len < 2 || value.at[0] != '"')
		return (struct slice){ NULL, 0 };
	return plain_text(slice_of(value.at + 1, value.len - 2), buffer, room);
}

/* What the configuration would take as one. */
static bool is_name(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.at[i] <= ' ' || text.at[i] > '~' || text.at[i] == '"' ||
		    text.at[i] == '\\')
			return false;
	return text.len != 0;
}

static enum jwt_fault read_names(struct slice claims, const struct jwt_issuer *issuer,
				 struct jwt_space *space, struct jwt_token *out)
{
	out->tenant = claim_text(claims, issuer->tenant_claim, space->tenant, JWT_TENANT_MAX);
	if (slice_absent(out->tenant))
		return JWT_NO_TENANT;
	out->server = (struct slice){ NULL, 0 };
	if (slice_absent(issuer->server_claim) ||
	    slice_absent(find_claim(claims, issuer->server_claim)))
		return JWT_OK;
	/* What is said but cannot be a server must not pass as one that said nothing. */
	out->server = claim_text(claims, issuer->server_claim, space->server, JWT_SERVER_MAX);
	return is_name(out->server) ? JWT_OK : JWT_SERVER;
}

/* Of the texts as they stand: an issuer writes a subject in one way. What is not said is none of them. */
static void digest_subject(const struct claims *claims, struct slice issuer,
			   uint8_t out[JWT_SUBJECT_BYTES])
{
	uint8_t digest[SHA256_BYTES];
	struct sha256_sum sum;

	sha256_begin(&sum);
	sha256_add_text(&sum, issuer);
	sha256_add_text(&sum, claims->sub);
	sha256_add_text(&sum, claims->azp);
	sha256_add_text(&sum, claims->client_id);
	sha256_end(&sum, digest);
	(void)memcpy(out, digest, JWT_SUBJECT_BYTES);
}

static enum jwt_fault judge_claims(struct slice text, const struct jwt_issuer *issuers,
				   uint32_t count, struct slice resource, uint64_t now_s,
				   struct json_work *work, struct jwt_space *space,
				   struct jwt_token *out)
{
	struct claims claims = { 0 };

	if (!read_object(text, work, claims_member, &claims))
		return JWT_MALFORMED;
	if (!find_issuer(issuers, count, claims.iss, &out->issuer))
		return JWT_ISSUER;
	const struct jwt_issuer *issuer = &issuers[out->issuer];
	if ((issuer->algorithms >> out->alg & 1) == 0)
		return JWT_ALGORITHM;
	out->for_resource = !names_audience(claims.aud, issuer->audience);
	if (out->for_resource && (slice_absent(resource) || !names_audience(claims.aud, resource)))
		return JWT_AUDIENCE;
	const enum jwt_fault fault = judge_times(&claims, issuer->skew_s, now_s, out);
	if (fault != JWT_OK)
		return fault;
	digest_subject(&claims, issuer->issuer, out->subject);
	return read_names(text, issuer, space, out);
}

/* ---- the token ---- */

bool jwt_plausible(struct slice text)
{
	struct slice rest = text;

	/* 'e' is what base64 makes of an object's brace. */
	return text.len != 0 && text.at[0] == 'e' && !slice_absent(slice_cut(&rest, '.')) &&
	       !slice_absent(slice_cut(&rest, '.')) && !slice_absent(rest);
}

/* Decodes a part behind the `used` bytes of the space. Three fit: they become shorter. */
static bool decode_part(struct slice part, struct jwt_space *space, size_t *used, struct slice *out)
{
	char *at = space->parts + *used;
	const size_t len = base64url_decode(part, at, sizeof(space->parts) - *used);

	if (len == SIZE_MAX)
		return false;
	*out = slice_of(at, len);
	*used += len;
	return true;
}

enum jwt_fault jwt_read(struct slice token, const struct jwt_issuer *issuers, uint32_t count,
			struct slice resource, uint64_t now_s, struct json_work *work,
			struct jwt_space *space, struct jwt_token *out)
{
	struct slice rest = token, header, claims;
	struct jwt_token read = { 0 };
	size_t used = 0;

	if (token.len > JWT_BYTES_MAX)
		return JWT_TOO_LARGE;
	const struct slice first = slice_cut(&rest, '.'), second = slice_cut(&rest, '.');
	if (slice_absent(rest) || !decode_part(first, space, &used, &header) ||
	    !decode_part(second, space, &used, &claims) ||
	    !decode_part(rest, space, &used,
			 &read.signature)) /* a fourth part has a dot before it */
		return JWT_MALFORMED;
	read.input = slice_of(token.at, first.len + 1 + second.len);
	enum jwt_fault fault = judge_header(header, work, space, &read);
	if (fault == JWT_OK)
		fault = judge_claims(claims, issuers, count, resource, now_s, work, space, &read);
	if (fault == JWT_OK)
		*out = read;
	return fault;
}
