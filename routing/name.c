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

static bool find_id(const struct catalog *catalog, struct slice wanted, struct bitset *out)
{
	const int32_t found = catalog_find(catalog, wanted);

	if (found < 0)
		return false;
	bitset_add(out, (size_t)found);
	return true;
}

uint32_t name_equivalent(const struct hint_alias *aliases, uint32_t count, struct slice lower)
{
	uint32_t i = 0;

	while (i < count && !slice_glob(aliases[i].hint, lower))
		i++;
	return i;
}

static bool find_equivalent(const struct hint_alias *aliases, uint32_t count, struct slice lower,
			    struct bitset *out)
{
	const uint32_t i = name_equivalent(aliases, count, lower);

	if (i == count)
		return false;
	*out = aliases[i].models;
	return true;
}

/* ---- globs ---- */

static size_t literal_prefix(struct slice glob)
{
	size_t len = 0;

	while (len < glob.len && glob.at[len] != '*' && glob.at[len] != '?')
		len++;
	return len;
}

bool name_is_glob(struct slice name)
{
	return literal_prefix(name) != name.len;
}

static struct slice lower_case(struct slice name, char buffer[NAME_BYTES_MAX])
{
	for (size_t i = 0; i < name.len; i++) {
		const char c = name.at[i];
		buffer[i] = c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
	}
	return slice_of(buffer, name.len);
}

/* What is looked for, and the best that was found. */
struct glob_search {
	struct slice lower, core; /* of the name, in lower case */
	size_t prefix, len;       /* of the best glob; 0: none fits yet */
};

/* Notes model `m` if its glob is as good as the best one; alone if it is better. */
static void try_glob(struct glob_search *search, struct slice alias, uint32_t m, struct bitset *out)
{
	char buffer[NAME_BYTES_MAX];
	const size_t prefix = literal_prefix(alias);

	if (prefix == alias.len || alias.len > sizeof(buffer) || prefix < search->prefix ||
	    (prefix == search->prefix && alias.len < search->len))
		return;
	const struct slice glob = lower_case(alias, buffer);
	if (!slice_glob(glob, search->lower) && !slice_glob(glob, search->core))
		return;
	if (prefix != search->prefix || alias.len != search->len)
		*out = (struct bitset){ 0 };
	search->prefix = prefix;
	search->len = alias.len;
	bitset_add(out, m);
}

static void find_globs(const struct catalog *catalog, struct glob_search *search,
		       struct bitset *out)
{
	for (uint32_t m = 0; m < catalog->count; m++)
		for (uint32_t i = 0; i < catalog->models[m].alias_count; i++)
			try_glob(search, catalog->models[m].aliases[i], m, out);
}

/* ---- the door ---- */

bool name_is_auto(struct slice name)
{
	return slice_eq_nocase(name, SLICE("auto"));
}

void name_match(const struct catalog *catalog, const struct hint_alias *aliases,
		uint32_t alias_count, struct slice name, struct bitset *out)
{
	char small[NAME_BYTES_MAX];
	struct slice date;

	*out = (struct bitset){ 0 };
	if (name.len == 0 || name.len > sizeof(small) || name_is_auto(name))
		return;
	const struct slice lower = lower_case(name, small);
	if (find_id(catalog, name, out) || find(catalog, name, is_exactly, out) ||
	    find_equivalent(aliases, alias_count, lower, out))
		return;
	struct glob_search search = { .lower = lower, .core = name_core(lower, &date) };
	if (!find(catalog, lower, is_about, out) &&
	    !find_equivalent(aliases, alias_count, search.core, out))
		find_globs(catalog, &search, out);
}
