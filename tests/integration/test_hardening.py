"""How the binary was linked and compiled, and what its processes keep to themselves.

ctest: once
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

# What FORTIFY_SOURCE puts in the place of functions of libc, some of which any program of this size calls.
CHECKED = re.compile(r"__(?:memcpy|memmove|memset|snprintf|vsnprintf|fprintf|vfprintf|printf|read|recv|strncpy)_chk")


def readelf(*options):
    return subprocess.run(["readelf", "--wide", *options, harness.BIN], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


class Binary(harness.Case):
    def test_it_is_position_independent(self):
        self.assertRegex(readelf("--file-header"), r"Type:\s+DYN")
        self.assertRegex(readelf("--dynamic"), r"FLAGS_1\).*\bPIE\b")

    def test_its_relocations_are_read_only_before_it_starts(self):
        self.assertRegex(readelf("--program-headers"), r"GNU_RELRO")
        self.assertRegex(readelf("--dynamic"), r"BIND_NOW|FLAGS_1\).*\bNOW\b")

    def test_no_segment_can_be_written_and_executed(self):
        segments = re.findall(r"^\s+(LOAD|GNU_STACK)(?:\s+0x\w+){5} (\S.{2})", readelf("--program-headers"), re.M)
        self.assertIn("GNU_STACK", [kind for kind, _ in segments])
        self.assertGreater(len(segments), 2)
        for kind, flags in segments:
            self.assertNotRegex(flags, r"W.?E", kind)

    def test_it_has_no_text_relocations_and_no_path_for_libraries(self):
        self.assertNotRegex(readelf("--dynamic"), r"TEXTREL|\(RPATH\)|\(RUNPATH\)")

    def test_overflows_are_found_on_the_stack_and_in_calls_of_libc(self):
        symbols = readelf("--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, CHECKED)


class Memory(harness.Case):
    def other_user(self):
        """The binary, run by somebody who is not root, from a place that is everybody's."""
        directory = self.directory()
        wrapper, copy = os.path.join(directory, "wrapper"), os.path.join(directory, "sluice")
        shutil.copy(harness.BIN, copy)
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nchmod -R a+rX "$(dirname "$3")"\n'
                       f'exec setpriv --reuid 65534 --regid 65534 --clear-groups {copy} "$@"\n')
        for path in (directory, wrapper, copy):
            os.chmod(path, 0o755)
        return wrapper

    def test_no_process_leaves_a_core_file(self):
        gateway = self.gateway(harness.config(self.sim()))
        for pid in (gateway.pid, gateway.server_pid()):
            with open(f"/proc/{pid}/limits", encoding="ascii") as file:
                self.assertRegex(file.read(), r"Max core file size\s+0\s+0\s")

    def test_nobody_but_root_may_look_into_their_memory(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become somebody else")
        gateway = self.gateway(harness.config(self.sim()), binary=self.other_user())
        self.assert_result(gateway.sample())
        for pid in (gateway.pid, gateway.server_pid()):
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                self.assertRegex(file.read(), r"\nUid:\s+65534\s+65534\s")
            self.assertEqual(os.stat(f"/proc/{pid}/mem").st_uid, 0, "the kernel shows it to its user")


if __name__ == "__main__":
    harness.main()
