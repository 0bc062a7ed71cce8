#include "codec/api/api_models.h"

#include "codec/api/api_date.h"
#include "codec/json/json_scan.h"

/* ---- the page ---- */

struct slice api_model_id(struct slice path, struct arena *into)
{
	char *text = arena_take(into, path.len == 0 ? 1 : path.len), *to = text;

	if (text == NULL)
		return slice_of(NULL, 0);
	for (size_t i = 0; i < path.len; i++) {
		const bool escape = path.at[i] == '%' && path.len - i > 2;
		const int high = escape ? scan_hex_values[(unsigned char)path.at[i + 1]] : 0;
		const int low = escape ? scan_hex_values[(unsigned char)path.at[i + 2]] : 0;
		if (high != 0 && low != 0) {
			*to++ = (char)((high - 1) * 16 + low - 1);
			i += 2;
		} else {
			*to++ = path.at[i];
		}
	}
	return slice_of(text, (size_t)(to - text));
}

struct query {
	struct slice limit, after, before; /* absent: not said */
};

static void read_query(struct slice query, struct query *out)
{
	const struct slice none = { NULL, 0 };

	*out = (struct query){ none, none, none };
	while (!slice_absent(query)) {
		struct slice value = slice_cut(&query, '&');
		const struct slice name = slice_cut(&value, '=');
		if (slice_eq(name, SLICE("limit")))
			out->limit = value;
		else if (slice_eq(name, SLICE("after_id")))
			out->after = value;
		else if (slice_eq(name, SLICE("before_id")))
			out->before = value;
	}
}

/* The place of the model that a cursor names; count: there is none. */
static size_t place_of(struct slice cursor, const struct api_model *models, size_t count,
		       struct arena *into)
{
	const struct slice id = api_model_id(cursor, into);
	size_t at = 0;

	while (at < count && !slice_eq(models[at].id, id))
		at++;
	return at;
}

bool api_models_find(enum api_models_shape shape, struct slice query,
		     const struct api_model *models, size_t count, struct arena *into,
		     struct api_models_page *page, const char **wrong)
{
	uint64_t limit = API_MODELS_PAGE;
	size_t from = 0, to = count;
	struct query q;

	*page = (struct api_models_page){ 0, count, false };
	if (shape == API_MODELS_OPENAI)
		return true;
	read_query(query, &q);
	*wrong = "limit";
	if (!slice_absent(q.limit) &&
	    (!slice_to_u64(q.limit, &limit) || limit == 0 || limit > API_MODELS_PAGE_MAX))
		return false;
	*wrong = "after_id";
	if (!slice_absent(q.after) && (from = place_of(q.after, models, count, into) + 1) > count)
		return false;
	*wrong = "before_id";
	if (!slice_absent(q.before) && (to = place_of(q.before, models, count, into)) == count)
		return false;
	*wrong = NULL;
	if (from > to)
		from = to;
	const bool more = to - from > limit;
	if (more && slice_absent(q.after) && !slice_absent(q.before))
		from = to - (size_t)limit; /* backwards: those next to the cursor */
	else if (more)
		to = from + (size_t)limit;
	*page = (struct api_models_page){ from, to - from, more };
	return true;
}

/* ---- writing ---- */

static void put_count(struct gather *g, const char *name, uint64_t count)
{
	if (count == 0)
		return;
	gather_lit(g, ",\"");
	gather_raw(g, slice_str(name));
	gather_lit(g, "\":");
	gather_uint(g, count);
}

static void write_anthropic(struct gather *g, const struct api_model *model)
{
	char date[API_DATE_MAX];

	api_date(date, model->created_s);
	gather_lit(g, "{\"type\":\"model\",\"id\":");
	gather_plain(g, model->id);
	gather_lit(g, ",\"display_name\":");
	gather_plain(g, slice_absent(model->name) ? model->id : model->name);
	gather_lit(g, ",\"created_at\":");
	gather_plain(g, slice_str(date));
	gather_lit(g, ",\"lifecycle\":\"active\"");
	put_count(g, "max_input_tokens", model->input_max);
	put_count(g, "max_tokens", model->output_max);
	gather_lit(g, "}");
}

static void write_openai(struct gather *g, const struct api_model *model)
{
	gather_lit(g, "{\"id\":");
	gather_plain(g, model->id);
	gather_lit(g, ",\"object\":\"model\",\"created\":");
	gather_uint(g, model->created_s);
	gather_lit(g, ",\"owned_by\":");
	gather_plain(g, slice_absent(model->owner) ? SLICE("sluice") : model->owner);
	gather_lit(g, "}");
}

void api_model_write(struct gather *g, enum api_models_shape shape, const struct api_model *model)
{
	if (shape == API_MODELS_ANTHROPIC)
		write_anthropic(g, model);
	else
		write_openai(g, model);
}

static void put_end(struct gather *g, const struct api_model *models,
		    const struct api_models_page *page, size_t at)
{
	if (page->count == 0)
		gather_lit(g, "null");
	else
		gather_plain(g, models[at].id);
}

void api_models_write(struct gather *g, enum api_models_shape shape, const struct api_model *models,
		      const struct api_models_page *page)
{
	if (shape == API_MODELS_OPENAI)
		gather_lit(g, "{\"object\":\"list\",\"data\":[");
	else
		gather_lit(g, "{\"data\":[");
	for (size_t i = 0; i < page->count; i++) {
		if (i != 0)
			gather_lit(g, ",");
		api_model_write(g, shape, &models[page->from + i]);
	}
	gather_lit(g, "]");
	if (shape == API_MODELS_ANTHROPIC) {
		gather_raw(g, page->more ? SLICE(",\"has_more\":true,\"first_id\":")
					 : SLICE(",\"has_more\":false,\"first_id\":"));
		put_end(g, models, page, page->from);
		gather_lit(g, ",\"last_id\":");
		put_end(g, models, page, page->from + page->count - 1);
	}
	gather_lit(g, "}");
}
