#!/usr/bin/env python3
"""`sluice wrap --provider`: a gateway of its own, for a provider's key alone; and `listen` on a UNIX socket.

ctest: timeout=180
"""
import glob
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import wrapped

SAMPLING = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}], "maxTokens": 50}}


def gateways(parent):
    """Pids of the gateways of a wrapper: the supervisors."""
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
        children = file.read().split()
    found = []
    for pid in children:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
            if "\0serve\0" in file.read():
                found.append(int(pid))
    return found


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Own(wrapped.Case):
    def own(self, sim, provider="anthropic", **more):
        directory = self.directory()
        env = {"XDG_RUNTIME_DIR": directory, "ANTHROPIC_API_KEY": "sk-ant-secret", "OPENAI_API_KEY": "sk-openai-secret"}
        url = sim.url + ("/v1" if provider == "openai" else "")
        wrap = self.wrap("--provider", provider, "--base-url", url, *more.pop("options", []), env={**env, **more})
        return directory, wrap

    def test_a_provider_key_is_enough(self):
        for provider, model, key in (("anthropic", "claude-haiku-5-5", "sk-ant-secret"), ("openai", "gpt-4o-mini", "sk-openai-secret")):
            sim = self.sim()
            directory, wrap = self.own(sim, provider)
            wrap.server_send(SAMPLING)
            answer = wrap.server_read()
            self.assertEqual(answer["result"]["_meta"]["sluice/route"]["model"], model)
            self.assertEqual(json.loads(sim.last_body())["model"], model)
            self.assertIn(key, json.dumps(sim.last()))
            self.assertEqual(wrap.close(), 0)
            self.assertNotIn("secret", "".join(wrap.errors))
            self.assertEqual(os.listdir(directory), [])

    def test_the_socket_is_private_and_no_secret_lies_beside_it(self):
        directory, wrap = self.own(self.sim())
        (place,) = glob.glob(directory + "/sluice-wrap-*")
        self.assertEqual(stat.S_IMODE(os.stat(place).st_mode), 0o700)
        self.assertEqual(os.listdir(place), ["gateway.sock"])
        mode = os.stat(place + "/gateway.sock").st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        (gateway,) = gateways(wrap.process.pid)
        with open(f"/proc/{gateway}/cmdline", encoding="utf-8") as file:
            self.assertNotIn("secret", file.read())

    def test_a_budget_is_the_most_that_is_spent(self):
        _, wrap = self.own(self.sim(), options=["--usd-per-day", "0", "--model=claude-sonnet-4-6"])
        wrap.server_send(SAMPLING)
        self.assertEqual(wrap.server_read()["error"]["code"], 402)

    def test_a_model_that_nobody_knows_may_be_a_hosts_of_ones_own(self):
        sim = self.sim()
        _, wrap = self.own(sim, "openai", options=["--model", "llama-home"], OPENAI_API_KEY="")
        wrap.server_send(SAMPLING)
        self.assertIn("result", wrap.server_read())
        self.assertEqual(json.loads(sim.last_body())["model"], "llama-home")
        self.assertIn("the price of llama-home is not known", "".join(wrap.errors))

    def test_the_gateway_ends_with_the_wrapper_however_that_ends(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            directory, wrap = self.own(self.sim())
            (gateway,) = gateways(wrap.process.pid)
            wrap.process.send_signal(end)
            wrap.wait()
            harness.wait_for(lambda gateway=gateway: not runs(gateway), "the end of the gateway")
            left = [name for _, _, names in os.walk(directory) for name in names]
            self.assertEqual(left, [])

    def test_a_gateway_that_dies_is_an_error_for_each_sampling_or_comes_back(self):
        _, wrap = self.own(self.sim())
        (supervisor,) = gateways(wrap.process.pid)
        with open(f"/proc/{supervisor}/task/{supervisor}/children", encoding="ascii") as file:
            server = int(file.read().split()[0])
        os.kill(server, signal.SIGKILL)
        wrap.server_send(SAMPLING)
        self.assertIn("result", wrap.server_read())
        os.kill(supervisor, signal.SIGKILL)
        harness.wait_for(lambda: not runs(supervisor), "the end of the gateway")
        wrap.server_send(SAMPLING)
        self.assertEqual(wrap.server_read()["error"]["data"]["reason"], "gateway_unavailable")


class UnixListener(harness.Case):
    def ask(self, path):
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(harness.PATIENCE_S)
            link.connect(path)
            body = json.dumps(SAMPLING).encode()
            link.sendall(b"POST /v1/sampling HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                         + f"Authorization: Bearer {harness.KEY}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            got = b""
            while piece := link.recv(65536):
                got += piece
        return got

    def test_all_workers_serve_a_unix_socket(self):
        path = os.path.join(self.directory(), "public.sock")
        settings = harness.config(self.sim(), workers=2)
        settings["listen"] = [{"address": "unix:" + path}, {"address": f"127.0.0.1:{harness.free_port()}"}]
        gateway = self.gateway(settings)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        for _ in range(8):
            self.assertRegex(self.ask(path), rb"(?s)^HTTP/1.1 200 .*\"result\"")
        os.kill(gateway.server_pid(), signal.SIGKILL)
        self.assertRegex(self.ask(path), rb"(?s)^HTTP/1.1 200 ")
        gateway.stop()
        self.assertFalse(os.path.exists(path))

    def test_a_socket_that_is_left_is_taken_over_and_another_file_is_not(self):
        directory = self.directory()
        path = os.path.join(directory, "public.sock")
        left = socket.socket(socket.AF_UNIX)
        left.bind(path)
        left.close()
        settings = harness.config(self.sim())
        settings["listen"] = [{"address": "unix:" + path}]
        gateway = self.gateway(settings)
        self.assertRegex(self.ask(path), rb"^HTTP/1.1 200 ")
        gateway.stop()
        with open(path, "w", encoding="ascii"):
            pass
        second = self.gateway(settings, wait_ready=False)
        self.assertEqual(second.wait(), 1)
        second.killed = True  # nothing is left to stop
        self.assertRegex(second.report(), "listen: .*public.sock: in use by another process, or not a socket")

    def test_paths_are_checked(self):
        for address, text in (("unix:", "has no path"), ("unix:/" + "x" * 120, "at most 107")):
            path = os.path.join(self.directory(), "sluice.json")
            settings = harness.config(self.sim())
            settings["listen"] = [{"address": address}]
            with open(path, "w", encoding="ascii") as file:
                json.dump(settings, file)

            run = subprocess.run([harness.BIN, "check", path], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertRegex(run.stdout + run.stderr, "listen.*address.*" + re.escape(text))


if __name__ == "__main__":
    harness.main()
