/* json_oracle.h - what simdjson's DOM says of a text, for tests to compare with. Built only where Debian's
 * libsimdjson-dev is installed (json_oracle.cc). */
#ifndef TESTS_SUPPORT_JSON_ORACLE_H
#define TESTS_SUPPORT_JSON_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum json_verdict {
	JSON_VERDICT_VALID,
	JSON_VERDICT_INVALID,
	JSON_VERDICT_UNKNOWN, /* it stopped at what it cannot hold: a number, its depth, its capacity */
};

/* Judges `text`. Valid: *strings is json_oracle_add over all strings, keys too, decoded, in order. */
enum json_verdict json_oracle(const char *text, size_t len, uint64_t *strings);

/* Adds a string to such a sum, which begins as 0. */
uint64_t json_oracle_add(uint64_t sum, const char *plain, size_t len);

#ifdef __cplusplus
}
#endif
#endif
