#include "gateway/identity/seal.h"

#include "codec/base/must.h"
#include "tenants/base64url.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	SEAL_MAGIC = 0x5345414c,
	VERSION = 1,
	ID_BYTES = 4,
	NONCE_BYTES = 24,
	HALF = NONCE_BYTES / 2,
	TAG_BYTES = 16,
	BLOCK = 16,
	KEY_BYTES = 32,
	/* The parts of a sealed text. */
	AT_ID = 1,
	AT_NONCE = AT_ID + ID_BYTES,
	AT_CIPHER = AT_NONCE + NONCE_BYTES,
};

_Static_assert(AT_CIPHER + TAG_BYTES == SEAL_OVERHEAD, "all parts are counted");

struct key {
	uint8_t id[ID_BYTES];
	uint8_t mask[BLOCK]; /* K1 of XAES-256-GCM, which is that of CMAC */
	EVP_CIPHER_CTX *aes; /* under the key that the secret was made into */
};

struct seal {
	uint32_t magic;
	uint32_t count;
	EVP_CIPHER_CTX *lock, *unlock; /* AES-256-GCM; a key for each text */
	uint8_t bytes[SEAL_OVERHEAD + SEAL_PLAIN_MAX];
	struct key keys[];
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* `len` bytes made of the secret for `use`. */
static bool derive(EVP_KDF_CTX *hkdf, const struct seal_secret *secret, const char *use, void *out,
		   size_t len)
{
	char digest[] = "SHA256";
	uint8_t material[SEAL_SECRET_BYTES];
	char info[32];

	(void)memcpy(material, secret->at, sizeof(material));
	must(strlen(use) < sizeof(info));
	(void)strcpy(info, use);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, material, sizeof(material)),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, strlen(info)),
		OSSL_PARAM_construct_end(),
	};
	const bool made = EVP_KDF_derive(hkdf, out, len, params) == 1;
	OPENSSL_cleanse(material, sizeof(material));
	return made;
}

static void encrypt_blocks(EVP_CIPHER_CTX *aes, const uint8_t *in, uint8_t *out, int len)
{
	int written = 0;

	must(EVP_EncryptUpdate(aes, out, &written, in, len) == 1 && written == len);
}

/* A block of zeros, encrypted and doubled in GF(2^128). */
static void make_mask(struct key *key)
{
	const uint8_t zeros[BLOCK] = { 0 };
	uint8_t *mask = key->mask;

	encrypt_blocks(key->aes, zeros, mask, BLOCK);
	const uint8_t carry = mask[0] >> 7;
	for (size_t i = 0; i + 1 < BLOCK; i++)
		mask[i] = (uint8_t)(mask[i] << 1 | mask[i + 1] >> 7);
	mask[BLOCK - 1] = (uint8_t)(mask[BLOCK - 1] << 1 ^ carry * 0x87);
}

static bool make_key(EVP_KDF_CTX *hkdf, const struct seal_secret *secret, struct key *key)
{
	uint8_t cipher[KEY_BYTES];
	bool made = derive(hkdf, secret, "sluice seal id", key->id, sizeof(key->id)) &&
		    derive(hkdf, secret, "sluice seal key", cipher, sizeof(cipher));

	key->aes = EVP_CIPHER_CTX_new();
	made = made && key->aes != NULL &&
	       EVP_EncryptInit_ex(key->aes, EVP_aes_256_ecb(), NULL, cipher, NULL) == 1 &&
	       EVP_CIPHER_CTX_set_padding(key->aes, 0) == 1;
	OPENSSL_cleanse(cipher, sizeof(cipher));
	if (made)
		make_mask(key);
	return made;
}

static bool make_keys(struct seal *seal, const struct seal_secret *secrets, uint32_t count)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *hkdf = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
	bool made = hkdf != NULL;

	while (made && seal->count < count) {
		made = make_key(hkdf, &secrets[seal->count], &seal->keys[seal->count]);
		seal->count++; /* also when it failed: what there is of it is freed */
	}
	EVP_KDF_CTX_free(hkdf);
	EVP_KDF_free(kdf);
	return made;
}

struct seal *seal_new(const struct seal_secret *secrets, uint32_t count)
{
	must(count >= 1 && count <= SEAL_SECRETS_MAX);
	struct seal *seal = calloc(1, sizeof(*seal) + count * sizeof(seal->keys[0]));
	if (seal == NULL)
		return NULL;
	seal->magic = SEAL_MAGIC;
	seal->lock = EVP_CIPHER_CTX_new();
	seal->unlock = EVP_CIPHER_CTX_new();
	if (seal->lock == NULL || seal->unlock == NULL ||
	    EVP_EncryptInit_ex(seal->lock, EVP_aes_256_gcm(), NULL, NULL, NULL) != 1 ||
	    EVP_DecryptInit_ex(seal->unlock, EVP_aes_256_gcm(), NULL, NULL, NULL) != 1 ||
	    !make_keys(seal, secrets, count)) {
		seal_free(seal);
		seal = NULL;
	}
	ERR_clear_error();
	return seal;
}

void seal_free(struct seal *seal)
{
	if (seal == NULL)
		return;
	must_obj(seal, SEAL_MAGIC);
	for (uint32_t i = 0; i < seal->count; i++)
		EVP_CIPHER_CTX_free(seal->keys[i].aes);
	EVP_CIPHER_CTX_free(seal->lock);
	EVP_CIPHER_CTX_free(seal->unlock);
	OPENSSL_cleanse(seal, sizeof(*seal) + seal->count * sizeof(seal->keys[0]));
	free(seal);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The key of one text, by the first half of its nonce: XAES-256-GCM, which is the counter mode of NIST SP 800-108 with
 * CMAC, of two blocks. */
static void text_key(const struct key *key, const uint8_t *nonce, uint8_t out[KEY_BYTES])
{
	uint8_t blocks[2][BLOCK] = { { 0, 1, 'X', 0 }, { 0, 2, 'X', 0 } };

	for (size_t i = 0; i < COUNT_OF(blocks); i++) {
		(void)memcpy(&blocks[i][BLOCK - HALF], nonce, HALF);
		for (size_t at = 0; at < BLOCK; at++)
			blocks[i][at] ^= key->mask[at];
	}
	encrypt_blocks(key->aes, blocks[0], out, sizeof(blocks));
}

/* Makes `ctx` ready for the text with that nonce and purpose. */
static void begin_text(EVP_CIPHER_CTX *ctx, const struct key *key, const uint8_t *nonce,
		       struct slice purpose)
{
	uint8_t secret[KEY_BYTES];
	int written = 0;

	text_key(key, nonce, secret);
	must(EVP_CipherInit_ex(ctx, NULL, NULL, secret, nonce + HALF, -1) == 1);
	OPENSSL_cleanse(secret, sizeof(secret));
	if (purpose.len != 0)
		must(EVP_CipherUpdate(ctx, NULL, &written, (const uint8_t *)purpose.at,
				      (int)purpose.len) == 1);
}

/* Encrypts or decrypts the whole text. */
static void run_text(EVP_CIPHER_CTX *ctx, const void *in, void *out, size_t len)
{
	int written = 0;

	if (len != 0)
		must(EVP_CipherUpdate(ctx, out, &written, in, (int)len) == 1 &&
		     (size_t)written == len);
}

enum err seal_close(struct seal *seal, struct slice purpose, struct slice plain, struct arena *into,
		    struct slice *text)
{
	must_obj(seal, SEAL_MAGIC);
	if (plain.len > SEAL_PLAIN_MAX)
		return ERR_BODY_TOO_LARGE;
	const size_t len = SEAL_OVERHEAD + plain.len;
	const struct key *key = &seal->keys[0];
	uint8_t *bytes = seal->bytes, *nonce = bytes + AT_NONCE;
	char *out = arena_take(into, base64url_len(len));
	int written = 0;

	if (out == NULL)
		return ERR_BUSY;
	bytes[0] = VERSION;
	(void)memcpy(bytes + AT_ID, key->id, ID_BYTES);
	must(getrandom(nonce, NONCE_BYTES, 0) == NONCE_BYTES);
	begin_text(seal->lock, key, nonce, purpose);
	run_text(seal->lock, plain.at, bytes + AT_CIPHER, plain.len);
	must(EVP_EncryptFinal_ex(seal->lock, bytes + len - TAG_BYTES, &written) == 1 &&
	     written == 0);
	must(EVP_CIPHER_CTX_ctrl(seal->lock, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES,
				 bytes + len - TAG_BYTES) == 1);
	base64url_encode(bytes, len, out);
	*text = slice_of(out, base64url_len(len));
	return ERR_OK;
}

/* Whether the text of `len` bytes was sealed under `key`; `out` has its bytes then. */
static bool opens(struct seal *seal, const struct key *key, struct slice purpose, size_t len,
		  char *out)
{
	uint8_t *bytes = seal->bytes;
	int written = 0;

	if (memcmp(key->id, bytes + AT_ID, ID_BYTES) != 0)
		return false;
	begin_text(seal->unlock, key, bytes + AT_NONCE, purpose);
	run_text(seal->unlock, bytes + AT_CIPHER, out, len - SEAL_OVERHEAD);
	must(EVP_CIPHER_CTX_ctrl(seal->unlock, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES,
				 bytes + len - TAG_BYTES) == 1);
	const bool good = EVP_DecryptFinal_ex(seal->unlock, bytes, &written) == 1;
	if (!good)
		ERR_clear_error();
	return good;
}

enum err seal_open(struct seal *seal, struct slice purpose, struct slice text, struct arena *into,
		   struct slice *plain)
{
	must_obj(seal, SEAL_MAGIC);
	const size_t len = base64url_decode(text, seal->bytes, sizeof(seal->bytes));
	if (len == SIZE_MAX || len < SEAL_OVERHEAD || seal->bytes[0] != VERSION)
		return ERR_SESSION_UNKNOWN;
	char *out = arena_take(into, len - SEAL_OVERHEAD + 1);
	if (out == NULL)
		return ERR_BUSY;
	for (uint32_t i = 0; i < seal->count; i++)
		if (opens(seal, &seal->keys[i], purpose, len, out)) {
			*plain = slice_of(out, len - SEAL_OVERHEAD);
			return ERR_OK;
		}
	arena_give_end(into, out, out + len - SEAL_OVERHEAD + 1);
	return ERR_SESSION_UNKNOWN;
}
