/* Every member that does not pass unread, at every place and depth where an object of its kind may stand: in another case,
 * escaped, twice, and refused where it is one of those that never pass. */
#include "tests/unit/codec/api/api_rig.h"

#include "codec/api/api_members.h"
#include "codec/base/must.h"

enum { M = 1, C = 2, MC = 3 };

struct row {
	unsigned apis;
	const char *name;
	enum api_act act;
	enum api_argument argument;
};

#define PLACE_BEGIN(place) static const struct row place##_rows[] = {
#define MEMBER(apis, name, act, argument, field, kinds) \
	{ apis, name, API_ACT_##act, API_ARG_##argument },
#define PLACE_END(place) \
	}                \
	;
#include "codec/api/tbl/members.h"
#undef PLACE_BEGIN
#undef MEMBER
#undef PLACE_END

/* Where an object of a kind may stand: what goes in front of its members, and behind. */
struct site {
	unsigned apis;
	const char *front, *rear;
	const struct row *rows;
	size_t count;
};

#define TOP_FRONT "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\"}],"
#define SITE(apis, front, rear, place)                                  \
	{                                                               \
		apis, front, rear, place##_rows, COUNT_OF(place##_rows) \
	}
/* A member of the request, of a message, of its content, and of the content of a tool's result in it. */
#define AT_TOP(apis, front, rear, place) SITE(apis, TOP_FRONT front, rear "}", place)
#define AT_MESSAGE(apis, front, rear, place)                                                      \
	SITE(apis, "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\"},{" front, \
	     rear "}]}", place)
#define AT_BLOCK(apis, front, rear, place)                                                        \
	AT_MESSAGE(apis, "\"content\":[{\"type\":\"x\"},{" front, rear "}]", place),              \
		AT_MESSAGE(apis, "\"content\":{" front, rear "}", place),                         \
		AT_MESSAGE(apis,                                                                  \
			   "\"content\":[{\"type\":\"tool_result\",\"content\":[{"                \
			   "\"type\":\"document\",\"content\":[{" front,                          \
			   rear "}]}]}]", place),                                                 \
		AT_MESSAGE(M &(apis),                                                             \
			   "\"content\":[{\"source\":{\"type\":\"content\",\"content\":[{" front, \
			   rear "}]}}]", place),                                                  \
		AT_MESSAGE(M &(apis), "\"content\":[{\"tool_changes\":[{" front, rear "}]}]",     \
			   place),                                                                \
		AT_MESSAGE(C &(apis), "\"reasoning_details\":[{" front, rear "}]", place),        \
		AT_MESSAGE(C &(apis), "\"thinking_blocks\":[{" front, rear "}]", place),          \
		AT_TOP(M &(apis), "\"system\":[{" front, rear "}]", place)
#define AT_TOOL(apis, front, rear, place)                                                      \
	AT_TOP(apis, "\"tools\":[{\"name\":\"a\"},{" front, rear "}]", place),                 \
		AT_MESSAGE(M &(apis), "\"content\":[{\"tools\":[{" front, rear "}]}]", place), \
		AT_MESSAGE(M &(apis), "\"content\":[{\"tool\":{\"definition\":{" front,        \
			   rear "}}}]", place)

static const struct site sites[] = {
	AT_TOP(MC, "", "", TOP),
	AT_TOP(C, "\"stream_options\":{", "}", STREAM_OPTIONS),
	AT_TOP(M, "\"metadata\":{", "}", METADATA),
	AT_TOP(MC, "\"thinking\":{", "}", THINKING),
	AT_TOP(MC, "\"cache_control\":{", "}", CACHE),
	AT_MESSAGE(MC, "\"cache_control\":{", "}", CACHE),
	AT_BLOCK(MC, "\"cache_control\":{", "}", CACHE),
	AT_TOOL(MC, "\"cache_control\":{", "}", CACHE),
	AT_MESSAGE(MC, "", "", MESSAGE),
	AT_BLOCK(MC, "", "", BLOCK),
	AT_BLOCK(MC, "\"source\":{", "}", SOURCE),
	AT_BLOCK(MC, "\"source\":[{", "}]", SOURCE),
	AT_BLOCK(C, "\"image_url\":{", "}", SOURCE),
	AT_BLOCK(C, "\"image_file\":{", "}", SOURCE),
	AT_BLOCK(C, "\"video_url\":{", "}", SOURCE),
	AT_BLOCK(C, "\"audio_url\":{", "}", SOURCE),
	AT_BLOCK(C, "\"file_url\":{", "}", SOURCE),
	AT_BLOCK(C, "\"file\":{", "}", SOURCE),
	AT_BLOCK(C, "\"input_audio\":{", "}", SOURCE),
	AT_BLOCK(M, "\"tool\":{", "}", CHANGE),
	AT_TOOL(MC, "", "", TOOL),
	AT_TOOL(C, "\"function\":{", "}", BODY),
	AT_TOOL(C, "\"custom\":{", "}", BODY),
	AT_TOOL(C, "\"file_search\":{", "}", BODY),
	AT_TOOL(C, "\"code_interpreter\":{", "}", BODY),
	AT_TOP(C, "\"functions\":[{", "}]", FUNCTION),
};

static const char *upper(const char *name, char *out)
{
	char *at = out;

	for (; *name != '\0'; name++)
		*at++ = *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
	*at = '\0';
	return out;
}

/* The first letter that Go folds into ASCII as the other one that it folds from; NULL: the name has none. */
static const char *folded(const char *name, bool escaped, char *out)
{
	const size_t front = strcspn(name, "sk");
	const char *letter = name[front] == 's' ? (escaped ? "\\u017f" : "\xc5\xbf")
						: (escaped ? "\\u212A" : "\xe2\x84\xaa");

	if (name[front] == '\0')
		return NULL;
	(void)sprintf(out, "%.*s%s%s", (int)front, name, letter, name + front + 1);
	return out;
}

static const char *escaped(const char *name, char *out)
{
	(void)sprintf(out, "\\u%04x%s", (unsigned)name[0], name + 1);
	return out;
}

/* What becomes of `members` at the site. */
static void assert_read(const struct site *site, enum api api, const char *members, enum err want,
			const char *name)
{
	char body[1024];
	struct api_reading r;

	(void)snprintf(body, sizeof(body), "%s%s%s", site->front, members, site->rear);
	api_rig_begin(&r, api, slice_str(body));
	if (r.err != want)
		fail_msg("%s: %s instead of %s", body, err_info(r.err)->reason,
			 err_info(want)->reason);
	const size_t len = strlen(name);
	if (want != ERR_OK && want != ERR_DUPLICATE_KEY &&
	    (r.fault.path.len < len ||
	     memcmp(r.fault.path.at + r.fault.path.len - len, name, len) != 0))
		fail_msg("%s: at %.*s", body, (int)r.fault.path.len, r.fault.path.at);
	api_rig_end(&r);
}

/* The base of a site at the top has these. */
static bool is_there(const struct site *site, const char *name)
{
	static const char *const base[] = { "model", "max_tokens", "messages" };

	for (size_t i = 0; i < COUNT_OF(base); i++)
		if (site->rows == TOP_rows && strcmp(name, base[i]) == 0)
			return true;
	return false;
}

static void assert_row(const struct site *site, enum api api, const struct row *row)
{
	const enum err never = row->argument == API_ARG_THREAD ? ERR_NOT_AVAILABLE : ERR_POLICY;
	char other[128], members[512];

	(void)snprintf(members, sizeof(members), "\"%s\":null", upper(row->name, other));
	assert_read(site, api, members, ERR_FIELD, row->name);
	for (int i = 0; i < 2 && folded(row->name, i == 1, other) != NULL; i++) {
		(void)snprintf(members, sizeof(members), "\"%s\":null", other);
		assert_read(site, api, members, ERR_FIELD, row->name);
	}
	(void)snprintf(members, sizeof(members), "\"%s\":null,\"x\":1,\"%s\":null", row->name,
		       escaped(row->name, other));
	assert_read(site, api, members, ERR_DUPLICATE_KEY, row->name);
	if (row->act != API_ACT_REFUSE)
		return;
	must(!is_there(site, row->name));
	(void)snprintf(members, sizeof(members), "\"%s\":null", row->name);
	assert_read(site, api, members, ERR_OK, row->name);
	(void)snprintf(members, sizeof(members), "\"%s\":{}", row->name);
	assert_read(site, api, members, never, row->name);
	(void)snprintf(members, sizeof(members), "\"%s\":\"x\"", other);
	assert_read(site, api, members, never, row->name);
}

static void nothing_passes_unread_at_any_place(void **state)
{
	static const enum api apis[] = { API_MESSAGES, API_COUNT, API_CHAT };
	uint32_t asserted = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sites) * COUNT_OF(apis); i++) {
		const struct site *site = &sites[i / COUNT_OF(apis)];
		const enum api api = apis[i % COUNT_OF(apis)];
		const unsigned bit = api_is_anthropic(api) ? M : C;
		for (size_t j = 0; (site->apis & bit) != 0 && j < site->count; j++) {
			if ((site->rows[j].apis & bit) == 0)
				continue;
			assert_row(site, api, &site->rows[j]);
			asserted++;
		}
	}
	assert_in_range(asserted, 500, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_passes_unread_at_any_place),
	};

	return cmocka_run_group_tests_name("api_places", tests, NULL, NULL);
}
