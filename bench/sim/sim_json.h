/* sim_json.h - just enough JSON to find members in a request body.
 *
 * Values are slices of the raw text and are not decoded. Strings are crossed correctly, escapes
 * included, so a brace or a "model" inside one never counts; brackets must balance, nothing else is
 * validated. On purpose not codec/json_read: a simulator that shares the gateway's reader would
 * share its mistakes. */
#ifndef BENCH_SIM_SIM_JSON_H
#define BENCH_SIM_SIM_JSON_H

#include <stdbool.h>

#include "codec/base/slice.h"

/* A place between two members or elements. */
struct sim_json {
	const char *at, *end;
	bool first;  /* no comma is due */
	bool closed; /* the closing bracket was seen */
	bool bad;    /* the text broke a rule; the walk is over */
};

/* Whether `text` is one balanced value with nothing behind it. */
bool sim_json_whole(struct slice text);

/* Stands before the first member or element of `value`; anything but an object or an array has
 * none. */
struct sim_json sim_json_open(struct slice value);

/* The next member of an object: `key` between its quotes, `value` raw. False at the end, or when
 * bad. */
bool sim_json_member(struct sim_json *walk, struct slice *key, struct slice *value);

/* The next element of an array. */
bool sim_json_element(struct sim_json *walk, struct slice *value);

/* Whether the walk reached the closing bracket, and nothing but space came behind it. */
bool sim_json_ended(const struct sim_json *walk);

/* The raw value of member `name` of `object`, the first of that name; absent when there is none. */
struct slice sim_json_field(struct slice object, struct slice name);

/* What is between the quotes of a string, still escaped; absent for any other value. */
struct slice sim_json_string(struct slice value);

/* Whether there is a value and it is not null. */
static inline bool sim_json_present(struct slice value)
{
	return value.len > 0 && !slice_eq(value, SLICE("null"));
}

#endif
