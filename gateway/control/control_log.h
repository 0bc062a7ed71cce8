/* control_log.h - writes the workers' rings to stdout and never waits for whoever reads it.
 *
 * Lines of two workers are never mixed. What a slow reader leaves in the rings is dropped there, line
 * by line, and counted. */
#ifndef GATEWAY_CONTROL_CONTROL_LOG_H
#define GATEWAY_CONTROL_CONTROL_LOG_H

#include "gateway/telemetry/log.h"

struct event_base;
struct log_writer;

/* Writes the `count` rings to `fd` until the process ends. NULL: memory. */
struct log_writer *log_writer_new(struct event_base *base, int fd, struct log_ring *const *rings,
				  uint32_t count);

/* Writes what is there and can be written; to be called every 50 ms. */
void log_writer_run(struct log_writer *writer);

/* Before the end: writes everything, for `patience` at most. */
void log_writer_finish(struct log_writer *writer, nsec_t patience);

/* Lines lost: in full rings, and to a descriptor that refused them. */
uint64_t log_writer_dropped(const struct log_writer *writer);

#endif
