"""The recorded streams of the reference vectors through the real binary, as they were cut, and otherwise.
ctest: timeout=300
"""

import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import streams  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden")
SCHEMA = {"type": "object", "properties": {"cell": {"type": "integer"}}, "required": ["cell"],
          "additionalProperties": False}


def vectors():
    for direction in ("anthropic_sse", "openai_sse"):
        for path in sorted(glob.glob(os.path.join(GOLDEN, direction, "*.json"))):
            with open(path, encoding="utf-8") as file:
                yield direction[:-4], os.path.basename(path)[:-5], json.load(file)


def cuts(vector):
    """The stream in reads: as recorded, byte by byte, all at once."""
    data = vector["in"].encode()
    sizes, at, recorded = vector["chunk_sizes"], 0, []
    for size in sizes if isinstance(sizes, list) else [int(sizes)] * (len(data) // int(sizes)):
        recorded.append(data[at:at + size])
        at += size
    if b"".join(recorded) != data:
        raise harness.Failure("the sizes are not those of the stream")
    return {"recorded": recorded, "bytes": [data[i:i + 1] for i in range(len(data))], "whole": [data]}


def params(vector):
    """A request with the context that the vector wants."""
    context = vector["context"]
    tools = [{"name": name, "inputSchema": SCHEMA if context.get("native_schema") else {"type": "object"}}
             for name in context["tools"]]
    more = {}
    if tools:
        more["tools"] = tools
    if context.get("native_schema"):
        more["toolChoice"] = {"mode": "required"}
    if "emulate_stop" in context:  # what the provider is sent no more
        more["stopSequences"] = ["one", "too", "many", "here"][:4] + context["emulate_stop"]
        more["stopSequences"][:4] = ["\u0001", "\u0002", "\u0003", "\u0004"]
    return more


class Vectors(streams.Case):
    def test_every_stream_comes_to_its_result_however_it_is_cut(self):
        known = {f"{dialect}:{name}:{how}": pieces for dialect, name, vector in vectors()
                 for how, pieces in cuts(vector).items()}
        self.assertGreater(len(known), 3 * 45)

        def serve(peer, _):
            while (request := peer.request()) is not None:
                asked = json.loads(request[1])
                self.assertIs(asked["stream"], True)
                wanted = next(key for key in known if key in request[1].decode())
                peer.send(streams.HEAD)
                for piece in known[wanted]:
                    peer.send(streams.chunk(piece) if piece else b"")
                peer.send(streams.END)
        server = self.server(serve)
        server.url = f"http://127.0.0.1:{server.port}"
        settings = harness.config(server)
        settings["retries"] = {"attempts": 1}
        settings["providers"], settings["models"] = {}, []
        for dialect, name, vector in vectors():
            for how in cuts(vector):  # a provider of its own: what fails must not keep others out
                id = f"{dialect}-{name}-{how}"
                settings["providers"][id] = harness.provider(server, dialect)
                settings["models"].append(harness.model(id, id, name=vector["context"]["requested_model"], profile={
                    "think_tags": bool(vector["context"].get("think_tags")),
                    "structured_output": bool(vector["context"].get("native_schema"))}))
        settings["plans"]["standard"]["models"] = {"allow": ["*"]}
        gateway = self.gateway(settings)
        for dialect, name, vector in vectors():
            for how in ("recorded", "bytes", "whole"):
                with self.subTest(f"{dialect} {name} {how}"):
                    key = f"{dialect}:{name}:{how}"
                    with streams.Call(gateway, text=key, hint=f"{dialect}-{name}-{how}", token=key,
                                      **params(vector)) as call:
                        self.check(vector, call, key)

    def check(self, vector, call, token):
        if call.headers["content-type"] == "application/json":  # failed before anything was told
            answer = json.loads(call.reply.read())
            self.assertIn("error", answer)
        else:
            told, answer = call.split()
            numbers = [event["params"]["progress"] for _, event in told]
            self.assertEqual(numbers, sorted(set(numbers)))
            self.assertTrue(all(event["params"]["progressToken"] == token for _, event in told))
        if "error" in vector:
            error, wanted = answer["error"], vector["error"]
            self.assertEqual(error["code"], wanted["code"], answer)
            self.assertIn(wanted["message_contains"].lower(), error["message"].lower())
            for key, value in wanted.get("data", {}).items():
                self.assertEqual(error["data"].get(key), value, (key, answer))
            return
        self.assertIn("result", answer)
        result = answer["result"]
        meta, _ = result.pop("_meta"), result.pop("usage", None)
        self.assertEqual(result, vector["out"])
        usage = meta.get("sluice/usage")
        self.assertEqual(usage is None, vector["usage"] is None, answer)
        for key, value in (vector["usage"] or {}).items():
            self.assertEqual(usage[key], value, key)
        self.assertLessEqual(set(vector.get("adjustments", [])), set(meta["sluice/adjustments"]))


if __name__ == "__main__":
    harness.main()
