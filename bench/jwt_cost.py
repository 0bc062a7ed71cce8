#!/usr/bin/env python3
"""What a caller's token (JWT) costs: CPU of the server process per request, by kind.

    bench/jwt_cost.py [--requests 5000] [--rounds 3]

First pings over one HTTP/2 connection, ten at a time (h2load), so that little else is measured; then pings one by one
over HTTP/1.1 with a token that was never seen before, whose signature has to be checked (it is wrong, which costs the
same). Of some rounds the least counts: what disturbs only adds."""
import argparse
import glob
import http.client
import os
import subprocess
import sys
import time
import urllib.parse

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(SOURCE, "tests/support"))
import harness
import jwt_issuer

AT_ONCE, OF_A_CONNECTION = 400, 16
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Cost(harness.Case):
    requests, rounds = 5000, 3

    def cpu_ns(self):
        total = 0
        for path in glob.glob(f"/proc/{self.process.server_pid()}/task/*/schedstat"):
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total

    def load(self, token):
        """Microseconds of CPU per request, all with the same token."""
        before = self.cpu_ns()
        subprocess.run(["h2load", "-n", str(self.requests), "-c1", "-m10", "-d", self.body, "-H",
                        "content-type: application/json", "-H", "authorization: Bearer " + token,
                        self.process.url + "/v1/sampling"], check=True, capture_output=True)
        return (self.cpu_ns() - before) / 1000 / self.requests

    def one_by_one(self, tokens):
        """The same with a token each, one by one, on as many connections as that many may be wrong on."""
        place = urllib.parse.urlsplit(self.process.url).netloc
        connections = [http.client.HTTPConnection(place, timeout=30) for _ in range(0, len(tokens), OF_A_CONNECTION)]
        for connection in connections:
            connection.request("GET", "/")
            connection.getresponse().read()
        before = self.cpu_ns()
        for number, token in enumerate(tokens):
            connection = connections[number // OF_A_CONNECTION]
            connection.request("POST", "/v1/sampling", PING, {
                "Content-Type": "application/json", "Authorization": "Bearer " + token})
            connection.getresponse().read()
        spent = (self.cpu_ns() - before) / 1000 / len(tokens)
        for connection in connections:
            connection.close()
        return spent

    def strangers(self, issuer, key):
        """Tokens of our own making, as many as are looked at in a second."""
        time.sleep(1.1)
        rest = issuer.token(key).split(".")[:2]
        # below RSA's modulus, and below the order of EdDSA's curve: else they are refused without being checked
        make = (lambda: b"\0" + os.urandom(255)) if key.alg == "RS256" else (lambda: os.urandom(63) + b"\0")
        return [".".join([*rest, jwt_issuer.b64(make())]) for _ in range(AT_ONCE)]

    def row(self, name, measure):
        print(f"| {name} | {min(measure() for _ in range(self.rounds)):.1f} |", flush=True)

    def test_cost(self):
        issuer = jwt_issuer.Issuer(self)
        keys = [issuer.add(alg) for alg in ("RS256", "ES256", "EdDSA")]
        self.process = self.gateway(harness.config(self.sim(), identity={"jwt": [issuer.settings()]}))
        self.process.wait_stderr("keys of ")
        self.body = os.path.join(self.directory(), "body")
        with open(self.body, "wb") as file:
            file.write(PING)
        print("| ping over HTTP/2 by | us |\n|---|---|")
        self.row("key", lambda: self.load(harness.KEY))
        self.row("key that nobody has", lambda: self.load("x" * 40))
        for key in keys:
            good, bad = issuer.token(key), issuer.token(issuer.new_key(key.alg, kid=key.kid))
            self.row(key.alg + ", remembered", lambda token=good: self.load(token))
            self.row(key.alg + ", wrong, again and again", lambda token=bad: self.load(token))
        self.row("expired", lambda token=issuer.token(keys[1], exp=1): self.load(token))
        print("\n| ping over HTTP/1.1, one by one, by | us |\n|---|---|")
        for key in keys:
            good = issuer.token(key)
            self.row(key.alg + ", remembered", lambda token=good: self.one_by_one([token] * AT_ONCE))
            self.row(key.alg + ", never seen", lambda key=key: self.one_by_one(self.strangers(issuer, key)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=Cost.requests)
    parser.add_argument("--rounds", type=int, default=Cost.rounds)
    options = parser.parse_args()
    Cost.requests, Cost.rounds = options.requests, options.rounds
    del sys.argv[1:]
    harness.main()


if __name__ == "__main__":
    main()
