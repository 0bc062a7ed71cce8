"""Calls that the provider never answers, or fails, which would open its endpoint's circuit breaker for everybody.

Those that hang ask for progress, so that the caller's deadline is longer than the provider's first_byte timeout: with the
default settings a run takes more than that minute. Honest callers ask the same endpoint for another model.
"""

import dataclasses
import json
import time

from programs import Program
from wire import DATA, END_STREAM, PREFACE, frame, frames, literal, settings

STREAMS = 6      # of a wave, which has a connection of its own
EVERY_S = 0.3    # a wave begins
AFTER_S = 4      # the waves go on for so long once a call was given up
PATIENCE_S = 75  # the first_byte timeout has passed by then


def with_progress(ask):
    path, body = ask
    message = json.loads(body)
    message["params"]["_meta"] = {"progressToken": 1}
    return path, json.dumps(message).encode()


class Wave:
    def __init__(self, target, ask):
        self.connection, self.data = target.open(PREFACE + settings()), b""
        accept = literal(b"accept", b"text/event-stream")
        for stream in range(1, 2 * STREAMS, 2):
            self.connection.send(target.headers(stream, ask, extra=accept) + frame(DATA, END_STREAM, stream, ask[1]))

    def given_up(self):
        """How many of its calls have been answered to the end."""
        self.data += self.connection.read(0.001) or b""
        return sum(1 for _, flags, stream, _ in frames(self.data) if stream and flags & END_STREAM)


def hanging_calls(tenants):
    """`tenants`: whose the waves are, by turns."""
    def run(target):
        targets = [dataclasses.replace(target, key=key) for key in target.keys[:tenants]]
        ask, waves, given_up, until = with_progress(target.never), [], 0, time.monotonic() + PATIENCE_S
        while time.monotonic() < until or not target.seen_enough():
            started = time.monotonic()
            waves.append(Wave(targets[len(waves) % tenants], ask))
            before, given_up = given_up, sum(wave.given_up() for wave in waves)
            if before == 0 and given_up != 0:
                until = time.monotonic() + AFTER_S
            time.sleep(max(0.0, EVERY_S - (time.monotonic() - started)))
        for wave in waves:
            wave.connection.socket.close()
        return f"{given_up} given up"
    return run


def failing_calls(tenants):
    """Bursts of them: one fails as soon as the one before has."""
    def run(target):
        targets = [dataclasses.replace(target, key=key) for key in target.keys[:tenants]]
        ask, failed, until = with_progress(target.fails), 0, time.monotonic() + AFTER_S
        while time.monotonic() < until or not target.seen_enough():
            waves = [Wave(one, ask) for one in targets]
            patience = time.monotonic() + EVERY_S
            while sum(wave.given_up() for wave in waves) < STREAMS * tenants and time.monotonic() < patience:
                pass  # given_up waits
            failed += sum(wave.given_up() for wave in waves)
            for wave in waves:
                wave.connection.socket.close()
        return f"{failed} failed"
    return run


PROGRAMS = [
    Program("hanging_calls", hanging_calls(1), r"^[1-9]\d* given up", ways=("clear",)),
    Program("hanging_calls_of_two_tenants", hanging_calls(2), r"^[1-9]\d* given up", ways=("clear",)),
    Program("failing_calls_of_two_tenants", failing_calls(2), r"^[1-9]\d* failed", ways=("clear",)),
]
