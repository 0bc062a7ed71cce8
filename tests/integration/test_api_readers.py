"""What the gateway reads of a request is what the reader behind it reads, be it Python's or Go's: of everything that it lets
pass, all three see the same values. Otherwise a tenant's policy would be about one request, and the provider would answer
another. Table and bodies by chance; that the Go of this test reads as Go does is asked of Go itself, where it is installed.

ctest: once timeout=120
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

PROBE = os.path.join(os.path.dirname(harness.BIN), "api_probe")
CASES = 20000
SEED = 20261128

ACTED_ON = ["model", "stream", "store", "service_tier", "max_tokens", "max_completion_tokens", "n", "stream_options", "tools"]
CHAT_ALONE = ["store", "max_completion_tokens", "n", "stream_options"]
REFUSED = ["models", "route", "provider", "plugins", "transforms", "fallbacks", "api_base", "base_url", "api_key", "user_config",
           "model_list", "extra_headers", "extra_body", "mock_response", "best_of", "use_beam_search", "prompt_logprobs",
           "chat_template", "container", "previous_response_id", "conversation"]


# ---- the readers behind the gateway

def python_reads(body):
    """As json.loads does: names exactly, the last one of several."""
    return json.loads(body)


def go_fold(name):
    """What encoding/json compares by: ASCII letters, and the two others that fold into ASCII."""
    return "".join({"\u017f": "s", "\u212a": "k"}.get(c, c.lower() if c.isascii() else c) for c in name)


def go_reads(body):
    """As encoding/json fills the fields of a struct: in any case, the last one of several."""
    def fill(pairs):
        return Go((go_fold(name), value) for name, value in pairs)
    return json.loads(body, object_pairs_hook=fill)


class Go(dict):
    pass


# ---- what they see of it

SOURCES = ["image_url", "video_url", "file"]  # of Chat: an object that has the URL, or the URL itself


def is_url(text, maybe=False):
    """Whether the provider fetches it. `maybe`: base64 stands there, too."""
    if not isinstance(text, str) or text == "" or text[:5].lower() == "data:":
        return False
    scheme = text.split(":")[0]
    return not maybe or (":" in text and scheme != "" and all(c.isascii() and (c.isalnum() or c in "+-.") for c in scheme))


def sources_in(value):
    return value if isinstance(value, list) else [value]


def look_into(api, content, found):
    """URLs and ids of files in content, as deep as they lie."""
    for block in sources_in(content):
        if not isinstance(block, dict):
            continue
        found["files"] += [block.get("file_id"), block.get("file_ids")]
        if api == "chat":
            found["urls"] += is_url(block.get("file_data"), maybe=True)
            for name in SOURCES:
                found["urls"] += is_url(block.get(name))
        for name in ["source"] + (SOURCES if api == "chat" else []):
            for source in sources_in(block.get(name)):
                if isinstance(source, dict):
                    found["files"].append(source.get("file_id"))
                    found["urls"] += is_url(source.get("url"))
                    if api == "chat":
                        found["urls"] += is_url(source.get("data"), maybe=True) + is_url(source.get("file_data"), maybe=True)
                    else:
                        look_into(api, source.get("content"), found)
        look_into(api, block.get("content"), found)

def look(api, request):
    """The values that the gateway acts on in that API. Null is as good as absent."""
    if api != "chat":
        request = {name: value for name, value in request.items() if name not in CHAT_ALONE}
    bounds = [request.get(name) for name in ("max_tokens", "max_completion_tokens")]
    options = request.get("stream_options") or {}
    tools = request.get("tools") or []
    found = {"urls": 0, "files": []}
    for message in request["messages"]:
        found["files"] += [message.get("file_id"), message.get("file_ids")]
        look_into(api, message.get("content"), found)
    return {
        "model": request.get("model"), "stream": bool(request.get("stream")), "store": request.get("store"),
        "tier": request.get("service_tier"), "usage": bool(options.get("include_usage")),
        "tokens": max([int(bound) for bound in bounds if bound is not None], default=0),
        "n": int(request["n"]) if request.get("n") is not None else 1,
        "tools": [tool.get("type") for tool in tools if isinstance(tool, dict)],
        "refused": sorted(name for name in REFUSED if request.get(name) is not None),
        "urls": found["urls"], "files": [id for id in found["files"] if id is not None],
    }


def text_of(field):
    return None if field in ("", "null") else json.loads(field)


def gateway_saw(fields):
    model, stream, store, tier, usage, tokens, n, urls, tools = fields
    return {
        "model": text_of(model), "stream": bool(text_of(stream)), "store": text_of(store), "tier": text_of(tier),
        "usage": bool(text_of(usage)), "tokens": int(tokens), "n": int(n),
        "tools": [json.loads('"%s"' % name) if name else None for name in tools.split(",")] if tools or "," in tools else None,
        "refused": [], "urls": int(urls), "files": [],
    }


def probe(cases):
    text = "".join("%s\t%s\n" % (api, body.encode("utf-8", "surrogatepass").hex()) for api, body in cases)
    out = subprocess.run([PROBE], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode("utf-8", "surrogatepass")
    lines = out.split("\n")[:-1]
    assert len(lines) == len(cases)
    return [line.split("\t") for line in lines]


def same(seen, saw):
    if saw["tools"] is None: # none, or one without a type: the probe prints the same for both
        saw = dict(saw, tools=seen["tools"] if seen["tools"] in ([], [None]) else "?")
    return seen == saw


def compare(cases, readers):
    """How many passed; fails where readers differ about one."""
    passed = 0
    for (api, body), found in zip(cases, probe(cases)):
        if found[0] != "ok":
            continue
        passed += 1
        saw = gateway_saw(found[2:])
        for name, read in readers:
            seen = look(api, read(body))
            assert same(seen, saw), "%s %s\n%s reads %s\nthe gateway %s" % (api, body, name, seen, saw)
    return passed


READERS = [("Python", python_reads), ("Go", go_reads)]


# ---- the table: what passes, and what is refused for which place

PLAIN = '"messages":[{"role":"user","content":"x"}]'
TABLE = [
    ("chat", '{"model":"m",%s}' % PLAIN, "ok"),
    ("chat", '{"m\\u006fdel":"m",%s}' % PLAIN, "ok"),
    ("chat", '{"model":"m","Models":null,%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","Model":"n",%s}' % PLAIN, "field_invalid"),
    ("chat", '{"MODEL":"n","model":"m",%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","model":"n",%s}' % PLAIN, "duplicate_key"),
    ("chat", '{"model":"m","m\\u006Fdel":"n",%s}' % PLAIN, "duplicate_key"),
    ("chat", '{"model":"m","\u017ftore":true,%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","\\u017Ftore":true,%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","max_to\u212aens":9,%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","max_to\\u212Aens":9,%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","api_\u212aey":"x",%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","route":"x",%s}' % PLAIN, "policy_denied"),
    ("chat", '{"model":"m","r\\u006fute":"x",%s}' % PLAIN, "policy_denied"),
    ("chat", '{"model":"m","tools":[{"TYPE":"web_search"}],%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","stream_options":{"include_u\u017fage":true},%s}' % PLAIN, "field_invalid"),
    ("chat", '{"model":"m","mod\u0435l":"n",%s}' % PLAIN, "ok"),  # a Cyrillic letter: nobody's model
    ("chat", '{"model":"m","model\u0000":"n",%s}' % PLAIN, "parse_error"),
    ("chat", '{"model":"m","model\\u0000":"n",%s}' % PLAIN, "ok"),
    ("chat", '\ufeff{"model":"m",%s}' % PLAIN, "parse_error"),
    ("chat", '{"model":"m",%s}\n' % PLAIN, "ok"),
    ("chat", '{"model":"m",%s}{}' % PLAIN, "parse_error"),
    ("chat", "{'model':'m'}", "parse_error"),
    ("chat", '{"model":"m",/* */%s}' % PLAIN, "parse_error"),
    ("chat", '{"model":"m","n":NaN,%s}' % PLAIN, "parse_error"),
    ("chat", '{"model":"m","n":01,%s}' % PLAIN, "parse_error"),
    ("messages", '{"model":"m","max_tokens":9,%s}' % PLAIN, "ok"),
    ("messages", '{"model":"m","max_tokens":9,"Thread":{},%s}' % PLAIN, "field_invalid"),
    ("count", '{"model":"m",%s}' % PLAIN, "ok"),
]


# ---- bodies by chance

def spell(chance, name):
    """A name as an author may write it who wants two readers to see two things; mostly as it is."""
    out = []
    if chance.random() < 0.6:
        return name
    how = chance.randrange(4)
    for c in name:
        if how == 0 and chance.random() < 0.3:
            c = c.upper()
        elif how == 1 and chance.random() < 0.5:
            c = {"s": "\u017f", "k": "\u212a"}.get(c, c)
        elif how == 2 and chance.random() < 0.1:
            c = chance.choice(["", c + c, "\u0131", "\uff4d", c + "\u0301", "\u0435", " "])
        if chance.random() < 0.1 and len(c) == 1:
            c = "\\u%04x" % ord(c)
        out.append(c)
    return "".join(out)


def value_for(chance, name):
    if chance.random() < 0.1:
        return "null"
    if name in ("stream", "store"):
        return chance.choice(["true", "false"])
    if name in ("max_tokens", "max_completion_tokens", "n"):
        return chance.choice(["1", "7", "1e2", "40.0", "4096"])
    if name == "stream_options":
        return '{"%s":true}' % spell(chance, "include_usage")
    if name == "tools":
        return "[%s]" % ",".join('{"%s":"%s"}' % (spell(chance, "type"), chance.choice(["function", "web_search", "x"]))
                                 for _ in range(chance.randrange(3)))
    return '"%s"' % chance.choice(["a", "b", "\\u0061", "a/b", "\u00e9"])


def source(chance):
    text = '"%s"' % chance.choice(["https://x/a", "DATA:image/png;base64,QQ==", "QQ==", "file:///etc", "h\\u0074tp:x", ":", ""])
    if chance.random() < 0.2:
        return text
    name = chance.choice(["url", "data", "file_data", "file_id"])
    return ('[{"%s":%s}]' if chance.random() < 0.2 else '{"%s":%s}') % (spell(chance, name), text)


def block(chance, depth=0):
    members = ['"%s":"%s"' % (spell(chance, "type"), chance.choice(["text", "image", "document", "tool_result", "novel"]))]
    for _ in range(chance.randrange(3)):
        name = chance.choice(["source", "content", "file_id", "text"] + SOURCES)
        if name == "content" and depth < 3:
            members.append('"%s":[%s]' % (spell(chance, name), block(chance, depth + 1)))
        elif name == "source" or name in SOURCES:
            members.append('"%s":%s' % (spell(chance, name), source(chance)))
        else:
            members.append('"%s":%s' % (spell(chance, name), chance.choice(["null", '"x"'])))
    return "{%s}" % ",".join(members)


def messages(chance):
    if chance.random() < 0.5:
        return PLAIN
    return '"messages":[{"role":"user","%s":[%s]}]' % (spell(chance, "content"), ",".join(block(chance) for _ in range(1 + chance.randrange(2))))


def body(chance):
    members = [('"%s":"m"' % spell(chance, "model")), messages(chance)]
    if chance.random() < 0.7:
        members.append('"max_tokens":9')
    for _ in range(chance.randrange(4)):
        name = chance.choice(ACTED_ON if chance.random() < 0.7 else REFUSED)
        members.append('"%s":%s' % (spell(chance, name), value_for(chance, name)))
    chance.shuffle(members)
    return "{%s}" % chance.choice([",", " , ", ",\r\n\t"]).join(members)


def cases_of(chance, count):
    return [(chance.choice(["chat", "chat", "messages", "count"]), body(chance)) for _ in range(count)]


def the_table_holds():
    found = probe([row[:2] for row in TABLE])
    for (api, text, reason), line in zip(TABLE, found):
        assert line[0] == reason, "%s: %s instead of %s" % (text, line[0], reason)
    compare([row[:2] for row in TABLE], READERS)


def readers_agree_about_all_that_passes():
    passed = compare(cases_of(random.Random(SEED), CASES), READERS)
    assert CASES // 20 < passed < CASES, passed # neither everything nor nothing


# ---- Go itself

GO = '''package main

import ("bufio"; "encoding/hex"; "encoding/json"; "fmt"; "os")

type request struct {
%s}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<20)
	for in.Scan() {
		text, _ := hex.DecodeString(in.Text())
		var r request
		if err := json.Unmarshal(text, &r); err != nil {
			fmt.Println("null")
			continue
		}
		out, _ := json.Marshal(r)
		fmt.Println(string(out))
	}
}
'''


def compare_with_go(seed):
    """That go_reads is what Go reads: the model is as good as this comparison."""
    names = ACTED_ON + REFUSED + ["messages"]
    fields = "".join("\tF%d json.RawMessage `json:\"%s,omitempty\"`\n" % (i, name) for i, name in enumerate(names))
    cases = cases_of(random.Random(seed), CASES)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "main.go")
        with open(source, "w", encoding="utf-8") as file:
            file.write(GO % fields)
        out = subprocess.run(["go", "run", source], input="".join(text.encode().hex() + "\n" for _, text in cases).encode(),
                             stdout=subprocess.PIPE, check=True).stdout.decode()
    for (_, text), line in zip(cases, out.split("\n")):
        seen = json.loads(line)
        wanted = go_reads(text)
        for name in names:
            # RawMessage leaves what is inside as it was written
            assert seen.get(name) == json.loads(json.dumps(wanted.get(name))) or name in ("tools", "stream_options", "messages"), text
    print("Go reads %d bodies as go_reads does" % len(cases))


if __name__ == "__main__":
    the_table_holds()
    readers_agree_about_all_that_passes()
    print("%d rows, %d bodies" % (len(TABLE), CASES))
    if shutil.which("go"):
        compare_with_go(SEED)
    else:
        print("SKIPPED: no go on PATH; what Go reads is as this test believes")
