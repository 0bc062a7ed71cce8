"""codec/schema against an oracle: the same rules, written down as plainly and recursively as can be, over schemas and
values by chance. What differs is printed as a row that can be added to unit.codec.schema."""
import json
import os
import random
import subprocess
import sys
from decimal import Decimal

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

PROBE = os.path.join(os.path.dirname(harness.BIN), "schema_probe")
CASES = 20000
SEED = 20261122
NO, UNKNOWN, YES = 0, 1, 2
NAMES = {NO: "violated", UNKNOWN: "unchecked", YES: "holds"}


# ---- the oracle

def is_number(value):
    return isinstance(value, Decimal)


def is_type(name, value):
    return {"object": isinstance(value, dict), "array": isinstance(value, list), "string": isinstance(value, str),
            "number": is_number(value), "integer": is_number(value) and value == value.to_integral_value(),
            "boolean": isinstance(value, bool), "null": value is None}[name]


def same(a, b):
    """Booleans are no numbers, whatever Python says."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def truth(holds):
    return YES if holds else NO


def any_of(truths):
    return max(truths)


def one_of(truths):
    if truths.count(YES) > 1:
        return NO
    return UNKNOWN if UNKNOWN in truths else truth(truths.count(YES) == 1)


def resolve(root, ref):
    at = root
    for token in ref[2:].split("/"):
        at = at[token]
    return at


def judge_object(root, schema, value):
    for name, part in schema.get("properties", {}).items():
        if name in value:
            yield judge(root, part, value[name])
    yield truth(all(name in value for name in schema.get("required", [])))
    for name in value:
        if name not in schema.get("properties", {}) and "additionalProperties" in schema:
            yield judge(root, schema["additionalProperties"], value[name])
    yield truth(schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", 99))


def judge_array(root, schema, value):
    first = schema.get("prefixItems", [])
    for part, item in zip(first, value):
        yield judge(root, part, item)
    for item in value[len(first):]:
        yield judge(root, schema.get("items", True), item)
    yield truth(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 99))
    if schema.get("uniqueItems"):
        yield truth(not any(same(a, b) for i, a in enumerate(value) for b in value[:i]))


def judge_number(schema, value):
    yield truth(value >= schema.get("minimum", value) and value <= schema.get("maximum", value))
    yield truth("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
    yield truth("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    yield truth("multipleOf" not in schema or value % schema["multipleOf"] == 0)


def keywords(root, schema, value):
    if "$ref" in schema:
        yield judge(root, resolve(root, schema["$ref"]), value)
    if "type" in schema:
        names = schema["type"]
        yield truth(any(is_type(name, value) for name in ([names] if isinstance(names, str) else names)))
    if "enum" in schema:
        yield truth(any(same(entry, value) for entry in schema["enum"]))
    if "const" in schema:
        yield truth(same(schema["const"], value))
    for name, join in (("allOf", min), ("anyOf", any_of), ("oneOf", one_of)):
        if name in schema:
            yield join([judge(root, part, value) for part in schema[name]])
    if "not" in schema:
        yield YES - judge(root, schema["not"], value)
    if isinstance(value, dict):
        yield from judge_object(root, schema, value)
    elif isinstance(value, list):
        yield from judge_array(root, schema, value)
    elif is_number(value):
        yield from judge_number(schema, value)
    elif isinstance(value, str):
        yield truth(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 99))
        if "pattern" in schema or "format" in schema:
            yield UNKNOWN


def judge(root, schema, value):
    if isinstance(schema, bool):
        return truth(schema)
    return min(keywords(root, schema, value), default=YES)


# ---- schemas and values by chance

class Chance(random.Random):
    def some(self, things, most):
        return self.sample(things, self.randint(0, min(most, len(things))))

    def name(self):
        return self.choice(["a", "b", "c", "e\u0301/~", ""])

    def scalar(self):
        return self.choice([None, True, False, "", "a", "ab", "\U0001f600", "\n\"", *map(Decimal, (
            "0", "-0.0", "1", "1.0", "10e-1", "2", "-1.5", "0.1", "1e2", "9007199254740993", "9007199254740992.0"))])

    def value(self, depth):
        kind = self.random()
        if depth == 0 or kind < 0.4:
            return self.scalar()
        if kind < 0.7:
            return {self.name(): self.value(depth - 1) for _ in range(self.randint(0, 4))}
        return [self.value(depth - 1) for _ in range(self.randint(0, 4))]

    def schema(self, depth, inside=True):
        if inside and self.random() < 0.08:
            return self.random() < 0.7
        found = {}
        for name in self.some(list(self.makers(depth)), 4):
            found[name] = self.makers(depth)[name]()
        return found

    def makers(self, depth):
        number = lambda: self.choice(list(map(Decimal, ("-1", "0", "1", "1.5", "2", "9007199254740992"))))
        count = lambda: Decimal(self.randint(0, 3))
        scalars = {
            "type": self.types, "enum": lambda: [self.value(1) for _ in range(self.randint(1, 4))],
            "const": lambda: self.value(2), "minimum": number, "maximum": number, "exclusiveMinimum": number,
            "exclusiveMaximum": number, "multipleOf": lambda: Decimal(self.choice(["0.1", "1", "0.5", "3"])),
            "minLength": count, "maxLength": count, "minItems": count, "maxItems": count, "minProperties": count,
            "maxProperties": count, "uniqueItems": lambda: self.random() < 0.8, "pattern": lambda: "x",
            "format": lambda: "date", "required": lambda: [self.name() for _ in range(self.randint(0, 2))]}
        if depth == 0:
            return scalars
        part = lambda: self.schema(depth - 1)
        parts = lambda: [part() for _ in range(self.randint(1, 3))]
        return {**scalars, "properties": lambda: {self.name(): part() for _ in range(3)},
                "additionalProperties": part, "items": part, "prefixItems": parts, "allOf": parts, "anyOf": parts,
                "oneOf": parts, "not": part, "$ref": lambda: "#/$defs/" + self.choice("xy")}

    def types(self):
        names = ["object", "array", "string", "number", "integer", "boolean", "null"]
        return self.choice(names) if self.random() < 0.7 else self.sample(names, 2)

    def root(self):
        """Definitions refer to nothing, so that every reference ends."""
        without = self.schema(3, inside=False)
        return {**without, "$defs": {"x": self.schema(0), "y": self.schema(0)}}


class Numbers(json.JSONEncoder):
    """Decimals as they are written."""

    def encode(self, value):
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, dict):
            return "{" + ",".join(f"{json.dumps(key)}:{self.encode(part)}" for key, part in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(self.encode, value)) + "]"
        return super().encode(value)


class Schema(harness.Case):
    def test_it_says_what_the_oracle_says(self):
        chance = Chance(SEED)
        cases = [(chance.root(), chance.value(3)) for _ in range(CASES)]
        write = Numbers(ensure_ascii=False).encode
        lines = [write(schema) + "\t" + write(value) for schema, value in cases]
        run = subprocess.run([PROBE], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        said = run.stdout.splitlines()
        self.assertEqual((len(said), run.stderr), (CASES, ""))
        counts = dict.fromkeys(NAMES.values(), 0)
        for (schema, value), line, text in zip(cases, said, lines):
            want = NAMES[judge(schema, schema, value)]
            counts[want] += 1
            self.assertEqual(line.split("\t")[0], want, text)
        self.assertGreater(min(counts.values()), CASES // 100, counts)  # chance brings enough of each


if __name__ == "__main__":
    harness.main()
