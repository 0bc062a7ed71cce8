"""A Docker engine of Debian's packages, unpacked and not installed: nothing of it stays on the machine but its folder.

Compose of Debian 12 knows no --wait, so that one is of Debian 13. The engine leaves the machine's firewall alone; a
port is published by docker-proxy, and builds have the machine's network.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

PACKAGES = {"bookworm": ("docker.io", "containerd", "runc"), "trixie": ("docker-compose",)}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def mirror():
    """Where this machine has Debian from."""
    run = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"], capture_output=True,
                         text=True, check=True)
    return run.stdout.split()[0]


def unpack(work):
    """The programs, in work/root: downloaded when they are not there."""
    root, lists, debs = (os.path.join(work, name) for name in ("root", "apt", "debs"))
    if os.path.exists(root):
        return root
    for folder in (lists + "/lists/partial", lists + "/cache/archives/partial", debs):
        os.makedirs(folder, exist_ok=True)
    with open(os.path.join(lists, "sources.list"), "w", encoding="utf-8") as file:
        file.writelines(f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n" for suite in PACKAGES)
    apt = ["apt-get", "-qq", *(word for option in (
        f"Dir::Etc::sourcelist={lists}/sources.list", "Dir::Etc::sourceparts=-", f"Dir::State::lists={lists}/lists",
        f"Dir::Cache={lists}/cache", "APT::Sandbox::User=root") for word in ("-o", option))]
    subprocess.run([*apt, "update"], check=True)
    wanted = [f"{name}/{suite}" for suite, names in PACKAGES.items() for name in names]
    subprocess.run([*apt, "download", *wanted], check=True, cwd=debs, stdout=subprocess.DEVNULL)
    shutil.rmtree(root + ".new", ignore_errors=True)
    for package in glob.glob(debs + "/*.deb"):
        subprocess.run(["dpkg", "-x", package, root + ".new"], check=True)
    os.rename(root + ".new", root)
    return root


class Engine:
    """Runs from here to stop(); its images stay in `work` for the next."""

    def __init__(self, work):
        root = unpack(work)
        self.work = work
        self.run_files = tempfile.mkdtemp(prefix="sluice-docker-")  # sockets, whose paths must be short
        plugins = os.path.join(self.run_files, "cli-plugins")
        os.symlink(os.path.join(root, "usr/libexec/docker/cli-plugins"), plugins)
        socket = "unix://" + os.path.join(self.run_files, "docker.sock")
        self.environment = {**os.environ, "DOCKER_HOST": socket, "DOCKER_CONFIG": self.run_files,
                            "PATH": f"{root}/usr/sbin:{root}/usr/bin:{os.environ['PATH']}"}
        with open(os.path.join(work, "dockerd.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([
                os.path.join(root, "usr/sbin/dockerd"), "--data-root", os.path.join(work, "data"), "--exec-root",
                os.path.join(self.run_files, "exec"), "--pidfile", os.path.join(self.run_files, "pid"), "--host", socket,
                "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
                "--default-ulimit", "nofile=4096:4096"], stdout=log, stderr=log, env=self.environment)
        try:
            harness.wait_for(lambda: self.process.poll() is not None or self.docker("info").returncode == 0, "dockerd", 60)
        except harness.Failure:
            self.stop()
            raise
        if self.process.poll() is not None:
            raise harness.Failure("dockerd has ended\n" + self.log())

    def log(self):
        with open(os.path.join(self.work, "dockerd.log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def docker(self, *args, stdin=None):
        return subprocess.run(["docker", *args], capture_output=True, text=True, check=False, env=self.environment,
                              input=stdin)

    def ok(self, *args, stdin=None):
        """What it says; a failure if it fails."""
        run = self.docker(*args, stdin=stdin)
        if run.returncode != 0:
            raise harness.Failure(f"docker {' '.join(args)}: {run.returncode}\n{run.stdout[-4000:]}{run.stderr[-4000:]}")
        return run.stdout

    def version(self):
        return f"Docker {self.ok('version', '--format', '{{.Server.Version}}').strip()}, Compose " + \
            re.search(r"\d[\w.+~-]*", self.ok("compose", "version"))[0]

    def has_image(self, name):
        return self.docker("image", "inspect", name).returncode == 0

    def stop(self):
        """Ends every container and the engine."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for left in glob.glob(self.run_files + "/exec/netns/*"):  # which it leaves mounted
            subprocess.run(["umount", left], check=False)
        shutil.rmtree(self.run_files)
