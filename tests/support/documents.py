"""The pages of the documentation, and the blocks ("fences") in them. tests/integration/test_docs.py says what the words mean."""

import os
import re

import harness

TOP = os.path.normpath(harness.SOURCE)
DOCS = os.path.join(TOP, "deploy/docs")
FENCE = re.compile(r"(?:^ *<!-- (test|not run): ([^\n]+?) -->\n)?^( *)```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Fence:
    def __init__(self, page, text, match):
        self.page = page
        self.name = f"{page}:{text.count(chr(10), 0, match.start(4)) + 1}"
        self.tests = match[2].split() if match[1] == "test" else []
        self.not_run = match[2] if match[1] == "not run" else None
        self.word, _, self.rest = match[4].partition(" ")
        self.text = re.sub(f"^{match[3]}", "", match[5], flags=re.MULTILINE)

    @property
    def here(self):
        """Whether test_docs.py is the one to try it."""
        return not self.tests and self.not_run is None

    def commands(self):
        """Of `sh`: each as its words, without comments; what a pipe or && separates are several."""
        text = re.sub(r"(^|\s)#.*", "", self.text.replace("\\\n", " "), flags=re.MULTILINE)
        return [line.split() for line in re.split(r"\n|&&|\|", text) if line.strip()]


def pages():
    """Every page that is written by hand or shown to an operator, relative to the top: no results of measurements."""
    found = ["README.md", "CONTRIBUTING.md", "bench/README.md"]
    for directory, _, names in os.walk(DOCS):
        found += [os.path.relpath(os.path.join(directory, name), TOP) for name in names if name.endswith(".md")]
    return sorted(found)


def read(page):
    with open(os.path.join(TOP, page), encoding="utf-8") as file:
        return file.read()


def without_fences(page):
    return FENCE.sub("", read(page))


def fences(page=None, word=None):
    found = []
    for one in [page] if page else pages():
        text = read(one)
        found += [Fence(one, text, match) for match in FENCE.finditer(text)]
    return [fence for fence in found if word in (None, fence.word)]


def fence(page, beginning):
    """The one of that page whose text begins so, for a test that runs it itself."""
    found = [one for one in fences(page) if one.text.startswith(beginning)]
    if len(found) != 1:
        raise harness.Failure(f"{page}: {len(found)} blocks begin with {beginning!r}")
    return found[0]
