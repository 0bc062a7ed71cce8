#!/usr/bin/env python3
"""Bodies made to cost more than their length, and places of a request to put them.

hostile.py DIRECTORY SIZE    writes them all there

A generator gives a JSON value of about `size` bytes, a place puts a value into a whole text. Whether
the codec accepts one does not matter: neither may take long.
"""
import itertools
import json
import os
import sys


def filled(size, part, join=b",", opening=b"[", closing=b"]"):
    """`part(i)`, joined, until about `size` bytes are there."""
    parts, done = [], 0
    for i in itertools.count():
        if done >= size:
            return opening + join.join(parts) + closing
        parts.append(part(i))
        done += len(parts[-1]) + len(join)


def an_object(keys):
    return b"{" + b",".join(b'"%b":0' % key for key in keys) + b"}"


# ---- values ----
def unique_keys(size):
    """Objects of 300 keys that differ in their last bytes."""
    each = an_object([b"key%05d" % i for i in range(300)])
    return filled(size, lambda i: each)


def largest_sets(size):
    """Objects of as many keys as one may have, or of all that there is room for."""
    each = an_object([b"%x" % i for i in range(max(1, min(4090, size // 7)))])
    return filled(size, lambda i: each)


def late_duplicate(size):
    """The very last key of all these objects was there before."""
    keys = [b"%x" % i for i in range(300)]
    return filled(size, lambda i: an_object(keys))[:-2] + b',"0":0}]'


def many_small_sets(size):
    """Objects of 33 long keys: each more than one compares one by one, and none worth a large table."""
    each = an_object([b"a-name-that-all-of-them-begin-with-%02d" % i for i in range(33)])
    return filled(size, lambda i: each)


def nested_sets(size):
    """An object in an object, 30 deep, 20 keys each: all these sets are open at a time."""
    each = b"1"
    for level in range(30):
        each = b"{" + b"".join(b'"k%d-%d":0,' % (level, i) for i in range(20)) + b'"in":' + each + b"}"
    return filled(size, lambda i: each)


def escaped_keys(size):
    """Keys whose every character is an escape, so that none can be compared as it stands."""
    each = an_object([b"".join(b"\\u%04x" % ord(c) for c in f"k{i:03d}") for i in range(300)])
    return filled(size, lambda i: each)


def white_space(size):
    return b"[" + b" \n\t\r" * (size // 4) + b"]"


def white_space_between(size):
    """One white-space character at each place where one may be, and never the same."""
    signs = b" \n\t\r"
    return filled(size, lambda i: b"{\n\"a\"\t:%c1\r}" % signs[i % 4], b" ,\n")


def pretty_deep(size):
    """Lines that begin with a hundred spaces."""
    return filled(size, lambda i: b"\n" + b" " * (60 + i % 80) + b'"x"')


def backslashes(size):
    return b'"' + b"\\\\" * (size // 2) + b'"'


def quotes(size):
    return b'"' + b'\\"' * (size // 2) + b'"'


def mixed_escapes(size):
    """Runs of backslashes of every length up to 40: an odd one escapes what follows."""
    return b'"' + filled(size, lambda i: b"\\\\" * (i % 20) + b"\\" + b'"bfnrt/'[i % 7:i % 7 + 1] + b"x" * (i % 3),
                         b"", b"", b"") + b'"'


def control_escapes(size):
    """Six characters for each byte of meaning."""
    return b'"' + b"\\u0001" * (size // 6) + b'"'


def surrogate_pairs(size):
    return b'"' + b"\\ud83d\\ude00" * (size // 12) + b'"'


def lone_at_the_end(size):
    """Pairs, and one half of one at the very end."""
    return b'"' + b"\\ud83d\\ude00" * (size // 12) + b'\\ud83d"'


def arrays_deep(size):
    return filled(size, lambda i: b"[" * 50 + b"]" * 50)


def objects_deep(size):
    return filled(size, lambda i: b'{"a":' * 50 + b"1" + b"}" * 50)


def too_deep(size):
    return b"[" * (size // 2) + b"]" * (size // 2)


def tiny_arrays(size):
    return filled(size, lambda i: b"[]")


def tiny_objects(size):
    return filled(size, lambda i: b'{"":0}')


def tiny_strings(size):
    return filled(size, lambda i: b'""')


def tiny_scalars(size):
    return filled(size, lambda i: (b"0", b"true", b"null", b"-1", b'"a"', b"false", b"1e1")[i % 7])


def huge_number(size):
    return b"9" * size


def huge_fractions(size):
    return filled(size, lambda i: b"-0." + b"123456789" * 40 + b"E+" + b"9" * 200)


def odd_numbers(size):
    """Short ones, where every branch of the grammar is taken."""
    return filled(size, lambda i: (b"0", b"-0", b"1.5", b"1e9", b"-1E-9", b"0.1e+2", b"12", b"1E400")[i % 8])


def utf8_edges(size):
    """Sequences of 2, 3 and 4 bytes and one byte in turn, the first and the last of each length."""
    signs = "\x80߿ࠀ\uffff\U00010000\U0010ffffa"
    return b'"' + filled(size, lambda i: signs[i % 7].encode(), b"", b"", b"") + b'"'


def utf8_broken_at_the_end(size):
    return b'"' + "語".encode() * (size // 3) + b'\xe8\xaa"'


def open_string(size):
    """Never closed."""
    return b'"' + b"a" * size


def string_of_json(size):
    """JSON in a string in a string: every level doubles its backslashes."""
    inner = filled(size // 5, lambda i: b'{"a":"\\"b\\""}')
    return json.dumps(json.dumps(inner.decode())).encode()


VALUES = [unique_keys, largest_sets, late_duplicate, many_small_sets, nested_sets, escaped_keys, white_space,
          white_space_between, pretty_deep, backslashes, quotes, mixed_escapes, control_escapes, surrogate_pairs,
          lone_at_the_end, arrays_deep, objects_deep, too_deep, tiny_arrays, tiny_objects, tiny_strings, tiny_scalars,
          huge_number, huge_fractions, odd_numbers, utf8_edges, utf8_broken_at_the_end, open_string, string_of_json]


# ---- requests whose own parts are the attack ----
def of_params(members):
    return b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":9,' + members + b"}}"


def of_content(content, more=b""):
    return of_params(b'"messages":[{"role":"user","content":' + content + b"}]" + more)


USER = b'"messages":[{"role":"user","content":{"type":"text","text":"x"}}]'


def tiny_blocks(size):
    return of_content(filled(min(size, 16000 * 27), lambda i: b'{"type":"text","text":"a"}'))


def type_last(size):
    """What a block is stands behind what it has."""
    return of_content(filled(size, lambda i: b'{"text":"a","annotations":{},"type":"text"}'))


def tiny_messages(size):
    return of_params(b'"messages":' + filled(size, lambda i: b'{"role":"user","content":{"type":"text","text":""}}'))


def parallel_calls(size):
    """One round of calls, answered in the opposite order."""
    count = max(1, size // 150)
    calls = b",".join(b'{"type":"tool_use","id":"call-%06d","name":"t","input":{}}' % i for i in range(count))
    results = b",".join(b'{"type":"tool_result","toolUseId":"call-%06d","content":[]}' % i
                        for i in reversed(range(count)))
    return of_params(b'"messages":[{"role":"user","content":{"type":"text","text":"x"}},'
                     b'{"role":"assistant","content":[' + calls + b']},{"role":"user","content":[' + results + b"]}],"
                     b'"tools":[{"name":"t","inputSchema":{"type":"object"}}]')


def many_rounds(size):
    """A round of one call each, the ids all alike but for their end, some spelt with escapes."""
    def turn(i):
        name = b"call-%06d" % i if i % 2 else b"\\u0063all-%06d" % i
        return (b'{"role":"assistant","content":{"type":"tool_use","id":"%b","name":"t","input":{}}},'
                b'{"role":"user","content":{"type":"tool_result","toolUseId":"call-%06d","content":[]}}' % (name, i))
    return of_params(filled(size, turn, opening=b'"messages":[' + USER[12:-1] + b",") +
                     b',"tools":[{"name":"t","inputSchema":{"type":"object"}}]')


def many_tools(size):
    return of_params(USER + b',"tools":' + filled(
        min(size, 1000 * 55), lambda i: b'{"name":"tool.%06d","inputSchema":{"type":"object"}}' % i))


def folded_schemas(size):
    """Roots that have to be folded, which reads them several times."""
    each = (b'{"name":"t%d","inputSchema":{"type":"object","anyOf":[' +
            b",".join(b'{"properties":{"p%d":{"type":"string"}},"required":["p%d"]}' % (i, i) for i in range(40)) +
            b"]}}")
    return of_params(USER + b',"tools":' + filled(size, lambda i: each.replace(b"%d", b"%d" % i, 1)))


def broken_base64_lines(size):
    """Line breaks after every fourth character: all of them go."""
    data = b"QUJD\\r\\n" * (size // 8)
    return of_content(b'{"type":"image","mimeType":"image/png","data":"' + data + b'"}')


def hints(size):
    return of_params(USER + b',"modelPreferences":{"hints":' + filled(size, lambda i: b'{"name":"m"}') + b"}")


REQUESTS = [tiny_blocks, type_last, tiny_messages, parallel_calls, many_rounds, many_tools, folded_schemas,
            broken_base64_lines, hints]


# ---- places: a value in a whole text, and the task that has to cope with it ----
def in_tool_input(value):
    return of_params(b'"messages":[{"role":"user","content":{"type":"text","text":"x"}},'
                     b'{"role":"assistant","content":{"type":"tool_use","id":"a","name":"t","input":{"v":' + value +
                     b'}}},{"role":"user","content":{"type":"tool_result","toolUseId":"a","content":[]}}],'
                     b'"tools":[{"name":"t","inputSchema":{"type":"object"}}]')


def in_schema(value):
    return of_params(USER + b',"tools":[{"name":"t","inputSchema":{"type":"object","default":' + value + b"}}]")


def in_arguments(value):
    """As an answer's `function.arguments`, JSON in a string; what is not UTF-8 goes in as it is."""
    escaped = json.dumps((b'{"v":' + value + b"}").decode("latin-1"), ensure_ascii=False).encode("latin-1")
    return (b'{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
            b'{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":'
            b'{"name":"tool_3_search_repository","arguments":' + escaped +
            b'}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}')


def in_answer_input(value):
    return (b'{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c",'
            b'"name":"tool_3_search_repository","input":{"v":' + value +
            b'}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}')


def stream_event(kind, members):
    return b"event: " + kind + b'\ndata: {"type":"' + kind + b'",' + members + b"}\n\n"


def streamed(events):
    return (stream_event(b"message_start", b'"message":{"id":"a","type":"message","role":"assistant","model":"m",'
                         b'"content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}') + events +
            stream_event(b"message_delta", b'"delta":{"stop_reason":"tool_use","stop_sequence":null},'
                         b'"usage":{"output_tokens":15}') + b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


def in_partial_json(value):
    """As the input of a call that comes in pieces, each JSON in a string."""
    whole = '{"v":' + value.decode("utf-8", "replace") + "}"
    pieces = [json.dumps(whole[at:at + 200], ensure_ascii=False).encode("utf-8") for at in range(0, len(whole), 200)]
    return streamed(stream_event(b"content_block_start", b'"index":0,"content_block":{"type":"tool_use","id":"c",'
                                 b'"name":"tool_3_search_repository","input":{}}') +
                    b"".join(stream_event(b"content_block_delta", b'"index":0,"delta":{"type":"input_json_delta",'
                                          b'"partial_json":' + piece + b"}") for piece in pieces) +
                    stream_event(b"content_block_stop", b'"index":0'))


def in_text_block(events):
    return streamed(stream_event(b"content_block_start", b'"index":0,"content_block":{"type":"text","text":""}') +
                    events + stream_event(b"content_block_stop", b'"index":0'))


def tiny_events(size):
    return in_text_block(filled(size, lambda i: stream_event(
        b"content_block_delta", b'"index":0,"delta":{"type":"text_delta","text":"%c"}' % (97 + i % 26)), b"", b"", b""))


def halves_of_pairs(size):
    """Every pair of surrogates is cut between two events."""
    return in_text_block(filled(size, lambda i: stream_event(
        b"content_block_delta", b'"index":0,"delta":{"type":"text_delta","text":"' +
        (b"\\ude00\\ud83d" if i else b"\\ud83d") + b'"}'), b"", b"", b"") + stream_event(
            b"content_block_delta", b'"index":0,"delta":{"type":"text_delta","text":"\\ude00"}'))


def comments(size):
    return in_text_block(b": ping\n" * (size // 7))


def empty_events(size):
    return in_text_block(b"data:\r\n\r\n" * (size // 9))


def tiny_lines(size):
    """Events of many lines of data, which have to be joined."""
    return in_text_block((b"event: ping\n" + b"data: \n" * 500 + b'data: {"type": "ping"}\n\n') * (size // 3500 + 1))


def nearly_stopped(size):
    """Every letter nearly ends eight stop sequences that the provider was not given."""
    return (b'{"id":"a","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"' + b"e" * size +
            b'"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}')


STREAMS = [tiny_events, halves_of_pairs, comments, empty_events, tiny_lines]

PLACES = {
    "text": ("valid", lambda value: value),
    "envelope": ("decode", lambda value: b'{"x":' + value + b"," + of_params(USER)[1:]),
    "params": ("decode", lambda value: of_params(b'"x":' + value + b"," + USER)),
    "prompt": ("request.anthropic", lambda value: of_params(b'"systemPrompt":' + value + b"," + USER)),
    "metadata": ("request.anthropic", lambda value: of_params(b'"metadata":{"x":' + value + b"}," + USER)),
    "meta": ("request.anthropic", lambda value: of_params(b'"_meta":{"x":' + value + b"}," + USER)),
    "tool input": ("request.anthropic", in_tool_input),
    "tool input, escaped": ("request.openai", in_tool_input),
    "inputSchema": ("request.anthropic", in_schema),
    "answer's input": ("answer.anthropic", in_answer_input),
    "answer's arguments": ("answer.openai", in_arguments),
    "streamed input": ("stream.anthropic", in_partial_json),
}


def everything(size):
    """Yields (generator, place, task, bytes)."""
    for value in VALUES:
        made = value(size)
        for place, (task, put) in PLACES.items():
            yield value.__name__, place, task, put(made)
    for made in REQUESTS:
        yield made.__name__, "whole, to Anthropic", "request.anthropic", made(size)
        yield made.__name__, "whole, to OpenAI", "request.openai", made(size)
    for made in STREAMS:
        yield made.__name__, "stream of Anthropic", "stream.anthropic", made(size)
    yield nearly_stopped.__name__, "answer of Anthropic", "stopped.anthropic", nearly_stopped(size)


def write(directory, size):
    """{(generator, place): "TASK:FILE"}"""
    os.makedirs(directory, exist_ok=True)
    found = {}
    for number, (generator, place, task, data) in enumerate(everything(size)):
        path = os.path.join(directory, f"{size}-{number:03d}-{generator}")
        with open(path, "wb") as file:
            file.write(data)
        found[generator, place] = f"{task}:{path}"
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for key, argument in write(sys.argv[1], int(sys.argv[2])).items():
        print(*key, argument, sep="\t")
