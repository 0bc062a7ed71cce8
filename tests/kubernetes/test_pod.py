#!/usr/bin/env python3
"""The pod that overlays/dev renders, run by podman: it answers a request, and is as confined as it says.

Wants the image sluice:local that docker/test builds; SLUICE_IMAGES (build-image) is where that keeps its storage. What
podman cannot do is left out: probes (asked from here instead), preStop, ports of a pod without a network; the Secret
becomes a ConfigMap.
"""

import base64
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

try:
    import yaml
except ImportError:  # of a Python that Debian's packages are not installed for
    yaml = None

IMAGES = os.path.abspath(os.environ.get("SLUICE_IMAGES", os.path.join(harness.SOURCE, "build-image")))
IMAGE = "localhost/sluice:local"
PODMAN = ["podman", "--root", os.path.join(IMAGES, "storage"), "--runroot", os.path.join(IMAGES, "run"),
          "--storage-driver", "overlay"]
ENVIRONMENT = {**os.environ, "CONTAINERS_CONF": os.path.join(IMAGES, "containers.conf")}
POD, CONTAINER = "sluice-pod", "sluice-pod-sluice"
REQUEST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {
    "maxTokens": 100, "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]}})


def podman(*args):
    return subprocess.run([*PODMAN, *args], capture_output=True, text=True, check=False, env=ENVIRONMENT)


def render():
    run = subprocess.run(["kubectl", "kustomize", os.path.join(harness.SOURCE, "deploy/kustomize/overlays/dev")],
                         capture_output=True, text=True, check=True)
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(run.stdout)}


def playable(objects):
    """What podman is given: the pod, its ConfigMaps, and the Secret as one."""
    deployment = objects["Deployment", "sluice"]
    spec = deployment["spec"]["template"]["spec"]
    container = spec["containers"][0]
    container.update(image=IMAGE, imagePullPolicy="Never")
    for left_out in ("startupProbe", "readinessProbe", "livenessProbe", "lifecycle", "ports"):
        del container[left_out]
    for volume in spec["volumes"]:
        if "secret" in volume:
            volume["configMap"] = {"name": volume.pop("secret")["secretName"]}
    secret = objects["Secret", "sluice-secrets"]
    config, tenants = objects["ConfigMap", "sluice-config"], objects["ConfigMap", "sluice-tenants"]
    text = config["data"]["sluice.yaml"]
    config["data"]["sluice.yaml"] = text.replace("https://api.anthropic.com", "http://127.0.0.1:8000")
    for name, text in tenants["data"].items():
        listed = yaml.safe_load(text)
        listed[0]["keys"][0]["sha256"] = harness.sha256(harness.KEY)
        tenants["data"][name] = yaml.safe_dump(listed)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": spec}
    as_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sluice-secrets"},
              "data": {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}}
    return yaml.safe_dump_all([config, tenants, as_map, pod])


class Pod(harness.Case):
    def inspect(self, what):
        run = podman("inspect", "--format", "{{" + what + "}}", CONTAINER)
        return run.stdout.strip() if run.returncode == 0 else ""

    def inside(self, *argv):
        return subprocess.run(["nsenter", f"--net=/proc/{self.pid}/ns/net", *argv], capture_output=True, text=True,
                              check=False)

    def play(self):
        path = os.path.join(self.directory(), "pod.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(playable(render()))
        podman("pod", "rm", "--force", "--time", "0", POD)  # of a run that was killed
        run = podman("play", "kube", "--network", "none", path)
        self.addCleanup(podman, "pod", "rm", "--force", "--time", "0", POD)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.pid = int(self.inspect(".State.Pid"))
        self.assertGreater(self.pid, 0, podman("logs", CONTAINER).stderr)

    def probe(self, path):
        return self.inside("curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:9090" + path).returncode == 0

    def start_provider(self):
        sim = subprocess.Popen(["nsenter", f"--net=/proc/{self.pid}/ns/net", harness.SIM, "--port", "8000"],
                               stdout=subprocess.PIPE, text=True)
        self.addCleanup(sim.stdout.close)
        self.addCleanup(sim.wait)
        self.addCleanup(sim.terminate)
        self.assertIn("listening", sim.stdout.readline())

    def test_it_is_ready_answers_is_confined_and_leaves_with_zero(self):
        self.play()
        self.start_provider()
        for path in ("/readyz", "/healthz"):
            harness.wait_for(lambda path=path: self.probe(path), path)
        answer = self.inside("curl", "-sS", "--http2-prior-knowledge", "-H", "Content-Type: application/json", "-H",
                             "Authorization: Bearer " + harness.KEY, "-d", REQUEST, "http://127.0.0.1:8080/v1/sampling")
        self.assertEqual(json.loads(answer.stdout)["result"]["stopReason"], "endTurn", answer.stdout)
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
            pids = [self.pid, *map(int, file.read().split())]
        self.assertEqual(len(pids), 2)
        for pid in pids:
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                status = {name: value.split() for name, _, value in (line.partition(":") for line in file)}
            self.assertEqual((status["Uid"][0], status["Gid"][0]), ("10001", "10001"))
            self.assertEqual((status["CapEff"], status["CapBnd"]), (["0" * 16], ["0" * 16]))
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), (["1"], ["2"]))
        written = podman("exec", CONTAINER, "sh", "-c", "touch /x || touch /etc/sluice/x || touch /etc/sluice/config/x")
        self.assertNotEqual(written.returncode, 0)
        self.assertEqual(podman("stop", "--time", "30", CONTAINER).returncode, 0)
        self.assertEqual(self.inspect(".State.ExitCode"), "0", podman("logs", CONTAINER).stderr)


def missing():
    for command in ("podman", "kubectl", "nsenter", "curl"):
        if shutil.which(command) is None:
            return command
    if yaml is None:
        return "python3-yaml"
    return None if podman("image", "exists", IMAGE).returncode == 0 else f"image {IMAGE} in {IMAGES}"


if __name__ == "__main__":
    if yaml is None and sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["python3", *sys.argv])
    if missing():
        print("NOT RUN: there is no", missing())
        sys.exit(77)
    harness.main()
