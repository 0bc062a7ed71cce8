"""A table of exact costs beside its test: JSON, {part: {row: {"value": V, "floor": F}}}.

A row has the recorded value and may have a floor, which is what the value has to come to. A value more
than 1 % over its row fails, or what the row's own `tolerance` says; once a row is within its floor, the floor is the limit, too, so that what
was reached is kept. A value that is better by more than 1 % passes and says that the table is out of
date. Further members of a row and other parts of the table are the test's own.
"""
import json
import os

TOLERANCE = 0.01


class ExactTable:
    def __init__(self, path):
        self.path = path

    def read(self):
        if not os.path.exists(self.path):
            return {}
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def write(self, table):
        """A row on each line, so that a change of the table can be read."""
        def text(part):
            if not isinstance(part, dict) or not part:
                return json.dumps(part)
            rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in part.items()]
            return "{\n" + ",\n".join(rows) + "\n }"

        parts = [f" {json.dumps(name)}: {text(part)}" for name, part in table.items()]
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("{\n" + ",\n".join(parts) + "\n}\n")

    def renewed(self, part, values, digits=3):
        """The part's rows with `values` in them, and what else they had."""
        rows = self.read().get(part, {})
        return {name: {**rows.get(name, {}), "value": round(value, digits)} for name, value in values.items()}

    def check(self, test, part, values):
        """Every value against its row; the two must have the same names."""
        rows = self.read()[part]
        test.assertEqual(sorted(rows), sorted(values))
        for name, value in values.items():
            have, floor = rows[name]["value"], rows[name].get("floor")
            limit = have * (1 + rows[name].get("tolerance", TOLERANCE))
            if floor is not None and have <= floor:
                limit = min(limit, floor)
            state = "" if floor is None else f", floor {floor}{'' if value <= floor else ' NOT REACHED'}"
            better = "; better: update the table" if value < have * (1 - TOLERANCE) else ""
            print(f"{part}, {name}: {value:.3f}, the table has {have}{state}{better}")
            with test.subTest(name):
                test.assertLessEqual(value, limit, f"{name} got worse")
