/* load_stamps.h - how long a provider's events are under way: the text of each says when it was written, by CLOCK_MONOTONIC of
 * this machine: "<MICROSECONDS>", of 16 digits (word `stamp` of the simulator). */
#ifndef BENCH_LOAD_LOAD_STAMPS_H
#define BENCH_LOAD_LOAD_STAMPS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes a line for each that is in the bytes, which came at `now_us`: its age in microseconds. One that two reads have
 * between them is not found. */
void load_stamps_find(FILE *out, const char *bytes, size_t len, uint64_t now_us);

#endif
