"""The arithmetic of bench/run: percentiles, when requests were due, ratios, what makes a run void, charts, sizing.

ctest: once
"""

import collections
import io
import os
import re
import signal
import sys
import tempfile
import unittest
from unittest import mock
import xml.etree.ElementTree

SOURCE = os.environ.get("SLUICE_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
sys.path.insert(0, os.path.join(SOURCE, "bench"))
import attack_table  # noqa: E402
import sizing  # noqa: E402
from suite import charts, goals, load, machine, results, runner, scenario, scenarios, servers, stalls, stats, svg, table, work  # noqa: E402
import harness  # noqa: E402


class Percentiles(unittest.TestCase):
    def test_nearest_rank(self):
        for name, values, share, wanted in (
                ("the median of an odd number", [3, 1, 2], 0.5, 2), ("of an even number", [4, 1, 3, 2], 0.5, 2),
                ("99th of 100", range(1, 101), 0.99, 99), ("99th of 101", range(1, 102), 0.99, 100),
                ("99th of a few is the largest", [1, 2, 9], 0.99, 9), ("all", [5, 6], 1.0, 6), ("none", [5, 6], 0.0, 5),
                ("one", [7], 0.5, 7)):
            with self.subTest(name):
                self.assertEqual(stats.percentile(values, share), wanted)

    def test_of_nothing_is_no_number(self):
        self.assertNotEqual(*[stats.percentile([], 0.5)] * 2)


def named(name):
    """A server that does nothing."""
    server = mock.Mock()
    server.name = name  # which is a word of Mock's own
    return server


class Rounds(unittest.TestCase):
    def test_a_spread_keeps_its_rounds(self):
        self.assertEqual(stats.spread([3.0, 1.0, 2.0]), {"median": 2.0, "min": 1.0, "max": 3.0, "rounds": [3.0, 1.0, 2.0]})

    def test_ratios_are_taken_within_a_round(self):
        self.assertEqual(stats.ratios([1, 20], [2, 10]), [0.5, 2.0])

    def test_rounds_that_do_not_match_are_an_error(self):
        with self.assertRaises(ValueError):
            stats.ratios([1, 2], [1])

    def test_each_gateway_is_held_against_each_other_server_by_the_first_metric(self):
        figures = {"sluice": [{"cpu_us": 2, "rate": 9}, {"cpu_us": 4, "rate": 9}], "nginx": [{"cpu_us": 4}, {"cpu_us": 5}]}
        found = scenario.against(figures)
        self.assertEqual(list(found), ["sluice"])
        self.assertEqual(found["sluice"]["nginx"]["rounds"], [0.5, 0.8])

    def test_the_bare_provider_is_nothing_to_be_held_against(self):
        figures = {"sluice": [{"cpu_us": 2}], "direct": [{"cpu_us": 1}]}
        self.assertEqual(scenario.against(figures), {"sluice": {}})
        self.assertEqual(table.ratio_of({"times_sluice": {"sluice": {"direct": stats.spread([2.0])}}}, "direct"), "")

    def test_points_that_run_abreast_are_held_against_the_first(self):
        first = {"sluice": [{"cpu_us": 2}, {"cpu_us": 4}]}
        found = scenario.against_first({"sluice": [{"cpu_us": 3}, {"cpu_us": 4}]}, first)
        self.assertEqual(found["sluice"]["rounds"], [1.5, 1.0])

    def test_everybody_comes_first_and_behind_everybody_equally_often(self):
        for names in ("a", "ab", "abc", "abcd", "abcde", "abcdef"):
            with self.subTest(names):
                rounds = [stats.turns(names, number) for number in range(len(names) * (1 + len(names) % 2))]
                self.assertTrue(all(sorted(order) == list(names) for order in rounds), rounds)
                for place in range(len(names)):
                    self.assertEqual(len(set(collections.Counter(order[place] for order in rounds).values())), 1, rounds)
                pairs = collections.Counter(pair for order in rounds for pair in zip(order, order[1:]))
                self.assertEqual(len(pairs), len(names) * (len(names) - 1), rounds)
                self.assertLessEqual(len(set(pairs.values())), 1, rounds)

    def test_servers_are_played_in_turns(self):
        played = []

        class Turns(scenario.Scenario):
            def measure(self, bed, server, point, effort):
                played.append(server.name)
                return {"cpu_us": 1}
        bed = mock.Mock()
        bed.server = named
        one, figures = Turns("x", "y"), {"sluice": [], "nginx": []}
        for number in range(2):
            one.play(bed, scenario.Point(""), figures, number, scenario.Effort(), lambda words: None)
        self.assertEqual(played, ["sluice", "nginx", "nginx", "sluice"])
        self.assertEqual([len(of) for of in figures.values()], [2, 2])

    def test_slope(self):
        for name, points, wanted in (("rising", [(0, 1), (1, 3), (2, 5)], 2.0), ("flat", [(0, 4), (5, 4)], 0.0),
                                     ("one point", [(1, 1)], 0.0), ("one place", [(1, 1), (1, 9)], 0.0)):
            with self.subTest(name):
                self.assertAlmostEqual(stats.slope(points), wanted)


class Undisturbed(unittest.TestCase):
    """`stolen` are the milliseconds that the host takes from each stretch."""

    def made(self, *stolen, quick=False, calm=(2000,)):
        at = iter([moment for n in range(len(stolen)) for moment in (sum(stolen[:n]), sum(stolen[:n + 1]))])
        case = scenario.Open("case", "about", calm=calm)
        case.measure = mock.Mock(side_effect=[{"cpu_us": number} for number, _ in enumerate(stolen, 1)])
        with mock.patch.object(scenario, "stolen_ms", lambda: next(at)):
            return case.undisturbed(None, None, scenario.Point(2000), scenario.Effort(seconds=2, quick=quick))

    def test_the_first_that_the_host_left_alone(self):
        self.assertEqual(self.made(0, 0), {"cpu_us": 1, "stolen_ms": 0, "tries": 1})
        self.assertEqual(self.made(20, 30, 10, 0), {"cpu_us": 3, "stolen_ms": 10, "tries": 3})

    def test_or_the_one_from_which_it_took_least(self):
        self.assertEqual(self.made(40, 20, 30, 30, 30, 30, 30, 30, 0), {"cpu_us": 2, "stolen_ms": 20, "tries": 8})

    def test_the_only_one_where_nobody_asked_for_it_and_to_show_that_it_works(self):
        self.assertEqual(self.made(500, calm=()), {"cpu_us": 1})
        self.assertEqual(self.made(500, quick=True), {"cpu_us": 1})


class Added(unittest.TestCase):
    def test_is_what_a_server_adds_to_the_round_without_any(self):
        figures = {"direct": [{"p50_ms": 1.0, "p99_ms": 2.0}, {"p50_ms": 3.0, "p99_ms": 3.0}],
                   "nginx": [{"p50_ms": 1.5, "p99_ms": 4.0}, {"p50_ms": 3.25, "p99_ms": 9.0}]}
        scenario.Open("rate", "x").extend(figures)
        self.assertEqual([figure["added_p50_ms"] for figure in figures["nginx"]], [0.5, 0.25])
        self.assertEqual([figure["added_p99_ms"] for figure in figures["nginx"]], [2.0, 6.0])
        self.assertNotIn("added_p50_ms", figures["direct"][0])

    def test_without_a_bare_provider_there_is_nothing_to_add_to(self):
        figures = {"sluice": [{"p50_ms": 1.0, "p99_ms": 2.0}]}
        scenario.Open("rate", "x").extend(figures)
        self.assertEqual(figures, {"sluice": [{"p50_ms": 1.0, "p99_ms": 2.0}]})


class Schedules(unittest.TestCase):
    def test_callers_are_independent(self):
        due = stats.poisson(1000, 20, seed=1)
        gaps = [b - a for a, b in zip(due, due[1:])]
        mean = sum(gaps) / len(gaps)
        deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
        self.assertAlmostEqual(mean, 1000, delta=30)
        self.assertAlmostEqual(deviation / mean, 1.0, delta=0.05)  # as an exponential distribution has it
        self.assertEqual(due, sorted(due))
        self.assertLess(due[-1], 20e6)

    def test_a_seed_is_a_schedule(self):
        self.assertEqual(stats.poisson(50, 1, seed=3), stats.poisson(50, 1, seed=3))
        self.assertNotEqual(stats.poisson(50, 1, seed=3), stats.poisson(50, 1, seed=4))

    def test_latency_counts_from_when_a_request_was_due(self):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write("1000 1000 3000 200\n2000 9000 9500 200\n3000 3000 3000 0\n4000 4000 4100 503\n")
            log.flush()
            outcome = load.read_replay(log.name)
        self.assertEqual((outcome.asked, outcome.answered), (4, 2))
        self.assertEqual(outcome.times_ms, [2.0, 7.5])
        self.assertEqual(outcome.late_ms, [0.0, 7.0])
        self.assertEqual(outcome.seconds, 0.0095)
        self.assertIn("[0, 503]", outcome.why)


H2LOAD = """finished in 1.50s, 66.67 req/s, 1.00KB/s
requests: 100 total, 100 started, 100 done, 99 succeeded, 1 failed, 0 errored, 0 timeout
status codes: 99 2xx, 0 3xx, 1 4xx, 0 5xx
"""
GOOD = H2LOAD.replace("99 succeeded, 1 failed", "100 succeeded, 0 failed").replace("99 2xx, 0 3xx, 1", "100 2xx, 0 3xx, 0")


class Voids(unittest.TestCase):
    def test_one_failed_request_is_enough(self):
        outcome = load.read_h2load(H2LOAD, 100, None)
        self.assertEqual((outcome.answered, outcome.seconds), (99, 1.5))
        with self.assertRaisesRegex(stats.Void, "h2c, nginx: 1 of 100 requests failed.*1 4xx"):
            outcome.require_all("h2c, nginx")

    def test_all_answered_is_not(self):
        load.read_h2load(GOOD, 100, None).require_all("h2c")

    def test_a_2xx_that_does_not_come_to_its_end_is_none(self):
        for name, old, new in (("cut short", "100 succeeded, 0 failed, 0 errored", "98 succeeded, 2 failed, 2 errored"),
                               ("failed", "0 failed", "1 failed"), ("errored", "0 errored", "1 errored"),
                               ("given up", "0 timeout", "1 timeout"), ("not asked for", "100 succeeded", "99 succeeded")):
            with self.subTest(name), self.assertRaisesRegex(stats.Void, "[12] of 100 requests failed.*100 2xx"):
                load.read_h2load(GOOD.replace(old, new), 100, None).require_all("h2c")

    def test_nothing_asked_is(self):
        with self.assertRaises(stats.Void):
            stats.require_all("h2c", 0, 0)

    def test_what_h2load_did_not_finish_is(self):
        with self.assertRaisesRegex(stats.Void, "10 of 10 .*refused"):
            load.read_h2load("connection refused", 10, None).require_all("h2c")

    def test_what_the_gateway_counts_as_failed_is_though_its_status_was_200(self):
        before = {"ok": 5.0, "invalid_request": 1.0}
        for name, after, wanted in (("one failed", {"ok": 14.0, "invalid_request": 1.0, "provider_error": 1.0}, "provider_error"),
                                    ("more of a kind", {"ok": 15.0, "invalid_request": 2.0}, "'invalid_request': 1"),
                                    ("one is missing", {"ok": 14.0, "invalid_request": 1.0}, "{}")):
            with self.subTest(name), self.assertRaisesRegex(stats.Void, "streams, sluice: 1 of 10 requests failed.*" + wanted):
                stats.require_ok("streams, sluice", before, after, 10)
        stats.require_ok("streams", before, {"ok": 15.0, "invalid_request": 1.0}, 10)

    def test_outcomes_are_those_of_all_tenants(self):
        text = "\n".join(f'sluice_requests_total{{tenant="{tenant}",outcome="{outcome}"}} 2'
                         for tenant in ("a", "b") for outcome in ("ok", "busy"))
        self.assertEqual(servers.outcomes(harness.Metrics(text)), {"ok": 4, "busy": 4})

    def test_the_others_run_and_the_run_is_void(self):
        class Bad(scenario.Scenario):
            def run(self, effort, missing, progress):
                raise stats.Void("1 of 2 requests failed")

        class Good(scenario.Scenario):
            def run(self, effort, missing, progress):
                return {"about": self.about, "x": "", "points": []}

        class Broken(scenario.Scenario):
            def run(self, effort, missing, progress):
                return {}["figure"]
        shown, kept = [], []
        found = runner.run([Bad("bad", "x"), Broken("broken", "z"), Good("good", "y")], scenario.Effort(), {},
                           runner.Progress(3, io.StringIO()), {"date": "d"}, lambda result: kept.append(list(result["void"])),
                           shown.append)
        self.assertEqual(found["void"], ["bad", "broken"])
        self.assertEqual(kept, [["bad"], ["bad", "broken"], ["bad", "broken"]])
        self.assertIn("KeyError", found["scenarios"]["broken"]["void"])
        self.assertEqual(list(found["scenarios"]), ["bad", "broken", "good"])
        self.assertNotIn("points", found["scenarios"]["bad"])
        self.assertIn("**Void**", "\n".join(shown))


    def test_an_honest_request_without_a_line_has_failed(self):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write("1\t200\t3000\n2\t200\t2000\n3\t503\t1000\n")
            log.flush()
            self.assertEqual(attack_table.p99_ms(log.name, 5), (3.0, 3))
            self.assertEqual(attack_table.p99_ms(log.name, 3), (3.0, 1))

    def test_a_warm_up_counts(self):
        with mock.patch.object(load, "replay", return_value=load.Outcome(3, 2, 1.0, [1.0, 1.0])):
            with self.assertRaisesRegex(stats.Void, "rate, sluice, warming up: 1 of 3"):
                scenarios.BY_NAME["rate"].prepare(mock.Mock(tenants=1), named("sluice"), None, scenario.Effort())


class Machine(unittest.TestCase):
    def test_cpu_of_a_process_and_those_below_it(self):
        pid = os.getpid()
        before, tries = machine.cpu_s(pid), 0
        while machine.cpu_s(pid) == before:  # the kernel adds it up with its next tick
            tries += 1
            self.assertLess(tries, 1000000)
        self.assertLess(machine.cpu_s(pid) - before, 60)
        self.assertIn(pid, machine.family(pid))
        self.assertGreater(machine.pss_kb(pid), 1000)

    def test_a_grandchild_counts(self):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                os.write(write_end, b"x")
            signal.pause()
        os.read(read_end, 1)
        pids = machine.family(child)
        for pid in reversed(pids):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read_end)
        os.close(write_end)
        self.assertEqual(len(pids), 2)


def a_result():
    spread = stats.spread([10.0, 12.0])
    of = {"cpu_us": spread, "rate": spread, "p99_ms": spread}
    one = {"about": "x & y", "x": "", "points": [{"x": "", "parameters": {}, "servers": {"sluice": of, "nginx": of},
                                                  "times_sluice": {"sluice": {"nginx": stats.spread([0.5, 0.6])}}}]}
    many = {"about": "x", "x": "tenants", "points": [{"x": x, "parameters": {}, "servers": {"sluice": of},
                                                      "times_sluice": {}} for x in (1, 1000)]}
    return {"date": "2026-01-01 00:00 UTC", "commit": "0", "machine": {"cpu": "c", "cpus": 2, "kernel": "6",
                                                                       "load_average_before": 0.0},
            "effort": {"rounds": 2, "seconds": 1.0, "quick": False}, "missing": {"h2o": "it is away"},
            "scenarios": {"h2c-64": one, "h1-64": {**one, "points": [{**one["points"][0], "servers": {"sluice": of, "sdk": of}}]},
                          "rate": {**many, "x": "offered"}, "tenants": many, "redis": {"about": "r", "void": "1 of 2"}},
            "void": ["redis"]}


class Pages(unittest.TestCase):
    def test_charts_are_well_formed_and_have_all_that_was_measured(self):
        drawn = charts.all_of(a_result())
        self.assertEqual(sorted(drawn), ["cpu", "cpu-node", "p99", "tenants", "throughput"])
        for name, text in drawn.items():
            with self.subTest(name):
                root = xml.etree.ElementTree.fromstring(text)
                self.assertTrue(root.tag.endswith("svg"))
                self.assertNotRegex(text, r"\bnan\b")
                self.assertIn("sluice", text)

    def test_lines_of_throughput_end_at_what_was_answered_as_fast_as_can_be(self):
        found = {"sluice": [(500, 500, 500, 500)], "h2o": [(500, 500, 500, 500)]}
        charts.ends(a_result(), found)
        self.assertEqual(found, {"sluice": [(500, 500, 500, 500), (11.0, 11.0, 10.0, 12.0)], "h2o": [(500, 500, 500, 500)]})

    def test_the_page_shows_the_charts_that_lie_beside_it(self):
        with tempfile.TemporaryDirectory() as directory:
            results.write(directory, "x", a_result())
            with open(os.path.join(directory, "x.md"), encoding="utf-8") as file:
                shown = re.findall(r"^!\[.*\]\((.*)\)$", file.read(), re.MULTILINE)
            self.assertEqual(sorted(shown), sorted(name for name in os.listdir(directory) if name.endswith(".svg")))

    def test_names_are_escaped(self):
        xml.etree.ElementTree.fromstring(svg.lines("a < b & c", "<x>", "y", {"<s>": [(1, 2, 1, 3)]}))

    def test_places_are_inside_the_frame(self):
        for name, values, log in (("linear", [0, 5, 10], False), ("decades", [1, 10, 10000], True), ("one", [3], False),
                                  ("below zero", [-2, 1], False), ("one decade", [5], True), ("nothing", [0], False)):
            with self.subTest(name):
                axis = svg.Axis(values, 0, 100, log)
                self.assertTrue(all(-0.001 <= axis.at(value) <= 100.001 for value in values), [axis.at(v) for v in values])

    def test_ticks_are_round_and_cover(self):
        for low, high in ((0, 1), (0, 37), (-3, 900), (0, 0.004), (5, 5)):
            found = svg.ticks(low, high)
            self.assertLessEqual(found[0], low)
            self.assertGreaterEqual(found[-1], high)
            self.assertLess(len(found), 14)

    def test_the_table_says_what_is_void_and_what_was_not_there(self):
        text = table.page(a_result())
        self.assertIn("This run is void", text)
        self.assertIn("**Void**: 1 of 2", text)
        self.assertIn("Without h2o: it is away", text)
        self.assertIn("| nginx | 11.0 [10.0–12.0] | 11.0 [10.0–12.0] | 11.0 [10.0–12.0] | 0.55 [0.50–0.60] |", text)

    def test_what_is_written_can_be_read(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = results.write(directory, "x", a_result())
            self.assertEqual(results.read(paths[0]), a_result())
            self.assertTrue(all(os.path.getsize(path) for path in paths))
        self.assertEqual(results.figure(a_result(), "h2c-64", "cpu_us"), 11.0)
        self.assertEqual(results.figure(a_result(), "tenants", "cpu_us", x=1000), 11.0)
        self.assertIsNone(results.figure(a_result(), "redis", "cpu_us"))
        self.assertIsNone(results.figure(a_result(), "soak", "cpu_us"))


PARTS = {"cpu_tls_us": 50.0, "cpu_memory_us": 36.0, "cpu_redis_us": 46.0, "redis_us": 20.0, "scripts": 1.0, "event_us": 4.0,
         "request_kb": 8.0, "caller_kb": 16.0, "base_mb": 20.0}


class Sizing(unittest.TestCase):
    place = sizing.Installation(workers=2, busy=0.5, memory_mb=1044.0, answer_s=10.0, streamed=0.5, events=20.0, callers=0,
                                endpoints=1, redis_busy=0.5)

    def test_a_request_costs_its_own_its_claim_and_its_events(self):
        self.assertEqual(sizing.request_us(PARTS, self.place), 50 + 10 + 0.5 * 20 * 4)

    def test_redis_that_measured_as_nothing_gives_nothing_back(self):
        self.assertEqual(sizing.request_us({**PARTS, "cpu_redis_us": 30.0}, self.place), 90)

    def test_each_bound(self):
        rates = sizing.bounds(PARTS, self.place, 10)
        self.assertEqual(rates["CPU"], 2 * 0.5 * 1e6 / 100)
        self.assertEqual(rates["memory"], 1024 * 1024 / 8 / 10)
        self.assertEqual(rates["requests in flight"], 2 * 12288 / 0.5 / 10)
        self.assertEqual(rates["connections to providers"], 2 * 4096 / 10)
        self.assertEqual(rates["Redis's CPU"], 0.5 * 1e6 / 20 / 10)

    def test_memory_over_tls_and_of_streams_is_taken_where_it_is_known(self):
        parts = {**PARTS, "request_tls_kb": 40.0, "stream_tls_kb": 60.0}
        for name, known, streamed, wanted in (
                ("clear text is all there is", PARTS, 0.5, 8), ("by the share that streams", parts, 0.25, 45),
                ("none streams", parts, 0.0, 40), ("all do", parts, 1.0, 60)):
            with self.subTest(name):
                place = sizing.dataclasses.replace(self.place, streamed=streamed)
                self.assertEqual(sizing.flying_kb(known, place), wanted)
                self.assertEqual(sizing.bounds(known, place, 1)["memory"], 1024 * 1024 / wanted / 10)

    @staticmethod
    def result(without=()):
        """A file with every part, each figure as PARTS has it; a point for each server and place."""
        places = {}
        for name, (of, server, metric, _) in sizing.PARTS.items():
            if name not in without:
                point = places.setdefault(of, {}).setdefault(sizing.POINTS.get(name, "first"), {})
                point.setdefault(server, {})[metric] = stats.spread([{**PARTS, "request_tls_kb": 40.0, "stream_tls_kb": 60.0}[name]])
        found = {of: {"points": [{"x": x, "servers": of_servers} for x, of_servers in points.items()]} for of, points in places.items()}
        return {**a_result(), "scenarios": found}

    def test_what_a_file_of_before_has_not_is_said(self):
        new, old = self.result(), self.result(without=sizing.LATER)
        self.assertEqual(sizing.parts_of(new)["stream_tls_kb"], 60.0)
        self.assertEqual(sizing.parts_of(old), PARTS)
        page = sizing.page(old, self.place, [1])
        self.assertIn("the file has none over TLS", page)
        self.assertNotIn("the same, TLS on both sides, kB", page)
        page = sizing.page(new, self.place, [1])
        self.assertNotIn("the file has none over TLS", page)
        self.assertIn("| the same, TLS on both sides, kB | 40.0 |", page)

    def test_the_gateway_alone_and_its_callers_are_of_one_listener(self):
        self.assertEqual(sizing.POINTS["base_mb"], sizing.POINTS["caller_kb"])

    def test_what_a_request_costs_a_server_that_is_nearly_idle_is_said(self):
        result = self.result()
        self.assertIn("which is not in the file", sizing.page(result, self.place, [1]))
        result["scenarios"].update({"rate": {"points": [{"x": x, "servers": {"sluice": {"cpu_us": stats.spread([us])}}}
                                                        for x, us in ((500, 159.0), (4000, 90.0), (10000, 66.0))]},
                                    "h2c-64": {"points": [{"x": "", "servers": {"sluice": {"cpu_us": stats.spread([29.0])}}}]}})
        self.assertIn("159 at 500 a second, 66.0 at 10,000 a second, 29.0 with 64 in flight", sizing.page(result, self.place, [1]))

    def test_without_streams_their_bound_is_none(self):
        place = sizing.dataclasses.replace(self.place, streamed=0.0)
        self.assertEqual(sizing.in_flight_bounds(PARTS, place)["requests in flight"], 2 * 32768)

    def test_ports_bound_many_workers(self):
        place = sizing.dataclasses.replace(self.place, workers=64, endpoints=2)
        self.assertEqual(sizing.in_flight_bounds(PARTS, place)["connections to providers"], 2 * 28232)

    def test_idle_callers_take_memory(self):
        place = sizing.dataclasses.replace(self.place, callers=1024)
        self.assertEqual(sizing.in_flight_bounds(PARTS, place)["memory"], (1024 * 1024 - 1024 * 16) / 8)

    def test_the_first_bottleneck_moves_to_redis(self):
        found = [sizing.use_of(PARTS, self.place, count) for count in (1, 10, 100)]
        self.assertEqual([one["first bottleneck"] for one in found],
                         ["connections to providers", "connections to providers", "Redis's CPU"])
        self.assertEqual(found[0]["requests a second, each"], 819.2)
        self.assertAlmostEqual(found[2]["CPU of Redis, %"], 50)
        self.assertAlmostEqual(found[2]["all"], 25000)

    def test_what_is_missing_is_named(self):
        with self.assertRaisesRegex(sizing.Missing, "idle, redis, streams, tls-both-64, waiting; bench/run --scenario idle"):
            sizing.page(a_result(), self.place, [1])

    def test_a_page_without_its_marks_is_left_alone(self):
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write("text")
            file.flush()
            with self.assertRaises(sizing.Missing):
                sizing.put(file.name, "new")
            with open(file.name, encoding="utf-8") as again:
                self.assertEqual(again.read(), "text")

    def test_the_page_is_replaced_between_its_marks(self):
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write(f"before\n{sizing.FIRST}\nold\n{sizing.LAST}\nbehind\n")
            file.flush()
            sizing.put(file.name, f"{sizing.FIRST}\nnew \\1\n{sizing.LAST}")
            with open(file.name, encoding="utf-8") as again:
                self.assertEqual(again.read(), f"before\n{sizing.FIRST}\nnew \\1\n{sizing.LAST}\nbehind\n")

    def test_every_part_is_a_figure_of_a_scenario(self):
        for scenario_name, server, metric, _ in sizing.PARTS.values():
            self.assertIn(server, scenarios.BY_NAME[scenario_name].servers)
            self.assertIn(metric, scenario.UNITS)


def a_goal_of(floor, goal, figure):
    result = {"scenarios": {"idle": {"points": [{"x": "h2c", "servers": {"sluice": {"base_mb": stats.spread([figure])}}}]}}}
    return goals.Goal("memory", "idle", goals.metric("base_mb"), floor, goal).row(result)


class Goals(unittest.TestCase):
    def test_verdicts(self):
        for name, figure, wanted in (("at the goal", 12.0, "goal"), ("between", 12.1, "floor"), ("at the floor", 16.0, "floor"),
                                     ("worse", 16.1, "above the floor")):
            with self.subTest(name):
                self.assertIn(f"| 16 | 12 | {wanted} |", a_goal_of(16, 12, figure))
        self.assertIn("|  |  |  |", a_goal_of(None, None, 1.0))

    def test_what_was_not_measured_has_no_row(self):
        self.assertEqual(goals.lines({"scenarios": {"h2c-64": {"void": "1 of 2"}}}), [])
        self.assertEqual(len([line for line in goals.lines(a_result()) if line.startswith("| CPU")]), 1)

    @staticmethod
    def added(ours, theirs):
        point = {"x": 2000, "servers": {"sluice": {"added_p99_ms": stats.spread(ours)}, "nginx": {"added_p99_ms": stats.spread(theirs)}}}
        one = goals.Added("p99", "rate", goals.both("added_p99_ms", "nginx"), 1.0, 0.7, 2000)
        return one.row({"scenarios": {"rate": {"points": [point]}}})

    def test_what_is_added_is_judged_by_medians_and_decided_by_all_rounds(self):
        for name, ours, theirs, figure, verdict in (
                ("all at the goal", [0.5, 0.7, 0.6], [1.0, 1.0, 1.0], "0.60: ", "goal"),
                ("less than nothing", [-0.5, 0.1, 0.2], [1.0, 1.0, 1.0], "0.10: ", "goal"),
                ("the median at the goal, one round only at the floor", [0.5, 0.9, 0.6], [1.0, 1.0, 1.0], "0.60: ", "floor"),
                ("the median at the floor, one round above", [0.9, 1.1, 0.9], [1.0, 1.0, 1.0], "0.90: ", "not decided"),
                ("the median above the floor, one round at it", [1.5, 1.1, 0.9], [1.0, 1.0, 1.0], "1.10: ", "not decided"),
                ("all above the floor", [1.5, 1.1, 2.9], [1.0, 1.0, 1.0], "1.50: ", "above the floor"),
                ("medians of different rounds", [1.0, 4.0, 2.0], [2.0, 9.0, 4.0], "0.50: ", "goal"),
                ("a yardstick that added nothing in a round", [0.1, 0.1, 0.1], [1.0, 1.0, 0.0], "0.10: ", "not decided"),
                ("one that adds nothing", [0.1, 0.1, 0.1], [-1.0, -2.0, 1.0], "| 0.10 [0.10–0.10] of -1.00", "not decided")):
            with self.subTest(name):
                row = self.added(ours, theirs)
                self.assertIn(figure, row)
                self.assertIn(f"| 1 | 0.7 | {verdict} |", row)

    def test_what_nobody_adds_to_has_no_row(self):
        self.assertIsNone(goals.both("added_p99_ms", "nginx")({"servers": {"sluice": {}}}))

    def test_each_is_of_a_scenario_that_measures_it(self):
        for goal in goals.GOALS:
            one = scenarios.BY_NAME[goal.scenario]
            if goal.x is not None:
                self.assertIn(goal.x, [point.x for point in one.points(scenario.Effort())], goal.what)


class Stalls(unittest.TestCase):
    @staticmethod
    def of(*rounds):
        servers_of = {"sluice": {"p99_ms": stats.spread(rounds)}, "nginx": {"p99_ms": stats.spread([1.0] * len(rounds))}}
        return stalls.lines({"scenarios": {"rate": {"points": [{"x": 4000, "servers": servers_of}]}, "redis": {"void": "1 of 2"}}})

    def test_a_round_far_from_the_median_is_named(self):
        text = "\n".join(self.of(0.5, 35.0, 0.6))
        self.assertIn("| rate | 4000 | sluice | 2 | 35.0 | 0.60 |", text)
        self.assertIn("sluice 1 of 3, nginx 0 of 3.", text)

    def test_where_there_is_none_that_is_said(self):
        text = "\n".join(self.of(0.5, 6.0, 0.6))
        self.assertIn("sluice 0 of 3, nginx 0 of 3.", text)
        self.assertNotIn("|", text)

    def test_one_round_says_nothing(self):
        self.assertEqual(self.of(0.5), [])


class Work(unittest.TestCase):
    def test_a_request_has_the_size_it_is_asked_for(self):
        for size in (512, 2048, 1048576):
            self.assertEqual(len(work.sampling(size)), size)
        self.assertGreater(len(work.sampling(1)), 100)


class Scenarios(unittest.TestCase):
    def test_each_name_is_there_once_and_has_points(self):
        self.assertEqual(len(scenarios.BY_NAME), len(scenarios.ALL))
        for quick in (False, True):
            for one in scenarios.ALL:
                self.assertTrue(one.points(scenario.Effort(quick=quick)), one.name)

    def test_requests_wait_over_tls_too_and_as_streams(self):
        points = scenarios.BY_NAME["waiting"].points(scenario.Effort())
        self.assertEqual([(point.x, point.count) for point in points],
                         [(2000, 2000), (10000, 10000), ("2000 over TLS", 2000), ("2000 streams over TLS", 2000)])
        self.assertTrue(all(point.bed["front"] == "tls" and point.bed["provider_tls"] for point in points[2:]))

    def test_every_chart_has_a_scenario(self):
        for name in (*charts.SIDE_BY_SIDE, *(row[0] for row in charts.LINES.values())):
            self.assertIn(name, scenarios.BY_NAME)

    def test_connections_and_requests_on_each(self):
        for front, in_flight, wanted in (("h2c", 1, (1, 1)), ("h2c", 64, (8, 8)), ("tls", 512, (64, 8)), ("h1", 64, (64, 1))):
            self.assertEqual(load.shape(front, in_flight), wanted)
        self.assertEqual(load.shape("h2c", 250, 100), (3, 100))


if __name__ == "__main__":
    unittest.main(verbosity=2)
