"""A new configuration while requests are served: asked for, signalled, or noticed.

ctest: worker timeout=240
"""

import json
import os
import signal
import ssl
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

SANITIZED = bool(os.environ.get("SLUICE_SANITIZE"))
OTHER_KEY = "sk-other-0123456789abcdef"


class Reload(harness.Case):
    def test_a_good_configuration_is_in_force_at_once(self):
        gateway = self.gateway(harness.config(self.sim()))
        self.assert_error(gateway.sample("hello", key=OTHER_KEY), 401)
        before = gateway.get("/readyz").body
        gateway.settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        answer = gateway.reload()
        self.assertEqual(answer.status, 200)
        self.assertRegex(answer.body, rb"^[0-9a-f]{16}\n$")
        self.assertNotIn(answer.body.strip(), before)
        self.assertIn(answer.body.strip(), gateway.get("/readyz").body)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(gateway.metrics().sum("sluice_reloads_total", result="ok"), 1)

    def test_a_signal_does_the_same(self):
        gateway = self.gateway(harness.config(self.sim()))
        gateway.settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        gateway.send(signal.SIGHUP)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")

    def test_a_bad_one_is_explained_and_the_old_one_stays(self):
        gateway = self.gateway(harness.config(self.sim()))
        bad = {**gateway.settings, "wrokers": 3}
        gateway.write_config(bad)
        with open(gateway.config_path, encoding="utf-8") as file:
            line = next(n for n, text in enumerate(file, 1) if "wrokers" in text)
        answer = gateway.reload()
        self.assertEqual(answer.status, 422)
        self.assertIn(f"{gateway.config_path}:{line}: wrokers: ", answer.body.decode())
        self.assert_result(gateway.sample("hello"))
        gateway.send(signal.SIGHUP)
        gateway.wait_stderr(f"{gateway.config_path}:{line}: wrokers: ")
        harness.wait_for(lambda: gateway.metrics().sum("sluice_reloads_total", result="refused") == 2,
                         "two refusals counted")
        self.assertEqual(gateway.metrics().find("sluice_config_refused"), [1])
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(gateway.get("/readyz").status, 200)
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        self.assertEqual(gateway.metrics().find("sluice_config_refused"), [0])

    def test_what_needs_a_restart_is_refused_by_name(self):
        gateway = self.gateway(harness.config(self.sim()))
        for key, value in (("workers", 2), ("listen", [{"address": f"127.0.0.1:{harness.free_port()}"}]),
                           ("admin", {"address": f"127.0.0.1:{harness.free_port()}"})):
            with self.subTest(key):
                gateway.write_config({**gateway.settings, key: value})
                answer = gateway.reload()
                self.assertEqual(answer.status, 422)
                self.assertRegex(answer.body.decode(), rf": {key}\b.*restart")
        self.assert_result(gateway.sample("hello"))


    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "there is one CPU only")
    def test_other_cpus_refuse_no_reload_to_automatic_workers(self):
        gateway = self.gateway(harness.config(self.sim(), workers="auto"))
        before = len(os.sched_getaffinity(0))
        everybody = [gateway.pid, gateway.server_pid()]
        for pid in everybody:
            os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
        gateway.settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")
        os.kill(gateway.server_pid(), signal.SIGKILL)
        harness.wait_for(lambda: gateway.server_pid() not in (0, *everybody), "the next server")
        gateway.wait_ready()
        self.assert_result(gateway.sample("hello", key=OTHER_KEY))
        harness.wait_for(lambda: gateway.metrics().sum("sluice_limiter_mode") == before, "as many workers as before")

    def test_a_folder_of_tenants_may_be_empty(self):
        gateway = self.gateway(harness.config(self.sim()))
        folder = os.path.join(os.path.dirname(gateway.config_path), "tenants.d")
        os.mkdir(folder)
        gateway.settings["tenants"].append({"files": "tenants.d/*.yaml"})
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        gateway.wait_stderr("matches no file")
        with open(os.path.join(folder, "other.yaml"), "w", encoding="utf-8") as file:
            json.dump([harness.tenant("other", OTHER_KEY)], file)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")

        # One that cannot be read is not empty: here, not even by root.
        os.rename(folder, folder + ".away")
        os.symlink("tenants.d", folder)
        answer = gateway.reload()
        self.assertEqual(answer.status, 422)
        self.assertIn(b"tenants.d, a folder of it, cannot be read", answer.body)
        self.assert_result(gateway.sample("hello", key=OTHER_KEY))


class Many(harness.Case):
    """Reloads under load: no request fails, nothing grows, connections to providers are kept."""

    RELOADS = 100 if SANITIZED else 1000

    def start(self, sim):
        settings = harness.config(sim, workers=2)
        settings["plans"]["standard"]["limits"].update(requests_per_minute=1000000000, requests_burst=1000000)
        settings["tenants"] += [harness.tenant(f"tenant-{i}", f"sk-{i:020}") for i in range(100)]
        return self.gateway(settings)

    def reload_times(self, gateway, times):
        """That many that were taken over; each differs from the one before."""
        texts = []
        for tenants in (gateway.settings["tenants"],
                        gateway.settings["tenants"] + [harness.tenant("other", OTHER_KEY)]):
            texts.append({**gateway.settings, "tenants": tenants})
        digests = set()
        done = 0
        while done < times:
            gateway.write_config(texts[done % 2])
            answer = gateway.reload()
            self.assertIn(answer.status, (200, 503), answer)  # 503: workers still have to let go of four
            if answer.status == 200:
                done += 1
                digests.add(answer.body)
        self.assertEqual(len(digests), 2)

    def pss_kb(self, gateway):
        with open(f"/proc/{gateway.server_pid()}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss_Anon:"))

    def test_a_thousand_reloads_under_load_cost_no_request_and_no_memory(self):
        sim = self.sim()
        gateway = self.start(sim)
        load = harness.Load(gateway, 4)
        load.wait(200 if SANITIZED else 8000)  # until the rings of the log have been all around once
        self.reload_times(gateway, self.RELOADS // 10)
        connections, kb = sim.stats()["connections"], self.pss_kb(gateway)
        began = time.monotonic()
        self.reload_times(gateway, self.RELOADS)
        seconds = time.monotonic() - began
        grown = self.pss_kb(gateway) - kb
        connected = sim.stats()["connections"] - connections
        load.wait(20, since=time.monotonic())
        results = load.stop()
        failed = [r for r in results if r[2] != 200]
        during = len([r for r in results if began <= r[0] <= began + seconds])
        print(f"{self.RELOADS} reloads in {seconds:.1f} s: {during} requests, {len(failed)} failed, "
              f"{connected} new provider connections, {kb} kB + {grown} kB")
        self.assertEqual(failed[:3], [])
        self.assertGreater(during, self.RELOADS // 10)
        self.assertLessEqual(connected, 4)  # one for each caller, should it never have been needed before
        if not SANITIZED:
            self.assertLess(grown, 400)
        self.assertEqual(gateway.metrics().sum("sluice_reloads_total", result="ok"),
                         self.RELOADS + self.RELOADS // 10)

    def test_a_storm_of_signals_is_a_few_reloads(self):
        gateway = self.start(self.sim())
        gateway.settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        began = time.monotonic()
        for _ in range(5000):
            gateway.send(signal.SIGHUP)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")
        # A tick that has begun may still find the last of them.
        settled = gateway.metrics().sum("sluice_reloads_total")
        ticks = (time.monotonic() - began) / 0.05
        self.assertLessEqual(settled, ticks + 2)
        self.assertEqual(gateway.get("/healthz").status, 200)


class Watch(harness.Case):
    """reload_watch: nobody says that files have changed."""

    def start(self, sim, directory, **changes):
        """With a tenant file and a provider key in `directory`."""
        self.write(directory, "acme.yaml", [harness.tenant("acme", harness.KEY)])
        self.write(directory, "key", "sk-first-key-of-all")
        settings = harness.config(sim, tenants=[{"files": directory + "/*.yaml"}], **changes)
        settings["reload_watch"] = "100ms"
        settings["providers"]["anthropic"]["keys"] = [f"file:{directory}/key"]
        return self.gateway(settings)

    def write(self, directory, name, content):
        path = os.path.join(directory, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        os.replace(path + ".new", path)

    def reloads(self, gateway, result):
        return gateway.metrics().sum("sluice_reloads_total", result=result)

    def looks(self, gateway, times=3):
        """Until the files have been looked at so often: by then a change would have been noticed.

        A look is made visible by a change that is allowed to be seen: the drain."""
        for i in range(times):
            before = self.reloads(gateway, "ok")
            gateway.settings["drain"] = f"{1000 + i + int(before) % 7 * 10}ms"
            gateway.write_config(gateway.settings)
            harness.wait_for(lambda: self.reloads(gateway, "ok") > before, "a change is noticed")

    def test_the_file_itself(self):
        gateway = self.start(self.sim(), self.directory())
        gateway.settings["tenants"].append(harness.tenant("other", OTHER_KEY))
        gateway.write_config(gateway.settings)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new tenant")
        self.assertEqual(self.reloads(gateway, "ok"), 1)

    def test_tenant_files_that_change_come_and_go(self):
        directory = self.directory()
        gateway = self.start(self.sim(), directory)
        self.write(directory, "other.yaml", [harness.tenant("other", OTHER_KEY)])
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the new file")
        self.write(directory, "other.yaml", [harness.tenant("other", OTHER_KEY, disabled=True)])
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 401, "the change")
        self.write(directory, "other.yaml", [harness.tenant("other", OTHER_KEY)])
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the change back")
        os.unlink(os.path.join(directory, "other.yaml"))
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 401, "the file is gone")
        self.assert_result(gateway.sample("hello"))

    def test_a_secret_that_is_rotated_the_way_kubernetes_does(self):
        sim, directory = self.sim(), self.directory()
        for version, key in (("..1", "sk-first-key-of-all"), ("..2", "sk-second-key-of-all")):
            os.mkdir(os.path.join(directory, version))
            self.write(os.path.join(directory, version), "key", key)
        gateway = self.start(sim, directory)
        os.unlink(os.path.join(directory, "key"))
        os.symlink("..1", os.path.join(directory, "..data"))
        os.symlink("..data/key", os.path.join(directory, "key"))
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(sim.last()["headers"]["x-api-key"], "sk-first-key-of-all")
        os.symlink("..2", os.path.join(directory, "..data_tmp"))
        os.rename(os.path.join(directory, "..data_tmp"), os.path.join(directory, "..data"))

        def rotated():
            self.assert_result(gateway.sample("hello"))
            return sim.last()["headers"]["x-api-key"] == "sk-second-key-of-all"
        harness.wait_for(rotated, "the new key")

    def test_a_certificate_and_its_key_that_are_renewed(self):
        """Two files, so that one of them may be seen without the other: that is refused, and tried again."""
        cert, key = self.certificate()
        port = harness.free_port()
        settings = harness.config(self.sim(), reload_watch="100ms", listen=[
            {"address": f"127.0.0.1:{harness.free_port()}"},
            {"address": f"127.0.0.1:{port}", "tls": {"cert": cert, "key": key}}])
        gateway = self.gateway(settings)

        def served():
            return ssl.get_server_certificate(("127.0.0.1", port)).strip()

        def text(path):
            with open(path, encoding="ascii") as file:
                return file.read().strip()
        self.assertEqual(served(), text(cert))
        fresh_cert, fresh_key = self.certificate()
        os.replace(fresh_cert, cert)
        gateway.wait_stderr("reload refused")
        self.assertNotEqual(served(), text(cert))
        os.replace(fresh_key, key)
        harness.wait_for(lambda: served() == text(cert), "the new certificate")
        self.assert_result(gateway.sample("hello"))

    def test_a_broken_file_is_reported_once_and_the_running_configuration_stays(self):
        directory = self.directory()
        gateway = self.start(self.sim(), directory)
        self.looks(gateway, 1)
        self.write(directory, "broken.yaml", "- {id: 7, plam: standard}\n")
        gateway.wait_stderr("broken.yaml:1: ")
        said = len(gateway.stderr)
        looked = time.monotonic() + 0.6  # six periods: nothing more is said

        def quiet():
            self.assert_result(gateway.sample("hello"))
            self.assertEqual(gateway.stderr[said:], [line for line in gateway.stderr[said:]
                                                     if "broken.yaml" in line or "refused" in line])
            return time.monotonic() > looked
        harness.wait_for(quiet, "some looks")
        self.assertEqual(len([line for line in gateway.stderr if "reload refused" in line]), 1)
        self.assertEqual(self.reloads(gateway, "refused"), 1)
        self.write(directory, "broken.yaml", [harness.tenant("other", OTHER_KEY)])
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the mended file")
        self.assertEqual(self.reloads(gateway, "refused"), 1)

    def test_files_that_are_touched_or_written_as_they_were_are_no_change(self):
        directory = self.directory()
        gateway = self.start(self.sim(), directory)
        self.looks(gateway, 1)
        before = self.reloads(gateway, "ok")
        for _ in range(3):
            os.utime(os.path.join(directory, "key"))
            self.write(directory, "acme.yaml", [harness.tenant("acme", harness.KEY)])
            gateway.write_config(gateway.settings)
            until = time.monotonic() + 0.25  # two looks and more
            harness.wait_for(lambda: time.monotonic() > until, "some looks")
        self.assertEqual(self.reloads(gateway, "ok"), before)

    def test_a_broken_file_is_known_after_a_crash_too(self):
        directory = self.directory()
        gateway = self.start(self.sim(), directory)
        self.looks(gateway, 1)
        self.write(directory, "acme.yaml", "- {")
        gateway.wait_stderr("reload refused", 1)
        os.kill(gateway.server_pid(), signal.SIGKILL)
        self.assert_result(gateway.sample("hello"))
        gateway.wait_stderr("reload refused", 2)
        self.assert_result(gateway.sample("hello"))
        self.write(directory, "acme.yaml", [harness.tenant("acme", harness.KEY),
                                            harness.tenant("other", OTHER_KEY)])
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "the mended file")

    def test_without_the_setting_nobody_looks(self):
        directory = self.directory()
        gateway = self.start(self.sim(), directory)
        self.looks(gateway, 1)
        del gateway.settings["reload_watch"]
        before = self.reloads(gateway, "ok")
        gateway.write_config(gateway.settings)
        harness.wait_for(lambda: self.reloads(gateway, "ok") > before, "the last change that is noticed")
        self.write(directory, "other.yaml", [harness.tenant("other", OTHER_KEY)])
        until = time.monotonic() + 0.5
        harness.wait_for(lambda: time.monotonic() > until, "five periods")
        self.assert_error(gateway.sample("hello", key=OTHER_KEY), 401)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: gateway.sample("hello", key=OTHER_KEY).status == 200, "asked for")


if __name__ == "__main__":
    harness.main()
