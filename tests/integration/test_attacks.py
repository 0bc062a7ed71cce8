"""Attacks on the gateway's listeners: it lives, honest callers are answered, a kill is counted by its cause.

The programs are bench/attacks/programs.py, one per measure, and those beside the checkout
(SLUICE_SHARED/attacks); without the latter their tests are skipped aloud. Each program is also held
against libh2o without a guard, where it must do its harm: one that hurts nobody would prove nothing.
Times and CPU are bench/attack_table.py's business.
ctest: timeout=600
"""

import os
import subprocess
import sys
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, os.path.join(HERE, "../../bench/attacks"))
import harness  # noqa: E402
import programs  # noqa: E402
import servers  # noqa: E402

SHARED = os.path.join(harness.SHARED, "attacks")
TLS_MISSING = "NOT RUN: this version of the gateway has no TLS listeners"


def run(program, target):
    try:
        return program.run(target)
    except OSError as error:
        return f"closed ({type(error).__name__})"


def together(jobs):
    """Runs functions by name at the same time; what they returned."""
    results = {}

    def one(name, job):
        results[name] = job()
    threads = [threading.Thread(target=one, args=item) for item in jobs.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def kills(gateway):
    return {labels["cause"]: value for name, labels, value in gateway.metrics().samples
            if name == "sluice_guard_kills_total"}


class AttackCase(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.cert, cls.key = harness.Case().certificate()
        cls.has_tls = servers.has_tls(cls.cert, cls.key)

    def attacked(self, way="clear"):
        """A gateway, and its answer's size."""
        if way != "clear" and not self.has_tls:
            self.skipTest(TLS_MISSING)
        certificate = (self.cert, self.key) if self.has_tls else ()
        gateway = self.gateway(servers.settings(self.sim(), *certificate))
        return gateway, servers.answer_size(gateway)

    def assert_unharmed(self, gateway):
        """An honest caller is answered, nothing is in flight, and nobody had to restart anything."""
        self.assert_result(gateway.post(servers.message(servers.MODELS["quick"])))
        harness.wait_for(lambda: gateway.metrics().sum("sluice_in_flight") == 0, "nothing in flight")
        self.assertEqual(gateway.metrics().sum("sluice_restarts_total"), 0, gateway.report())

    def assert_counted(self, program, before, after):
        grown = {cause: after[cause] - before[cause] for cause in after if after[cause] != before[cause]}
        if program.causes is None:  # may be counted or not
            return
        if not program.causes:
            self.assertEqual(grown, {})
        else:
            self.assertIn(next(iter(grown), None), program.causes)
            self.assertEqual(len(grown), 1, grown)
            if not program.several:
                self.assertEqual(sum(grown.values()), 1, grown)


def wanted(program, way):
    return way in program.ways and (not program.needs or servers.accepts(**{program.needs: "16MiB"}))


class Guarded(AttackCase):
    def quick_ones(self, way):
        gateway, size = self.attacked(way)
        for program in programs.PROGRAMS:
            if program.slow or program.stops or way not in program.ways:
                continue
            with self.subTest(program.name):
                if not wanted(program, way):
                    self.skipTest(f"NOT RUN: this version of the gateway has no limits.{program.needs}")
                before = kills(gateway)
                seen = run(program, servers.gateway_target(gateway, way, size))
                self.assert_unharmed(gateway)
                self.assertRegex(seen, program.seen)
                self.assert_counted(program, before, kills(gateway))

    def test_clear(self):
        self.quick_ones("clear")

    def test_tls(self):
        self.quick_ones("tls")

    def test_in_the_segment_of_finished(self):
        self.quick_ones("finished")

    def test_lines_that_are_put_together(self):
        """They are asked for by a byte each."""
        gateway, size = self.attacked()
        pid = server_pid(gateway)
        before = harness.memory_kb(pid, "VmRSS")
        seen = run(programs.BY_NAME["repeated_accept"], servers.gateway_target(gateway, "clear", size))
        self.assertRegex(seen, "^100 of 100")
        self.assertLess(harness.memory_kb(pid, "VmHWM") - before, 64 * 1024)

    def slow_ones(self, *ways):
        """All at once, since each lasts as long as the guard's patience."""
        gateway, size = self.attacked(ways[-1])
        chosen = {f"{p.name} {way}": (p, servers.gateway_target(gateway, way, size))
                  for p in programs.PROGRAMS for way in ways if p.slow and wanted(p, way)}
        seen = together({name: lambda c=pair: run(*c) for name, pair in chosen.items()})
        for name, (program, _) in chosen.items():
            with self.subTest(name):
                self.assertRegex(seen[name], program.seen)
        self.assert_unharmed(gateway)
        counted = kills(gateway)
        for cause in ("slow", "stalled"):
            least = sum(1 for program, _ in chosen.values() if program.causes == (cause,))
            self.assertGreaterEqual(counted[cause], least)

    def test_slow_clear(self):
        self.slow_ones("clear")

    def test_slow_tls(self):
        self.slow_ones("tls", "finished")

    def a_shutdown(self, way):
        gateway, size = self.attacked(way)
        program = programs.BY_NAME["continuation_in_a_shutdown"]
        self.assertRegex(run(program, servers.gateway_target(gateway, way, size)), program.seen)
        self.assertEqual(gateway.wait(), 0, gateway.report())

    def test_shutdown_clear(self):
        self.a_shutdown("clear")

    def test_shutdown_tls(self):
        self.a_shutdown("tls")


@unittest.skipIf(os.environ.get("SLUICE_SANITIZE"), "nothing of ours is in the plain server")
class Unguarded(AttackCase):
    """The harm that each program does where nothing holds it off."""

    def plain(self):
        server = servers.Plain(self.cert, self.key)
        self.addCleanup(server.kill)
        return server

    def harmful(self, *ways):
        """Each in the first of the ways that it knows."""
        server = self.plain()
        chosen = {p.name: p for p in programs.PROGRAMS
                  if p.plain and p.plain != "DEAD" and not p.stops and set(ways) & set(p.ways)}
        seen = together({
            name: lambda p=program: run(p, server.target(next(way for way in ways if way in p.ways)))
            for name, program in chosen.items()})
        for name, program in chosen.items():
            with self.subTest(name):
                self.assertIn(program.plain, seen[name])
        self.assertTrue(server.running, server.report())

    def test_clear(self):
        self.harmful("clear")

    def test_tls(self):
        self.harmful("finished", "tls")

    def test_deadly(self):
        """A connection has one chance, when its write begins to block, and may come too early."""
        for way in ("clear", "finished"):
            server = self.plain()
            for _ in range(10):
                run(programs.BY_NAME["blocked_write"], server.target(way))
                if server.gone():
                    break
            self.assertFalse(server.running)
            self.assertIn("Assertion", "\n".join(server.stderr))

    def test_shutdown(self):
        server = self.plain()
        self.assertEqual(run(programs.BY_NAME["continuation_in_a_shutdown"], server.target("clear")), "OPEN")
        before = cpu_s(server.pid)
        harness.wait_for(lambda: cpu_s(server.pid) > before + 0.5, "half a second of CPU, spent on nothing")


def cpu_s(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


# ---- the programs beside the checkout ------------------------------------------------------------

TLS_PROGRAM = os.path.join(SHARED, "attacks_tls.py")
CLOSED = r"closed"
# What each name of attacks_tls.py says of the gateway. The streams of idlebodies end one by one, its connection goes on. It has no paths like /hang and /b/10: names that
# ask for these get 404 and show only that the gateway lives; edge_echo (test_edge) and Guarded do the rest.
NAMES = {
    "rst": CLOSED, "myr": CLOSED, "rstlate": CLOSED, "firstcont": "alive", "firstrst": CLOSED, "bodies": CLOSED,
    "idlebodies": "alive", "bytewise": "answered", "unknown": CLOSED, "ping": CLOSED, "settings": CLOSED,
    "emptydata": CLOSED, "outstop": "alive", "latepri": "refused", "h1close": "alive", "h1half": "alive", "h1pipelined": "alive",
    "h2close": "alive", "h2half": "alive", "h2pipelined": "alive",
}
SLOW_NAMES = {"winassert": CLOSED, "drip": "alive", "dripframe": "alive", "slow": "alive", "silent": CLOSED}
TLS_NAMES = {"afternotify": CLOSED, "afternotify1": CLOSED, "h1notify": "alive", "h2notify": "alive",
             "keyupdate": "alive", "renegotiate": "alive"}


@unittest.skipUnless(os.path.exists(TLS_PROGRAM), f"NOT RUN: the attack programs are not at {SHARED}")
class Shared(AttackCase):
    def environment(self, size):
        return {**os.environ, "ATTACK_PATH": servers.PATH, "ATTACK_KEY": servers.ATTACKER_KEY, "ATTACK_SIZE": str(size),
                "ATTACK_BODY": servers.message(servers.MODELS["quick"]).decode()}

    def start(self, gateway, size, program, *args):
        ran = subprocess.run([sys.executable, os.path.join(SHARED, program), *map(str, args)], capture_output=True,
                             text=True, timeout=120, check=False, env=self.environment(size))
        return ran.stdout + ran.stderr[-500:]

    def one(self, gateway, size, way, name):
        """What attacks_tls.py NAME says of it."""
        port = servers.gateway_target(gateway, way, size).port
        return self.start(gateway, size, "attacks_tls.py", "127.0.0.1", port,
                          ("clear:" if way == "clear" else "") + name, gateway.server_pid, gateway.stats_port)

    def attacked(self, way="clear"):
        gateway, size = super().attacked(way)
        gateway.server_pid = server_pid(gateway)
        gateway.stats_port = Statistics(self).port
        return gateway, size

    def by_name(self, way, names, slow):
        gateway, size = self.attacked(way)
        for name, seen in names.items():
            with self.subTest(name):
                said = self.one(gateway, size, way, name)
                self.assertRegex(said, seen)
                self.assertNotIn("DEAD", said)
                self.assertIn("alive", said)
                self.assert_unharmed(gateway)
        said = together({name: lambda n=name: self.one(gateway, size, way, n) for name in slow})
        for name, seen in slow.items():
            with self.subTest(name):
                self.assertRegex(said[name], seen)
                self.assertIn("alive", said[name])
        self.assert_unharmed(gateway)

    def test_clear(self):
        self.by_name("clear", NAMES, SLOW_NAMES)

    def test_tls(self):
        self.by_name("tls", {**NAMES, **TLS_NAMES}, SLOW_NAMES)

    def test_the_older_programs(self):
        gateway, size = self.attacked()
        port = servers.gateway_target(gateway, "clear", size).port
        for mode in ("rst", "myr", "rstlate"):
            self.assertIn("closed", self.start(gateway, size, "rapid.py", port, mode, 20000, 2))
            self.assert_unharmed(gateway)
        said = self.start(gateway, size, "winassert.py", port, size)
        self.assertRegex(said, "conn error")
        self.assert_unharmed(gateway)
        # Told to stop: the supervisor; watched: the server process.
        said = self.start(gateway, size, "contspin.py", port, gateway.pid, gateway.server_pid)
        self.assertRegex(said, "process ended|after CONTINUATION: [0-9] ")
        self.assertEqual(gateway.wait(), 0, gateway.report())

    def test_hostile_providers(self):
        for mode in ("te", "cl", "long", "early", "hdrs", "413"):
            with self.subTest(mode):
                port = harness.free_port()
                provider = harness.Process([sys.executable, os.path.join(SHARED, "badup.py"), str(port), mode])
                self.addCleanup(provider.kill)
                harness.wait_for(lambda p=port: connects(p), "badup.py listens")
                settings = harness.config(self.sim())
                settings["providers"]["anthropic"]["endpoints"] = [{"url": f"http://127.0.0.1:{port}"}]
                settings["retries"] = {"attempts": 1}  # else another model answers
                gateway = self.gateway(settings)
                for _ in range(3):
                    answer = gateway.sample("hello", headers={"Sluice-Timeout": "3000"})
                    self.assertIn(answer.status, (422, 502, 504), answer)
                    self.assertIn("error", answer.json())
                self.assertEqual(gateway.metrics().sum("sluice_restarts_total"), 0)


def connects(port):
    try:
        return harness.socket.create_connection(("127.0.0.1", port), 0.2).close() is None
    except OSError:
        return False


def server_pid(gateway):
    """The process under the supervisor."""
    with open(f"/proc/{gateway.pid}/task/{gateway.pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


class Statistics:
    """The port with the count of cancelled requests that some names ask for: it says 0."""

    def __init__(self, case):
        self.listener = harness.socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()
        case.addCleanup(self.listener.close)

    def serve(self):
        try:
            while True:
                peer, _ = self.listener.accept()
                with peer:
                    peer.recv(4096)
                    peer.sendall(b"HTTP/1.0 200 OK\r\n\r\ncancelled=0\n")
        except OSError:
            pass


if __name__ == "__main__":
    if not os.path.exists(servers.PLAIN):
        print(f"{servers.PLAIN} is not there: build it first, or name another by SLUICE_PLAIN_H2O")
        sys.exit(1)
    harness.main()
