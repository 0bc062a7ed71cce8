#!/usr/bin/env python3
"""`sluice wrap` in front of a gateway that accepts and says nothing: an MCP server gives up after a minute.

ctest: timeout=180
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import wrapped


class Late(wrapped.Case):
    def test_each_sampling_has_an_answer_within_a_minute(self):
        port = harness.free_port()
        self.silent(port, backlog=16)
        wrap = self.wrap(gateway=f"http://127.0.0.2:{port}")
        wrap.patience_s = 70
        began = time.monotonic()
        params = {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}], "maxTokens": 50}
        for id, meta in ((1, {}), (2, {"_meta": {"progressToken": "t"}})):
            wrap.server_send({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": {**params, **meta}})
        answers = [wrap.server_read() for _ in range(2)]
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual(sorted(answer["id"] for answer in answers), [1, 2])
        for answer in answers:
            self.assertEqual((answer["error"]["code"], answer["error"]["data"]["reason"]), (-32001, "deadline"))


if __name__ == "__main__":
    harness.main()
