"""An issuer of tokens (JWT) for tests: keys and signatures by the openssl program, and its JWKS over HTTP.

    issuer = Issuer(self)                       # ends with the test case
    key = issuer.add("RS256")                   # published at once
    token = issuer.token(key, tenant="acme")    # claims that are right; others replace or add
    settings["identity"] = {"jwt": [issuer.settings()]}
"""

import base64
import contextlib
import http.server
import json
import os
import ssl
import subprocess
import threading
import time

AUDIENCE = "sluice"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*args, data=None):
    run = subprocess.run(["openssl", *args], input=data, capture_output=True, check=False)
    if run.returncode != 0:
        raise AssertionError(f"openssl {args}: {run.stderr.decode(errors='replace')}")
    return run.stdout


class Key:
    """A private key in a file, and its public half as a JWK."""

    KINDS = {"RS256": ("RSA", ["-pkeyopt", "rsa_keygen_bits:2048"]),
             "ES256": ("EC", ["-pkeyopt", "ec_paramgen_curve:prime256v1"]),
             "EdDSA": ("ED25519", [])}

    def __init__(self, path, alg, kid):
        self.path, self.alg, self.kid = path, alg, kid
        kind, options = self.KINDS[alg]
        openssl("genpkey", "-algorithm", kind, *options, "-out", path)
        self.jwk = {"kid": kid, "use": "sig", "alg": alg, **self._numbers()}

    def _numbers(self):
        der = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if self.alg == "EdDSA":
            return {"kty": "OKP", "crv": "Ed25519", "x": b64(der[-32:])}
        if self.alg == "ES256":
            return {"kty": "EC", "crv": "P-256", "x": b64(der[-64:-32]), "y": b64(der[-32:])}
        modulus = openssl("rsa", "-in", self.path, "-noout", "-modulus").decode().strip().split("=")[1]
        return {"kty": "RSA", "n": b64(bytes.fromhex(modulus)), "e": "AQAB"}

    def sign(self, data):
        if self.alg == "EdDSA":
            with open(self.path + ".input", "wb") as file:  # one-shot algorithms read no pipe
                file.write(data)
            return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", self.path + ".input")
        signature = openssl("dgst", "-sha256", "-sign", self.path, data=data)
        return signature if self.alg == "RS256" else self._raw(signature)

    @staticmethod
    def _raw(der):
        """r and s one behind the other instead of an ASN.1 sequence."""
        numbers, at = b"", 2
        for _ in range(2):
            size = der[at + 1]
            numbers += der[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
            at += 2 + size
        return numbers


class Issuer:
    """Serves its JWKS on 127.0.0.1. What it answers can be changed at any time:
    `keys` (published), `answer` ((status, headers, body) instead of them, or all bytes up to the end of
    the connection), `hold` (an Event: answers wait until it is set). `requests` counts."""

    def __init__(self, case, name="https://id.example", cert=None):
        self.case, self.name, self.directory = case, name, case.directory()
        self.keys, self.answer, self.requests, self.count = [], None, 0, 0
        self.hold = threading.Event()
        self.hold.set()
        self.cert = cert
        self.port = 0
        self.server = None
        self.start()
        case.addCleanup(self.stop)

    # ---- the server ----
    def start(self):
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                issuer.requests += 1
                issuer.hold.wait(60)
                if isinstance(issuer.answer, bytes):
                    self.wfile.write(issuer.answer)
                    self.close_connection = True
                    return
                status, headers, body = issuer.answer or (200, {}, issuer.document())
                with contextlib.suppress(OSError):  # the gateway may have given up
                    self.send_response(status)
                    for field, value in headers.items():
                        self.send_header(field, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):  # a handshake that the gateway broke off
                pass

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        if self.cert is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.cert)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                     do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        """Nobody listens any more; start() brings it back at the same port."""
        self.hold.set()
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
        self.server = None

    def document(self):
        return json.dumps({"keys": [key.jwk for key in self.keys]}).encode()

    # ---- keys and tokens ----
    def new_key(self, alg, kid=None):
        self.count += 1
        return Key(os.path.join(self.directory, f"key{self.count}.pem"), alg, kid or f"key-{self.count}")

    def add(self, alg, kid=None):
        key = self.new_key(alg, kid)
        self.keys.append(key)
        return key

    def token(self, key, header=None, **claims):
        """Signed by `key`. Claims that are None are left out."""
        now = int(time.time())
        head = {"alg": key.alg, "typ": "JWT", "kid": key.kid, **(header or {})}
        body = {"iss": self.name, "aud": AUDIENCE, "exp": now + 600, "iat": now, "tenant": "acme", **claims}
        body = {name: value for name, value in body.items() if value is not None}
        head = {name: value for name, value in head.items() if value is not None}
        text = b64(json.dumps(head).encode()) + "." + b64(json.dumps(body).encode())
        return text + "." + b64(key.sign(text.encode()))

    def settings(self, host="127.0.0.1", **changes):
        scheme = "http" if self.cert is None else "https"
        return {"issuer": self.name, "audience": AUDIENCE, "jwks": f"{scheme}://{host}:{self.port}/jwks",
                "server_claim": "azp", **changes}
