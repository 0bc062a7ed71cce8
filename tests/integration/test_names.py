"""Names of other hosts, asked of a server that knows them in one spelling only, as podman's for containers does.

ctest: once
"""

import os
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402
import mcp_echo  # noqa: E402

NAME = "provider.sluice.test"
A = 1


class Server:
    """Of names: 127.0.0.1 for NAME, letter for letter; of any other it says that there is none."""

    def __init__(self, case):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.asked = []
        case.addCleanup(self.socket.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                question, caller = self.socket.recvfrom(512)
                self.socket.sendto(self.answer(question), caller)
            except OSError:
                return

    def answer(self, question):
        at, labels = 12, []
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        kind = struct.unpack_from(">H", question, at + 1)[0]
        asked = question[12:at + 5]
        self.asked.append(".".join(labels))
        known = self.asked[-1] == NAME
        found = known and kind == A
        head = question[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, int(found), 0, 0)
        record = struct.pack(">HHHIH", 0xc00c, A, 1, 60, 4) + socket.inet_aton("127.0.0.1") if found else b""
        return head + asked + record


class Names(harness.Case):
    def on_names_of(self, server):
        """A gateway's program for whom /etc/resolv.conf names that server."""
        directory = self.directory()
        conf, program = os.path.join(directory, "resolv.conf"), os.path.join(directory, "sluice")
        with open(conf, "w", encoding="ascii") as file:
            file.write(f"nameserver 127.0.0.1:{server.port}\n")
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexec unshare --mount --propagation private sh -c "
                       f"'mount --bind {conf} /etc/resolv.conf && exec {harness.BIN} \"$@\"' sluice \"$@\"\n")
        os.chmod(program, 0o755)
        return program

    def test_they_are_asked_for_as_they_are_written(self):
        server, sim = Server(self), self.sim()
        settings = harness.config(sim)
        for provider in settings["providers"].values():
            provider["endpoints"] = [{"url": f"http://{NAME}:{sim.port}"}]
        gateway = self.gateway(settings, binary=self.on_names_of(server))
        self.assert_result(gateway.sample("hello"))
        self.assertEqual(set(server.asked), {NAME})

    def test_the_hosts_of_mcp_servers_are_asked_for_too(self):
        names, tools = Server(self), mcp_echo.Server(self)
        settings = harness.config(self.sim(), mcp_servers={"tools": {"url": f"http://{NAME}:{tools.port}/mcp"}})
        settings["plans"]["standard"]["mcp_servers"] = {"allow": ["tools"]}
        gateway = self.gateway(settings, binary=self.on_names_of(names))
        answer = gateway.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, path="/mcp/tools")
        self.assertEqual((answer.status, answer.json()["result"]), (200, {"method": "ping"}))
        self.assertEqual(tools.seen[0].headers["host"], f"{NAME}:{tools.port}")
        self.assertEqual(set(names.asked), {NAME})


def possible():
    probe = ["unshare", "--mount", "--propagation", "private", "mount", "--bind", "/etc/hosts", "/etc/resolv.conf"]
    return os.geteuid() == 0 and subprocess.run(probe, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    if not possible():
        print("SKIPPED: only root can give a program another /etc/resolv.conf")
        sys.exit(77)
    harness.main()
