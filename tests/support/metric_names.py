"""Which metrics there are, and which of them a PromQL expression asks for."""

import os
import re
import subprocess

import harness

NAME = re.compile(r"\bsluice_[a-z_]+\b")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def known():
    """Name -> its labels, from `sluice metrics`."""
    manual = subprocess.run([harness.BIN, "metrics"], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^(sluice_[a-z_]+)(?:\{([a-z,]*)\})?$", manual, re.MULTILINE)
    return {name: set(filter(None, labels.split(","))) for name, labels in rows}


def used(expression, metrics):
    """Names in `expression`; a histogram's series count as the histogram."""
    return {name if name in metrics else SUFFIX.sub("", name) for name in NAME.findall(expression)}


def reasons():
    """Every data.reason that an answer can have, from the table of errors."""
    with open(os.path.join(harness.SOURCE, "codec/tbl/errors.h"), encoding="utf-8") as file:
        return set(re.findall(r'^ERROR\(\w+, -?\d+, \d+, "(\w+)"', file.read(), re.MULTILINE))


def outcomes_used(expression):
    """The regular expressions and values that outcome is compared with."""
    return set(re.findall(r'\boutcome(?:=~|!~|!=|=)"([^"]*)"', expression))


def labels_used(expression):
    """Labels that `expression` selects or groups by."""
    found = set(re.findall(r'\b([a-z_]+) ?(?:=~|!~|!=|=)\s*"', expression))
    for group in re.findall(r"\b(?:by|without|on) \(([a-z_, ]*)\)", expression):
        found |= {label.strip() for label in group.split(",")}
    return found
