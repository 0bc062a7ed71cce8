#include "routing/name.h"

/* ---- what is put around a name ---- */

static bool is_digits(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
	return s.len != 0;
}

static bool drop_front(struct slice *name, struct slice prefix)
{
	if (name->len <= prefix.len || !slice_eq_nocase(slice_of(name->at, prefix.len), prefix))
		return false;
	*name = slice_of(name->at + prefix.len, name->len - prefix.len);
	return true;
}

static bool drop_end(struct slice *name, struct slice suffix)
{
	if (name->len <= suffix.len ||
	    !slice_eq_nocase(slice_of(name->at + name->len - suffix.len, suffix.len), suffix))
		return false;
	name->len -= suffix.len;
	return true;
}

/* Who offers it: "anthropic/", "us.anthropic.". */
static void drop_vendor(struct slice *name)
{
	static const struct slice vendors[] = { SLICE_INIT("anthropic/"), SLICE_INIT("openai/"),
						SLICE_INIT("models/") };
	static const struct slice regions[] = { SLICE_INIT("us."),   SLICE_INIT("eu."),
						SLICE_INIT("apac."), SLICE_INIT("jp."),
						SLICE_INIT("au."),   SLICE_INIT("global.") };
	struct slice rest = *name;

	for (size_t i = 0; i < COUNT_OF(vendors); i++)
		if (drop_front(name, vendors[i]))
			return;
	for (size_t i = 0; i < COUNT_OF(regions); i++)
		if (drop_front(&rest, regions[i]))
			break;
	if (drop_front(&rest, SLICE("anthropic.")))
		*name = rest;
}

/* Eight digits behind `mark`. */
static bool drop_date(struct slice *name, char mark, struct slice *date)
{
	enum { DATE = 8 };

	if (name->len <= DATE + 1 || name->at[name->len - DATE - 1] != mark ||
	    !is_digits(slice_of(name->at + name->len - DATE, DATE)))
		return false;
	*date = slice_of(name->at + name->len - DATE, DATE);
	name->len -= DATE + 1;
	return true;
}

/* "-v1:0"; "claude-v2:1" is a name. */
static void drop_revision(struct slice *name)
{
	struct slice rest = *name;

	if (!drop_end(&rest, SLICE(":0")))
		return;
	const size_t colon = rest.len;
	while (rest.len > 0 && rest.at[rest.len - 1] >= '0' && rest.at[rest.len - 1] <= '9')
		rest.len--;
	if (rest.len != colon && drop_end(&rest, SLICE("-v")))
		*name = rest;
}

struct slice name_core(struct slice name, struct slice *date)
{
	*date = slice_of(NULL, 0);
	drop_vendor(&name);
	(void)drop_end(&name, SLICE("[1m]"));
	drop_revision(&name);
	if (!drop_date(&name, '@', date) && !drop_date(&name, '-', date))
		(void)drop_end(&name, SLICE("-latest"));
	return name;
}

/* ---- who has it ---- */

typedef bool name_test(struct slice name, struct slice wanted);

static bool is_exactly(struct slice name, struct slice wanted)
{
	return slice_eq(name, wanted);
}

static bool is_about(struct slice name, struct slice wanted)
{
	struct slice date, wanted_date;

	if (!slice_eq_nocase(name_core(name, &date), name_core(wanted, &wanted_date)))
		return false;
	return slice_absent(date) || slice_absent(wanted_date) || slice_eq(date, wanted_date);
}

static bool answers_to(const struct model *model, struct slice wanted, name_test *test)
{
	if (test(model->id, wanted) || test(model->name, wanted))
		return true;
	for (uint32_t i = 0; i < model->alias_count; i++)
		if (test(model->aliases[i], wanted))
			return true;
	return false;
}

static bool find(const struct catalog *catalog, struct slice wanted, name_test *test,
		 struct bitset *out)
{
	bool found = false;

	for (uint32_t i = 0; i < catalog->count; i++) {
		if (!answers_to(&catalog->models[i], wanted, test))
			continue;
		bitset_add(out, i);
		found = true;
	}
	return found;
}

/* The first row of the tenant's table that a name in lower case fits. */
static bool find_equivalent(const struct hint_alias *aliases, uint32_t count, struct slice small,
			    struct bitset *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!slice_glob(aliases[i].hint, small))
			continue;
		*out = aliases[i].models;
		return true;
	}
	return false;
}

void name_match(const struct catalog *catalog, const struct hint_alias *aliases,
		uint32_t alias_count, struct slice name, struct bitset *out)
{
	char small[NAME_BYTES_MAX];

	*out = (struct bitset){ 0 };
	if (name.len == 0 || name.len > sizeof(small))
		return;
	for (size_t i = 0; i < name.len; i++) {
		const char c = name.at[i];
		small[i] = c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
	}
	const struct slice lower = slice_of(small, name.len);
	if (find(catalog, name, is_exactly, out) ||
	    find_equivalent(aliases, alias_count, lower, out))
		return;
	struct slice date;
	if (!find(catalog, lower, is_about, out))
		(void)find_equivalent(aliases, alias_count, name_core(lower, &date), out);
}
