#!/usr/bin/python3
"""hostile_provider.py [OPTION]: an OpenID provider that behaves well except for one fault.

  --fault NAME          the fault from the start; `POST /control {"fault": NAME}` switches it, and null clears it
  --certificate KIND    good (default; signed by the authority in `ca_file`), self_signed, expired, other_host
  --plain               http, for clients that must refuse it or allow it on loopback
  --client-certificates asks each client for a certificate of the authority, and admits clients without one

Prints one line of JSON when ready, and runs until standard input closes. No browser is needed: /authorize redirects at
once, as if the user had signed in. `POST /control` accepts the settings of `Settings`, and `rotate_keys`, `reset` and
`issuer`.
`GET /control` returns the counters. The faults are in `hostile_faults.py`.
"""

import argparse
import hashlib
import http.server
import json
import socketserver
import ssl
import sys
import threading
import time
import urllib.parse

import hostile_faults
from hostile_state import CERTIFICATE, Provider, Refusal, unpadded
from loopback import Authority, Run, main_of

LIMIT = 1 << 20  # Bytes of a request body.


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """One thread for each connection. TLS handshakes run there too, so that a slow client delays no other."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self, tls):
        super().__init__(("127.0.0.1", 0), Handler)
        self.tls, self.provider = tls, None

    def finish_request(self, request, address):
        request.settimeout(60)
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, address)
        if self.tls:
            request.close()

    def handle_error(self, request, address):
        # A client that hangs up, or refuses the certificate, is what the tests want.
        if not isinstance(sys.exc_info()[1], (OSError, ssl.SSLError)):
            super().handle_error(request, address)


class HangUp(Exception):
    """Ends the connection without an answer."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.handle_request({})

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > LIMIT:
            self.close_connection = True
            return
        self.handle_request(self.rfile.read(length))

    def handle_request(self, body):
        address = urllib.parse.urlsplit(self.path)
        path = address.path
        del self.headers[CERTIFICATE]
        certificate = isinstance(self.connection, ssl.SSLSocket) and self.connection.getpeercert(binary_form=True)
        if certificate:
            self.headers[CERTIFICATE] = unpadded(hashlib.sha256(certificate).digest())
        try:
            if path == "/control":
                self.answer(200, self.server.provider.control(json.loads(body) if body else None))
                return
            self.server.provider.count("paths", path)
            time.sleep(self.server.provider.settings.delay_ms / 1000)
            end = time.monotonic() + 60
            while path == "/token" and self.server.provider.settings.hold_tokens and time.monotonic() < end:
                time.sleep(0.005)
            query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True))
            fields = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)) if body else {}
            self.route(path, query, fields)
        except Refusal as refusal:
            self.answer(refusal.status, refusal.document, refusal.headers)
        except HangUp:
            self.close_connection = True

    def route(self, path, query, fields):
        provider = self.server.provider
        if path == "/elsewhere" or (
                path == "/.well-known/openid-configuration" and provider.settings.fault != "discovery_elsewhere"):
            self.answer(200, hostile_faults.discovery(provider))
        elif path == "/jwks":
            self.answer(200, hostile_faults.key_set(provider))
        elif path == "/authorize":
            self.redirect(hostile_faults.redirect(provider, query))
        elif path == "/token":
            self.token(fields)
        elif path == "/device_authorization":
            self.answer(200, provider.start_device(fields, self.headers))
        elif path == "/par":
            document = provider.push(fields, self.headers)
            self.answer(201, hostile_faults.pushed(provider, document))
        elif path == "/userinfo":
            self.userinfo()
        elif path == "/revoke":
            provider.revoke(fields, self.headers)
            self.answer(200, {})
        elif path == "/end_session":
            self.answer(200, {"ended": True})
        else:
            raise Refusal(404, "not_found")

    def token(self, fields):
        """Applies the faults of the transport: those that keep the answer from the client, or garble it."""
        provider, fault = self.server.provider, self.server.provider.settings.fault
        provider.count("grants", fields.get("grant_type", ""))
        if fields.get("refresh_token"):
            provider.count("refresh_tokens", fields["refresh_token"])
        if fault in hostile_faults.ANSWERS:
            self.answer(*hostile_faults.ANSWERS[fault], hostile_faults.answer_headers(provider))
            return
        if fault == "token_hang":
            provider.wait_for_end(self.connection)
            raise HangUp
        tokens = provider.token(fields, self.headers, provider.issuer + "/token")
        if fault == "token_answer_lost":
            raise HangUp
        if fault == "token_not_json":
            self.send(200, b"<html>Welcome</html>", "application/json")
        else:
            self.answer(200, hostile_faults.token_answer(provider, tokens))

    def userinfo(self):
        """The claims: signed, or those of another user, if the fault says so."""
        provider, fault = self.server.provider, self.server.provider.settings.fault
        claims = hostile_faults.user_claims(provider, provider.userinfo(self.headers))
        if fault in hostile_faults.SIGNED_CLAIMS:
            self.send(200, hostile_faults.signed_claims(provider, claims).encode(), "application/jwt; charset=utf-8")
        else:
            self.answer(200, claims)

    def redirect(self, location):
        self.send(302, b"", "text/plain", {"Location": location})

    def answer(self, status, document, headers=None):
        self.send(status, json.dumps(document).encode(), "application/json", headers)

    def send(self, status, data, kind, headers=None):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(data), "Cache-Control": "no-store",
                            **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)


def program():
    parser = argparse.ArgumentParser(description="an OpenID provider with one fault")
    parser.add_argument("--fault", choices=hostile_faults.NAMES)
    parser.add_argument("--certificate", choices=["good", "self_signed", "expired", "other_host"], default="good")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--client-certificates", action="store_true")
    options = parser.parse_args()
    with Run("hostile") as run:
        authority, tls = Authority(run.folder), None
        if not options.plain:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*authority.issue(options.certificate))
        if options.client_certificates:
            tls.verify_mode = ssl.CERT_OPTIONAL
            tls.load_verify_locations(authority.file)
        server = Server(tls)
        scheme, host = ("http", "127.0.0.1") if options.plain else ("https", "localhost")
        server.provider = Provider(f"{scheme}://{host}:{server.server_port}", run.folder)
        server.provider.settings.fault = options.fault
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        certificate = authority.issue_client("certificate-client")
        server.provider.certificate = certificate[0]
        run.serve({**server.provider.description(), "ca_file": str(authority.file), "faults": hostile_faults.NAMES,
                   "certificate_client": "certificate-client", "cert_file": str(certificate[0]),
                   "cert_key_file": str(certificate[1])})
    return 0


if __name__ == "__main__":
    main_of(program)
