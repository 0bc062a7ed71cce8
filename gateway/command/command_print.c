/* command_print.c - what `explain` and `translate` print alike. */
#include "gateway/command/command_walk_parts.h"

#include <stdio.h>

void walk_print_gather(const struct gather *g)
{
	for (uint32_t i = 0; i < g->count; i++)
		(void)fwrite(g->v[i].iov_base, 1, g->v[i].iov_len, stdout);
}

void walk_print_answer(const struct walk *walk)
{
	walk_print_gather(walk->front != NULL ? &walk->direct.answer.body
					      : &walk->call.answer.body);
}

void walk_print_slice(struct slice s)
{
	(void)fwrite(s.at, 1, s.len, stdout);
}

void walk_print_string(struct walk *walk, struct slice plain)
{
	struct gather g;

	if (slice_absent(plain)) {
		(void)fputs("null", stdout);
		return;
	}
	gather_init(&g, &walk->call.arena);
	gather_plain(&g, plain);
	if (gather_done(&g) == ERR_OK)
		walk_print_gather(&g);
	else
		(void)fputs("null", stdout); /* no memory for it, and still JSON */
}

void walk_print_adjustments(adjust_set set, const char *quote, const char *between)
{
	bool first = true;

	for (int i = 0; i < ADJUST_COUNT; i++) {
		if ((set & ADJUST_BIT(i)) == 0)
			continue;
		(void)printf("%s%s%s%s", first ? "" : between, quote,
			     adjustment_code((enum adjustment)i), quote);
		first = false;
	}
}
