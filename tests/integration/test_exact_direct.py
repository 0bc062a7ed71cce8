#!/usr/bin/env python3
"""Exact costs of the direct APIs: a request of 2 KB that is answered with 1 KB, and an event of a stream, passed on to a provider
of the same format. How a value is judged: tests/support/exact_case.py; `test_exact_direct.py --print` prints what was measured.

ctest: serial once timeout=400
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import callgrind
import copied
import exact_case
import harness

WARM, COUNT = 200, 800
STREAMS, FEW, MANY = 8, 40, 160  # events
TEXT = "Tell me about gateways. "
PATHS = {"Messages": "/v1/messages", "Chat": "/v1/chat/completions"}
MODELS = {"Messages": "claude-test", "Chat": "gpt-test"}
LARGE = 16384 + 2048


def body(api, model=None, size=2048, **more):
    """A request of so many bytes, as SDKs write one."""
    system = {"Messages": {"system": "You are brief."}, "Chat": {}}[api]
    asked = {"model": model or MODELS[api], "max_tokens": 300, "temperature": 1, **system,
             "messages": [{"role": "user", "content": ""}], **more}
    room = size - len(json.dumps(asked, separators=(",", ":")))
    asked["messages"][0]["content"] = (TEXT * (size // len(TEXT) + 1))[:max(1, room)]
    return json.dumps(asked, separators=(",", ":")).encode()


def stream_model(events):
    return f"sim-pace-10ms-chunk-20-size-{20 * events}"  # slow enough for each to be a read of its own


class Direct(exact_case.Case):
    def settings(self, words="size-1024"):
        streams = [harness.model(stream_model(events), "anthropic") for events in (FEW, MANY)]
        models = [harness.model("claude-test", "anthropic"), harness.model("gpt-test", "openai"), *streams]
        settings = harness.config(self.sim("--default", words), models=models)
        settings["plans"]["standard"]["models"] = {"allow": ["*"]}
        settings["plans"]["standard"]["limits"].update(
            requests_per_minute=6000000000, requests_burst=1000000, concurrent=1000)
        return settings

    def asked(self, api, count, clients=8, streams=8, **options):
        """So many requests, 64 of them in flight."""
        fields = ["anthropic-version: 2023-06-01"] if api == "Messages" else []
        text = body(api, **options)
        return lambda gateway: self.h2load(gateway.url + PATHS[api], count, clients, streams, text, fields)

    def streamed(self, events):
        return self.asked("Messages", STREAMS, 1, STREAMS, model=stream_model(events), size=200, stream=True)

    @staticmethod
    def per_event(few, many):
        return (many - few) / (STREAMS * (MANY - FEW))

    def test_instructions_and_allocations(self):
        works = [self.asked(api, count) for count in (WARM, COUNT) for api in PATHS]
        works += [self.streamed(events) for events in (FEW, FEW, MANY)]
        *_, messages, chat, _, few, many = callgrind.worker_parts(self, self.settings(), works)
        for api, found in (("Messages", messages), ("Chat", chat)):
            self.check(f"instructions, {api}, h2c", found.instructions / COUNT)
            self.check(f"allocations of ours, {api}, h2c", found.allocations / COUNT)
        self.check("instructions, event of Messages", self.per_event(few.instructions, many.instructions))
        self.check("allocations of ours, event of Messages", self.per_event(few.allocations, many.allocations))

    def test_copied_bytes(self):
        """Of bodies that are eight times as large as those above: a copy of what they have would show."""
        def work(count):
            return lambda gateway: self.asked("Messages", count, size=LARGE)(gateway)
        few, many = (copied.by_gateway(self, self.settings("size-16384"), work(count)) for count in (WARM, COUNT))
        self.check("copied bytes, Messages of 18 KB, h2c", (many - few) / (COUNT - WARM))

    def test_syscalls(self):
        gateway = self.gateway(self.settings())
        for work in (self.asked("Messages", WARM), self.streamed(FEW)):
            work(gateway)
        thread = self.worker_thread(gateway.pid)

        def calls(work):
            return sum(self.traced(thread, lambda: work(gateway)).values())
        few, many = (calls(self.asked("Messages", count)) for count in (WARM, 5 * COUNT))
        self.check("syscalls, Messages, h2c", (many - few) / (5 * COUNT - WARM))
        self.check("syscalls, event of Messages", self.per_event(*(calls(self.streamed(events)) for events in (FEW, MANY))))


if __name__ == "__main__":
    exact_case.main(Direct)
