#include "gateway/tls/tls_names.h"

#include "codec/base/must.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <time.h>

/* The text of a name of the kinds that we know; absent for others. */
static struct slice text_of(const GENERAL_NAME *name, enum tls_name_kind *kind)
{
	int type;
	const ASN1_IA5STRING *text = GENERAL_NAME_get0_value(name, &type);

	if (type != GEN_URI && type != GEN_DNS)
		return slice_of(NULL, 0);
	*kind = type == GEN_URI ? TLS_NAME_URI : TLS_NAME_DNS;
	return slice_of((const char *)ASN1_STRING_get0_data(text),
			(size_t)ASN1_STRING_length(text));
}

/* A NUL inside has made many programs read half a name. */
static bool is_name(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.at[i] <= 0x20 || text.at[i] >= 0x7f)
			return false;
	return text.len > 0 && text.len <= TLS_NAME_LEN_MAX;
}

/* How many there are and the sum of their lengths; false when one is none, or they are too many. */
static bool measure(const GENERAL_NAMES *all, size_t *count, size_t *bytes)
{
	enum tls_name_kind kind;

	*count = *bytes = 0;
	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		struct slice text = text_of(sk_GENERAL_NAME_value(all, i), &kind);
		if (text.at == NULL)
			continue;
		if (!is_name(text) || ++*count > TLS_NAMES_MAX)
			return false;
		*bytes += text.len;
	}
	return *count > 0;
}

static void put(struct tls_name *out, char *room, struct slice text, enum tls_name_kind kind)
{
	for (size_t i = 0; i < text.len; i++) {
		bool capital = kind == TLS_NAME_DNS && text.at[i] >= 'A' && text.at[i] <= 'Z';
		room[i] = (char)(capital ? text.at[i] + 32 : text.at[i]);
	}
	*out = (struct tls_name){ kind, slice_of(room, text.len) };
}

static struct tls_names *copy(const GENERAL_NAMES *all)
{
	size_t count, bytes, n = 0;

	if (!measure(all, &count, &bytes))
		return NULL;
	size_t head = sizeof(struct tls_names) + count * sizeof(struct tls_name);
	struct tls_names *names = malloc(head + bytes);
	if (names == NULL)
		return NULL;
	char *room = (char *)names + head;
	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		enum tls_name_kind kind;
		struct slice text = text_of(sk_GENERAL_NAME_value(all, i), &kind);
		if (text.at == NULL)
			continue;
		put(&names->at[n++], room, text, kind);
		room += text.len;
	}
	must(n == count);
	names->count = count;
	return names;
}

struct tls_names *tls_names_of(SSL *ssl)
{
	X509 *certificate = SSL_get0_peer_certificate(ssl);
	struct tm end;

	if (certificate == NULL || SSL_get_verify_result(ssl) != X509_V_OK)
		return NULL;
	/* A session may be resumed for longer than the certificate is good. */
	if (X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0 ||
	    ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
		return NULL;
	GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	struct tls_names *names = all == NULL ? NULL : copy(all);
	if (names != NULL)
		names->good_until_s = (uint64_t)timegm(&end);
	GENERAL_NAMES_free(all);
	ERR_clear_error();
	return names;
}

void tls_names_free(struct tls_names *names)
{
	free(names);
}
