"""Scenarios that are more than requests in flight: streams, tool loops, waiting and idle callers, reloads, restarts,
attacks, and a long time."""

import json
import re
import signal
import subprocess
import sys
import threading
import time

import harness
from suite import BENCH, idle, load, scenario, stats, work
from suite.machine import cpu_s, open_files, pinned, pss_kb, GATEWAY_CPU, LOAD_CPU
from suite.servers import Bed

sys.path.insert(0, BENCH)
CHUNK = 20  # bytes of text in an event
FEW = 2     # events of the short run
OF_A_CONNECTION = 100


class Redis(scenario.Closed):
    """A gateway with its limits in Redis beside others; what Redis takes is counted too."""

    def measure(self, bed, server, point, effort):
        if server.name != "sluice-redis":
            return super().measure(bed, server, point, effort)
        before = self.of_redis(bed, server)
        figure = super().measure(bed, server, point, effort)
        cpu_us, scripts, missed = (b - a for a, b in zip(before, self.of_redis(bed, server)))
        return {**figure, "redis_us": cpu_us / server.count, "scripts": scripts / server.count,
                "missed_percent": 100 * missed / server.count}

    @staticmethod
    def of_redis(bed, server):
        """CPU of Redis, scripts it ran, commands whose answer came too late or not at all."""
        calls = sum(int(calls) for calls in re.findall(r"cmdstat_(?:evalsha|eval|fcall):calls=(\d+)",
                                                       bed.redis.ask("INFO", "commandstats")))
        metrics = server.process.metrics()
        missed = sum(metrics.sum("sluice_store_commands_total", result=result) for result in ("late", "lost", "error"))
        return cpu_s(bed.redis.child.pid) * 1e6, calls, missed


class ToolLoop(scenario.Scenario):
    """Both turns of a loop, one kind after the other: CPU of one of each."""

    def points(self, effort):
        return [scenario.Point("", {"body": work.first_turn()}, self.servers)]

    @staticmethod
    def turns(bed):
        """What callers send, and what the provider gets for it: two bodies each."""
        gateway = bed.server("sluice")
        gateway.body = work.first_turn()
        answer = json.loads(gateway.ask()[1])
        if answer["result"]["stopReason"] != "toolUse":
            raise harness.Failure(f"no call: {answer}")
        sent = [bed.sim.last_body()]
        asked = [gateway.body, work.second_turn(answer)]
        gateway.body = asked[1]
        answer = json.loads(gateway.ask()[1])
        if answer["result"]["stopReason"] != "endTurn":
            raise harness.Failure(f"the loop does not end: {answer}")
        return asked, [*sent, bed.sim.last_body()]

    def prepare(self, bed, server, point, effort):
        if not hasattr(bed, "turns"):
            bed.turns = self.turns(bed)
        server.turns = bed.turns[0 if server.name == "sluice" else 1]
        warm = load.closed(server, 512, 64)
        warm.require_all(f"{self.name}, {server.name}, warming up")
        server.count = max(64, int(warm.answered / max(1e-3, warm.seconds) * effort.seconds / 2))

    def measure(self, bed, server, point, effort):
        figures = []
        for body in server.turns:
            server.body = body
            figures.append(scenario.cost(self.name, server, lambda: load.closed(server, server.count, 64)))
        return {"loop_us": sum(figure["cpu_us"] for figure in figures)}


class Streams(scenario.Scenario):
    """Many answers that stream at once: the difference between long and short ones is the cost of events. Connections
    are not kept: those of all servers together are more than the simulator may have files. options: streams (full, quick), pace_ms."""

    body = work.sampling(300, _meta={"progressToken": 1})

    def points(self, effort):
        return [scenario.Point(count, {"spread": True, "streaming": True, "body": self.body}, self.servers)
                for count in effort.pick(*self.options["streams"])]

    def prepare(self, bed, server, point, effort):
        self.spent(bed, server, point, FEW, 10)

    def spent(self, bed, server, point, events, pace_ms):
        """CPU seconds until the last of the streams has ended."""
        bed.sim.default(f"pace-{pace_ms}ms-chunk-{CHUNK}-size-{CHUNK * events}-once")
        with server.all_ok(self.name, point.x):
            before = server.cpu_s()
            outcome = load.closed(server, point.x, point.x, per_connection=OF_A_CONNECTION, timed=False)
            spent = server.cpu_s() - before
            stats.require_all(f"{self.name}, {server.name}", outcome.asked, outcome.answered,
                              outcome.why + " " + server.complaint())
        return spent

    def measure(self, bed, server, point, effort):
        events, pace_ms = effort.pick((30, 500), (12, 100))
        few = self.spent(bed, server, point, FEW, pace_ms)
        many = self.spent(bed, server, point, events, pace_ms)
        return {"event_us": (many - few) * 1e6 / (point.x * (events - FEW))}


class Waiting(scenario.Scenario):
    """Memory of requests that wait for their provider; then, as many as at the first point, over TLS on both sides, and as
    streams that have begun. options: counts (full, quick)."""

    fresh = True

    def points(self, effort):
        counts = effort.pick(*self.options["counts"])
        tls = {"front": "tls", "provider_tls": True}
        stream = {**tls, "streaming": True, "body": work.sampling(_meta={"progressToken": 1})}
        servers = effort.pick(self.servers, self.servers[:1])  # seconds for each, and quick has three minutes
        return [*(scenario.Point(count, {"spread": True}, self.servers, count) for count in counts),
                scenario.Point(f"{counts[0]} over TLS", tls, servers, counts[0]),
                scenario.Point(f"{counts[0]} streams over TLS", stream, servers, counts[0])]

    def prepare(self, bed, server, point, effort):
        load.closed(server, 200, 50).require_all(f"{self.name}, {server.name}, warming up")

    def measure(self, bed, server, point, effort):
        seconds = max(3, point.count // (250 if bed.provider_tls else 500))  # until all are there
        with server.all_ok(self.name, point.count):
            bed.sim.default(f"pace-1s-chunk-{CHUNK}-size-{CHUNK * seconds}-once" if bed.streaming else f"latency-{seconds}s-once")
            before, outcomes = pss_kb(server.pid), []
            asking = threading.Thread(target=lambda: outcomes.append(
                load.closed(server, point.count, point.count, per_connection=OF_A_CONNECTION, timed=False)))
            asking.start()
            try:
                bed.sim.wait_stats(lambda seen: seen["in_flight"] == point.count, f"{point.count} requests at the provider")
                if bed.streaming:
                    begun = bed.sim.stats()["pauses"]
                    bed.sim.wait_stats(lambda seen: seen["pauses"] - begun >= point.count, "an event more of each")
                during = pss_kb(server.pid)
            finally:
                asking.join()
                bed.sim.default("")
            outcomes[0].require_all(f"{self.name}, {server.name}")
        return {"kb_each": (during - before) / point.count}


class Idle(scenario.Scenario):
    """Memory of connections that do nothing. options: count (full, quick)."""

    fresh = True

    def points(self, effort):
        return [scenario.Point(way, {"front": idle.WAYS[way]}, self.servers) for way in idle.WAYS]

    def measure(self, bed, server, point, effort):
        base, count = pss_kb(server.pid), effort.pick(*self.options["count"])
        with server.all_ok(self.name, idle.WARM_UP + count):
            kb_each = idle.measure(server.process, server.port, point.x, count)
        return {"kb_each": kb_each, "base_mb": base / 1024}


class Reload(scenario.Scenario):
    """Configurations that change all the time while callers ask. options: rate."""

    def measure(self, bed, server, point, effort):
        seconds = effort.pick(20, 2)
        calm = scenario.cost(self.name, server, lambda: load.replay(server, self.options["rate"], seconds))
        asking = load.Replay(server, self.options["rate"], seconds)
        reloads = 0
        while asking.running:
            settings = dict(server.process.settings)
            settings["tenants"] = [*settings["tenants"], {"id": f"new-{reloads}", "plan": "standard"}]
            server.process.write_config(settings)
            status = server.process.reload().status
            if status not in (200, 409, 429, 503):  # 503 and the like: the last ones are still in use
                raise stats.Void(f"{self.name}: a reload answers {status}")
            reloads += status == 200
        outcome = asking.wait().require_all(f"{self.name}, {server.name}")
        if reloads == 0:
            raise stats.Void(f"{self.name}: nothing was reloaded")
        return {"p99_ms": stats.percentile(outcome.times_ms, 0.99), "calm_p99_ms": calm["p99_ms"], "reloads": reloads}


class Restart(scenario.Scenario):
    """Two gateways are replaced in turn, as a rolling update does it. options: rate."""

    fresh = True
    AT_MOST_S = 120
    OF_EACH = 100  # requests before it is replaced

    def measure(self, bed, server, point, effort):
        places = [server.process.settings["listen"][0]["address"]]
        second = pinned(GATEWAY_CPU, lambda: bed.case.gateway(
            {**server.process.settings, "listen": [{"address": f"127.0.0.1:{harness.free_port()}"}],
             "admin": {"address": f"127.0.0.1:{harness.free_port()}"}}))
        places.append(second.settings["listen"][0]["address"])
        asking = load.Replay(server, self.options["rate"], self.AT_MOST_S, targets=places)
        restarts = 0
        for process in (server.process, second):
            process.metrics_after(self.OF_EACH)
            process.stop(signal.SIGTERM)
            pinned(GATEWAY_CPU, lambda p=process: bed.case.gateway(p.settings))
            restarts += 1
        if not asking.running:
            raise stats.Void(f"{self.name}: the restarts took longer than {self.AT_MOST_S} s")
        outcome = asking.stop().require_all(f"{self.name}, {server.name}")
        return {"p99_ms": stats.percentile(outcome.times_ms, 0.99), "restarts": restarts}


class Attack(scenario.Scenario):
    """Hostile clients beside honest ones; bench/attack_table.py has all of them. options: programs (full, quick)."""

    def points(self, effort):
        return [scenario.Point(name, {}, ("sluice",)) for name in effort.pick(*self.options["programs"])]

    def run_point(self, point, effort, missing, progress):
        import attack_table
        case, pair = harness.Case(), []
        try:
            sim = pinned(LOAD_CPU, case.sim)
            pair = [attack_table.Gateway(sim, None, None, attack_table.every.BY_NAME[point.x]) for _ in range(2)]
            figures = []
            for number in range(self.rounds(effort)):
                progress(f"{self.name} {point.x}: round {number + 1} of {self.rounds(effort)}")
                figures.append(self.figure(attack_table, point.x, pair, effort.pick(3, 1)))
        finally:
            for server in pair:
                server.end()
            case.doCleanups()
        return {"x": point.x, "parameters": {}, "servers": {"sluice": scenario.summary(figures)}, "times_sluice": {}}

    def figure(self, attack_table, program, pair, seconds):
        calm = attack_table.attacked(program, pair[1], pair[0], "clear", seconds)
        hit = attack_table.attacked(program, pair[0], pair[0], "clear", seconds)
        if hit["dead"] or calm["failed"] or hit["failed"]:
            raise stats.Void(f"{self.name}, {program}: {'dead' if hit['dead'] else 'honest callers were not answered'}")
        return {"attack_percent": 100 * (hit["cpu"] - calm["cpu"]), "p99_ms": hit["p99"], "calm_p99_ms": calm["p99"]}


class Loading(scenario.Scenario):
    """A configuration of many tenants, as an operator writes it, is read and judged whole. options: counts (full, quick)."""

    def points(self, effort):
        return [scenario.Point(count, {}, self.servers) for count in effort.pick(*self.options["counts"])]

    def run_point(self, point, effort, missing, progress):
        case, figures = harness.Case(), []
        try:
            path = work.tenants_yaml(case.directory(), point.x)
            for number in range(self.rounds(effort)):
                progress(f"{self.name} {point.x}: round {number + 1} of {self.rounds(effort)}")
                figures.append(self.check(path, point.x))
        finally:
            case.doCleanups()
        return {"x": point.x, "parameters": {}, "servers": {"sluice": scenario.summary(figures)}, "times_sluice": {}}

    def check(self, path, count):
        began = time.monotonic()
        run = pinned(GATEWAY_CPU, lambda: subprocess.run([harness.BIN, "check", path], capture_output=True, text=True, check=False))
        seconds = time.monotonic() - began
        if run.returncode != 0 or f"{count} tenants" not in run.stdout:
            raise stats.Void(f"{self.name}: {(run.stdout + run.stderr)[-300:]}")
        return {"load_s": seconds}


class Soak(scenario.Scenario):
    """A long time at a fixed rate: what grows. options: rate."""

    quick = False
    SECONDS, STRETCH_S = 600, 10

    def run_point(self, point, effort, missing, progress):
        bed = Bed()
        try:
            server = bed.server("sluice")
            figure = self.soak(server, effort.seconds if effort.quick else self.SECONDS, progress)
        finally:
            bed.end()
        return {"x": point.x, "parameters": {"rate": self.options["rate"]},
                "servers": {"sluice": scenario.summary([figure])}, "times_sluice": {}}

    def soak(self, server, seconds, progress):
        memory, costs, began = [], [], time.monotonic()
        stretches = max(2, int(seconds / self.STRETCH_S))
        load.replay(server, self.options["rate"], 1).require_all(f"{self.name}, {server.name}, warming up")
        files = open_files(server.pid)
        for number in range(stretches):
            progress(f"{self.name}: {number + 1} of {stretches}")
            server.forget()
            costs.append(scenario.cost(self.name, server, lambda: load.replay(
                server, self.options["rate"], min(seconds / stretches, self.STRETCH_S), seed=number)))
            memory.append(((time.monotonic() - began) / 60, pss_kb(server.pid)))
        return {"leak_kb_min": stats.slope(memory[len(memory) // 2:]), "files_more": open_files(server.pid) - files,
                "cpu_us": stats.spread([cost["cpu_us"] for cost in costs])["median"],
                "p99_ms": max(cost["p99_ms"] for cost in costs)}
