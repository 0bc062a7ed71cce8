#include "routing/retry.h"

#include "codec/base/must.h"

const struct retry_settings retry_settings_default = {
	.share = 0.15,
	.floor = 5,
	.window = 10 * SEC,
};

/* What can be saved up in good times: so much of a window's share. More of it would make a short outage
 * worse than the share allows. */
static const double kept_of_window = 0.1;

/* The most that may be there: that, or the floor. */
static double most(const struct retry_budget *budget, const struct retry_settings *settings)
{
	const double saved = budget->recent * settings->share * kept_of_window;

	return saved > settings->floor ? saved : settings->floor;
}

/* The floor is refilled over a window, and only for those whose requests do not fill it. */
static void bring_up(struct retry_budget *budget, const struct retry_settings *settings, nsec_t now)
{
	const double passed = (double)(now - budget->at) / (double)settings->window;

	must(settings->window > 0);
	if (budget->at == 0) {
		budget->left = settings->floor;
		budget->at = now;
		return;
	}
	budget->at = now;
	budget->recent *= passed < 1 ? 1 - passed : 0;
	const double own = budget->recent * settings->share;
	if (own < settings->floor)
		budget->left += passed * (settings->floor - own);
	if (budget->left > most(budget, settings))
		budget->left = most(budget, settings);
}

void retry_note_request(struct retry_budget *budget, const struct retry_settings *settings,
			nsec_t now)
{
	bring_up(budget, settings, now);
	budget->recent += 1;
	budget->left += settings->share;
	if (budget->left > most(budget, settings))
		budget->left = most(budget, settings);
}

bool retry_has(struct retry_budget *budget, const struct retry_settings *settings, nsec_t now)
{
	bring_up(budget, settings, now);
	return budget->left >= 1;
}

void retry_take(struct retry_budget *budget)
{
	must(budget->left >= 1);
	budget->left -= 1;
}
