#!/usr/bin/env python3
"""circles.py must find each of these circles, and refuse the bad ones."""

import unittest

import circles


def needs(*edges):
    """A graph of "a>b>c": a needs b, and b needs c."""
    out = {}
    for edge in edges:
        names = edge.split(">")
        for name in names:
            out.setdefault(name, set())
        for one, other in zip(names, names[1:]):
            out[one].add(other)
    return out


class Circles(unittest.TestCase):
    def found(self, *edges):
        return circles.circles(needs(*edges))

    def test_a_line_is_no_circle(self):
        self.assertEqual(self.found("x/a.c>x/b.c>x/c.c", "x/a.c>x/c.c"), [])

    def test_two_circles_that_touch_are_one(self):
        self.assertEqual(self.found("x/a.c>x/b.c>x/a.c", "x/b.c>x/c.c>x/b.c"), [["x/a.c", "x/b.c", "x/c.c"]])

    def test_circles_that_see_each_other_one_way_are_two(self):
        self.assertEqual(self.found("x/c.c>x/d.c>x/e.c>x/c.c", "x/c.c>x/a.c>x/b.c>x/a.c"),
                         [["x/c.c", "x/d.c", "x/e.c"], ["x/a.c", "x/b.c"]])

    def test_a_long_circle_is_walked_without_recursion(self):
        names = [f"x/{n:05}.c" for n in range(20000)]
        self.assertEqual(self.found(">".join([*names, names[0]])), [names])


class Breaches(unittest.TestCase):
    FOUR = "x/a.c>x/b.c>x/c.c>x/d.c>x/a.c"
    FIVE = "x/a.c>x/b.c>x/c.c>x/d.c>x/e.c>x/a.c"
    ACROSS = "x/a.c>y/b.c>x/a.c"

    def breaches(self, *edges):
        return circles.breaches(circles.circles(needs(*edges)))

    def test_four_in_one_folder_are_good(self):
        self.assertEqual(self.breaches(self.FOUR), [])

    def test_five_in_one_folder_are_bad(self):
        self.assertRegex(self.breaches(self.FIVE)[0], "a circle of 5 objects in x")

    def test_two_in_two_folders_are_bad(self):
        self.assertRegex(self.breaches(self.ACROSS)[0], "a circle of 2 objects in x, y")
        self.assertRegex(self.breaches("x/a.c>x/y/b.c>x/a.c")[0], "a circle of 2 objects in x, x/y")

    def test_each_bad_one_is_named(self):
        self.assertEqual(len(self.breaches(self.FIVE, "y/a.c>z/b.c>y/a.c", "w/a.c>w/b.c>w/a.c")), 2)


class Symbols(unittest.TestCase):
    def test_an_object_needs_the_one_that_defines(self):
        defined, needed = circles.scan(["a.o:0000000000000010 T f", "a.o:                 U g", "b.o:0000000000000000 D g",
                                        "b.o:                 U malloc", "b.o:                 w f"])
        self.assertEqual(circles.graph(defined, needed), {"a.o": {"b.o"}, "b.o": {"a.o"}})

    def test_a_name_of_two_objects_is_an_error(self):
        with self.assertRaises(SystemExit):
            circles.graph({"a.o": {"f"}, "b.o": {"f"}}, {})


if __name__ == "__main__":
    unittest.main()
