#include "routing/speed.h"

#include <stddef.h>

static const double fade = 0.05;   /* weight of the newest answer */
static const double usual_ms = 15; /* per token: a middling model */
static const double trust =
	32 * 32; /* tokens^2: answers that spread less say little of the slope */

/* The first ones count in full, so that the mean is one from the start. */
static void mean(double *value, double sample, uint32_t before)
{
	const double weight = 1.0 / (before + 1.0);

	*value += (weight > fade ? weight : fade) * (sample - *value);
}

void speed_note(struct speed *speed, nsec_t first, nsec_t took, uint64_t tokens)
{
	const double ms = (double)took / (double)MSEC, length = (double)tokens;

	if (tokens == 0) /* an empty answer was not written */
		return;
	mean(&speed->tokens, length, speed->answers);
	mean(&speed->took, ms, speed->answers);
	mean(&speed->tokens2, length * length, speed->answers);
	mean(&speed->cross, length * ms, speed->answers);
	if (first != 0 && first <= took)
		mean(&speed->first, (double)first / (double)MSEC, speed->streamed++);
	if (speed->answers < UINT32_MAX - 1)
		speed->answers++;
}

static double slope(const struct speed *speed)
{
	const double spread = speed->tokens2 - speed->tokens * speed->tokens;
	const double together = speed->cross - speed->tokens * speed->took;
	const double most = speed->took / speed->tokens; /* all of it writing */
	const double ms = (together + trust * usual_ms) / (spread + trust);

	return ms < 0 ? 0 : ms > most ? most : ms;
}

struct model_speed speed_estimate(const struct speed *speed)
{
	double first, ms;

	if (speed->answers == 0)
		return (struct model_speed){ .measured = false };
	if (speed->streamed * 2 >= speed->answers) { /* seen, not guessed */
		first = speed->first;
		ms = (speed->took - first) / speed->tokens;
	} else {
		ms = slope(speed);
		first = speed->took - ms * speed->tokens;
	}
	return (struct model_speed){
		.measured = speed->answers >= SPEED_ANSWERS_MIN,
		.ttft_ms = (float)(first < 0 ? 0 : first),
		.token_ms = (float)(ms < 0 ? 0 : ms),
	};
}

double speed_token_ms(const struct model_speed *speed)
{
	return speed != NULL && speed->measured && speed->token_ms > 0 ? (double)speed->token_ms
								       : usual_ms;
}
