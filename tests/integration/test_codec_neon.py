"""The codec for NEON, cross-compiled, agrees with plain C about every text of unit.codec.set, and both
pass every golden vector there.

ctest: once timeout=600

Needs a compiler for aarch64 and an emulator of it, which tests/run installs.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

TOOLS = "aarch64-linux-gnu-"
CACHE = [cache] if (cache := shutil.which("ccache")) else []
EMULATOR = "qemu-aarch64"
FLAGS = ["-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror",
         "-I", harness.SOURCE]
# Needs libcrypto, in whose place is CROSS/sha256.c.
NOT_HERE = ["codec/base/sha256.c"]
CROSS = "tests/support/cross"
GOLDEN = ["tests/golden/test_vectors.c", *(f"tests/support/{name}.c" for name in (
    "golden_replay", "golden_set", "json_tree", "stream_cut"))]


class Neon(unittest.TestCase):
    def setUp(self):
        for program in (TOOLS + "gcc", EMULATOR):
            if shutil.which(program) is None:
                print(f"SKIPPED: there is no {program}")
                os._exit(77)
        self.place = tempfile.TemporaryDirectory(prefix="sluice-neon-")
        self.addCleanup(self.place.cleanup)

    def run_tool(self, *argv):
        done = subprocess.run(argv, cwd=harness.SOURCE, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"{' '.join(argv)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def compile(self, sources, prefix, *flags):
        objects = []
        for source in sources:
            objects.append(os.path.join(self.place.name, prefix + source.replace("/", "_") + ".o"))
            self.run_tool(*CACHE, TOOLS + "gcc", *FLAGS, *flags, "-c", source, "-o", objects[-1])
        return objects

    def sources(self, pattern):
        found = glob.glob(pattern, root_dir=harness.SOURCE, recursive=True)
        return sorted(source for source in found if source not in NOT_HERE)

    def codec(self):
        """Objects of the codec in both sets, and of all below it."""
        codec = [source for source in self.sources("codec/**/*.c") if not source.startswith("codec/base/")]
        base = self.sources("codec/base/*.c") + [f"{CROSS}/sha256.c"]
        neon = os.path.join(self.place.name, "neon.o")
        plain = self.compile(codec + base, "plain-", "-DCODEC_SET_SYMBOL=codec_set_portable", "-DCODEC_HAS_NEON")
        wide = self.compile([source for source in codec if source != "codec/set.c"], "neon-",
                            "-DCODEC_SET_SYMBOL=codec_set_neon", "-DCODEC_ISA_NEON")
        self.run_tool(TOOLS + "ld", "-r", "-o", neon + ".all", *wide)
        self.run_tool(TOOLS + "objcopy", "--keep-global-symbol=codec_set_neon", neon + ".all", neon)
        return [*plain, neon]

    def program(self, name, sources, objects):
        path = os.path.join(self.place.name, name)
        self.run_tool(TOOLS + "gcc", *FLAGS, "-I", os.path.join(harness.SOURCE, CROSS), *sources, *objects,
                      "-static", "-lm", "-o", path)
        return path

    def test_neon_agrees_with_plain_c(self):
        objects = self.codec()
        with self.subTest("the texts of unit.codec.set"):
            test = self.program("test_set", ["tests/unit/codec/test_set.c"], objects)
            self.assertIn("read_alike: OK", self.run_tool(EMULATOR, test))
        with self.subTest("the golden vectors"):
            test = self.program("test_vectors", GOLDEN, objects)
            self.assertIn("passed, up to the set neon", self.run_tool(EMULATOR, test))


if __name__ == "__main__":
    unittest.main()
