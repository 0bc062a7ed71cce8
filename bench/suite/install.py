"""What a run needs: Debian's packages, npm's, and a release build. Only what is missing is installed."""

import contextlib
import os
import shutil
import subprocess

from suite import SOURCE
from suite.servers import NODE, YARDSTICKS

# ("command", package), or (None, package) for one without
NEEDED = (("curl", "curl"), ("openssl", "openssl"), ("h2load", "nghttp2-client"), ("redis-server", "redis-server"),
          ("cmake", "cmake"), ("ninja", "ninja-build"), ("gcc", "gcc"), ("pkg-config", "pkg-config"),
          (None, "libc6-dev"), (None, "libh2o-evloop-dev"), (None, "libevent-dev"), (None, "libssl-dev"),
          (None, "libyaml-dev"), (None, "libhiredis-dev"), (None, "libcmocka-dev"), (None, "libnghttp2-dev"))
YARDSTICK_PACKAGES = {"nginx": "nginx", "haproxy": "haproxy", "h2o": "h2o"}  # server to package, and command, of that name
NODE_SERVERS = ("portkey", "sdk")
POLICY = "/usr/sbin/policy-rc.d"


def is_installed(package):
    run = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True, check=False)
    return run.stdout == "install ok installed"


@contextlib.contextmanager
def without_services():
    """No package starts its service meanwhile (Debian Policy 9.3.3.1)."""
    ours = not os.path.exists(POLICY)
    if ours:
        with open(POLICY, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(POLICY, 0o755)
    try:
        yield
    finally:
        if ours:
            os.remove(POLICY)


def apt(packages):
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with without_services():
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], check=True,
                       env=environment, stdout=subprocess.DEVNULL)


def debian(servers, say):
    """What all need must be there; a yardstick may be missing: {server: why}."""
    needed = [package for command, package in NEEDED
              if not (shutil.which(command) if command else is_installed(package))]
    wanted = [package for server, package in YARDSTICK_PACKAGES.items()
              if server in servers and not shutil.which(server)]
    if needed or wanted:
        if os.geteuid() != 0:
            if needed:
                raise SystemExit("not root; please install: " + " ".join(needed))
            return {package: "it is not installed, and this is not root" for package in wanted}
        say("installing " + " ".join(needed + wanted))
        if needed:
            apt(needed)
        for package in wanted:
            with contextlib.suppress(subprocess.CalledProcessError):
                apt([package])
    return {server: "Debian's package could not be installed" for server in YARDSTICK_PACKAGES
            if server in servers and not shutil.which(server)}


def npm(servers, say):
    """node_modules as the lock file says, once per version of it: {server: why}."""
    wanted = [server for server in NODE_SERVERS if server in servers]
    mark = os.path.join(YARDSTICKS, "node_modules/.installed")
    lock = os.path.join(YARDSTICKS, "package-lock.json")
    if not wanted or (os.path.exists(mark) and os.path.getmtime(mark) >= os.path.getmtime(lock)):
        return {}
    say("installing " + ", ".join(wanted) + " by npm")
    if not shutil.which("npm"):
        if os.geteuid() != 0:
            return {server: "there is no npm" for server in wanted}
        apt(["npm"])
    run = subprocess.run(["npm", "ci", "--silent"], cwd=YARDSTICKS, capture_output=True, text=True, check=False)
    if run.returncode != 0 or not os.path.exists(NODE):
        return {server: "npm could not install it: " + (run.stderr.strip().splitlines() or ["no reason given"])[-1]
                for server in wanted}
    with open(mark, "w", encoding="utf-8"):
        pass
    return {}


def build(directory, say):
    """A release build of all that runs."""
    say("building, release")
    os.makedirs(directory, exist_ok=True)
    log = os.path.join(directory, "build.log")
    targets = ["sluice", "provider_sim", "plain_h2o", "load"]
    with open(log, "w", encoding="utf-8") as file:
        for argv in (["cmake", "-S", SOURCE, "-B", directory, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                      "-DSLUICE_TESTS=ON"],
                     ["cmake", "--build", directory, "--parallel", str(os.cpu_count()), "--target", *targets]):
            if subprocess.run(argv, stdout=file, stderr=file, check=False).returncode != 0:
                raise SystemExit(f"bench/run: {' '.join(argv[:4])}: see {log}")
