#include "bench/sim/sim_shared.h"

#include <stdio.h>
#include <time.h>

#include "codec/base/must.h"

nsec_t sim_clock(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (nsec_t)now.tv_sec * SEC + (nsec_t)now.tv_nsec;
}

void sim_shared_init(struct sim_shared *shared)
{
	*shared = (struct sim_shared){ .start_spec = sim_spec_default, .spec = sim_spec_default };
	must(pthread_mutex_init(&shared->spec_lock, NULL) == 0);
	must(pthread_mutex_init(&shared->last.lock, NULL) == 0);
	sim_keys_init(&shared->keys);
}

void sim_shared_fini(struct sim_shared *shared)
{
	SSL_CTX_free(shared->tls);
	sim_buf_free(&shared->last.bytes);
	sim_keys_fini(&shared->keys);
	must(pthread_mutex_destroy(&shared->spec_lock) == 0);
	must(pthread_mutex_destroy(&shared->last.lock) == 0);
}

void sim_shared_set_spec(struct sim_shared *shared, const struct sim_spec *spec)
{
	must(pthread_mutex_lock(&shared->spec_lock) == 0);
	shared->spec = *spec;
	shared->spec.since = sim_clock();
	sim_count(&shared->spec_version);
	must(pthread_mutex_unlock(&shared->spec_lock) == 0);
}

void sim_shared_get_spec(struct sim_shared *shared, struct sim_spec *spec, uint64_t *version)
{
	if (atomic_load(&shared->spec_version) == *version)
		return;
	must(pthread_mutex_lock(&shared->spec_lock) == 0);
	*spec = shared->spec;
	*version = atomic_load(&shared->spec_version);
	must(pthread_mutex_unlock(&shared->spec_lock) == 0);
}

static void remember_tls(struct sim_last *last, SSL *ssl)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)snprintf(last->tls, sizeof(last->tls), "%s", SSL_get_version(ssl));
	(void)snprintf(last->server_name, sizeof(last->server_name), "%s",
		       name == NULL ? "" : name);
	last->resumed = SSL_session_reused(ssl) == 1;
}

void sim_shared_remember(struct sim_shared *shared, const struct sim_http *http, const char *bytes,
			 uint64_t number, uint64_t connection, uint64_t position, SSL *ssl)
{
	struct sim_last *last = &shared->last;

	must(pthread_mutex_lock(&last->lock) == 0);
	last->bytes.len = 0;
	sim_buf_add(&last->bytes, slice_of(bytes, http->head_len + http->body_len));
	last->head_len = http->head_len;
	last->number = number;
	last->connection = connection;
	last->position = position;
	last->tls[0] = last->server_name[0] = '\0';
	last->resumed = false;
	if (ssl != NULL)
		remember_tls(last, ssl);
	must(pthread_mutex_unlock(&last->lock) == 0);
}

void sim_shared_reset(struct sim_shared *shared)
{
	struct sim_counters *c = &shared->counters;
	_Atomic uint64_t *const plain[] = {
		&c->requests,    &c->streams,   &c->refused,        &c->tool_calls,
		&c->connections, &c->cancelled, &c->in_flight_high, &c->health,
		&c->pauses,      &c->mcp,       &shared->faults_due
	};

	for (size_t i = 0; i < COUNT_OF(plain); i++)
		atomic_store(plain[i], 0);
	for (size_t i = 0; i < COUNT_OF(c->by_dialect); i++)
		atomic_store(&c->by_dialect[i], 0);
	for (size_t i = 0; i < COUNT_OF(c->faults); i++)
		atomic_store(&c->faults[i], 0);
	for (size_t i = 0; i < COUNT_OF(c->statuses); i++)
		atomic_store(&c->statuses[i], 0);
	must(pthread_mutex_lock(&shared->last.lock) == 0);
	shared->last.number = 0;
	must(pthread_mutex_unlock(&shared->last.lock) == 0);
	sim_keys_reset(&shared->keys);
	sim_shared_set_spec(shared, &shared->start_spec);
}
