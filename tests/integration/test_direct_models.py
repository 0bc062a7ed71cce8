"""What the direct APIs have beside calls, through the real binary: the models that a caller may name, in the shape of either
API; paths that nobody has; names that stand for several models, and `auto`.

ctest: timeout=120
"""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

VERSION = {"anthropic-version": "2023-06-01"}
BEARER = {"authorization": "Bearer " + harness.KEY}
NARROW, CLOSED = "sk-narrow-0123456789", "sk-closed-0123456789"
NAMES = ["claude-a", "claude-b", "claude-c", "vendor/gpt-a", "gpt-b", "sonnet", "shared", "top"]  # in this order


def priced(id, provider, usd, intelligence, **changes):
    price = {"input": usd, "output": usd}
    return harness.model(id, provider, price=price, intelligence=intelligence, **changes)


def settings(sim):
    whole = harness.config(sim, models=[
        priced("claude-a", "anthropic", 50, 0.9, aliases=["sonnet", "claude-*"]),
        priced("claude-b", "anthropic", 0.01, 0.2, aliases=["shared", "claude-haiku-*"]),
        priced("claude-c", "anthropic", 20, 0.5, aliases=["shared", "claude-haiku-*"], context=100000),
        priced("vendor/gpt-a", "openai", 40, 0.8),
        priced("gpt-b", "openai", 0.01, 0.1),
        priced("secret", "anthropic", 1, 1.0, aliases=["hidden"]),
        priced("off", "openai", 1, 1.0, enabled=False),
    ])
    plan = whole["plans"]["standard"]
    plan["models"] = {"allow": ["*"], "deny": ["secret"], "default": "claude-b",
                      "aliases": [{"hint": "top", "models": ["claude-a"]}, {"hint": "gpt-*", "models": ["gpt-b"]}]}
    whole["plans"]["narrow"] = {**plan, "models": {"allow": ["gpt-b"]}}
    whole["plans"]["closed"] = {**plan, "fronts": ["sampling", "mcp"]}
    whole["tenants"] += [{**harness.tenant("narrow", NARROW), "plan": "narrow"},
                         {**harness.tenant("closed", CLOSED), "plan": "closed"}]
    return whole


class Models(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.sim_process = harness.Sim()
        cls.addClassCleanup(cls.sim_process.stop)
        cls.gate = harness.Gateway(settings(cls.sim_process))
        cls.addClassCleanup(cls.gate.remove)
        cls.addClassCleanup(cls.gate.stop)

    def ask(self, path, headers=None, method="GET", body=None):
        return harness.request(method, self.gate.url + path, body, BEARER if headers is None else headers)

    def ids(self, path="/v1/models", headers=None):
        answer = self.ask(path, headers)
        self.assertEqual(answer.status, 200, answer)
        return [model["id"] for model in answer.json()["data"]]

    def assert_refused(self, answer, status, kind, words="", anthropic=False):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["content-type"], "application/json")
        self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])
        whole = answer.json()
        self.assertEqual(whole["error"]["type"], kind, answer)
        self.assertIn(words, whole["error"]["message"])
        if anthropic:
            self.assertEqual((whole["type"], whole["request_id"]), ("error", answer.headers["request-id"]))
        else:
            self.assertEqual(set(whole["error"]), {"message", "type", "param", "code"})
        return whole["error"]

    # ---- lists ----

    def test_a_list_has_what_the_plan_permits(self):
        answer = self.ask("/v1/models")
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])
        whole = answer.json()
        self.assertEqual(set(whole), {"object", "data"})
        self.assertEqual([model["id"] for model in whole["data"]], NAMES)
        for model in whole["data"]:
            self.assertEqual((model["object"], type(model["created"]), model["owned_by"]), ("model", int, "sluice"))
        line = self.gate.log(answer.headers["request-id"])
        self.assertEqual((line["front"], line["tenant"], line["status"]), ("models", "acme", 200))
        self.assertEqual(self.ids(headers={"authorization": "Bearer " + NARROW}), ["gpt-b"])

    def test_anthropics_list_has_pages(self):
        whole = self.ask("/v1/models?limit=1000&beta=true", {**BEARER, **VERSION}).json()
        self.assertEqual([model["id"] for model in whole["data"]], NAMES)
        self.assertEqual((whole["has_more"], whole["first_id"], whole["last_id"]), (False, NAMES[0], NAMES[-1]))
        by_id = {model["id"]: model for model in whole["data"]}
        self.assertEqual(by_id["claude-a"], {
            "type": "model", "id": "claude-a", "display_name": "claude-a", "created_at": "1970-01-01T00:00:00Z",
            "lifecycle": "active", "max_input_tokens": 200000, "max_tokens": 4096})
        self.assertEqual(by_id["shared"]["max_input_tokens"], 100000)  # of whom it may come to
        seen, query = [], "limit=3"
        while True:
            page = self.ask("/v1/models?" + query, {"x-api-key": harness.KEY, **VERSION}).json()
            seen += [model["id"] for model in page["data"]]
            if not page["has_more"]:
                break
            query = "limit=3&after_id=" + page["last_id"].replace("/", "%2F")
        self.assertEqual(seen, NAMES)
        page = self.ask("/v1/models?limit=2&before_id=vendor/gpt-a", {**BEARER, **VERSION}).json()
        self.assertEqual([model["id"] for model in page["data"]], NAMES[1:3])
        for query, words in (("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"),
                             ("after_id=secret", "after_id"), ("before_id=", "before_id")):
            answer = self.ask("/v1/models?" + query, {**BEARER, **VERSION})
            self.assert_refused(answer, 400, "invalid_request_error", words, anthropic=True)

    def test_one_model_is_found_by_whatever_names_it(self):
        for path, id in (("claude-a", "claude-a"), ("sonnet", "sonnet"), ("vendor/gpt-a", "vendor/gpt-a"),
                         ("vendor%2Fgpt-a", "vendor/gpt-a"), ("%73onnet?x=1", "sonnet"), ("top", "top"), ("gpt-9", "gpt-9"),
                         ("claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001"),
                         ("claude-haiku-%C3%A4", "claude-haiku-ä"), ("anthropic%2FClaude-A", "anthropic/Claude-A")):
            with self.subTest(path):
                answer = self.ask("/v1/models/" + path)
                self.assertEqual((answer.status, answer.json()["id"]), (200, id), answer)
                answer = self.ask("/v1/models/" + path, {**BEARER, **VERSION})
                self.assertEqual((answer.json()["type"], answer.json()["id"]), ("model", id), answer)

    def test_what_is_not_there_or_not_permitted_is_404(self):
        for path, name in (("secret", "secret"), ("hidden", "hidden"), ("off", "off"), ("auto", "auto"), ("nobody", "nobody"),
                           ("gpt", "gpt"), ("%22%0A", '"\n'), ("claude-haiku-%FF", ""),
                           ("x" * 2000, "")):
            with self.subTest(path):
                error = self.assert_refused(self.ask("/v1/models/" + path), 404, "invalid_request_error", name)
                self.assertEqual(error["code"], "model_not_found")
                self.assert_refused(self.ask("/v1/models/" + path, {**BEARER, **VERSION}), 404, "not_found_error",
                                    "model: " + name if name else "", anthropic=True)
        for path in ("/v1/models/", "/v1/models/claude-a/"):
            self.assert_refused(self.ask(path), 404, "invalid_request_error", "path")
        self.assert_refused(self.ask("/v1/models/claude-a", {"authorization": "Bearer " + NARROW}), 404, "invalid_request_error")

    def test_lists_are_for_callers_with_a_key(self):
        for headers, status in (({}, 401), ({"x-api-key": "another"}, 401), ({"x-api-key": harness.KEY}, 200),
                                ({"x-api-key": "another", **BEARER}, 401), ({"x-api-key": harness.KEY, **BEARER}, 200),
                                ({"authorization": "Bearer " + CLOSED}, 403), ({**BEARER, "origin": "http://evil.example"}, 403)):
            for path in ("/v1/models", "/v1/models/claude-a"):
                for version in ({}, VERSION):
                    with self.subTest("%s %s" % (path, {**headers, **version})):
                        answer = self.ask(path, {**headers, **version})
                        if status == 200:
                            self.assertEqual(answer.status, 200, answer)
                            continue
                        anthropic = bool(version) or "x-api-key" in headers  # who sends that reads errors in that shape
                        kind = {401: "authentication_error", 403: "permission_error"}[status] if anthropic else "invalid_request_error"
                        self.assert_refused(answer, status, kind, anthropic=anthropic)
                        self.assertEqual(answer.headers["x-should-retry"], "false")
        answer = self.ask("/v1/models", {"authorization": "Bearer " + CLOSED})
        line = self.gate.log(answer.headers["request-id"])
        self.assertEqual((line["tenant"], line["error"]), ("closed", "front_forbidden"))

    def test_head_is_get_without_a_body(self):
        whole, head = self.ask("/v1/models"), self.ask("/v1/models", method="HEAD")
        self.assertEqual((head.status, head.body, head.headers["content-length"]), (200, b"", str(len(whole.body))))
        answer = self.ask("/v1/models", method="POST", body=b"{}")
        self.assert_refused(answer, 405, "invalid_request_error")
        self.assertEqual(answer.headers["allow"], "GET, HEAD")

    def test_lists_during_reloads_are_old_or_new(self):
        gateway = self.gateway(settings(self.sim_process))
        fewer = settings(self.sim_process)
        del fewer["models"][0]
        fewer["plans"]["standard"]["models"]["aliases"] = []
        fewer["plans"]["narrow"]["models"] = {"allow": ["gpt-b"]}
        fewer["plans"]["closed"]["models"] = {"allow": ["gpt-b"]}
        lists = {json.dumps(NAMES), json.dumps(["claude-b", "claude-c", "vendor/gpt-a", "gpt-b", "shared"])}
        over, seen = threading.Event(), set()

        def look():
            while not over.is_set():
                answer = harness.request("GET", gateway.url + "/v1/models", None, BEARER)
                seen.add(json.dumps([model["id"] for model in answer.json()["data"]]))
                harness.request("GET", gateway.url + "/v1/models/claude-b", None, BEARER)
        thread = threading.Thread(target=look)
        thread.start()
        try:
            harness.wait_for(lambda: seen, "the old list")
            for round in range(6):
                whole = fewer if round % 2 == 0 else settings(self.sim_process)
                whole["listen"], whole["admin"] = gateway.settings["listen"], gateway.settings["admin"]
                gateway.write_config(whole)
                self.assertEqual(gateway.reload().status, 200)
                if round == 0:
                    harness.wait_for(lambda: len(seen) > 1, "the new list")
        finally:
            over.set()
            thread.join()
        self.assertEqual(seen, lists)

    # ---- other paths ----

    def test_other_paths_below_v1_are_404_in_the_apis_shape(self):
        key = {"x-api-key": harness.KEY}
        for method, path, headers, anthropic in (
                ("POST", "/v1/embeddings", BEARER, False), ("GET", "/v1/files/x?y=1", {}, False), ("DELETE", "/v1/", {}, False),
                ("POST", "/v1/complete", VERSION, True), ("POST", "/v1/embeddings", key, True),
                ("POST", "/v1/messages/batches", BEARER, True), ("GET", "/v1/messages/", {}, True),
                ("POST", "/v1/chat/completions/", BEARER, False), ("POST", "/v1/messages%2F", BEARER, False),
                ("POST", "/v1/models/../messages/x", {**BEARER}, False)):
            with self.subTest("%s %s" % (method, path)):
                answer = self.ask(path, headers, method, b'{"model":"claude-a"}' if method == "POST" else None)
                if path.startswith("/v1/models/"):
                    self.assert_refused(answer, 405, "invalid_request_error")
                    continue
                self.assert_refused(answer, 404, "not_found_error" if anthropic else "invalid_request_error", "path", anthropic)
                line = self.gate.log(answer.headers["request-id"])
                self.assertEqual((line["status"], line["error"], line["front"]),
                                 (404, "not_found", "messages" if anthropic else "chat"))
        self.assertEqual(self.ask("/nothing").json()["jsonrpc"], "2.0")

    def test_other_methods_are_405_with_those_that_there_are(self):
        for path, anthropic, allow in (("/v1/messages", True, "POST"), ("/v1/chat/completions", False, "POST"),
                                       ("/v1/models/claude-a", False, "GET, HEAD"), ("/", False, "GET, HEAD"),
                                       ("/api/hello", False, "GET, HEAD")):
            answer = self.ask(path, {}, "PUT", b"{}")
            self.assert_refused(answer, 405, "invalid_request_error", anthropic=anthropic)
            self.assertEqual(answer.headers["allow"], allow)

    def test_who_looks_whether_there_is_a_server_needs_no_key(self):
        for method in ("HEAD", "GET"):
            for path in ("/", "/api/hello", "/?x=1"):
                answer = self.ask(path, {}, method)
                self.assertEqual((answer.status, answer.body), (200, b"{}" if method == "GET" else b""), answer)
                self.assertEqual(answer.headers["request-id"], answer.headers["x-request-id"])
        answer = harness.request_h2("GET", self.gate.url + "/v1/models", None, BEARER)
        self.assertEqual([model["id"] for model in answer.json()["data"]], NAMES)
        absolute = "GET %s/v1/models/sonnet HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n"
        answer = harness.raw(self.gate.url, (absolute % (self.gate.url, harness.KEY)).encode())
        self.assertIn(b'"id":"sonnet"', answer)

    # ---- names ----

    def call(self, api, model, headers=None):
        path = {"messages": "/v1/messages?beta=true", "chat": "/v1/chat/completions"}[api]
        body = {"model": model, "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
        return self.gate.post(body, headers, path=path)

    def test_globs_stand_for_names_that_no_model_has(self):
        for name, ids in (("claude-haiku-4-5-20251001", {"claude-b", "claude-c"}), ("Claude-Haiku-9", {"claude-b", "claude-c"}),
                          ("claude-b", {"claude-b"}), ("claude-opus-9", {"claude-a"}), ("sonnet", {"claude-a"}),
                          ("top", {"claude-a"})):
            with self.subTest(name):
                answer = self.call("messages", name)
                self.assertEqual((answer.status, answer.json()["model"]), (200, name), answer)
                self.assertIn(answer.headers["sluice-model"], ids)
        for name in ("haiku", "claude", "my-claude-b", "secret"):
            self.assert_refused(self.call("messages", name), 404, "not_found_error", "model: " + name, anthropic=True)
        self.assert_refused(self.call("chat", "haiku"), 404, "invalid_request_error", "`haiku`")
        self.assertEqual(self.call("chat", "claude-haiku-4-5").status, 200)  # of another format

    def test_auto_goes_by_what_the_caller_prefers(self):
        for api, header, id in (("messages", "cost=1", "claude-b"), ("messages", "intelligence=1", "claude-a"),
                                ("messages", "cost=0.1, intelligence=0.9; hints=\"nobody, claude-c\"", "claude-c"),
                                ("messages", None, "claude-b"), ("messages", 'hints="vendor/gpt-a"', "vendor/gpt-a"),
                                ("chat", "cost=1", "claude-b"), ("chat", "intelligence=1", "claude-a"),
                                ("chat", 'hints="gpt-b"', "gpt-b"), ("chat", None, "claude-b")):
            with self.subTest("%s %s" % (api, header)):
                answer = self.call(api, "auto", {"Sluice-Preferences": header} if header else {})
                self.assertEqual((answer.status, answer.json()["model"]), (200, "auto"), answer)
                self.assertEqual(answer.headers["sluice-model"], id)
                self.assertEqual(json.loads(self.sim_process.last_body())["model"], id)
                line = self.gate.log(answer.headers["request-id"])
                self.assertEqual(line["model"], id)

    def test_preferences_that_are_wrong_are_named(self):
        for header, words in (("cost=2", "cost must be a number from 0 to 1"), ("price=1", "none of cost, speed"),
                              ("cost=1; cost=1", "cost is there twice"), ("hints=a", "hints must be a list in quotes"),
                              ("fast", "must be like cost=0.7")):
            for api in ("messages", "chat"):
                error = self.assert_refused(self.call(api, "auto", {"Sluice-Preferences": header}), 400, "invalid_request_error",
                                            words, anthropic=api == "messages")
                self.assertIn("Sluice-Preferences", error["message"])
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n" \
               "Sluice-Preferences: cost=1\r\nSluice-Preferences: speed=1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
        body = '{"model":"auto","messages":[{"role":"user","content":"hi"}]}'
        answer = harness.raw(self.gate.url, (head % (harness.KEY, len(body), body)).encode())
        self.assertIn(b"is there twice", answer)
        self.assertEqual(self.call("chat", "gpt-b", {"Sluice-Preferences": "fast"}).status, 200)  # one model is asked for
        answer = self.gate.post({"model": "auto", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]},
                                {"Sluice-Preferences": "cost=1"}, key=NARROW, path="/v1/messages")
        self.assertEqual((answer.status, answer.headers["sluice-model"]), (200, "gpt-b"))


if __name__ == "__main__":
    harness.main()
