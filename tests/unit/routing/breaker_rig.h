/* breaker_rig.h - the settings and the time of the breaker's tests. */
#ifndef TESTS_UNIT_ROUTING_BREAKER_RIG_H
#define TESTS_UNIT_ROUTING_BREAKER_RIG_H

#include "routing/breaker.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct breaker_settings settings = {
	.row = 3,
	.ratio = 0.5,
	.calls = 10,
	.window = 10 * SEC,
	.open_first = 1 * SEC,
	.open_max = 8 * SEC,
	.ramp = 16 * SEC,
};

static const nsec_t begin = 1000 * SEC;

#endif
