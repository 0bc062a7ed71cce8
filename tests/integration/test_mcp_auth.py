#!/usr/bin/env python3
"""/mcp/{server}: how clients learn where tokens come from, what browsers are told, and a user's own credentials for a server
(mcp-proxy.md 3, 9, 12).

ctest: timeout=120
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import jwt_issuer
import mcp_client
import mcp_rig
from mcp_server import event, result, sampling

PUBLIC = "https://sluice.example"
PAGE = "https://inspector.example"
DOCUMENT = "/.well-known/oauth-protected-resource/mcp/"


class With(mcp_client.Client):
    """A client that says something more with each request."""

    def __init__(self, url, more, **options):
        super().__init__(url, **options)
        self.more = more

    def fields(self, method, headers):
        return super().fields(method, {**self.more, **(headers or {})})


class Case(mcp_rig.Case):
    def with_headers(self, url, more, **options):
        client = With(url, more, **options)
        self.addCleanup(client.close)
        return client


class Metadata(Case):
    def front_with_issuer(self, **changes):
        issuer = jwt_issuer.Issuer(self)
        issuer.add("ES256")
        return issuer, self.front(self.server(), settings=lambda settings: settings.update(
            {"public_url": PUBLIC, "identity": {"jwt": [issuer.settings()]}, **changes}))

    def document(self, name, host="sluice.example"):
        return self.client(self.gate.url + DOCUMENT + name, key=None).send("GET", headers={"Host": host})

    def test_it_names_the_resource_and_its_issuers_whatever_the_host_is_said_to_be(self):
        issuer, _ = self.front_with_issuer()
        for host in ("sluice.example", "evil.example"):
            reply = self.document("raw", host)
            self.assertEqual((reply.status, reply.header("content-type"), reply.header("access-control-allow-origin")), (200, "application/json", "*"))
            found = reply.json()
            self.assertEqual((found["resource"], found["authorization_servers"]), (PUBLIC + "/mcp/raw", [issuer.settings()["issuer"]]))

    def test_there_is_none_of_a_server_that_is_not_there(self):
        self.front_with_issuer()
        for name in ("other", "raw/x", "", "RAW"):
            self.assertEqual(self.document(name).status, 404, name)

    def test_there_is_none_where_nobody_issues_tokens(self):
        self.front(self.server(), settings=lambda settings: settings.update({"public_url": PUBLIC}))
        self.assertEqual(self.document("raw").status, 404)

    def test_a_client_without_a_token_is_sent_to_it(self):
        _, url = self.front_with_issuer()
        plain = self.client(url, key=None).call()
        self.assertEqual((plain.status, plain.header("www-authenticate")), (401, f'Bearer resource_metadata="{PUBLIC}{DOCUMENT}raw"'))
        wrong = self.client(url, key="a" * 40 + "." + "b" * 40 + "." + "c" * 40).call()
        self.assertEqual(wrong.status, 401)
        self.assertIn(f'resource_metadata="{PUBLIC}{DOCUMENT}raw"', wrong.header("www-authenticate"))

    def test_without_issuers_the_challenge_names_nothing(self):
        reply = self.client(self.front(self.server()), key=None).call()
        self.assertEqual((reply.status, reply.header("www-authenticate")), (401, "Bearer"))


class Tokens(Case):
    """One worker, so that what it remembers of a token meets each request."""

    def start(self):
        self.issuer = jwt_issuer.Issuer(self)
        self.signer = self.issuer.add("ES256")
        settings = self.settings({name: {"url": self.server().url} for name in ("raw", "other")}, workers=1, public_url=PUBLIC,
                                 identity={"jwt": [self.issuer.settings()]})
        self.gate = self.gateway(settings)
        self.gate.wait_stderr("keys of ")

    def token(self, **claims):
        return self.issuer.token(self.signer, **claims)

    def at(self, name, token):
        return self.client(f"{self.gate.url}/mcp/{name}", key=token)

    def refusal(self, reply):
        self.assertEqual(reply.status, 401)
        self.assertIn('error="invalid_token"', reply.header("www-authenticate"))
        return reply.json()["error"]["message"]

    def test_an_audience_of_one_server_is_good_for_that_server_alone(self):
        self.start()
        narrow = self.token(aud=[PUBLIC + "/mcp/raw", "somebody else"])
        for _ in range(2):
            self.assertEqual(self.at("raw", narrow).initialize().status, 200)
            self.assertEqual(self.refusal(self.at("other", narrow).initialize()), "The token's aud does not name this gateway")
            self.assert_error(self.gate.sample(key=narrow), 401, 401, "unauthorized")
        self.assertEqual(self.gate.metrics().sum("sluice_jwt_checks_total", result="verified"), mcp_rig.GATEWAYS)  # one remembers it
        wide = self.token()
        for name in ("raw", "other"):
            self.assertEqual(self.at(name, wide).initialize().status, 200)
        self.assert_result(self.gate.sample(key=wide))

    def test_it_is_named_to_the_letter(self):
        self.start()
        for audience in (PUBLIC + "/mcp/raw/", PUBLIC + "/mcp", PUBLIC, PUBLIC + "/mcp/other", "http://sluice.example/mcp/raw",
                         PUBLIC + "/mcp/RAW", PUBLIC + "/mcp/raw/message", f"{self.gate.url}/mcp/raw"):
            self.refusal(self.at("raw", self.token(aud=audience)).initialize())

    def test_a_session_belongs_to_issuer_user_and_client(self):
        self.start()
        ana = {"sub": "ana", "client_id": "desk"}
        client = self.at("raw", self.token(**ana, jti="1"))
        client.hello()
        for claims, status in (({**ana, "jti": "2"}, 202), ({**ana, "aud": PUBLIC + "/mcp/raw"}, 202), ({**ana, "sub": "ben"}, 404),
                               ({**ana, "client_id": "phone"}, 404), ({"sub": "ana"}, 404)):
            other = self.at("raw", self.token(**claims))
            other.session, other.revision = client.session, client.revision
            self.assertEqual(other.post({"jsonrpc": "2.0", "method": "notifications/x"}).status, status, claims)
        key = self.at("raw", harness.KEY)
        key.session, key.revision = client.session, client.revision
        self.assertEqual(key.post({"jsonrpc": "2.0", "method": "notifications/x"}).status, 404)


class Browsers(Case):
    def front_for_page(self):
        return self.front(self.server(), settings=lambda settings: settings.setdefault("identity", {}).update({"origins": [PAGE]}))

    def test_an_allowed_page_may_ask_before_it_shows_a_key(self):
        reply = self.client(self.front_for_page(), key=None).send("OPTIONS", headers={
            "Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,mcp-session-id"})
        self.assertEqual((reply.status, reply.header("access-control-allow-origin"), reply.header("vary")), (204, PAGE, "Origin"))
        for method in ("GET", "POST", "DELETE"):
            self.assertIn(method, reply.header("access-control-allow-methods"))
        for name in ("authorization", "mcp-session-id", "mcp-protocol-version", "content-type", "last-event-id"):
            self.assertIn(name, reply.header("access-control-allow-headers").lower())

    def test_it_may_send_parameters_of_tools_and_what_the_configuration_passes(self):
        url = self.front(self.server(), settings=lambda settings: settings.setdefault("identity", {}).update({"origins": [PAGE]}),
                         pass_headers=["X-Team"])
        reply = self.client(url, key=None).send("OPTIONS", headers={
            "Origin": PAGE, "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "mcp-param-region,Mcp-Param-x.y , x-team,x-other,cookie,mcp-param-,mcp-param-a b"})
        allowed = [name.strip() for name in reply.header("access-control-allow-headers").lower().split(",")]
        self.assertEqual(reply.status, 204)
        self.assertEqual([name for name in allowed if name.startswith(("mcp-param", "x-", "cookie"))], ["mcp-param-region", "mcp-param-x.y", "x-team"])
        self.assertIn("authorization", allowed)

    def test_any_page_may_ask_for_the_metadata(self):
        self.front_for_page()
        reply = self.client(self.gate.url + DOCUMENT + "raw", key=None).send("OPTIONS", headers={
            "Origin": "https://another.example", "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "mcp-protocol-version"})
        self.assertEqual((reply.status, reply.header("access-control-allow-origin")), (204, "*"))
        self.assertIn("*", reply.header("access-control-allow-headers"))

    def test_it_reads_answers_errors_and_streams(self):
        url = self.front_for_page()
        client = self.with_headers(url, {"Origin": PAGE})
        client.hello()
        refused = self.with_headers(url, {"Origin": PAGE}, key="k" * 20).call()
        stream = client.get()
        for reply in (client.initialize(), refused, stream):
            self.assertEqual(reply.header("access-control-allow-origin"), PAGE)
            for name in ("Mcp-Session-Id", "WWW-Authenticate", "Retry-After", "Sluice-Request-Id"):
                self.assertIn(name, reply.header("access-control-expose-headers"))

    def test_other_pages_are_refused(self):
        client = self.client(self.front_for_page())
        for origin in ("https://evil.example", "null", PAGE + ".evil.example"):
            for method in ("OPTIONS", "POST"):
                reply = client.send(method, b"{}" if method == "POST" else b"", {"Origin": origin})
                self.assertEqual((reply.status, reply.header("access-control-allow-origin")), (403, None), (method, origin))

    def test_a_loopback_listener_is_not_asked_for_by_a_strangers_name(self):
        url = self.front(self.server(), settings=lambda settings: settings.update({"public_url": PUBLIC}))
        port = self.gate.url.rsplit(":", 1)[1]
        for host, good in ((f"127.0.0.1:{port}", True), (f"localhost:{port}", True), (f"[::1]:{port}", True), ("[fe80::1%25lo]", True), ("[::1%lo]", True),
                           ("sluice.example", True), ("[evil.example%::1]", False), ("evil.example%::1", False),
                           ("evil.example", False), (f"localhost.evil.example:{port}", False), ("127.0.0.1.evil.example", False), ("", False)):
            reply = self.client(url).post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}, {"Host": host})
            self.assertEqual(reply.status, 200 if good else 403, host)
            if not good:
                self.assertEqual(reply.json()["error"]["data"]["reason"], "host_forbidden")


class OwnCredentials(Case):
    """auth: client."""

    def session(self, **options):
        server = self.server()
        client = self.with_headers(self.front(server, auth="client", **options), {"Sluice-Upstream-Authorization": "Bearer mine"})
        client.hello()
        return server, client

    def test_they_go_to_the_server_with_all_that_is_sent_for_the_user(self):
        server, client = self.session()
        reply = client.call()
        stream = server.take().stream()
        stream.send(event(sampling(1)))
        server.answer()
        stream.finish(event(result(1)))
        reply.body()
        self.assertGreater(len(server.requests), 4)
        self.assertEqual({one.header("authorization") for one in server.requests}, {"Bearer mine"})
        for one in server.requests:
            self.assertIsNone(one.header("sluice-upstream-authorization"))
            self.assertNotIn(harness.KEY, one.head.decode())

    def test_a_session_is_good_with_them_alone(self):
        server, client = self.session()
        for other in ("Bearer another", None):
            reply = client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"Sluice-Upstream-Authorization": other})
            self.assertEqual((reply.status, reply.json()["error"]["data"]["reason"]), (404, "session_unknown"), other)

    def test_what_the_server_says_of_them_passes_without_its_challenge(self):
        server, client = self.session()
        for status in (401, 403):
            reply = client.call()
            server.take().answer(status, b'{"no":1}', [("WWW-Authenticate", 'Bearer resource_metadata="https://evil.example"')], "application/json")
            self.assertEqual((reply.status, reply.header("www-authenticate"), reply.body()), (status, None, b'{"no":1}'))

    def test_elsewhere_they_stay_here(self):
        server = self.server()
        client = self.with_headers(self.front(server), {"Sluice-Upstream-Authorization": "Bearer mine"})
        client.hello()
        self.assertEqual({one.header("authorization") for one in server.requests}, {None})


if __name__ == "__main__":
    harness.main()
