/* A pipe against an OpenSSL server, over memory that a slow network could be. */
#include "gateway/tls/tls_pipe.h"

#include "gateway/tls/tls.h"
#include "tests/unit/gateway/tls/tls_rig.h"

static const char host[] = "api.example";

struct fixture {
	struct identity ca, right, wrong;
	struct slice ca_pem;
	SSL_CTX *client;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char problem[128] = "";

	assert_non_null(f);
	f->ca = make_identity("CA", NULL, NULL);
	f->right = make_identity("x", "DNS:api.example", &f->ca);
	f->wrong = make_identity("x", "DNS:evil.example", &f->ca);
	const struct identity *const all[] = { &f->ca };
	f->ca_pem = pem_of(all, 1);
	f->client = tls_client_new(host, f->ca_pem, problem, sizeof(problem));
	assert_non_null(f->client);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tls_client_free(f->client);
	identity_free(&f->ca);
	identity_free(&f->right);
	identity_free(&f->wrong);
	free((void *)f->ca_pem.at);
	free(f);
	return 0;
}

/* ---- both ends ---- */

struct ends {
	SSL_CTX *server_ctx;
	SSL *server;
	BIO *to_server, *to_client; /* the server's own */
	struct tls_pipe *pipe;
	size_t takes;      /* of what is sent at once */
	size_t comes;      /* of what is fed at once */
	char got[1 << 17]; /* plain text that the pipe gave */
	size_t got_len;
};

static size_t take(void *owner, const char *bytes, size_t len)
{
	struct ends *ends = owner;
	const size_t taken = len < ends->takes ? len : ends->takes;

	if (taken != 0)
		assert_int_equal(BIO_write(ends->to_server, bytes, (int)taken), (int)taken);
	return taken;
}

/* Takes `server_ctx` over. */
static struct ends *ends_new(const struct fixture *f, SSL_CTX *server_ctx)
{
	struct ends *ends = calloc(1, sizeof(*ends));

	assert_non_null(ends);
	ends->server_ctx = server_ctx;
	ends->server = SSL_new(server_ctx);
	ends->to_server = BIO_new(BIO_s_mem());
	ends->to_client = BIO_new(BIO_s_mem());
	SSL_set_bio(ends->server, ends->to_server, ends->to_client);
	SSL_set_accept_state(ends->server);
	ends->pipe = tls_pipe_new(f->client, host, take, ends);
	assert_non_null(ends->pipe);
	ends->takes = ends->comes = SIZE_MAX;
	return ends;
}

static void ends_free(struct ends *ends)
{
	tls_pipe_free(ends->pipe);
	SSL_free(ends->server);
	SSL_CTX_free(ends->server_ctx);
	free(ends);
}

/* What the server sent, in pieces; true if there was any. */
static bool feed_all(struct ends *ends)
{
	char *bytes;
	const size_t len = (size_t)BIO_get_mem_data(ends->to_client, &bytes);
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	(void)BIO_reset(ends->to_client);
	for (size_t at = 0; at < len;) {
		const size_t piece = len - at < ends->comes ? len - at : ends->comes;
		char *alone = malloc(piece); /* what reads past it is seen */
		size_t got;
		assert_non_null(alone);
		memcpy(alone, copy + at, piece);
		tls_pipe_feed(ends->pipe, alone, piece);
		while ((got = tls_pipe_read(ends->pipe, ends->got + ends->got_len,
					    sizeof(ends->got) - ends->got_len)) != 0) {
			assert_in_range(got, 1, piece + TLS_RECORD);
			ends->got_len += got;
		}
		at += piece;
		free(alone);
	}
	free(copy);
	return len != 0;
}

/* Until neither has anything to say. */
static void shake_hands(struct ends *ends)
{
	tls_pipe_start(ends->pipe);
	do {
		while (!tls_pipe_flush(ends->pipe))
			;
		(void)SSL_do_handshake(ends->server);
	} while (feed_all(ends));
	ERR_clear_error();
}

static struct ends *open_ends(const struct fixture *f, int version)
{
	struct ends *ends = ends_new(f, bare_server(&f->right, version));

	shake_hands(ends);
	assert_int_equal(tls_pipe_state(ends->pipe), TLS_PIPE_OPEN);
	return ends;
}

static void server_says(struct ends *ends, const char *bytes, size_t len)
{
	assert_int_equal(SSL_write(ends->server, bytes, (int)len), (int)len);
}

/* ---- the tests ---- */

static void text_goes_both_ways(void **state)
{
	char at_server[16];

	for (size_t i = 0; i < COUNT_OF(versions); i++) {
		struct ends *ends = open_ends(*state, versions[i].number);
		assert_true(tls_pipe_write(ends->pipe, "question", 8));
		assert_int_equal(SSL_read(ends->server, at_server, sizeof(at_server)), 8);
		assert_memory_equal(at_server, "question", 8);
		server_says(ends, "answer", 6);
		assert_true(feed_all(ends));
		assert_int_equal(ends->got_len, 6);
		assert_memory_equal(ends->got, "answer", 6);
		ends_free(ends);
	}
}

static void nothing_is_lost_when_every_byte_comes_alone(void **state)
{
	const struct fixture *f = *state;
	char text[20000];

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < COUNT_OF(versions); i++) {
		struct ends *ends = ends_new(f, bare_server(&f->right, versions[i].number));
		ends->comes = ends->takes = 1;
		shake_hands(ends);
		assert_int_equal(tls_pipe_state(ends->pipe), TLS_PIPE_OPEN);
		server_says(ends, text, sizeof(text));
		assert_true(feed_all(ends));
		assert_int_equal(ends->got_len, sizeof(text));
		assert_memory_equal(ends->got, text, sizeof(text));
		ends_free(ends);
	}
}

static void what_the_socket_does_not_take_is_sent_later_and_in_order(void **state)
{
	char record[TLS_RECORD], at_server[2 * TLS_RECORD];
	struct ends *ends = open_ends(*state, TLS1_3_VERSION);
	size_t all = 0;
	int got;

	memset(record, 'a', sizeof(record));
	ends->takes = 0;
	assert_true(tls_pipe_write(ends->pipe, record, sizeof(record)));
	assert_false(tls_pipe_flush(ends->pipe));
	memset(record, 'b', sizeof(record)); /* it was copied */
	assert_true(tls_pipe_write(ends->pipe, record, sizeof(record)));
	ends->takes = 1000;
	assert_true(tls_pipe_flush(ends->pipe));
	while ((got = SSL_read(ends->server, at_server + all, (int)(sizeof(at_server) - all))) > 0)
		all += (size_t)got;
	assert_int_equal(all, sizeof(at_server));
	assert_int_equal(at_server[TLS_RECORD - 1], 'a');
	assert_int_equal(at_server[TLS_RECORD], 'b');
	ends_free(ends);
}

static void the_next_connection_resumes_the_session(void **state)
{
	for (size_t i = 0; i < COUNT_OF(versions); i++) {
		struct fixture *f = *state;
		struct ends *first = open_ends(f, versions[i].number);
		assert_false(tls_pipe_resumed(first->pipe));
		assert_int_equal(SSL_CTX_up_ref(first->server_ctx), 1);
		struct ends *second = ends_new(f, first->server_ctx);
		shake_hands(second);
		assert_int_equal(tls_pipe_state(second->pipe), TLS_PIPE_OPEN);
		assert_true(tls_pipe_resumed(second->pipe));
		ends_free(second);
		ends_free(first);
	}
}

static void a_certificate_of_another_name_breaks_it(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(versions); i++) {
		struct ends *ends = ends_new(f, bare_server(&f->wrong, versions[i].number));
		shake_hands(ends);
		assert_int_equal(tls_pipe_state(ends->pipe), TLS_PIPE_BROKEN);
		assert_non_null(strcasestr(tls_pipe_why(ends->pipe), "hostname mismatch"));
		ends_free(ends);
	}
}

static void what_is_not_tls_breaks_it_and_says_so(void **state)
{
	struct fixture *f = *state;
	struct ends *ends = ends_new(f, bare_server(&f->right, TLS1_3_VERSION));
	static const char plain[] = "HTTP/1.1 400 Bad Request\r\n\r\n";

	tls_pipe_start(ends->pipe);
	tls_pipe_feed(ends->pipe, plain, sizeof(plain) - 1);
	assert_int_equal(tls_pipe_read(ends->pipe, ends->got, sizeof(ends->got)), 0);
	assert_int_equal(tls_pipe_state(ends->pipe), TLS_PIPE_BROKEN);
	assert_string_equal(tls_pipe_why(ends->pipe), "wrong version number");
	ends_free(ends);
}

static void close_notify_ends_it_behind_the_last_text(void **state)
{
	struct ends *ends = open_ends(*state, TLS1_3_VERSION);

	server_says(ends, "last", 4);
	(void)SSL_shutdown(ends->server);
	assert_true(feed_all(ends));
	assert_int_equal(ends->got_len, 4);
	assert_int_equal(tls_pipe_state(ends->pipe), TLS_PIPE_CLOSED);
	tls_pipe_close(ends->pipe);
	assert_int_equal(SSL_read(ends->server, ends->got, 1), 0);
	assert_int_equal(SSL_get_shutdown(ends->server) & SSL_RECEIVED_SHUTDOWN,
			 SSL_RECEIVED_SHUTDOWN);
	ends_free(ends);
}

static void one_that_never_opened_closes_in_silence(void **state)
{
	struct fixture *f = *state;
	struct ends *ends = ends_new(f, bare_server(&f->right, TLS1_3_VERSION));

	tls_pipe_close(ends->pipe);
	assert_int_equal(BIO_pending(ends->to_server), 0);
	ends_free(ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_goes_both_ways),
		cmocka_unit_test(nothing_is_lost_when_every_byte_comes_alone),
		cmocka_unit_test(what_the_socket_does_not_take_is_sent_later_and_in_order),
		cmocka_unit_test(the_next_connection_resumes_the_session),
		cmocka_unit_test(a_certificate_of_another_name_breaks_it),
		cmocka_unit_test(what_is_not_tls_breaks_it_and_says_so),
		cmocka_unit_test(close_notify_ends_it_behind_the_last_text),
		cmocka_unit_test(one_that_never_opened_closes_in_silence),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
