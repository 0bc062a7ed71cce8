"""The overlays of deploy/kustomize render; what they render is what a gateway needs, and its configuration serves.

Types and fields are judged by tests/kubernetes, at night. `test_kustomize.py --write` makes the PrometheusRule anew.

ctest: once timeout=120
"""

import os
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import documents  # noqa: E402
import harness  # noqa: E402

try:
    import yaml
except ImportError:  # of a Python that Debian's packages are not installed for
    yaml = None

KUSTOMIZE = os.path.join(harness.SOURCE, "deploy/kustomize")
RULES = os.path.join(harness.SOURCE, "deploy/prometheus/rules.yml")
PROMETHEUS_RULE = os.path.join(KUSTOMIZE, "components/monitoring/prometheusrule.yaml")
OVERLAYS = ("dev", "production")
PRESTOP_S, SUPERVISOR_S = 5, 5

RULE_HEAD = """\
# Made of deploy/prometheus/rules.yml by tests/integration/test_kustomize.py --write: change it there.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: sluice
  labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/part-of: sluice}
spec:
"""


def rule_text():
    with open(RULES, encoding="utf-8") as file:
        text = file.read()
    groups = text[text.index("\ngroups:") + 1:]
    return RULE_HEAD + re.sub(r"^(?=.)", "  ", groups, flags=re.M)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def render(overlay):
    """Every object by (kind, name)."""
    run = subprocess.run(["kubectl", "kustomize", os.path.join(KUSTOMIZE, "overlays", overlay)],
                         capture_output=True, text=True, check=False)
    if run.returncode != 0 or run.stderr:
        raise harness.Failure(f"{overlay}: {run.stderr}")
    found = list(yaml.safe_load_all(run.stdout))
    objects = {(one["kind"], one["metadata"]["name"]): one for one in found}
    if len(objects) != len(found):
        raise harness.Failure(f"{overlay}: two objects of one name")
    return objects


class Rendered(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.overlays = {overlay: render(overlay) for overlay in OVERLAYS}

    def each(self, kind, name="sluice"):
        return [objects[kind, name] for objects in self.overlays.values()]

    def pods(self):
        return [deployment["spec"]["template"]["spec"] for deployment in self.each("Deployment")]

    def test_overlays_have_what_their_place_needs(self):
        common = {("Deployment", "sluice"), ("Service", "sluice"), ("Service", "sluice-admin"),
                  ("ServiceAccount", "sluice"), ("NetworkPolicy", "sluice"), ("ConfigMap", "sluice-config"),
                  ("ConfigMap", "sluice-tenants")}
        self.assertEqual(set(self.overlays["dev"]), common | {("Secret", "sluice-secrets")})
        self.assertEqual(set(self.overlays["production"]), common | {
            ("HorizontalPodAutoscaler", "sluice"), ("PodDisruptionBudget", "sluice"),
            ("ServiceMonitor", "sluice"), ("PrometheusRule", "sluice")})
        for overlay, objects in self.overlays.items():
            self.assertEqual(len({one["metadata"]["namespace"] for one in objects.values()}), 1, overlay)

    def test_pods_are_what_the_restricted_standard_asks_for(self):
        for pod in self.pods():
            self.assertFalse(pod["automountServiceAccountToken"])
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            self.assertGreaterEqual(pod["securityContext"]["runAsUser"], 10000)
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            for container in pod["containers"]:
                context = container["securityContext"]
                self.assertIs(context["allowPrivilegeEscalation"], False)
                self.assertIs(context["readOnlyRootFilesystem"], True)
                self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
                self.assertNotIn("add", context["capabilities"])
                self.assertEqual(set(container["resources"]), {"requests", "limits"})
            self.assertEqual({kind for volume in pod["volumes"] for kind in volume} - {"name"},
                             {"configMap", "secret", "emptyDir"})
        for account in self.each("ServiceAccount"):
            self.assertIs(account["automountServiceAccountToken"], False)

    def test_a_pod_has_the_time_to_leave(self):
        for pod, settings in zip(self.pods(), self.settings()):
            drain_s = int(re.fullmatch(r"(\d+)s", settings["drain"])[1])
            prestop = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
            self.assertEqual(prestop, ["sleep", str(PRESTOP_S)])
            self.assertGreater(pod["terminationGracePeriodSeconds"], PRESTOP_S + drain_s + SUPERVISOR_S)
        for deployment in self.each("Deployment"):
            self.assertEqual(deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0)

    def test_labels_and_ports_lead_to_the_pods(self):
        for deployment in self.each("Deployment"):
            template = deployment["spec"]["template"]
            labels = template["metadata"]["labels"].items()
            self.assertLessEqual(deployment["spec"]["selector"]["matchLabels"].items(), labels)
            for spread in template["spec"]["topologySpreadConstraints"]:
                self.assertLessEqual(spread["labelSelector"]["matchLabels"].items(), labels)
            ports = {port["name"]: port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
            self.assertEqual(ports, {"h2c": 8080, "admin": 9090})
        for overlay, objects in self.overlays.items():
            pod = objects["Deployment", "sluice"]["spec"]["template"]["metadata"]["labels"].items()
            for (kind, name), one in objects.items():
                selector = {"Service": lambda: one["spec"]["selector"],
                            "NetworkPolicy": lambda: one["spec"]["podSelector"]["matchLabels"],
                            "PodDisruptionBudget": lambda: one["spec"]["selector"]["matchLabels"]}.get(kind)
                if selector is not None:
                    self.assertLessEqual(selector().items(), pod, (overlay, kind, name))
                if kind == "Service":
                    self.assertLessEqual({port["targetPort"] for port in one["spec"]["ports"]}, set(ports))
        production = self.overlays["production"]
        admin = production["Service", "sluice-admin"]
        monitor = production["ServiceMonitor", "sluice"]["spec"]
        self.assertLessEqual(monitor["selector"]["matchLabels"].items(), admin["metadata"]["labels"].items())
        self.assertIn(monitor["endpoints"][0]["port"], [port["name"] for port in admin["spec"]["ports"]])
        self.assertEqual(admin["metadata"]["labels"][monitor["jobLabel"]], "sluice")  # what rules call the job
        scaled = production["HorizontalPodAutoscaler", "sluice"]["spec"]
        self.assertEqual(scaled["scaleTargetRef"], {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sluice"})
        self.assertNotIn("replicas", production["Deployment", "sluice"]["spec"])  # an apply would undo the autoscaler's

    def settings(self):
        return [yaml.safe_load(config["data"]["sluice.yaml"])
                for config in self.each("ConfigMap", "sluice-config")]

    def test_only_dev_counts_limits_by_itself_and_it_has_one_pod(self):
        self.assertEqual([settings["store"]["kind"] for settings in self.settings()], ["memory", "redis"])
        self.assertEqual(self.overlays["dev"]["Deployment", "sluice"]["spec"]["replicas"], 1)

    def test_overlays_differ_in_their_store_alone(self):
        dev, production = self.settings()
        for settings in dev, production:
            del settings["store"]
            settings["plans"]["standard"].pop("on_store_failure", None)
        self.assertEqual(dev, production)

    def test_the_rule_is_the_one_that_is_tested(self):
        if not os.path.exists(RULES):
            self.skipTest("there are no rules")
        self.assertEqual(read(PROMETHEUS_RULE), rule_text(), "run tests/integration/test_kustomize.py --write")
        self.assertEqual(self.overlays["production"]["PrometheusRule", "sluice"]["spec"],
                         yaml.safe_load(read(RULES)))

    def dry(self, command, directory):
        """What a command would make, by kubectl's own word."""
        run = subprocess.run([*shlex.split(command), "--dry-run=client", "-o", "yaml"], cwd=directory, capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 0, command + run.stderr)
        return yaml.safe_load(run.stdout)

    def test_the_commands_of_the_page_make_what_the_pods_want(self):
        namespace, secret, apply, rollout = documents.fence("deploy/docs/deploying.md", "kubectl create").text.splitlines()
        directory, objects = self.directory(), self.overlays["production"]
        for name in ("anthropic.key", "redis.url"):
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write("a secret")
        where = self.dry(namespace, directory)["metadata"]["name"]
        self.assertEqual({one["metadata"]["namespace"] for one in objects.values()}, {where})
        made = self.dry(secret, directory)
        volumes = objects["Deployment", "sluice"]["spec"]["template"]["spec"]["volumes"]
        self.assertIn((where, made["metadata"]["name"]), [(made["metadata"]["namespace"], volume["secret"]["secretName"])
                                                          for volume in volumes if "secret" in volume])
        read_by = objects["ConfigMap", "sluice-config"]["data"]["sluice.yaml"]
        self.assertEqual(set(made["data"]), set(re.findall(r"file:\.\./secrets/([\w-]+)", read_by)))
        self.assertEqual(shlex.split(apply)[-1], "deploy/kustomize/overlays/production")
        self.assertEqual(shlex.split(rollout)[1:3], ["-n", where])
        self.assertIn(tuple(shlex.split(rollout)[-1].split("/")), [(kind.lower(), name) for kind, name in objects])

    def test_the_page_says_how_much_a_pod_has(self):
        memory = self.overlays["production"]["Deployment", "sluice"]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
        self.assertIn(f"* A pod has two workers and {memory.removesuffix('Gi')} GiB;", read(os.path.join(harness.SOURCE, "deploy/docs/deploying.md")))

    # ---- what a pod would have on its disk, and the gateway on it --------------------------------

    def disk(self, objects, place):
        """The pod's volumes as directories; returns the command line's configuration file."""
        pod = objects["Deployment", "sluice"]["spec"]["template"]["spec"]
        container = pod["containers"][0]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        for volume in pod["volumes"]:
            directory = place + mounts[volume["name"]]
            os.makedirs(directory)
            if "configMap" in volume:
                texts = objects["ConfigMap", volume["configMap"]["name"]]["data"]
            elif "secret" in volume:
                texts = {"anthropic": "sk-provider", "redis-url": "redis://127.0.0.1:1/0"}
            else:
                continue
            for name, text in texts.items():
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(text)
        self.assertEqual(container["args"][:2], ["serve", "--config"])
        return place + container["args"][2]

    def test_their_configurations_pass_the_check(self):
        for overlay, objects in self.overlays.items():
            run = subprocess.run([harness.BIN, "check", self.disk(objects, self.directory())],
                                 capture_output=True, text=True, check=False)
            self.assertEqual((run.returncode, run.stderr), (0, ""), overlay + run.stdout)
            self.assertIn("1 tenants", run.stdout)

    def test_the_pod_serves_answers_its_probes_and_leaves_at_sigterm(self):
        sim = self.sim()
        objects = self.overlays["dev"]
        place = self.directory()
        path = self.disk(objects, place)
        ports = {port: harness.free_port() for port in ("8080", "9090")}
        text = read(path).replace("https://api.anthropic.com", sim.url)
        text = text.replace("/run/sluice", place + "/run/sluice").replace("drain: 630s", "drain: 1s")
        for port, free in ports.items():
            self.assertIn(f"0.0.0.0:{port}", text)
            text = text.replace(f"0.0.0.0:{port}", f"127.0.0.1:{free}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        tenant = os.path.join(os.path.dirname(path), "../tenants/demo.yaml")
        changed = re.sub(r'(?<=sha256: ")[0-9a-f]{64}', harness.sha256(harness.KEY), read(tenant))
        with open(tenant, "w", encoding="utf-8") as file:
            file.write(changed)
        gateway = harness.Process([harness.BIN, "serve", "--config", path])
        self.addCleanup(gateway.stop)
        container = objects["Deployment", "sluice"]["spec"]["template"]["spec"]["containers"][0]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = container[probe]["httpGet"]
            self.assertEqual(asked["port"], "admin")

            def passes(url=f"http://127.0.0.1:{ports['9090']}{asked['path']}"):
                try:
                    return harness.request("GET", url).status == 200
                except OSError:
                    return False
            harness.wait_for(passes, probe)
        answer = harness.request_h2(
            "POST", f"http://127.0.0.1:{ports['8080']}/v1/sampling",
            b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":9,"messages":'
            b'[{"role":"user","content":{"type":"text","text":"hello"}}]}}',
            {"Content-Type": "application/json", "Authorization": "Bearer " + harness.KEY})
        self.assert_result(answer)
        gateway.stop()


def main():
    if sys.argv[1:] == ["--write"]:
        with open(PROMETHEUS_RULE, "w", encoding="utf-8") as file:
            file.write(rule_text())
        return
    if yaml is None and sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["python3", *sys.argv])
    if yaml is None or shutil.which("kubectl") is None:
        print("SKIPPED: there is no", "python3-yaml" if yaml is None else "kubectl")
        sys.exit(77)
    harness.main()


if __name__ == "__main__":
    main()
