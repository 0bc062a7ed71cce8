/* settings_value.h - the texts of numbers, sizes, durations and amounts, both ways. Exact: no binary
 * floating point in money.
 *
 * Private to settings*.c and their tests. */
#ifndef GATEWAY_SETTINGS_SETTINGS_VALUE_H
#define GATEWAY_SETTINGS_SETTINGS_VALUE_H

#include "gateway/settings/settings_table.h"

enum value_fault {
	VALUE_OK,
	VALUE_UNREADABLE,
	VALUE_TOO_PRECISE, /* more decimal places than the unit has */
	VALUE_TOO_LARGE,   /* for 64 bits */
};

/* "12.5e-1" times 10^places; sign and white space are not read. */
enum value_fault value_decimal(struct slice text, uint32_t places, uint64_t *out);

/* A number of `type` (TYPE_BOOL to TYPE_PRICE) in its base unit. Bounds are not checked. */
enum value_fault value_number(enum setting_type type, struct slice text, uint64_t *out);

/* 0..1 and the like, to nine decimal places. */
enum value_fault value_fraction(struct slice text, double *out);

/* The text that value_number reads back; the largest unit that is exact. */
void value_format(enum setting_type type, uint64_t value, char *out, size_t room);

/* Whether `text` has the form of a text type; NULL if so, else what is wrong. Bounds are not
 * checked. `text` has been resolved (addresses, secrets). */
const char *value_text_fault(enum setting_type type, struct slice text);

#endif
