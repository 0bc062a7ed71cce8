/* token_rig.h - a configuration with an issuer, and that issuer's key. */
#ifndef TESTS_UNIT_GATEWAY_TOKEN_RIG_H
#define TESTS_UNIT_GATEWAY_TOKEN_RIG_H

#include "codec/set.h"
#include "gateway/identity/jwt_checker.h"
#include "tests/unit/gateway/identity/jwt_rig.h"
#include "tests/unit/gateway/settings/settings_rig.h"

enum { TOKEN_NOW = 1790000000 };

#define TOKEN_PLACE "https://id.example/jwks|"
#define TOKEN_HEADER "{\"alg\":\"EdDSA\",\"kid\":\"k\"}"
/* Claims of a token that is good for ten minutes; `rest` follows. */
#define TOKEN_CLAIMS(rest) \
	"{\"iss\":\"https://id.example\",\"aud\":\"sluice\",\"exp\":1790000600," rest "}"

#define TOKEN_CONFIG(tenants)                                                        \
	"listen: [{address: \"127.0.0.1:8080\"}]\n"                                  \
	"identity: {jwt: [{issuer: \"https://id.example\", audience: sluice, jwks: " \
	"\"https://id.example/jwks\", server_claim: azp, skew: 0s},"                 \
	" {issuer: \"https://no.example\", audience: sluice, jwks: "                 \
	"\"https://no.example/jwks\"}]}\n" RIG_PROVIDERS RIG_MODELS "tenants: [" tenants "]\n"

struct token_rig {
	struct rig rig;
	struct json_work *work;
	struct jwt_checker *checker;
	EVP_PKEY *key;
};

/* The public half of `key` as "k", told as what lies at the issuer's place. */
static inline void token_rig_tell(struct token_rig *t, const EVP_PKEY *key)
{
	char problem[160], *jwk = jwk_of(key, "\"kid\":\"k\""), *text;

	assert_true(asprintf(&text, "{\"keys\":[%s]}", jwk) > 0);
	struct jwt_keys *keys =
		jwt_keys_new(slice_str(text), t->work, NULL, problem, sizeof(problem));
	assert_non_null(keys);
	jwt_checker_set_keys(t->checker, SLICE(TOKEN_PLACE), &keys);
	assert_null(keys);
	free(text);
	free(jwk);
}

static inline void token_rig_init(struct token_rig *t, const char *config)
{
	rig_load_good(&t->rig, config);
	t->work = json_work_new(codec_set_best());
	t->checker = jwt_checker_new();
	t->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	assert_true(t->work != NULL && t->checker != NULL && t->key != NULL);
	jwt_checker_use_config(t->checker, t->rig.config);
}

static inline void token_rig_fini(struct token_rig *t)
{
	jwt_checker_free(t->checker);
	EVP_PKEY_free(t->key);
	json_work_free(t->work);
	rig_fini(&t->rig);
}

#endif
