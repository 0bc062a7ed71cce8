/* control_parts.h - what the files of the control thread share: private to control*.c. */
#ifndef GATEWAY_CONTROL_CONTROL_PARTS_H
#define GATEWAY_CONTROL_CONTROL_PARTS_H

#include "gateway/control/control.h"
#include "gateway/control/control_checks.h"
#include "gateway/control/control_dns.h"
#include "gateway/control/control_drain.h"
#include "gateway/control/control_filewatch.h"
#include "gateway/control/control_jwks.h"
#include "gateway/control/control_listen.h"
#include "gateway/control/control_log.h"
#include "gateway/control/control_watchdog.h"
#include "gateway/settings/settings.h"

#include <stdatomic.h>

struct event_base;

struct snapshot {
	struct config *config; /* NULL: free place */
	uint64_t seq;
};

struct control {
	struct control_args args;
	struct event_base *base;
	struct log_writer *log;
	struct dns *dns;
	struct jwks *jwks;
	struct checks *checks;
	struct admin *admin;
	struct snapshot snapshots[WORKER_SNAPSHOTS_MAX];
	struct config *config; /* the newest of them: in force */
	uint64_t seq;          /* its number */
	uint64_t reloads_ok, reloads_refused;
	bool config_refused; /* what was on disk at the last load */
	bool reload_due;     /* asked for by a signal */
	struct files_watch files;
	struct settings_seen *seen; /* by the last load; NULL: there was none yet */
	bool reader_loaded;         /* the same, where the reader keeps it */
	struct drain drain;
	nsec_t watched; /* when the watchdog looked last */
	struct watch *watches;
	nsec_t born;         /* when the loop began */
	nsec_t store_sought; /* when its name was asked for because it is away */
	/* of that configuration: nano-USD; and tenants whose requests that cost money, or all of whose requests,
	 * are refused without Redis */
	uint64_t away_usd_bound, away_seq;
	size_t away_refused, away_tenants; /* of these */
	nsec_t store_away_since;           /* 0: it is in use */
	bool store_away_told;
};

/* ---- control_clock.c ---- */
/* CLOCK_MONOTONIC: the clock that workers publish their turns in. */
nsec_t control_now(void);

/* ---- control_reload.c ---- */

/* Reads the configuration from disk and puts it into force, or leaves the running one. Returns an HTTP
 * status: 200 with the new digest in `out`; 422 with the problems; 503 when that is impossible now.
 * Stderr is told in any case; `out` may be NULL. */
int control_reload(struct control *control, FILE *out);

/* Every 50 ms: reloads if a signal has asked for it or if the files have changed. */
void control_reload_tick(struct control *control);

/* Frees the snapshots that no worker reads any more; returns how many are alive. */
uint32_t control_sweep(struct control *control);

/* ---- control_admin.c: admin's hooks ---- */
int control_healthz(void *control, FILE *out);
int control_readyz(void *control, FILE *out);
bool control_is_name(void *control, struct slice host);
int control_metrics(void *control, FILE *out);

/* ---- control_lessons.c: likewise ---- */
int control_lessons(void *control, FILE *out);

/* ---- control_tenants.c: likewise; the control thread's `config` names the tenants ---- */
int control_tenant(void *control, struct slice id, struct slice body, FILE *out);
int control_budget(void *control, struct slice id, struct slice body, FILE *out);

/* ---- control_store.c: what is said of Redis ---- */
/* The most that may be spent in a day without Redis, nano-USD. */
uint64_t control_store_bound(struct control *control);
/* The lines of the start, of readyz (nothing while it is in use), and, once it has not been for a second, of
 * stderr. */
void control_store_begin(struct control *control);
void control_store_note(struct control *control, FILE *out);
void control_store_watch(struct control *control, nsec_t now);

#endif
