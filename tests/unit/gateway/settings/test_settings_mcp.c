#include "tests/unit/gateway/ca_pem.h"
#include "tests/unit/gateway/settings/settings_rig.h"

#define REST RIG_PROVIDERS RIG_MODELS
#define SERVERS(text) REST "mcp_servers:\n" text

/* 32 bytes each. */
#define SEAL_ZEROS "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define SEAL_ONES "//////////////////////////////////////////8="

static const struct mcp_server *server(const struct rig *rig, const char *name)
{
	const struct mcp_server *found = config_mcp_named(rig->config, slice_str(name));

	assert_non_null(found);
	return found;
}

static void a_server_needs_nothing_but_its_url(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, SERVERS("  one: {url: \"http://Tools.example:3001/mcp/\"}\n"));
	assert_int_equal(rig.config->mcp_server_count, 1);
	const struct mcp_server *s = config_mcp_server(rig.config, SLICE("one"));
	assert_ptr_equal(s, rig.config->mcp_servers);
	assert_slice(s->name, "one");
	assert_true(s->enabled && s->unsolicited);
	assert_false(s->client_auth);
	assert_int_equal(s->transport, MCP_AUTO);
	assert_int_equal(s->sampling, MCP_BACKFILL);
	assert_int_equal(s->head.len, 0);
	assert_int_equal(s->pass_header_count, 0);
	assert_int_equal(s->timeouts.connect, 2 * SEC);
	assert_int_equal(s->timeouts.first_byte, 600 * SEC);
	assert_int_equal(s->timeouts.idle, 600 * SEC);
	assert_true(s->timeouts.total == NSEC_NEVER);
	assert_int_equal(s->sessions, 10000);
	assert_int_equal(s->endpoint_count, 1);
	const struct endpoint *e = s->endpoints;
	assert_slice(e->url, "http://Tools.example:3001/mcp/");
	assert_string_equal(e->host.at, "tools.example");
	assert_int_equal(e->port, 3001);
	assert_false(e->tls);
	assert_slice(e->path, "/mcp/");
	assert_slice(e->authority, "tools.example:3001");
	assert_slice(e->identity, "http|tools.example|3001|");
	assert_int_equal(e->weight, 1);
	assert_int_equal(e->concurrent, UINT32_MAX);
	assert_int_equal(e->queue, 4096);
	assert_true(slice_absent(e->zone));
	assert_slice(s->queries[0], "");
	rig_fini(&rig);
}

static void a_server_has_what_the_file_says(void **state)
{
	struct rig rig;
	(void)state;
	assert_int_equal(setenv("SLUICE_TEST_KEY", "hush", 1), 0);
	rig_load_good(&rig,
		      SERVERS("  all:\n"
			      "    endpoints:\n"
			      "      - {url: \"https://a.example?key=${SLUICE_TEST_KEY}&x=1?\", "
			      "weight: 3,"
			      " zone: z}\n"
			      "      - {url: \"http://[::1]:80/a//b?\"}\n"
			      "    transport: sse\n"
			      "    sampling: refuse\n"
			      "    headers: {X-Team: \"a  b\", \"x-%\": \"${SLUICE_TEST_KEY}!\"}\n"
			      "    authorization: \"Bearer ${SLUICE_TEST_KEY}\"\n"
			      "    unsolicited: refuse\n"
			      "    pass_headers: [X-User, x-Tenant]\n"
			      "    timeouts: {connect: 1s, first_byte: 20h, idle: 3s}\n"
			      "    sessions: 7\n"
			      "    enabled: false\n"
			      "  b: {url: \"http://b\", transport: http, sampling: force}\n"
			      "  c: {url: \"http://c\", sampling: relay, auth: client}\n"
			      "  d: {url: \"http://d\", headers: {Authorization: Basic}}\n"));
	const struct mcp_server *s = server(&rig, "all");
	assert_null(config_mcp_server(rig.config, SLICE("all")));
	assert_int_equal(s->endpoint_count, 2);
	assert_slice(s->endpoints[0].url, "https://a.example");
	assert_slice(s->endpoints[0].path, "/");
	assert_slice(s->queries[0], "?key=hush&x=1?");
	assert_int_equal(s->endpoints[0].weight, 3);
	assert_slice(s->endpoints[0].zone, "z");
	assert_slice(s->endpoints[0].identity, "https|a.example|443|");
	assert_slice(s->endpoints[1].path, "/a//b");
	assert_slice(s->endpoints[1].authority, "[::1]");
	assert_slice(s->queries[1], "?");
	assert_memory_not_equal(s->digests[0], s->digests[1], sizeof(s->digests[0]));
	assert_int_equal(s->endpoints[1].weight, 1);
	assert_int_equal(s->transport, MCP_SSE);
	assert_int_equal(s->sampling, MCP_REFUSE);
	assert_slice(s->head, "authorization: Bearer hush\r\nx-team: a  b\r\nx-%: hush!\r\n");
	assert_false(s->unsolicited || s->client_auth);
	assert_int_equal(s->pass_header_count, 2);
	assert_slice(s->pass_headers[0], "x-user");
	assert_slice(s->pass_headers[1], "x-tenant");
	assert_int_equal(s->timeouts.connect, 1 * SEC);
	assert_int_equal(s->timeouts.first_byte, 20 * 3600 * SEC);
	assert_int_equal(s->timeouts.idle, 3 * SEC);
	assert_int_equal(s->sessions, 7);
	assert_int_equal(server(&rig, "b")->transport, MCP_HTTP);
	assert_int_equal(server(&rig, "b")->sampling, MCP_FORCE);
	assert_int_equal(server(&rig, "c")->sampling, MCP_RELAY);
	assert_true(server(&rig, "c")->client_auth);
	assert_slice(server(&rig, "d")->head, "authorization: Basic\r\n");
	rig_fini(&rig);
}

static void servers_are_found_by_name_in_whatever_order_they_stand(void **state)
{
	static const char *const names[] = { "b", "a.b", "B", "a-", "a", "z_9" };
	struct rig rig;
	(void)state;
	rig_load_good(&rig, SERVERS("  b: {url: \"http://h/0\"}\n"
				    "  a.b: {url: \"http://h/1\"}\n"
				    "  B: {url: \"http://h/2\"}\n"
				    "  a-: {url: \"http://h/3\"}\n"
				    "  a: {url: \"http://h/4\"}\n"
				    "  z_9: {url: \"http://h/5\"}\n"));
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const struct mcp_server *s = config_mcp_server(rig.config, slice_str(names[i]));
		assert_non_null(s);
		assert_int_equal(s->endpoints[0].path.at[1] - '0', i);
	}
	assert_null(config_mcp_server(rig.config, SLICE("A")));
	assert_null(config_mcp_server(rig.config, SLICE("")));
	rig_fini(&rig);
	rig_load_good(&rig, REST);
	assert_null(config_mcp_server(rig.config, SLICE("a")));
	rig_fini(&rig);
}

static void a_ca_is_for_https_alone(void **state)
{
	static const char good[] = SERVERS("  a: {url: \"https://a\", ca: ca.pem}\n");
	static const char bad[] = SERVERS("  a: {url: \"http://a\", ca: ca.pem}\n");
	struct config_file files[] = {
		{ SLICE("conf/sluice.yaml"), slice_str(good) },
		{ SLICE("conf/ca.pem"), slice_str(test_ca) },
	};
	struct rig rig;
	(void)state;
	rig_load_files(&rig, files, COUNT_OF(files));
	assert_string_equal(rig.problems, "");
	assert_slice(rig.config->mcp_servers[0].endpoints[0].ca_pem, test_ca);
	assert_int_equal(rig.config->mcp_servers[0].endpoints[0].identity.len,
			 strlen("https|a|443|") + 64);
	rig_fini(&rig);
	files[0].text = slice_str(bad);
	rig_load_files(&rig, files, COUNT_OF(files));
	assert_string_equal(rig.problems,
			    "conf/sluice.yaml:10: mcp_servers.a.url: is not https, and its server "
			    "has a ca; write https:// or remove ca\n");
	rig_fini(&rig);
}

/* What is wrong with one header, set by the configuration or passed. */
static void headers_that_are_not_the_operators_are_refused(void **state)
{
	static const char written[] = "is written by the gateway itself",
			  hop[] = "is about a single connection",
			  passed[] = "goes on from callers' requests by itself",
			  credential[] = "is what callers authenticate with, which never goes on",
			  origin[] = "is judged here and never goes on";
	static const struct {
		const char *name, *set, *pass; /* NULL: it is taken */
	} rows[] = {
		{ "Host", written, written },
		{ "Content-Type", written, written },
		{ "content-length", written, written },
		{ "Content-Encoding", written, written },
		{ "Accept", written, written },
		{ "ACCEPT-ENCODING", written, written },
		{ "Accept-Language", NULL, NULL },
		{ "Mcp-Session-Id", written, written },
		{ "Transfer-Encoding", hop, hop },
		{ "Connection", hop, hop },
		{ "Keep-Alive", hop, hop },
		{ "TE", hop, hop },
		{ "Trailer", hop, hop },
		{ "Upgrade", hop, hop },
		{ "Expect", hop, hop },
		{ "Proxy-Authorization", hop, hop },
		{ "MCP-Protocol-Version", passed, passed },
		{ "Mcp-Param-Region", passed, passed },
		{ "Last-Event-ID", passed, passed },
		{ "User-Agent", passed, passed },
		{ "traceparent", passed, passed },
		{ "Authorization", NULL, credential },
		{ "Cookie", NULL, credential },
		{ "X-Api-Key", NULL, credential },
		{ "Sluice-Upstream-Authorization", NULL, credential },
		{ "Origin", NULL, origin },
		{ "Forwarded", NULL, NULL },
		{ "X-Forwarded-For", NULL, NULL },
	};
	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
		const bool pass = i % 2 == 1;
		const char *fault = pass ? rows[i / 2].pass : rows[i / 2].set;
		char text[1024], expected[256] = "";
		struct rig rig;
		(void)snprintf(text, sizeof(text), SERVERS("  a: {url: \"http://a\", %s%s%s}\n"),
			       pass ? "pass_headers: [" : "headers: {", rows[i / 2].name,
			       pass ? "]" : ": text}");
		if (fault != NULL)
			(void)snprintf(
				expected, sizeof(expected),
				"conf/sluice.yaml:10: mcp_servers.a.%s%s: %s%s%s; remove it\n",
				pass ? "pass_headers" : "headers.", pass ? "[0]" : rows[i / 2].name,
				pass ? rows[i / 2].name : "", pass ? " " : "", fault);
		rig_load(&rig, text);
		assert_string_equal(rig.problems, expected);
		rig_fini(&rig);
	}
}

static void the_public_url_has_no_slash_at_its_end(void **state)
{
	static const struct {
		const char *said, *kept;
	} rows[] = {
		{ "https://Sluice.example", "https://Sluice.example" },
		{ "https://sluice.example:8443/", "https://sluice.example:8443" },
		{ "http://127.0.0.1:8080/under//", "http://127.0.0.1:8080/under" },
	};
	struct rig rig;
	char text[1024];
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(text, sizeof(text), "public_url: \"%s\"\n" REST, rows[i].said);
		rig_load_good(&rig, text);
		assert_slice(rig.config->public_url, rows[i].kept);
		rig_fini(&rig);
	}
	rig_load_good(&rig, REST);
	assert_true(slice_absent(rig.config->public_url));
	rig_fini(&rig);
}

static void seal_keys_are_of_32_bytes(void **state)
{
	static const char text[] = "seal_keys: [\"file:seal\", \"${SLUICE_TEST_SEAL}\", "
				   "\"-_8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"]\n" REST;
	const struct config_file files[] = {
		{ SLICE("conf/sluice.yaml"), slice_str(text) },
		{ SLICE("conf/seal"), SLICE(SEAL_ZEROS "\n") },
	};
	struct rig rig;
	(void)state;
	assert_int_equal(setenv("SLUICE_TEST_SEAL", SEAL_ONES, 1), 0);
	rig_load_files(&rig, files, COUNT_OF(files));
	assert_string_equal(rig.problems, "");
	assert_int_equal(rig.config->seal_secret_count, 3);
	const struct seal_secret *secrets = rig.config->seal_secrets;
	for (size_t i = 0; i < SEAL_SECRET_BYTES; i++) {
		assert_int_equal(secrets[0].at[i], 0);
		assert_int_equal(secrets[1].at[i], 0xff);
	}
	assert_int_equal(secrets[2].at[0], 0xfb);
	assert_int_equal(secrets[2].at[1], 0xff);
	assert_int_equal(secrets[2].at[2], 0);
	rig_fini(&rig);
	rig_load_good(&rig, REST);
	assert_int_equal(rig.config->seal_secret_count, 0);
	rig_fini(&rig);
}

static void other_seal_keys_are_refused_and_not_repeated(void **state)
{
#define WHAT "; write 32 random bytes in base64, as `openssl rand -base64 32` prints them\n"
	static const struct {
		const char *keys, *problem;
	} rows[] = {
		{ "\"HUSHAAAA\"", "[0]: is not of 32 bytes" WHAT },
		{ "\"HUSHAA==\"", "[0]: is not of 32 bytes" WHAT },
		{ "\"HUSHAA=\"", "[0]: is not base64" WHAT },
		{ "\"HUSH$AAA\"", "[0]: is not base64" WHAT },
		{ "\"" SEAL_ZEROS "=\"", "[0]: is not base64" WHAT },
		{ "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=\"", "[0]: is not base64" WHAT },
		{ "\"" SEAL_ONES "\", \"HUSHAAAA" SEAL_ZEROS "\"", "[1]: is not of 32 bytes" WHAT },
		{ "\"HUSHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"",
		  "[0]: is not of 32 bytes" WHAT },
		{ "\"" SEAL_ZEROS "\", \"" SEAL_ONES "\", \"" SEAL_ZEROS "\"",
		  "[2]: is the same as the one at place 0; remove one\n" },
		{ "\"\"", "[0]: is empty; write a text, ${NAME} or file:PATH\n" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char text[1024], expected[256];
		struct rig rig;
		(void)snprintf(text, sizeof(text), "seal_keys: [%s]\n" REST, rows[i].keys);
		(void)snprintf(expected, sizeof(expected), "conf/sluice.yaml:1: seal_keys%s",
			       rows[i].problem);
		rig_load(&rig, text);
		assert_string_equal(rig.problems, expected);
		assert_null(rig.config);
		rig_fini(&rig);
	}
}

static void listeners_have_all_fronts_or_those_that_are_named(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, REST);
	assert_int_equal(rig.config->listen[0].fronts, FRONTS_ALL);
	rig_fini(&rig);
	rig_load_good(&rig,
		      "listen:\n"
		      "  - {address: \"127.0.0.1:1\"}\n"
		      "  - {address: \"127.0.0.1:2\", fronts: [mcp]}\n"
		      "  - {address: \"127.0.0.1:3\", fronts: [direct, sampling, direct]}\n" REST);
	assert_int_equal(rig.config->listen[0].fronts, FRONTS_ALL);
	assert_int_equal(rig.config->listen[1].fronts, FRONT_MCP);
	assert_int_equal(rig.config->listen[2].fronts, FRONT_SAMPLING | FRONT_DIRECT);
	rig_fini(&rig);
}

static const struct plan *plan_of(const struct rig *rig, const char *tenant)
{
	const struct tenant *found = tenants_by_id(&rig->config->tenants, slice_str(tenant));

	assert_non_null(found);
	return found->plan;
}

static void plans_say_which_servers_and_how_much(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(
		&rig,
		SERVERS("  one: {url: \"http://a\"}\n  two: {url: \"http://b\"}\n") "plans:\n"
										    "  none: {}\n"
										    "  some:\n"
										    "    "
										    "mcp_servers: "
										    "{allow: "
										    "[\"*\"], "
										    "deny: "
										    "[\"t?o\"]}\n"
										    "    limits: "
										    "{mcp_messages_"
										    "per_minute: "
										    "6000, "
										    "mcp_sessions: "
										    "3}\n"
										    "    fronts: "
										    "[mcp, "
										    "sampling]\n"
										    "    servers: "
										    "{one: "
										    "{capabilities:"
										    " {tools: "
										    "true}}}\n"
										    "tenants:\n"
										    "  - {id: "
										    "bare}\n"
										    "  - {id: "
										    "none, plan: "
										    "none}\n"
										    "  - {id: "
										    "some, plan: "
										    "some}\n"
										    "  - {id: "
										    "opens, plan: "
										    "some, "
										    "mcp_servers: "
										    "{deny: []}, "
										    "fronts: "
										    "[mcp]}\n"
										    "  - {id: "
										    "closes, plan: "
										    "some, "
										    "mcp_servers: "
										    "{allow: []}}\n"
										    "  - {id: "
										    "other, plan: "
										    "some, "
										    "mcp_servers: "
										    "{allow: "
										    "[one]},"
										    " limits: "
										    "{mcp_sessions:"
										    " 4}}\n"
										    "  - {id: "
										    "rates, plan: "
										    "some, limits: "
										    "{mcp_messages_"
										    "per_minute: "
										    "1}}\n");
	const struct plan *p = plan_of(&rig, "bare");
	assert_int_equal(p->fronts, FRONTS_ALL);
	assert_int_equal(p->mcp_messages_per_minute, 600);
	assert_int_equal(p->mcp_sessions, 100);
	assert_false(plan_may_use_mcp(p, SLICE("one")));
	p = plan_of(&rig, "none");
	assert_int_equal(p->fronts, FRONTS_ALL);
	assert_false(plan_may_use_mcp(p, SLICE("one")));
	p = plan_of(&rig, "some");
	assert_int_equal(p->fronts, FRONT_MCP | FRONT_SAMPLING);
	assert_int_equal(p->mcp_messages_per_minute, 6000);
	assert_int_equal(p->mcp_sessions, 3);
	assert_true(plan_may_use_mcp(p, SLICE("one")));
	assert_false(plan_may_use_mcp(p, SLICE("two")));
	/* a server's own policy changes nothing about it */
	assert_true(plan_may_use_mcp(plan_for(p, SLICE("one")), SLICE("one")));
	assert_int_equal(plan_for(p, SLICE("one"))->fronts, FRONT_MCP | FRONT_SAMPLING);
	p = plan_of(&rig, "opens");
	assert_int_equal(p->fronts, FRONT_MCP);
	assert_true(plan_may_use_mcp(p, SLICE("one")) && plan_may_use_mcp(p, SLICE("two")));
	p = plan_of(&rig, "closes");
	assert_false(plan_may_use_mcp(p, SLICE("one")));
	p = plan_of(&rig, "other");
	assert_true(plan_may_use_mcp(p, SLICE("one")));
	assert_false(plan_may_use_mcp(p, SLICE("two")));
	assert_int_equal(p->mcp_sessions, 4);
	assert_int_equal(p->mcp_messages_per_minute, 6000);
	p = plan_of(&rig, "rates");
	assert_int_equal(p->mcp_messages_per_minute, 1);
	assert_int_equal(p->mcp_sessions, 3);
	assert_true(plan_may_use_mcp(p, SLICE("one")));
	rig_fini(&rig);
}

/* ---- warnings ---- */

static void assert_warnings(const char *text, const char *expected)
{
	const struct config_file file = { SLICE("conf/sluice.yaml"), slice_str(text) };
	char *said = NULL;
	size_t len = 0;
	struct settings_source source = { .path = file.path.at,
					  .files = &file,
					  .file_count = 1,
					  .warnings = open_memstream(&said, &len) };
	struct config *config = settings_load(&source, stderr);

	assert_non_null(config);
	assert_int_equal(fclose(source.warnings), 0);
	assert_string_equal(said, expected);
	settings_free(&config);
	free(said);
}

#define ALLOW_ALL "plans: {p: {mcp_servers: {allow: [\"*\"]}}}\n"
#define ONE "  one: {url: \"http://a\"}\n"

static void servers_that_nobody_reaches_are_warned_of(void **state)
{
	(void)state;
	assert_warnings(SERVERS(ONE) ALLOW_ALL, "");
	assert_warnings(
		SERVERS(ONE
			"  off: {url: \"http://a\", enabled: false}\n") "plans: {p: {mcp_servers: "
									"{allow: [one]}}}\n",
		"");
	assert_warnings(SERVERS(ONE) "tenants: [{id: a, mcp_servers: {allow: [one]}}]\n", "");
	assert_warnings(
		SERVERS("  two: {url: \"http://b\"}\n" ONE) "plans:\n"
							    "  p: {mcp_servers: {allow: [two, "
							    "\"o*\"], deny: [one]}}\n"
							    "  q: {}\n",
		"conf/sluice.yaml:11: mcp_servers.one: no plan allows it, so that nobody can reach "
		"it; name it in mcp_servers.allow of a plan\n");
}

static void names_of_servers_that_there_are_not_are_warned_of(void **state)
{
	(void)state;
	assert_warnings(
		SERVERS(ONE) "plans:\n"
			     "  p: {mcp_servers: {allow: [one, onw, \"later-*\"], deny: [gone]}}\n"
			     "tenants:\n"
			     "  - {id: a, plan: p}\n"
			     "  - {id: b, plan: p, mcp_servers: {deny: [two]}}\n"
			     "  - id: c\n"
			     "    mcp_servers:\n"
			     "      allow: [two]\n",
		"conf/sluice.yaml:12: plans.p.mcp_servers.allow: there is no MCP server "
		"onw; write a name under mcp_servers, or a glob over names\n"
		"conf/sluice.yaml:18: tenants[2].mcp_servers.allow: there is no MCP server "
		"two; write a name under mcp_servers, or a glob over names\n");
}

static void fronts_that_keep_callers_from_all_servers_are_warned_of(void **state)
{
	(void)state;
	assert_warnings("listen: [{address: \"0.0.0.0:1\", fronts: [direct]}, {address: "
			"\"0.0.0.0:2\", fronts: [mcp]}]\n" SERVERS(ONE) ALLOW_ALL,
			"");
	assert_warnings("listen: [{address: \"0.0.0.0:1\", fronts: [sampling]}]\n" SERVERS(ONE)
				ALLOW_ALL,
			"conf/sluice.yaml:10: mcp_servers: no listener has the front mcp, so that "
			"nobody reaches them; add it to listen[].fronts\n");
	assert_warnings(
		SERVERS(ONE) "plans:\n"
			     "  p: {fronts: [sampling], mcp_servers: {allow: [one]}}\n"
			     "  q: {fronts: [sampling]}\n",
		"conf/sluice.yaml:12: plans.p.fronts: lacks mcp, so that nobody reaches what "
		"mcp_servers.allow names; add it\n");
}

static void a_shared_store_without_seal_keys_is_warned_of(void **state)
{
#define REDIS "store: {kind: redis, url: \"redis://h\"}\n"
	(void)state;
	assert_warnings(REDIS REST, "");
	assert_warnings(REDIS "seal_keys: [\"" SEAL_ONES "\"]\n" SERVERS(ONE) ALLOW_ALL, "");
	assert_warnings(
		REDIS SERVERS(ONE) ALLOW_ALL,
		"conf/sluice.yaml:1: seal_keys: is missing: no other gateway at this Redis, "
		"and none after a restart, knows the sessions of MCP servers; write the same "
		"keys for all\n");
}

static void every_allocation_may_fail(void **state)
{
	static const char text[] =
		"seal_keys: [\"" SEAL_ONES "\"]\npublic_url: \"https://me\"\n" SERVERS(
			"  a: {url: \"http://a?q\", headers: {X-A: b}, authorization: c,"
			" pass_headers: [X-B]}\n") ALLOW_ALL "tenants: [{id: t, plan: p}]\n";
	(void)state;
	rig_load_without_memory(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_needs_nothing_but_its_url),
		cmocka_unit_test(a_server_has_what_the_file_says),
		cmocka_unit_test(servers_are_found_by_name_in_whatever_order_they_stand),
		cmocka_unit_test(a_ca_is_for_https_alone),
		cmocka_unit_test(headers_that_are_not_the_operators_are_refused),
		cmocka_unit_test(the_public_url_has_no_slash_at_its_end),
		cmocka_unit_test(seal_keys_are_of_32_bytes),
		cmocka_unit_test(other_seal_keys_are_refused_and_not_repeated),
		cmocka_unit_test(listeners_have_all_fronts_or_those_that_are_named),
		cmocka_unit_test(plans_say_which_servers_and_how_much),
		cmocka_unit_test(servers_that_nobody_reaches_are_warned_of),
		cmocka_unit_test(names_of_servers_that_there_are_not_are_warned_of),
		cmocka_unit_test(fronts_that_keep_callers_from_all_servers_are_warned_of),
		cmocka_unit_test(a_shared_store_without_seal_keys_is_warned_of),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return cmocka_run_group_tests_name("settings_mcp", tests, NULL, NULL);
}
