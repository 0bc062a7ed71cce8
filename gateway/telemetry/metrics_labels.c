#include "gateway/telemetry/metrics_labels.h"

#include "codec/base/must.h"

#include <stdlib.h>

static const struct slice other = SLICE_INIT("_other");

bool metrics_labels_init(struct metrics_labels *labels, uint32_t max)
{
	uint32_t places = 4;

	must(max < UINT32_MAX / 8);
	while (places < 2 * (max + 1)) /* at most half full, so a search always ends */
		places *= 2;
	*labels = (struct metrics_labels){ .cap = max + 1, .mask = places - 1 };
	labels->rows = calloc(labels->cap, sizeof(*labels->rows));
	labels->places = calloc(places, sizeof(*labels->places));
	if (labels->rows == NULL || labels->places == NULL) {
		free(labels->rows);
		free(labels->places);
		return false;
	}
	labels->rows[METRICS_LABEL_OTHER] = (struct metrics_label){ .a = other, .b = other };
	atomic_init(&labels->count, 1);
	must(pthread_mutex_init(&labels->adding, NULL) == 0);
	return true;
}

void metrics_labels_fini(struct metrics_labels *labels)
{
	uint32_t count = metrics_labels_count(labels);

	for (uint32_t i = METRICS_LABEL_OTHER + 1; i < count; i++)
		free((char *)(uintptr_t)labels->rows[i].a.at); /* b lies behind it */
	free(labels->rows);
	free(labels->places);
	(void)pthread_mutex_destroy(&labels->adding);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t eight_at(const char *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	return eight;
}

/* Its first eight bytes, its last and those in the middle: most names have no others. Those that differ
 * elsewhere only cost a comparison each. */
static uint64_t mix_slice(uint64_t hash, struct slice s)
{
	uint64_t first = 0, middle = 0, last = 0;

	if (s.len >= 8) {
		first = eight_at(s.at);
		middle = eight_at(s.at + (s.len - 8) / 2);
		last = eight_at(s.at + s.len - 8);
	} else if (s.len != 0) {
		memcpy(&first, s.at, s.len);
	}
	return mix(mix(hash, first ^ s.len), last + middle * UINT64_C(0xff51afd7ed558ccd));
}

uint64_t metrics_labels_hash(struct slice a, struct slice b)
{
	return mix_slice(mix_slice(0, a), b);
}

/* The row's number, or 0 and in *place where it would go. */
static uint32_t find(const struct metrics_labels *labels, uint64_t hash, struct slice a,
		     struct slice b, uint32_t *place)
{
	uint32_t at = (uint32_t)mix(0, hash) & labels->mask;

	for (;; at = (at + 1) & labels->mask) {
		uint32_t number = atomic_load_explicit(&labels->places[at], memory_order_acquire);
		const struct metrics_label *row = &labels->rows[number];
		if (number == 0) {
			*place = at;
			return 0;
		}
		if (row->hash == hash && slice_eq(row->a, a) && slice_eq(row->b, b))
			return number;
	}
}

/* The row is complete before its place shows it, and has its place before it is counted. */
static uint32_t add(struct metrics_labels *labels, uint64_t hash, struct slice a, struct slice b,
		    uint32_t place)
{
	uint32_t number = atomic_load_explicit(&labels->count, memory_order_relaxed);
	char *copy = number < labels->cap ? malloc(a.len + b.len + 1) : NULL;

	if (copy == NULL)
		return METRICS_LABEL_OTHER;
	if (a.len > 0)
		memcpy(copy, a.at, a.len);
	if (b.len > 0)
		memcpy(copy + a.len, b.at, b.len);
	labels->rows[number] = (struct metrics_label){
		.hash = hash,
		.a = slice_of(copy, a.len),
		.b = slice_of(copy + a.len, b.len),
	};
	atomic_store_explicit(&labels->places[place], number, memory_order_release);
	atomic_store_explicit(&labels->count, number + 1, memory_order_release);
	return number;
}

uint32_t metrics_labels_number(struct metrics_labels *labels, uint64_t hash, struct slice a,
			       struct slice b)
{
	/* Asked first: what a full table does not show now, it will never show. */
	bool full = metrics_labels_count(labels) == labels->cap;
	uint32_t place;
	uint32_t number = find(labels, hash, a, b, &place);

	if (number != 0 || full || slice_eq(a, other))
		return number;
	must(pthread_mutex_lock(&labels->adding) == 0);
	number = find(labels, hash, a, b, &place); /* another worker may have been faster */
	if (number == 0)
		number = add(labels, hash, a, b, place);
	must(pthread_mutex_unlock(&labels->adding) == 0);
	return number;
}
