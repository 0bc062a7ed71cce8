/* Contexts of listeners against an OpenSSL client on the other end of a BIO pair. */
#include "gateway/tls/tls.h"

#include "gateway/tls/tls_names.h"
#include "gateway/tls/tls_tickets.h"
#include "tests/unit/gateway/tls/tls_rig.h"

struct fixture {
	struct identity ca, other_ca, middle;
	struct identity server, below_middle, second;
	struct identity acme, below_other;
	struct slice ca_pem, other_pem;
	struct slice server_pem, server_key, chain_pem, chain_key, second_pem, second_key;
	struct slice encrypted_key;
	struct tls_tickets *tickets;
};

static struct slice one_pem(const struct identity *id)
{
	const struct identity *const ids[] = { id };

	return pem_of(ids, 1);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ca = make_identity("CA", NULL, NULL);
	f->other_ca = make_identity("Other CA", NULL, NULL);
	f->middle = make_identity("Middle CA", NULL, &f->ca);
	f->server = make_identity("x", "DNS:gateway.example", &f->ca);
	f->below_middle = make_identity("x", "DNS:gateway.example", &f->middle);
	f->second = make_identity("x", "DNS:gateway.example", &f->ca);
	f->acme = make_identity("x", "URI:spiffe://mesh/acme", &f->ca);
	f->below_other = make_identity("x", "URI:spiffe://mesh/acme", &f->other_ca);
	const struct identity *const chain[] = { &f->below_middle, &f->middle };
	f->ca_pem = one_pem(&f->ca);
	f->other_pem = one_pem(&f->other_ca);
	f->server_pem = one_pem(&f->server);
	f->server_key = key_pem_of(&f->server, NULL);
	f->encrypted_key = key_pem_of(&f->server, "hush");
	f->chain_pem = pem_of(chain, 2);
	f->chain_key = key_pem_of(&f->below_middle, NULL);
	f->second_pem = one_pem(&f->second);
	f->second_key = key_pem_of(&f->second, NULL);
	f->tickets = tls_tickets_new(0);
	assert_non_null(f->tickets);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct identity *const ids[] = {
		&f->ca,     &f->other_ca, &f->middle,       &f->server,
		&f->second, &f->acme,     &f->below_middle, &f->below_other
	};
	const struct slice *const texts[] = { &f->ca_pem,     &f->other_pem,  &f->server_pem,
					      &f->server_key, &f->chain_pem,  &f->chain_key,
					      &f->second_pem, &f->second_key, &f->encrypted_key };

	for (size_t i = 0; i < COUNT_OF(ids); i++)
		identity_free(ids[i]);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free((void *)(uintptr_t)texts[i]->at);
	tls_tickets_free(f->tickets);
	free(f);
	return 0;
}

static struct tls_server_texts texts_of(const struct fixture *f)
{
	return (struct tls_server_texts){ .listener = SLICE("127.0.0.1:8443"),
					  .cert = f->server_pem,
					  .key = f->server_key };
}

static SSL_CTX *server_for(const struct fixture *f, const struct tls_server_texts *texts)
{
	struct tls_problem problem = { .text = "" };
	SSL_CTX *ctx = tls_server_new(texts, f->tickets, &problem);

	if (ctx == NULL)
		fail_msg("part %d %s", problem.part, problem.text);
	assert_int_equal(ERR_peek_error(), 0);
	return ctx;
}

/* A client that trusts the CA; `id` NULL: without a certificate. */
static SSL_CTX *client_for(const struct fixture *f, int version, const struct identity *id)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	assert_non_null(ctx);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), f->ca.certificate), 1);
	assert_int_equal(SSL_CTX_set_min_proto_version(ctx, version), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, version), 1);
	if (id != NULL) {
		assert_int_equal(SSL_CTX_use_certificate(ctx, id->certificate), 1);
		assert_int_equal(SSL_CTX_use_PrivateKey(ctx, id->key), 1);
	}
	return ctx;
}

/* `session` may be NULL. */
static struct pair connect_pair(SSL_CTX *client, SSL_CTX *server, SSL_SESSION *session)
{
	struct pair pair = pair_new(client, server);

	if (session != NULL)
		assert_int_equal(SSL_set_session(pair.client, session), 1);
	pair_open(&pair);
	return pair;
}

/* ---- handshakes ---- */

static void both_versions_and_the_protocols_of_http_are_spoken(void **state)
{
	static const struct {
		const char *name, *offered, *chosen; /* NULL: refused */
	} rows[] = {
		{ "h2 and HTTP/1.1", "\x02h2\x08http/1.1", "h2" },
		{ "the other way round", "\x08http/1.1\x02h2", "h2" },
		{ "HTTP/1.1 alone", "\x08http/1.1", "http/1.1" },
		{ "among others", "\x05x-foo\x08http/1.1\x02h3", "http/1.1" },
		{ "nothing", "", "" },
		{ "nothing of ours", "\x08http/1.0\x03h2c", NULL },
	};
	const struct fixture *f = *state;
	const struct tls_server_texts texts = texts_of(f);
	SSL_CTX *server = server_for(f, &texts);

	for (size_t v = 0; v < COUNT_OF(versions); v++) {
		for (size_t i = 0; i < COUNT_OF(rows); i++) {
			SSL_CTX *client = client_for(f, versions[v].number, NULL);
			const unsigned char *chosen;
			unsigned int len = 0;
			assert_int_equal(SSL_CTX_set_alpn_protos(
						 client, (const unsigned char *)rows[i].offered,
						 (unsigned int)strlen(rows[i].offered)),
					 0);
			struct pair pair = connect_pair(client, server, NULL);
			if (pair.open != (rows[i].chosen != NULL))
				fail_msg("%s, TLS %s: open %d", rows[i].name, versions[v].name,
					 pair.open);
			SSL_get0_alpn_selected(pair.client, &chosen, &len);
			if (pair.open && !slice_eq(slice_of((const char *)chosen, len),
						   slice_str(rows[i].chosen)))
				fail_msg("%s: %.*s", rows[i].name, (int)len, chosen);
			pair_free(&pair);
			SSL_CTX_free(client);
		}
	}
	tls_server_free(server);
}

static void what_is_older_or_weaker_is_refused(void **state)
{
	static const struct {
		const char *name, *ciphers;
		int version;
		bool accepted;
	} rows[] = {
		{ "TLS 1.1", "ALL:@SECLEVEL=0", TLS1_1_VERSION, false },
		{ "TLS 1.2 without AEAD", "ECDHE+AES128+SHA256:!AESGCM:@SECLEVEL=0", TLS1_2_VERSION,
		  false },
		{ "TLS 1.2 without forward secrecy", "kRSA:@SECLEVEL=0", TLS1_2_VERSION, false },
		{ "TLS 1.2 with both", "ECDHE+AESGCM", TLS1_2_VERSION, true },
	};
	const struct fixture *f = *state;
	const struct tls_server_texts texts = texts_of(f);
	SSL_CTX *server = server_for(f, &texts);

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		SSL_CTX *client = client_for(f, rows[i].version, NULL);
		assert_int_equal(SSL_CTX_set_cipher_list(client, rows[i].ciphers), 1);
		struct pair pair = connect_pair(client, server, NULL);
		if (pair.open != rows[i].accepted)
			fail_msg("%s: open %d", rows[i].name, pair.open);
		pair_free(&pair);
		SSL_CTX_free(client);
	}
	tls_server_free(server);
}

static void renegotiation_is_refused(void **state)
{
	const struct fixture *f = *state;
	const struct tls_server_texts texts = texts_of(f);
	SSL_CTX *server = server_for(f, &texts), *client = client_for(f, TLS1_2_VERSION, NULL);
	struct pair pair = connect_pair(client, server, NULL);
	char byte;

	assert_true(pair.open);
	assert_int_equal(SSL_renegotiate(pair.client), 1);
	assert_int_equal(SSL_do_handshake(pair.client), -1);
	assert_int_equal(SSL_read(pair.server, &byte, 1), -1); /* refuses by an alert */
	assert_int_equal(SSL_do_handshake(pair.client), -1);
	assert_int_equal(ERR_GET_REASON(ERR_get_error()), SSL_R_NO_RENEGOTIATION);
	ERR_clear_error();
	pair_free(&pair);
	SSL_CTX_free(client);
	tls_server_free(server);
}

static void the_whole_chain_is_sent(void **state)
{
	const struct fixture *f = *state;
	struct tls_server_texts texts = texts_of(f);
	SSL_CTX *client = client_for(f, TLS1_3_VERSION, NULL);

	texts.cert = f->chain_pem;
	texts.key = f->chain_key;
	SSL_CTX *server = server_for(f, &texts);
	struct pair pair = connect_pair(client, server, NULL); /* knows the root alone */
	assert_true(pair.open);
	assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(pair.client)), 2);
	pair_free(&pair);
	tls_server_free(server);
	SSL_CTX_free(client);
}

static void a_connection_may_outlive_its_context(void **state)
{
	const struct fixture *f = *state;
	const struct tls_server_texts texts = texts_of(f);
	SSL_CTX *server = server_for(f, &texts), *client = client_for(f, TLS1_3_VERSION, NULL);
	SSL_CTX *shared = tls_server_share(server);
	char byte;

	assert_ptr_equal(shared, server);
	assert_null(tls_server_share(NULL));
	struct pair pair = connect_pair(client, server, NULL);
	assert_true(pair.open);
	tls_server_free(server);
	tls_server_free(shared);
	tls_server_free(NULL);
	assert_int_equal(SSL_new_session_ticket(pair.server), 1);
	assert_int_equal(SSL_write(pair.server, "y", 1), 1);
	assert_int_equal(SSL_read(pair.client, &byte, 1), 1);
	pair_free(&pair);
	SSL_CTX_free(client);
}

/* ---- texts that cannot be used ---- */

static void a_text_that_cannot_be_used_is_named(void **state)
{
	const struct fixture *f = *state;
	const struct tls_server_texts good = texts_of(f);
	const struct {
		const char *name;
		struct slice cert, key, client_ca;
		enum tls_part part;
		const char *says;
	} rows[] = {
		{ "an empty certificate",
		  SLICE_INIT(""),
		  good.key,
		  { NULL, 0 },
		  TLS_PART_CERT,
		  "holds no certificate" },
		{ "a key as certificate",
		  good.key,
		  good.key,
		  { NULL, 0 },
		  TLS_PART_CERT,
		  "holds no certificate" },
		{ "half a certificate",
		  slice_of(good.cert.at, good.cert.len / 2),
		  good.key,
		  { NULL, 0 },
		  TLS_PART_CERT,
		  "holds no certificate" },
		{ "a chain cut in its second half",
		  slice_of(f->chain_pem.at, f->chain_pem.len - 60),
		  f->chain_key,
		  { NULL, 0 },
		  TLS_PART_CERT,
		  "holds no certificate" },
		{ "an empty key",
		  good.cert,
		  SLICE_INIT(""),
		  { NULL, 0 },
		  TLS_PART_KEY,
		  "holds no private key" },
		{ "a certificate as key",
		  good.cert,
		  good.cert,
		  { NULL, 0 },
		  TLS_PART_KEY,
		  "holds no private key" },
		{ "half a key",
		  good.cert,
		  slice_of(good.key.at, good.key.len / 2),
		  { NULL, 0 },
		  TLS_PART_KEY,
		  "holds no private key" },
		{ "another's key",
		  good.cert,
		  f->second_key,
		  { NULL, 0 },
		  TLS_PART_KEY,
		  "is not the certificate's" },
		{ "an encrypted key",
		  good.cert,
		  f->encrypted_key,
		  { NULL, 0 },
		  TLS_PART_KEY,
		  "is encrypted" },
		{ "an empty CA", good.cert, good.key, SLICE_INIT(""), TLS_PART_CLIENT_CA,
		  "no certificate" },
		{ "a key as CA", good.cert, good.key, good.key, TLS_PART_CLIENT_CA,
		  "no certificate" },
		{ "half a CA", good.cert, good.key, slice_of(f->ca_pem.at, f->ca_pem.len / 2),
		  TLS_PART_CLIENT_CA, "cannot be used" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct tls_server_texts texts = { SLICE_INIT("x"), rows[i].cert, rows[i].key,
							rows[i].client_ca };
		struct tls_problem problem = { .text = "" };
		if (tls_server_new(&texts, f->tickets, &problem) != NULL)
			fail_msg("%s: was taken", rows[i].name);
		if (problem.part != rows[i].part || strstr(problem.text, rows[i].says) == NULL)
			fail_msg("%s: part %d, \"%s\"", rows[i].name, problem.part, problem.text);
		assert_int_equal(ERR_peek_error(), 0);
	}
}

/* ---- what a message of a handshake has room for ---- */

enum { LONG_CAS = 12 };

/* Authorities of whose names each has some 1,500 bytes, and its certificate twice that. */
struct long_cas {
	struct identity ids[LONG_CAS];
	const struct identity *all[LONG_CAS];
};

static void long_cas_init(struct long_cas *cas)
{
	const char unit[] = "a unit whose name has sixty-four bytes, as many as there may be..";

	for (int i = 0; i < LONG_CAS; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "authority %d", i);
		struct identity *ca = &cas->ids[i];
		*ca = make_identity(name, NULL, NULL);
		X509_NAME *subject = X509_get_subject_name(ca->certificate);
		for (int n = 0; n < 20; n++)
			assert_int_equal(X509_NAME_add_entry_by_txt(subject, "OU", MBSTRING_ASC,
								    (const unsigned char *)unit, 64,
								    -1, 0),
					 1);
		assert_int_equal(X509_set_issuer_name(ca->certificate, subject), 1);
		assert_true(X509_sign(ca->certificate, ca->key, EVP_sha256()) > 0);
		cas->all[i] = ca;
	}
}

static void long_cas_fini(struct long_cas *cas)
{
	for (int i = 0; i < LONG_CAS; i++)
		identity_free(&cas->ids[i]);
}

static void a_chain_that_a_handshake_has_no_room_for_is_refused(void **state)
{
	const struct {
		size_t count;
		bool fits;
	} rows[] = { { 4, true }, { 6, false } };
	const struct fixture *f = *state;
	struct long_cas cas;

	long_cas_init(&cas);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct tls_server_texts texts = texts_of(f);
		struct tls_problem problem = { .text = "" };
		const struct slice chain = pem_of(cas.all, rows[i].count),
				   key = key_pem_of(&cas.ids[0], NULL);
		texts.cert = chain;
		texts.key = key;
		SSL_CTX *ctx = tls_server_new(&texts, f->tickets, &problem);
		assert_true((ctx != NULL) == rows[i].fits);
		if (ctx == NULL) {
			assert_int_equal(problem.part, TLS_PART_CERT);
			assert_non_null(strstr(problem.text, "16,000 bytes"));
		}
		tls_server_free(ctx);
		free((void *)(uintptr_t)chain.at);
		free((void *)(uintptr_t)key.at);
	}
	long_cas_fini(&cas);
}

static void authorities_that_a_handshake_has_no_room_for_are_not_named(void **state)
{
	const struct {
		size_t count;
		int named;
	} rows[] = { { 10, 10 }, { LONG_CAS, 0 } };
	const struct fixture *f = *state;
	struct long_cas cas;

	long_cas_init(&cas);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct tls_server_texts texts = texts_of(f);
		texts.client_ca = pem_of(cas.all, rows[i].count);
		SSL_CTX *server = server_for(f, &texts),
			*client = client_for(f, TLS1_3_VERSION, NULL);
		struct pair pair = connect_pair(client, server, NULL);
		assert_true(pair.open);
		assert_int_equal(SSL_get_verify_mode(pair.server), SSL_VERIFY_PEER);
		const STACK_OF(X509_NAME) *named = SSL_get0_peer_CA_list(pair.client);
		assert_int_equal(named == NULL ? 0 : sk_X509_NAME_num(named), rows[i].named);
		pair_free(&pair);
		SSL_CTX_free(client);
		tls_server_free(server);
		free((void *)(uintptr_t)texts.client_ca.at);
	}
	long_cas_fini(&cas);
}

/* ---- callers' certificates ---- */

/* The names of the caller as the server sees them: the first, or NULL. */
static void assert_first_name(const struct pair *pair, const char *name)
{
	struct tls_names *names = tls_names_of(pair->server);

	if (name == NULL) {
		assert_null(names);
		return;
	}
	assert_non_null(names);
	assert_int_equal(names->at[0].text.len, strlen(name));
	assert_memory_equal(names->at[0].text.at, name, strlen(name));
	tls_names_free(names);
}

static void a_certificate_may_be_shown_and_must_then_be_right(void **state)
{
	const struct fixture *f = *state;
	struct tls_server_texts asking = texts_of(f), silent = texts_of(f);
	struct identity server_only = make_identity("x", "URI:u", &f->ca);
	asking.client_ca = f->ca_pem;

	add_extension(server_only.certificate, NID_ext_key_usage, "serverAuth");
	assert_true(X509_sign(server_only.certificate, f->ca.key, EVP_sha256()) > 0);
	const struct {
		const char *name;
		const struct tls_server_texts *texts;
		const struct identity *id;
		bool accepted;
		const char *shown;
	} rows[] = {
		{ "the right one", &asking, &f->acme, true, "spiffe://mesh/acme" },
		{ "none", &asking, NULL, true, NULL },
		{ "another CA's", &asking, &f->below_other, false, NULL },
		{ "one that is for servers", &asking, &server_only, false, NULL },
		{ "one that nobody asked for", &silent, &f->acme, true, NULL },
	};
	for (size_t v = 0; v < COUNT_OF(versions); v++) {
		for (size_t i = 0; i < COUNT_OF(rows); i++) {
			SSL_CTX *server = server_for(f, rows[i].texts);
			SSL_CTX *client = client_for(f, versions[v].number, rows[i].id);
			struct pair pair = connect_pair(client, server, NULL);
			if (pair.open != rows[i].accepted)
				fail_msg("%s, TLS %s: open %d", rows[i].name, versions[v].name,
					 pair.open);
			if (pair.open)
				assert_first_name(&pair, rows[i].shown);
			pair_free(&pair);
			SSL_CTX_free(client);
			tls_server_free(server);
		}
	}
	identity_free(&server_only);
}

static void the_authorities_are_named_to_the_caller(void **state)
{
	const struct fixture *f = *state;
	const struct identity *const both[] = { &f->ca, &f->other_ca };
	struct tls_server_texts texts = texts_of(f);
	texts.client_ca = pem_of(both, 2);

	SSL_CTX *server = server_for(f, &texts), *client = client_for(f, TLS1_3_VERSION, NULL);
	struct pair pair = connect_pair(client, server, NULL);
	assert_true(pair.open);
	assert_int_equal(sk_X509_NAME_num(SSL_get0_peer_CA_list(pair.client)), 2);
	pair_free(&pair);
	SSL_CTX_free(client);
	tls_server_free(server);
	free((void *)(uintptr_t)texts.client_ca.at);
}

/* ---- sessions ---- */

/* A session made under `before`, offered under `after`: whether it was taken, and whose name then is
 * known. */
static bool resumes(const struct fixture *f, int version, const struct identity *id,
		    SSL_CTX *before, SSL_CTX *after, const char *name)
{
	SSL_CTX *client = client_for(f, version, id);
	struct pair first = connect_pair(client, before, NULL);
	assert_true(first.open && !first.resumed);
	SSL_SESSION *session = SSL_get1_session(first.client);
	pair_free(&first);

	struct pair second = connect_pair(client, after, session);
	assert_true(second.open);
	assert_first_name(&second, name);
	bool resumed = second.resumed;
	pair_free(&second);
	SSL_SESSION_free(session);
	SSL_CTX_free(client);
	return resumed;
}

static void sessions_are_bound_to_the_listener_and_to_whom_it_trusts(void **state)
{
	const struct fixture *f = *state;
	const struct tls_server_texts plain = texts_of(f);
	struct tls_server_texts renewed = plain, elsewhere = plain, trusting = plain,
				trusting_renewed = plain, trusting_others = plain;
	renewed.cert = trusting_renewed.cert = f->second_pem;
	renewed.key = trusting_renewed.key = f->second_key;
	elsewhere.listener = SLICE("127.0.0.1:8444");
	trusting.client_ca = trusting_renewed.client_ca = f->ca_pem;
	const struct identity *const both[] = { &f->ca, &f->other_ca };
	trusting_others.client_ca = pem_of(both, 2);

	const struct {
		const char *name;
		const struct tls_server_texts *before, *after;
		bool resumed;
	} rows[] = {
		{ "the same", &plain, &plain, true },
		{ "a new certificate", &plain, &renewed, true },
		{ "another listener", &plain, &elsewhere, false },
		{ "a listener that trusts callers", &plain, &trusting, false },
		{ "one that does not any more", &trusting, &plain, false },
		{ "the same, with callers", &trusting, &trusting, true },
		{ "a new certificate, with callers", &trusting, &trusting_renewed, true },
		{ "other authorities", &trusting, &trusting_others, false },
	};
	for (size_t v = 0; v < COUNT_OF(versions); v++) {
		for (size_t i = 0; i < COUNT_OF(rows); i++) {
			/* two contexts, as two workers or two configurations have them */
			SSL_CTX *before = server_for(f, rows[i].before);
			SSL_CTX *after = server_for(f, rows[i].after);
			bool named = !slice_absent(rows[i].after->client_ca);
			if (resumes(f, versions[v].number, &f->acme, before, after,
				    named ? "spiffe://mesh/acme" : NULL) != rows[i].resumed)
				fail_msg("%s, TLS %s", rows[i].name, versions[v].name);
			tls_server_free(before);
			tls_server_free(after);
		}
	}
	free((void *)(uintptr_t)trusting_others.client_ca.at);
}

static void a_ticket_is_good_for_the_hour_after_its_keys_and_is_renewed_then(void **state)
{
	const struct fixture *f = *state;
	const struct tls_server_texts texts = texts_of(f);
	struct tls_problem problem;

	for (size_t v = 0; v < COUNT_OF(versions); v++) {
		struct tls_tickets *tickets = tls_tickets_new(0);
		SSL_CTX *server = tls_server_new(&texts, tickets, &problem);
		SSL_CTX *client = client_for(f, versions[v].number, NULL);
		struct pair pair = connect_pair(client, server, NULL);
		SSL_SESSION *first = SSL_get1_session(pair.client);
		pair_free(&pair);

		assert_true(tls_tickets_turn(tickets, TLS_TICKET_HOUR));
		pair = connect_pair(client, server, first);
		assert_true(pair.resumed);
		SSL_SESSION *second = SSL_get1_session(pair.client);
		pair_free(&pair);

		assert_true(tls_tickets_turn(tickets, 2 * TLS_TICKET_HOUR));
		pair = connect_pair(client, server, first);
		assert_true(pair.open && !pair.resumed);
		pair_free(&pair);
		pair = connect_pair(client, server, second);
		assert_true(pair.resumed);
		pair_free(&pair);

		SSL_SESSION_free(first);
		SSL_SESSION_free(second);
		SSL_CTX_free(client);
		tls_server_free(server);
		tls_tickets_free(tickets);
	}
}

static void a_context_without_shared_keys_works_by_itself(void **state)
{
	const struct fixture *f = *state;
	const struct tls_server_texts texts = texts_of(f);
	struct tls_problem problem;
	SSL_CTX *server = tls_server_new(&texts, NULL, &problem);

	assert_non_null(server);
	assert_true(resumes(f, TLS1_3_VERSION, NULL, server, server, NULL));
	tls_server_free(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_versions_and_the_protocols_of_http_are_spoken),
		cmocka_unit_test(what_is_older_or_weaker_is_refused),
		cmocka_unit_test(renegotiation_is_refused),
		cmocka_unit_test(the_whole_chain_is_sent),
		cmocka_unit_test(a_connection_may_outlive_its_context),
		cmocka_unit_test(a_text_that_cannot_be_used_is_named),
		cmocka_unit_test(a_chain_that_a_handshake_has_no_room_for_is_refused),
		cmocka_unit_test(authorities_that_a_handshake_has_no_room_for_are_not_named),
		cmocka_unit_test(a_certificate_may_be_shown_and_must_then_be_right),
		cmocka_unit_test(the_authorities_are_named_to_the_caller),
		cmocka_unit_test(sessions_are_bound_to_the_listener_and_to_whom_it_trusts),
		cmocka_unit_test(a_ticket_is_good_for_the_hour_after_its_keys_and_is_renewed_then),
		cmocka_unit_test(a_context_without_shared_keys_works_by_itself),
	};

	return cmocka_run_group_tests_name("tls_server", tests, set_up, tear_down);
}
