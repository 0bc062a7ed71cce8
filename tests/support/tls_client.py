"""Certificates made on the spot, and clients that speak TLS to a gateway.

    authority = tls_client.Authority(self.directory())
    cert, key = authority.issue("DNS:localhost", "IP:127.0.0.1")     # paths
    gateway = self.gateway({..., "listen": [{"address": ..., "tls": {"cert": cert, "key": key}}]})
    with tls_client.Client(port, authority.context()) as client:
        answer = client.post(message)
"""

import http.client
import json
import os
import socket
import ssl
import subprocess

import harness

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


def openssl(*args, **options):
    return subprocess.run(["openssl", *args], check=True, capture_output=True, **options).stdout


class Authority:
    """Issues certificates into `directory`; `cert` is the path of its own."""

    def __init__(self, directory, name="authority"):
        self.directory, self.issued = directory, 0
        self.cert, self.key = (os.path.join(directory, f"{name}.{end}") for end in ("crt", "key"))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=" + name, "-keyout", self.key, "-out", self.cert)

    def issue(self, *names, days=2):
        """The paths of a certificate for these subject alternative names, and of its key."""
        self.issued += 1
        base = os.path.join(self.directory, f"{os.path.basename(self.cert)}-{self.issued}")
        cert, key, request = base + ".crt", base + ".key", base + ".csr"
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x",
                "-addext", "subjectAltName=" + ",".join(names), "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-copy_extensions", "copyall",
                "-days", str(days), "-set_serial", str(1000 + self.issued), "-out", cert)
        return cert, key

    def context(self, version=None, alpn=("http/1.1",), certificate=None):
        """Of clients that trust this authority and show `certificate`, paths of it and its key."""
        context = ssl.create_default_context(cafile=self.cert)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if certificate is not None:
            context.load_cert_chain(*certificate)
        return context


def message(text="hello", model=None):
    """A createMessage request that routing sends to `model` if there is one."""
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100}
    if model is not None:
        params["modelPreferences"] = {"hints": [{"name": model}]}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": params}).encode()


class Client:
    """One connection to 127.0.0.1:`port`, shaken hands under `context` (before that with `shake` False)."""

    def __init__(self, port, context, session=None, shake=True):
        self.context, self.wanted_session = context, session
        self.socket = socket.create_connection(("127.0.0.1", port), harness.PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if shake:
            self.shake()

    def shake(self):
        self.socket = self.context.wrap_socket(self.socket, server_hostname="localhost", session=self.wanted_session)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def post(self, body, key=harness.KEY, path="/v1/sampling", headers=None):
        """One request over HTTP/1.1; the connection is kept."""
        self.send(body, key, path, headers)
        return self.answer()

    def send(self, body, key=harness.KEY, path="/v1/sampling", headers=None):
        fields = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(body)}
        if key is not None:
            fields["Authorization"] = "Bearer " + key
        fields.update(headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.socket.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body)

    def answer(self):
        reply = http.client.HTTPResponse(self.socket, method="POST")
        reply.begin()
        content = reply.read()
        fields = {name.lower(): value for name, value in reply.getheaders()}
        return harness.Answer(reply.status, fields, content, 0)

    def serial(self):
        """That of the certificate which the server showed."""
        return int(self.socket.getpeercert()["serialNumber"], 16)

    @property
    def session(self):
        """To be resumed by another client of the same context; under TLS 1.3 there after an answer."""
        return self.socket.session

    @property
    def resumed(self):
        return self.socket.session_reused


def curl(port, ca, body, *options, key=harness.KEY, certificate=None):
    """One request by curl: the answer, and the version of HTTP that it came by."""
    argv = ["curl", "-sS", "--cacert", ca, "-H", "Content-Type: application/json", "--data-binary", "@-", "-w",
            "\n%{http_version} %{http_code}", "--max-time", str(harness.PATIENCE_S), *options]
    if key is not None:
        argv += ["-H", "Authorization: Bearer " + key]
    if certificate is not None:
        argv += ["--cert", certificate[0], "--key", certificate[1]]
    run = subprocess.run([*argv, f"https://localhost:{port}/v1/sampling"], input=body, capture_output=True, check=False)
    if run.returncode != 0:
        raise harness.Failure(f"curl {run.returncode}: {run.stderr.decode(errors='replace').strip()}")
    content, _, last = run.stdout.rpartition(b"\n")
    version, status = last.decode().split()
    return harness.Answer(int(status), {}, content, 0), version
