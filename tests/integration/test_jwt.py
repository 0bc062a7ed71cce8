"""Callers with tokens (JWT): what is taken and what not, and an issuer that rotates, goes away, is slow and lies.

ctest: timeout=240
"""
import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness
import jwt_issuer
from jwt_issuer import b64


class Jwt(harness.Case):
    def settings(self, *issuers, **changes):
        return harness.config(self.sim(), workers=2, identity={"jwt": [*issuers]}, **changes)

    def start(self, issuer, **changes):
        """A gateway whose every worker has the issuer's keys; they are fetched again when a test says so."""
        gateway = self.gateway(self.settings(issuer.settings(**{"refresh": "1h", **changes})))
        gateway.wait_stderr("keys of ")
        return gateway

    def refused(self, answer, why):
        error = self.assert_error(answer, 401, 401, "unauthorized")
        self.assertEqual(error["data"].get("token"), why, error)
        self.assertEqual(answer.headers["www-authenticate"], 'Bearer error="invalid_token"')
        return error

    def checks(self, gateway, result):
        return gateway.metrics().sum("sluice_jwt_checks_total", result=result)

    def wait_served(self, gateway, token, what, times=4):
        """By every worker, as far as some connections in a row can tell."""
        harness.wait_for(lambda: all(gateway.sample(key=token).status == 200 for _ in range(times)), what)

    def wait_refused(self, gateway, token, why):
        def refused():
            answers = [gateway.sample(key=token) for _ in range(4)]
            return all(answer.status == 401 and answer.json()["error"]["data"].get("token") == why
                       for answer in answers)
        harness.wait_for(refused, f"401 {why}; got {gateway.sample(key=token)}")

    # ---- tokens ----

    def test_every_algorithm_is_served_and_the_claims_are_who_asks(self):
        issuer = jwt_issuer.Issuer(self)
        keys = [issuer.add(alg) for alg in ("RS256", "ES256", "EdDSA")]
        gateway = self.start(issuer)
        for key in keys:
            for http2 in (False, True):
                token = issuer.token(key, azp="billing-mcp", aud=["other", "sluice"], jti=str(http2))
                answer = gateway.sample(key=token, http2=http2)
                self.assert_result(answer)
                line = gateway.log(answer.headers["sluice-request-id"])
                self.assertEqual((line["tenant"], line["server"]), ("acme", "billing-mcp"))
                self.assertNotIn(token.split(".")[2], "\n".join(gateway.stdout))
        self.assertEqual(self.checks(gateway, "verified"), 6)
        self.assert_result(gateway.sample())  # a key, as ever
        harness.wait_for(  # counted when the answer has left
            lambda: gateway.metrics().sum("sluice_requests_total", tenant="acme", outcome="ok") == 7, "7 requests")

    def test_what_is_wrong_with_a_token_is_said(self):
        issuer = jwt_issuer.Issuer(self)
        rsa, ec = issuer.add("RS256"), issuer.add("ES256")
        stranger = issuer.new_key("RS256", kid=rsa.kid)
        gateway = self.start(issuer, algorithms=["RS256"])
        now = int(time.time())
        good = issuer.token(rsa)
        public = jwt_issuer.openssl("pkey", "-in", rsa.path, "-pubout")
        text = b64(json.dumps({"alg": "HS256", "kid": rsa.kid}).encode()) + "." + good.split(".")[1]
        mac = text + "." + b64(hmac.new(public, text.encode(), hashlib.sha256).digest())
        none = b64(b'{"alg":"none"}') + "." + good.split(".")[1] + "."
        wrong = {
            "the secret is the public key": (mac, "algorithm"),
            "no signature": (none, "algorithm"),
            "an algorithm that is not the issuer's": (issuer.token(ec), "algorithm"),
            "crit": (issuer.token(rsa, header={"crit": ["exp"]}), "critical"),
            "another issuer": (issuer.token(rsa, iss="https://evil.example"), "issuer"),
            "another audience": (issuer.token(rsa, aud=["other"]), "audience"),
            "no exp": (issuer.token(rsa, exp=None), "no_expiry"),
            "expired": (issuer.token(rsa, exp=now - 61), "expired"),
            "not yet": (issuer.token(rsa, nbf=now + 300), "early"),
            "no tenant": (issuer.token(rsa, tenant=None), "no_tenant"),
            "nobody's": (issuer.token(rsa, tenant="nobody"), "tenant_unknown"),
            "a server that is none": (issuer.token(rsa, azp="a b"), "server"),
            "alg of one kind, kid of another": (issuer.token(rsa, header={"kid": ec.kid}), "key_misfit"),
            "signed by a stranger": (issuer.token(stranger), "signature"),
            "padding": (good + "=", "malformed"),
            "claims of another token": (".".join([good.split(".")[0], issuer.token(rsa, tenant="x").split(".")[1],
                                                  good.split(".")[2]]), "signature"),
            "over 8 KiB": (issuer.token(rsa, x="x" * 6200), "too_large"),
        }
        for name, (token, why) in wrong.items():
            for http2 in (False, True):
                with self.subTest(name, http2=http2):
                    answer = gateway.sample(key=token, http2=http2)
                    error = self.refused(answer, why)
                    self.assertEqual(gateway.log(answer.headers["sluice-request-id"])["detail"], error["message"])
            self.assertEqual(self.checks(gateway, why) % 2, 0, name)
        for http2 in (False, True):  # just below 8 KiB
            self.assert_result(gateway.sample(key=issuer.token(rsa, x="x" * 5600), http2=http2))
        # what does not look like a token is a key that nobody has
        self.assertNotIn("token", self.assert_error(gateway.sample(key="x" * 300), 401)["data"])
        self.assertEqual(issuer.requests, 1)

    def test_a_token_is_remembered_until_something_changes(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("ES256")
        settings = self.settings(issuer.settings(refresh="1h"))
        settings["workers"] = 1
        gateway = self.gateway(settings)
        settings = gateway.settings
        gateway.wait_stderr("keys of ")
        token = issuer.token(key)
        for _ in range(5):
            self.assert_result(gateway.sample(key=token))
        self.assertEqual((self.checks(gateway, "verified"), self.checks(gateway, "remembered")), (1, 4))
        self.assertEqual(gateway.reload().status, 200)
        self.assert_result(gateway.sample(key=token))
        self.assertEqual(self.checks(gateway, "verified"), 2)
        settings["tenants"][0]["disabled"] = True
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        self.wait_refused(gateway, token, "tenant_unknown")
        self.assert_error(gateway.sample(), 401)  # its key, too
        settings["tenants"][0].update(disabled=False, names=["other"])
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: gateway.sample().status == 200, "the key's tenant is back")
        self.refused(gateway.sample(key=token), "tenant_unknown")
        self.assert_result(gateway.sample(key=issuer.token(key, tenant="other")))
        self.assertEqual(issuer.requests, 1)  # reloads ask nobody

    def test_who_guesses_on_a_connection_is_in_nobody_else_s_way(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("EdDSA")
        gateway = self.start(issuer)
        head, claims, _ = issuer.token(key).split(".")
        guess = iter(".".join([head, claims, b64(os.urandom(63) + b"\0")]) for _ in range(2000))
        stranger = http.client.HTTPConnection(urllib.parse.urlsplit(gateway.url).netloc, timeout=harness.PATIENCE_S)

        def ask(token):
            stranger.request("POST", "/v1/sampling", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {
                "Content-Type": "application/json", "Authorization": "Bearer " + token})
            answer = stranger.getresponse()
            answer.read()
            return answer.status
        statuses = [ask(next(guess)) for _ in range(16)]
        self.assertEqual(statuses, [401] * 16)
        harness.wait_for(lambda: ask(next(guess)) == 503, "the end of patience")
        self.assert_result(gateway.sample(key=issuer.token(key)))  # never seen before
        stranger.close()

    def test_a_remembered_token_ends_with_its_exp(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("EdDSA")
        gateway = self.start(issuer, skew="0s")
        token = issuer.token(key, exp=int(time.time()) + 3)
        self.wait_served(gateway, token, "the token is good, and remembered")
        self.wait_refused(gateway, token, "expired")
        self.assertGreater(self.checks(gateway, "remembered"), 0)

    def test_issuers_come_and_go_with_reloads(self):
        one = jwt_issuer.Issuer(self, "https://one.example")
        two = jwt_issuer.Issuer(self, "https://two.example")
        first, second = one.add("ES256"), two.add("ES256", kid=one.keys[0].kid)
        gateway = self.gateway(self.settings(one.settings(tenant_claim="org.id")))
        settings = gateway.settings
        gateway.wait_stderr("keys of ")
        token = one.token(first, tenant=None, org={"id": "acme"})
        self.assert_result(gateway.sample(key=token))
        self.refused(gateway.sample(key=two.token(second)), "issuer")
        settings["identity"]["jwt"].append(two.settings())
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        self.wait_served(gateway, two.token(second), "the second issuer's keys are fetched")
        # the same kid is another key at another issuer
        self.refused(gateway.sample(key=one.token(second, tenant=None, org={"id": "acme"})), "signature")
        self.assert_result(gateway.sample(key=token))
        del settings["identity"]["jwt"][0]
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        self.wait_refused(gateway, token, "issuer")
        del settings["identity"]["jwt"][0]
        gateway.write_config(settings)
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: "token" not in self.assert_error(gateway.sample(key=token), 401)["data"],
                         "no tokens are taken any more")
        self.assertEqual(gateway.metrics().find("sluice_jwks_keys"), [])

    # ---- the issuer's keys ----

    def test_rotation(self):
        issuer = jwt_issuer.Issuer(self)
        old = issuer.add("RS256")
        gateway = self.start(issuer, refresh="1s")
        token = issuer.token(old)
        self.assert_result(gateway.sample(key=token))
        new = issuer.add("ES256")
        self.wait_served(gateway, issuer.token(new), "the new key is there")
        self.assert_result(gateway.sample(key=token))
        issuer.keys.remove(old)
        self.wait_refused(gateway, token, "key_unknown")  # though it was remembered
        self.wait_refused(gateway, issuer.token(old), "key_unknown")
        self.assert_result(gateway.sample(key=issuer.token(new)))
        issuer.keys.clear()
        self.wait_refused(gateway, issuer.token(new), "key_unknown")
        self.assertEqual(gateway.metrics().sum("sluice_jwks_keys"), 0)

    def test_an_unknown_key_is_asked_for_at_once_and_then_not_for_a_while(self):
        issuer = jwt_issuer.Issuer(self)
        issuer.add("ES256")
        gateway = self.start(issuer)
        strangers = [issuer.token(issuer.new_key("EdDSA")) for _ in range(10)]
        began = time.monotonic()
        self.assertEqual(issuer.requests, 1)
        self.refused(gateway.sample(key=strangers[0]), "key_unknown")
        harness.wait_for(lambda: issuer.requests == 2, "it is asked for")
        late = issuer.add("EdDSA")
        for token in strangers * 3:
            self.refused(gateway.sample(key=token), "key_unknown")
        self.refused(gateway.sample(key=issuer.token(late)), "key_unknown")
        harness.wait_for(lambda: gateway.metrics().sum("sluice_jwks_fetches_total", result="ok") == 2, "2 fetches")
        self.assertTrue(issuer.requests == 2 or time.monotonic() - began > 29, issuer.requests)

    def test_the_last_keys_are_used_while_the_issuer_is_away(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("EdDSA")
        gateway = self.start(issuer, refresh="1s")
        issuer.stop()
        line = gateway.wait_stderr("cannot be fetched")
        self.assertIn("Connection refused; the last ones stay in use", line)
        self.assert_result(gateway.sample(key=issuer.token(key)))  # never seen before
        self.assertTrue(gateway.ready())
        self.assertGreater(gateway.metrics().sum("sluice_jwks_fetches_total", result="failed"), 0)
        self.assertEqual(gateway.metrics().sum("sluice_jwks_keys"), 1)
        issuer.start()
        gateway.wait_stderr("fetched again")

    def test_an_issuer_that_is_away_at_the_start_keeps_nobody_waiting(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("EdDSA")
        issuer.stop()
        nowhere = jwt_issuer.Issuer(self, "https://nowhere.example")
        settings = self.settings(issuer.settings(), {**nowhere.settings(), "jwks": "https://issuer.invalid/jwks"})
        gateway = self.gateway(settings)  # waits for readyz
        line = gateway.wait_stderr(f":{issuer.port}/jwks cannot be fetched")
        self.assertIn("tokens of that issuer are refused until they can", line)
        gateway.wait_stderr("issuer.invalid/jwks cannot be fetched: its host has no address")
        self.refused(gateway.sample(key=issuer.token(key)), "no_keys")
        self.assert_result(gateway.sample())
        issuer.start()
        self.wait_served(gateway, issuer.token(key), "the keys are fetched")
        self.assertEqual(gateway.metrics().find("sluice_jwks_keys", jwks="https://issuer.invalid/jwks"), [0])

    def test_a_slow_issuer_is_given_up_and_slows_nothing(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("EdDSA")
        issuer.hold.clear()
        gateway = self.gateway(self.settings(issuer.settings()))
        harness.wait_for(lambda: issuer.requests == 1, "it is asked")
        self.refused(gateway.sample(key=issuer.token(key)), "no_keys")
        self.assert_result(gateway.sample())
        self.assertEqual(gateway.reload().status, 200)
        self.assertIn("it took too long", gateway.wait_stderr("cannot be fetched"))
        issuer.hold.set()
        self.wait_served(gateway, issuer.token(key), "the keys are fetched")

    def test_a_silent_address_of_an_issuer_is_passed_over(self):
        plain = jwt_issuer.Issuer(self, "https://plain.example")
        tls = jwt_issuer.Issuer(self, "https://tls.example", cert=self.certificate("id.test", ("DNS:id.test",)))
        keys = [issuer.add("EdDSA") for issuer in (plain, tls)]
        self.silent(plain.port)
        self.silent(tls.port, backlog=16)  # never ends a handshake
        gateway = self.gateway(
            self.settings(plain.settings(host="id.test"), tls.settings(host="id.test", ca=tls.cert[0])),
            binary=self.with_hosts(os.path.join(self.directory(), "hosts"), "127.0.0.2 id.test\n127.0.0.1 id.test\n"))
        for issuer, key in zip((plain, tls), keys):
            gateway.wait_stderr(f":{issuer.port}/jwks: 1")
            self.wait_served(gateway, issuer.token(key), "the keys are known")
        self.assertNotIn("cannot be fetched", "\n".join(gateway.stderr))

    def test_an_issuer_may_go_while_it_is_asked(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("EdDSA")
        issuer.hold.clear()
        gateway = self.gateway(self.settings(issuer.settings()))
        harness.wait_for(lambda: issuer.requests == 1, "it is asked")
        identity = gateway.settings.pop("identity")
        gateway.write_config(gateway.settings)
        self.assertEqual(gateway.reload().status, 200)
        self.assert_result(gateway.sample())
        gateway.write_config({**gateway.settings, "identity": identity})
        self.assertEqual(gateway.reload().status, 200)
        harness.wait_for(lambda: issuer.requests == 2, "it is asked again")
        issuer.hold.set()
        self.wait_served(gateway, issuer.token(key), "the keys are fetched")

    def test_lies_are_not_believed(self):
        evil = jwt_issuer.Issuer(self)
        forged = evil.add("ES256", kid="key-1")
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("ES256", kid="key-1")
        gateway = self.start(issuer, refresh="1s")
        good, bad = issuer.token(key), evil.token(forged)
        self.assert_result(gateway.sample(key=good))
        document = evil.document()
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(
            b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (issuer.document()[:10], issuer.document()[10:])
        ) + b"0\r\n\r\n"
        lies = {
            "redirects are not followed": (302, {"Location": f"http://127.0.0.1:{evil.port}/jwks"}, b""),
            "status 404": (404, {}, document),
            "status 201": (201, {}, document),
            "no set of keys": (200, {}, b"<html>sign in</html>"),
            "no member": (200, {}, b"{}"),
            "duplicate_key": (200, {}, document[:-1] + b', "keys": []}'),
            "trailing": (200, {}, document + b"{}"),
            "its answer is no good": (200, {}, document + b" " * 300000),
            "cut short": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + document,
            "closed without an answer": b"",
            "answer is no good": b"SSH-2.0-OpenSSH_9.2\r\n",
            "more than 64 keys": (200, {}, json.dumps({"keys": [forged.jwk] * 65}).encode()),
        }
        for count, (said, lie) in enumerate(lies.items(), 1):
            issuer.answer = lie
            line = gateway.wait_stderr("cannot be fetched", count)
            if said != "trailing":
                self.assertIn(said, line)
            self.refused(gateway.sample(key=bad), "signature")
            self.assert_result(gateway.sample(key=good))
            issuer.answer = chunked if count % 2 else None
            gateway.wait_stderr("fetched again", count)
        self.assertEqual(evil.requests, 0)

    def test_keys_of_the_wrong_kind_are_passed_over(self):
        issuer = jwt_issuer.Issuer(self)
        key = issuer.add("RS256")
        weak = issuer.new_key("RS256", kid="weak")
        jwt_issuer.openssl("genrsa", "-out", weak.path, "1024")
        weak.jwk.update(weak._numbers())
        issuer.keys.append(weak)
        for more in ({"kty": "oct", "k": "AAAA", "kid": "mac"}, {**key.jwk, "kid": "enc", "use": "enc"}):
            other = issuer.add("EdDSA")
            other.jwk = more
        gateway = self.start(issuer)
        gateway.wait_stderr("key weak is not used: RSA needs 2048 bits at least")
        gateway.wait_stderr("a key is not used: it is of another kind")
        gateway.wait_stderr("a key is not used: it is not for signatures")
        self.assertEqual(gateway.metrics().sum("sluice_jwks_keys"), 1)
        self.refused(gateway.sample(key=issuer.token(weak)), "key_unknown")
        self.assert_result(gateway.sample(key=issuer.token(key)))

    # ---- TLS ----

    def test_the_issuer_s_certificate_is_checked(self):
        right = self.certificate()
        other_name = self.certificate("other.example", ("DNS:other.example",))
        cases = (
            ("right", right, right[0], None),
            ("another authority", right, other_name[0], "self-signed certificate"),
            ("another name", other_name, other_name[0], "hostname mismatch"),
            ("the system's authorities", right, None, "self-signed certificate"),
        )
        for name, cert, ca, problem in cases:
            with self.subTest(name):
                issuer = jwt_issuer.Issuer(self, cert=cert)
                key = issuer.add("ES256")
                changes = {} if ca is None else {"ca": ca}
                gateway = self.gateway(self.settings(issuer.settings(host="localhost", **changes)))
                if problem is None:
                    self.wait_served(gateway, issuer.token(key), "the keys are fetched")
                    continue
                line = gateway.wait_stderr("cannot be fetched")
                self.assertIn("its certificate is not accepted", line)
                self.assertIn(problem, line)
                self.refused(gateway.sample(key=issuer.token(key)), "no_keys")
                self.assertEqual(issuer.requests, 0)


if __name__ == "__main__":
    harness.main()
