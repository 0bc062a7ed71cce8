"""Keys of tenants: several of one, rotation under load, and cut off within a reload.

ctest: worker
"""
import http.client
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness

OLD, NEW, OTHER = "sk-test-old-0123456789", "sk-test-new-0123456789", "sk-test-other-0123456789"
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})


def key(text, **changes):
    return {"sha256": harness.sha256(text), **changes}


class Keys(harness.Case):
    def start(self, **changes):
        tenants = [{"id": "acme", "plan": "standard", "keys": [key(OLD, server="billing")]},
                   {"id": "other", "plan": "standard", "keys": [key(OTHER)]}]
        return self.gateway(harness.config(self.sim(), workers=2, tenants=tenants, **changes))

    def change(self, gateway):
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)

    def server_of(self, gateway, text):
        answer = gateway.sample(key=text)
        self.assert_result(answer)
        line = gateway.log(answer.headers["sluice-request-id"])
        self.assertEqual(line["tenant"], "acme")
        return line.get("server")

    def test_a_tenant_has_several_keys_and_each_its_server(self):
        gateway = self.start()
        gateway.settings["tenants"][0]["keys"] = [key(OLD, server="billing"), key(NEW, server="crm"), key("k" * 16)]
        self.change(gateway)
        harness.wait_for(lambda: gateway.sample(key="k" * 16).status == 200, "the keys are in force")
        self.assertEqual([self.server_of(gateway, text) for text in (OLD, NEW, "k" * 16)], ["billing", "crm", None])

    def test_a_rotation_costs_no_request(self):
        gateway = self.start()
        old = harness.Load(gateway, threads=2, key=OLD)
        self.addCleanup(old.stop)
        gateway.settings["tenants"][0]["keys"].append(key(NEW, server="billing"))
        self.change(gateway)
        harness.wait_for(lambda: gateway.sample(key=NEW).status == 200, "the new key is in force")
        new = harness.Load(gateway, threads=2, key=NEW)
        self.addCleanup(new.stop)
        new.wait(20)
        self.assertEqual({status for _, _, status in old.stop()}, {200})
        del gateway.settings["tenants"][0]["keys"][0]
        self.change(gateway)
        harness.wait_for(lambda: gateway.sample(key=OLD).status == 401, "the old key is out of force")
        new.wait(len(new.snapshot()) + 20)
        self.assertEqual({status for _, _, status in new.stop()}, {200})
        for _ in range(8):  # on every worker
            self.assert_error(gateway.sample(key=OLD), 401, 401, "unauthorized")

    def test_disabled_is_cut_off_on_connections_that_are_open(self):
        gateway = self.start()
        connections = [http.client.HTTPConnection(urllib.parse.urlsplit(gateway.url).netloc, timeout=30)
                       for _ in range(8)]
        for connection in connections:
            self.addCleanup(connection.close)

        def statuses():
            found = set()
            for connection in connections:
                connection.request("POST", "/v1/sampling", PING, {
                    "Content-Type": "application/json", "Authorization": "Bearer " + OLD})
                answer = connection.getresponse()
                answer.read()
                found.add(answer.status)
            return found

        self.assertEqual(statuses(), {200})
        gateway.settings["tenants"][0]["disabled"] = True
        self.change(gateway)
        harness.wait_for(lambda: statuses() == {401}, "every connection is cut off")
        self.assert_result(gateway.sample(key=OTHER))
        gateway.settings["tenants"][0]["disabled"] = False
        self.change(gateway)
        harness.wait_for(lambda: statuses() == {200}, "and served again")


if __name__ == "__main__":
    harness.main()
