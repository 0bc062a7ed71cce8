"""A refused parameter is left out at once; GET /lessons shows the lesson and its tenant.

ctest: timeout=120
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import hosts

TENANTS = ("acme", "globex", "initech")
TOOL = {"name": "get_weather", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
SCHEMA = {"name": "__schema__", "inputSchema": {"type": "object", "properties": {"answer": {"type": "string"}},
                                                "required": ["answer"], "additionalProperties": False}}
REQUIRED = {"mode": "required"}


def error(message, **more):
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


class Fussy(hosts.Host):
    """Refuses what it is told to: `refuses(body)` is the error that a request gets, or None."""

    key = harness.PROVIDER_KEY
    members = hosts.STANDARD | {"max_completion_tokens"}

    def __init__(self, refuses, status=400):
        super().__init__()
        self.refuses, self.status = refuses, status

    def respond(self, body):
        refusal = self.refuses(body)
        if refusal is not None:
            return self.status, {}, json.dumps(refusal)
        return super().respond(body)


def without(name, refusal):
    return lambda body: refusal if name in body else None


def key_of(tenant):
    return f"{tenant}-key-0123456789abcdef"


class Lessons(harness.Case):
    def host(self, refuses, status=400):
        host = Fussy(refuses, status)
        self.addCleanup(host.close)
        return host

    def start(self, host, tenants=TENANTS, **profile):
        settings = harness.config(host, models=[harness.model("gpt-test", "openai", profile=profile)])
        settings["plans"]["standard"]["models"]["default"] = "gpt-test"
        settings["tenants"] = [harness.tenant(tenant, key_of(tenant)) for tenant in tenants]
        return self.gateway(settings)

    def ask(self, gateway, host, tenant="acme", text="say:ok", **params):
        """The result, and the bodies that the host was sent for it."""
        before = len(host.requests)
        result = self.assert_result(gateway.sample(text, key=key_of(tenant), **params))
        return result, host.requests[before:]

    def lessons(self, gateway, count):
        """What is told, once it is that many; told once a second."""
        def told():
            listed = gateway.get("/lessons").json()["lessons"]
            return listed if len(listed) == count else None
        return harness.wait_for(told, f"{count} lessons")

    def test_the_words_of_hosts_are_understood(self):
        rows = (
            ("temperature", error("invalid temperature: only 1 is allowed for this model"),
             {"temperature": 0.7}, "temperature_dropped"),
            ("stop", {"code": "Client specified an invalid argument",
                      "error": "Argument not supported on this model: stop"},
             {"stopSequences": ["END"]}, "stop_sequences_emulated"),
            ("safety_identifier", {"detail": [{"loc": ["body", "safety_identifier"], "type": "extra_forbidden",
                                               "msg": "Extra inputs are not permitted"}]},
             {"metadata": {"user_id": "u-1"}}, "metadata_dropped"),
        )
        for member, refusal, params, adjustment in rows:
            with self.subTest(member):
                host = self.host(without(member, refusal))
                result, sent = self.ask(self.start(host), host, **params)
                self.assertEqual([member in body for body in sent], [True, False])
                self.assertIn(adjustment, result["_meta"]["sluice/adjustments"])
                self.assertEqual(harness.text_of(result), "ok")

    def test_a_tool_that_cannot_be_forced_is_asked_for(self):
        refusal = error("Thinking mode does not support this tool_choice")
        host = self.host(lambda body: refusal if body.get("tool_choice") == "required" else None)
        result, sent = self.ask(self.start(host), host, text="weather?", tools=[TOOL], toolChoice=REQUIRED)
        self.assertEqual([body["tool_choice"] for body in sent], ["required", "auto"])
        self.assertEqual(result["stopReason"], "toolUse")
        self.assertIn("tool_choice_required_downgraded", result["_meta"]["sluice/adjustments"])

    def test_a_dropped_format_is_a_checked_tool(self):
        host = self.host(without("response_format", error("This model does not support response format "
                                                          "`json_schema`.")))
        result, sent = self.ask(self.start(host, structured_output=True), host, text="answer?", tools=[SCHEMA],
                                toolChoice=REQUIRED)
        self.assertEqual([body.get("tool_choice") for body in sent], [None, "required"])
        self.assertEqual(result["content"][0]["input"] if isinstance(result["content"], list)
                         else result["content"]["input"], {"answer": "42"})
        self.assertIn("response_format_dropped", result["_meta"]["sluice/adjustments"])

    def test_a_lesson_is_for_all_once_two_tenants_met_it(self):
        host = self.host(without("stop", error("Unsupported parameter: 'stop' is not supported with this model.",
                                               code="unsupported_parameter", param="stop")))
        gateway = self.start(host)
        calls = [len(self.ask(gateway, host, tenant, stopSequences=["END"])[1])
                 for tenant in ("acme", "acme", "globex", "globex", "initech")]
        self.assertEqual(calls, [2, 1, 2, 1, 1])
        told = self.lessons(gateway, 1)[0]
        self.assertEqual((told["model"], told["lesson"], told["tenant"], told["worker"]),
                         ("gpt-test", "no_stop", None, 0))
        self.assertTrue(3500 < told["seconds"] <= 3600, told)

    def test_one_tenant_takes_nothing_from_another(self):
        """Whatever it writes comes back in the host's words."""
        def echoes(body):
            text = body["messages"][-1]["content"]
            return error(text) if text.startswith("temperature") and "temperature" in body else None
        host = self.host(echoes)
        gateway = self.start(host)
        for i in range(5):
            self.ask(gateway, host, "acme", f"temperature is not supported: {i}", temperature=0.5)
        told = self.lessons(gateway, 1)[0]
        self.assertEqual((told["lesson"], told["tenant"]), ("no_temperature", "acme"))
        for tenant in ("globex", "initech"):
            sent = self.ask(gateway, host, tenant, temperature=0.5)[1]
            self.assertEqual([body.get("temperature") for body in sent], [0.5])

    def test_a_value_teaches_nothing(self):
        host = self.host(lambda body: error("temperature must be below 0.6", param="temperature")
                         if body.get("temperature", 0) > 0.6 else None, status=422)
        gateway = self.start(host)
        for tenant in TENANTS:
            self.assertEqual(len(self.ask(gateway, host, tenant, temperature=0.9)[1]), 2)
        for tenant in TENANTS:
            sent = self.ask(gateway, host, tenant, temperature=0.5)[1]
            self.assertEqual([body.get("temperature") for body in sent], [0.5])
        self.assertEqual(gateway.get("/lessons").json(), {"lessons": []})

    def test_the_name_of_the_limit_is_learned_both_ways(self):
        for old, new in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")):
            with self.subTest(old):
                host = self.host(without(old, error(f"Unrecognized request argument supplied: {old}")))
                sent = self.ask(self.start(host, max_tokens_field=old), host)[1]
                self.assertEqual([(old in body, new in body) for body in sent], [(True, False), (False, True)])

    def test_lessons_are_for_this_machine_alone(self):
        gateway = self.start(self.host(lambda body: None))
        answer = harness.request("GET", gateway.admin + "/lessons", headers={"Origin": "https://x.example"})
        self.assertEqual(answer.status, 403)
        self.assertEqual(harness.request("POST", gateway.admin + "/lessons", b"").status, 405)


if __name__ == "__main__":
    harness.main()
