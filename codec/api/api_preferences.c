#include "codec/api/api_preferences.h"

#include <math.h>

/* What was read so far; each step sets `wrong`, and nothing is read after that. */
struct preferences_reader {
	struct slice rest;
	const char *wrong; /* NULL: nothing is */
	bool busy, hinted;
	struct arena *into;
	struct model_preferences *out;
};

static void skip_blanks(struct preferences_reader *r)
{
	while (r->rest.len != 0 && (r->rest.at[0] == ' ' || r->rest.at[0] == '\t'))
		r->rest = slice_of(r->rest.at + 1, r->rest.len - 1);
}

static bool take(struct preferences_reader *r, char c)
{
	if (r->rest.len == 0 || r->rest.at[0] != c)
		return false;
	r->rest = slice_of(r->rest.at + 1, r->rest.len - 1);
	return true;
}

static struct slice take_name(struct preferences_reader *r)
{
	size_t len = 0;

	while (len < r->rest.len && r->rest.at[len] >= 'a' && r->rest.at[len] <= 'z')
		len++;
	const struct slice name = slice_of(r->rest.at, len);
	r->rest = slice_of(r->rest.at + len, r->rest.len - len);
	return name;
}

/* ---- priorities ---- */

static int take_digit(struct preferences_reader *r)
{
	const int digit = r->rest.len == 0 ? -1 : r->rest.at[0] - '0';

	if (digit < 0 || digit > 9)
		return -1;
	(void)take(r, r->rest.at[0]);
	return digit;
}

/* 0 to 1: "0", "1", "0.25", "1.0"; NAN: it is something else. */
static double take_fraction(struct preferences_reader *r)
{
	const int whole = take_digit(r);
	uint32_t part = 0, unit = 1;
	int digit, digits = 0;

	if (whole != 0 && whole != 1)
		return NAN;
	if (!take(r, '.'))
		return whole;
	while ((digit = take_digit(r)) >= 0 && digits < API_PRIORITY_DIGITS) {
		part = part * 10 + (uint32_t)digit;
		unit *= 10;
		digits++;
	}
	if (digits == 0 || digit >= 0 || (whole == 1 && part != 0))
		return NAN;
	return whole + (double)part / unit;
}

static void read_priority(struct preferences_reader *r, double *out, const char *twice,
			  const char *wrong)
{
	if (!isnan(*out)) {
		r->wrong = twice;
		return;
	}
	*out = take_fraction(r);
	if (isnan(*out))
		r->wrong = wrong;
}

/* ---- hints ---- */

static bool is_hint(struct slice hint)
{
	for (size_t i = 0; i < hint.len; i++)
		if (hint.at[i] < ' ' || hint.at[i] > '~' || hint.at[i] == '\\')
			return false;
	return hint.len != 0 && hint.len <= API_HINT_BYTES_MAX;
}

/* What is between the quotes; absent: there are none. */
static struct slice take_quoted(struct preferences_reader *r)
{
	size_t len = 0;

	if (!take(r, '"'))
		return slice_of(NULL, 0);
	while (len < r->rest.len && r->rest.at[len] != '"')
		len++;
	const struct slice inside = slice_of(r->rest.at, len);
	r->rest = slice_of(r->rest.at + len, r->rest.len - len);
	return take(r, '"') ? inside : slice_of(NULL, 0);
}

static void read_hints(struct preferences_reader *r)
{
	struct slice list = take_quoted(r);

	r->wrong = r->hinted ? "hints is there twice"
		   : slice_absent(list)
			   ? "hints must be a list in quotes, as in hints=\"sonnet, gpt\""
			   : NULL;
	if (r->wrong != NULL)
		return;
	r->hinted = true;
	r->out->hints = arena_take(r->into, API_HINTS_MAX * sizeof(*r->out->hints));
	r->busy = r->out->hints == NULL;
	r->wrong = r->busy ? "there is no memory" : NULL;
	while (r->wrong == NULL && !slice_absent(list)) {
		const struct slice hint = slice_trim(slice_cut(&list, ','));
		if (!is_hint(hint))
			r->wrong = "each of hints must be 1 to 128 visible ASCII characters, "
				   "without quotes and backslashes";
		else if (r->out->hint_count == API_HINTS_MAX)
			r->wrong = "hints has more than 16 names";
		else
			r->out->hints[r->out->hint_count++] = hint;
	}
}

/* ---- members ---- */

#define PRIORITY(name) \
#name " is there twice", #name " must be a number from 0 to 1, with at most six digits"

static void read_member(struct preferences_reader *r)
{
	const struct slice name = take_name(r);

	if (!take(r, '='))
		r->wrong = "must be like cost=0.7, speed=0.2, intelligence=0.1; "
			   "hints=\"sonnet, gpt\"";
	else if (slice_eq(name, SLICE("cost")))
		read_priority(r, &r->out->cost, PRIORITY(cost));
	else if (slice_eq(name, SLICE("speed")))
		read_priority(r, &r->out->speed, PRIORITY(speed));
	else if (slice_eq(name, SLICE("intelligence")))
		read_priority(r, &r->out->intelligence, PRIORITY(intelligence));
	else if (slice_eq(name, SLICE("hints")))
		read_hints(r);
	else
		r->wrong = "has a member that is none of cost, speed, intelligence and hints";
}

const char *api_preferences_read(struct slice text, struct arena *into,
				 struct model_preferences *out, bool *busy)
{
	struct preferences_reader r = { .rest = slice_trim(text), .into = into, .out = out };

	_Static_assert(API_HINTS_MAX == 16 && API_HINT_BYTES_MAX == 128 && API_PRIORITY_DIGITS == 6,
		       "what is said of them");
	*out = (struct model_preferences){ .cost = NAN, .speed = NAN, .intelligence = NAN };
	do {
		skip_blanks(&r);
		read_member(&r);
		skip_blanks(&r);
	} while (r.wrong == NULL && (take(&r, ',') || take(&r, ';')));
	if (r.wrong == NULL && r.rest.len != 0)
		r.wrong = "has something behind a member that is neither a comma nor a semicolon";
	*busy = r.busy;
	return r.wrong;
}
