/* supervisor_reader.h - keeps the reader (config_reader.h) alive where the server is another user. */
#ifndef GATEWAY_PROCESS_SUPERVISOR_READER_H
#define GATEWAY_PROCESS_SUPERVISOR_READER_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"

#include <stdbool.h>
#include <sys/types.h>

struct supervisor_reader {
	const char *config_path;
	int pair[2];     /* [0] the reader's, [1] every server's; -1: there is none, nor will be */
	pid_t pid;       /* 0: none now */
	nsec_t start_at; /* then: when the next one begins */
};

/* Makes the pair. False after a line on stderr. */
MUST_USE bool supervisor_reader_init(struct supervisor_reader *r, const char *config_path);

/* Starts a reader if it is time for one; while that is impossible, tries again every second. */
void supervisor_reader_tick(struct supervisor_reader *r, nsec_t now);

/* The child `pid` is dead. False: it was not the reader. Else there is another in a second. */
MUST_USE bool supervisor_reader_ended(struct supervisor_reader *r, pid_t pid, int status,
				      nsec_t now);

/* Ends it; accepts what was never made. */
void supervisor_reader_fini(struct supervisor_reader *r);

#endif
