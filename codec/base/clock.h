/* clock.h - the unit of time. Nobody below gateway/ reads a clock: time is an argument.
 *
 * nsec_t counts CLOCK_MONOTONIC nanoseconds for every limit and deadline, or nanoseconds since the
 * epoch where a name says `wall`. */
#ifndef CODEC_BASE_CLOCK_H
#define CODEC_BASE_CLOCK_H

#include <stdint.h>

typedef uint64_t nsec_t;

#define USEC ((nsec_t)1000)
#define MSEC ((nsec_t)1000000)
#define SEC ((nsec_t)1000000000)
#define NSEC_NEVER UINT64_MAX

#endif
