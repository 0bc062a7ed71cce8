#!/usr/bin/env python3
"""/mcp/{server}: what happens after half a minute of silence. All wait at once.

ctest: timeout=120
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import mcp_rig
from mcp_server import ask, event, note, result, sampling

MOST_S = 45


class Late(mcp_rig.Case):
    def test_silence(self):
        server, client = self.pair(model="sim-hang")
        own = server.get_stream()
        began = time.monotonic()
        own.send(event(ask(1)) + event(ask("p", "ping")) + event(note()) + event(sampling(7, _meta={"progressToken": 0})))
        other = self.client(self.gate.url + "/mcp/raw")
        other.hello()
        server.get_stream()
        get, reply = other.get(), other.call()
        stream = server.take().stream()
        for one in (get, reply):
            one.sock.settimeout(MOST_S)
        with self.subTest("streams that are silent are kept alive by comments"):
            for one in (get, reply):
                comment = one.event()
                self.assertTrue(comment.startswith(b":") and comment.endswith(b"\n\n"), comment)
                self.assertGreater(time.monotonic() - began, 14)
                self.assertLess(time.monotonic() - began, 27)
        with self.subTest("a server that gave a token is told that its sampling is worked on"):
            notes = [note.message["params"] for note in server.seen("notifications/progress")]
            self.assertEqual(notes[0], {"progressToken": 0, "progress": 10})
            self.assertEqual([note["progress"] for note in notes], sorted({note["progress"] for note in notes}))
        with self.subTest("a request that no client has taken is answered"):
            answers = {}
            while len(answers) < 2:
                left = MOST_S - (time.monotonic() - began)
                harness.wait_for(lambda: not server.idle(), "an answer", left)
                message = server.answer().message
                answers[message["id"]] = message
            self.assertGreater(time.monotonic() - began, 29)
            self.assertEqual(answers["p"]["result"], {})
            self.assertEqual((answers[1]["error"]["code"], answers[1]["error"]["data"]["reason"]), (-32603, "nobody_listens"))
            late = client.get()
            late.expect(event(note()))  # and nobody hears of it any more
        stream.finish(event(result(1)))
        self.assertEqual(reply.shown(), event(result(1)))
        reply.end()


if __name__ == "__main__":
    harness.main()
