"""pyattest, a verifier of attestations in Python, at the same attestation that the gate would get."""

import http.server
import json
import os
import secrets
import ssl
import subprocess
import sys
import threading

from processes import Failed
from proxies import PROXY_CORE

VERIFY = """
import asyncio, base64, json, sys, time
from pyattest.attestation import Attestation
from pyattest.configs.apple import AppleConfig
case = json.load(sys.stdin)
config = AppleConfig(
    key_id=base64.b64decode(case["keyId"]), app_id=case["app"], production=False, root_ca=case["root"].encode())
def verify():
    attestation = Attestation(base64.b64decode(case["attestation"]), bytes.fromhex(case["nonce"]), config)
    outcome = attestation.verify()
    if asyncio.iscoroutine(outcome): asyncio.run(outcome)
verify()
start = time.process_time()
for _ in range(case["times"]): verify()
print((time.process_time() - start) * 1e6 / case["times"])
"""


def pyattest_microseconds(bench, times=50):
    """CPU of one verification of a simulated device's attestation by pyattest; `None` where pip cannot install it.

    The attestation alone: no receipt, no store, no TLS, all of which are in the gate's registrations.
    """
    packages = bench.binaries.parent / "bench-python"
    if not packages.exists():
        pip = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, "pyattest"], capture_output=True)
        if pip.returncode != 0:
            print("bench: pip cannot install pyattest; going on without", file=sys.stderr)
            return None
    case = _registration(bench) | {
        "app": "SALLYPORT1.com.example.app", "root": (bench.authority / "attestation-root.pem").read_text(),
        "times": times}
    program = subprocess.run(
        [sys.executable, "-c", VERIFY], input=json.dumps(case), capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(packages)}, preexec_fn=lambda: os.sched_setaffinity(0, {PROXY_CORE}))
    if program.returncode != 0:
        raise Failed(f"pyattest refused a simulated attestation:\n{program.stderr[-800:]}")
    return float(program.stdout)


def _registration(bench):
    """What a simulated device sends to register: taken by a server that plays the gate's part."""
    taken = {}

    class Gate(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(json.dumps({"nonce": secrets.token_hex(32), "expires": "4000000000000"}).encode())

        def do_POST(self):
            taken.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer(b"{}")

        def answer(self, body):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(bench.certificate, bench.key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gate) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        device = subprocess.run(
            [bench.binaries / "attest", "register", f"wss://127.0.0.1:{server.server_port}/", "--ca", bench.certificate,
             "--authority", bench.authority], env={**os.environ, "XDG_DATA_HOME": str(bench.folder / "devices")},
            capture_output=True, text=True, timeout=30)
        server.shutdown()
    if device.returncode != 0 or "attestation" not in taken:
        raise Failed(f"no attestation was made:\n{device.stderr}")
    return taken
