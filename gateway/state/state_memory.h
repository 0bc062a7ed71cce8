/* state_memory.h - sessions, loops and private blocks of this process: every answer comes at once.
 *
 * One for all workers, in 64 shards with a mutex each; a record lies where its key says. Everything is
 * bounded by number, blocks by bytes, too: of the tenant that has most, what was used longest ago goes first. What has expired is not
 * found, and is thrown away a little at a time by whoever uses its shard: nothing is ever swept. Lost
 * with the process. */
#ifndef GATEWAY_STATE_STATE_MEMORY_H
#define GATEWAY_STATE_STATE_MEMORY_H

#include "gateway/state/state.h"

struct state_memory;

/* Records at most, of all shards together (a shard is full when it has its 64th part, so that some may go
 * before the sum is reached); bytes of all blocks, and of each; how long blocks are kept after their last
 * use. */
struct state_bounds {
	uint32_t sessions, calls, loops; /* at least 1 */
	uint64_t blocks_bytes;           /* 0: none are kept */
	uint64_t blocks_each;
	nsec_t blocks_ttl;
};

/* NULL: memory. What is not used yet costs address space only. */
struct state_memory *state_memory_new(const struct state_bounds *bounds);
/* Nobody may use it any more. NULL is allowed. */
void state_memory_free(struct state_memory *memory);

/* Its functions may be called from any thread; nothing is ever PENDING. NULL for NULL: a rig without state. */
struct state *state_memory_state(struct state_memory *memory);

/* Figures for the scrape, in this order; from any thread. Records that have expired count until they are
 * thrown away. */
enum state_record {
	STATE_OF_SESSION,
	STATE_OF_CALL,
	STATE_OF_LOOP,
	STATE_OF_BLOCKS,
	STATE_RECORDS
};
struct state_figures {
	uint64_t records[STATE_RECORDS];
	uint64_t evicted[STATE_RECORDS]; /* before their time, for want of room */
	uint64_t blocks_bytes;           /* taken by blocks, in whole chunks */
	uint64_t tables_bytes;           /* of address space, for all records that may be there */
};
void state_memory_figures(struct state_memory *memory, struct state_figures *out);

/* ---- for state_redis.c, whose second layer it is ---- */

/* What this process alone knows of a session, for Redis was away when it happened. */
enum state_here { STATE_HERE_NOTHING, STATE_HERE_BEGUN, STATE_HERE_ENDED };
enum state_here state_memory_here(struct state_memory *memory, const struct state_key *session,
				  nsec_t now);

/* BEGUN and NOTHING only change a session that is here; ENDED stays in its place as a mark, and it is not
 * known here any more: the mark is the tenant's, which is NULL with the others. */
void state_memory_set_here(struct state_memory *memory, const struct state_key *tenant,
			   const struct state_key *session, enum state_here here, nsec_t now);

#endif
