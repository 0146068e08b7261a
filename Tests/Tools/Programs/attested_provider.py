#!/usr/bin/env python3
"""An authorization server that authenticates clients by attestations, with the verifier of the article
ClientAttestations; and a client attester, for tests that run no gate.

    attested_provider.py attest FOLDER CLIENT [--lifetime SECONDS] [--key FILE] [--other-key]
    attested_provider.py serve ARTICLE JWKS_URL ATTESTER [--methods NAME ...] [--challenge endpoint|answer] [--nonce]
                         [--fresh COUNT]

`attest` makes its keys in FOLDER, prints an attestation for CLIENT and counts its calls in FOLDER/calls. `serve` listens
on loopback, prints its issuer, and answers GET /control with what it has seen. It needs python3-jwt and
python3-cryptography."""
import argparse
import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import secrets
import time
import types
import urllib.parse

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


def key_at(path):
    """The key in the file, which is made if it is not there."""
    if not path.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text)
    return serialization.load_pem_private_key(path.read_bytes(), None)


def base64url(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def public_jwk(key, **more):
    # That of PyJWT 2.6 leaves out leading zeros.
    point = key.public_key().public_numbers()
    x, y = (base64url(number.to_bytes(32, "big")) for number in (point.x, point.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y, **more}


def attest(options):
    folder = pathlib.Path(options.folder)
    attester = key_at(folder / "attester.pem")
    (folder / "jwks.json").write_text(json.dumps({"keys": [public_jwk(attester, kid="a1")]}))
    with open(folder / "calls", "a") as calls:
        calls.write("call\n")
    key = key_at(pathlib.Path(options.key) if options.key else folder / "client.pem")
    if options.other_key:
        key = ec.generate_private_key(ec.SECP256R1())
    now = int(time.time())
    claims = {"iss": "attester", "sub": options.client, "iat": now, "exp": now + options.lifetime,
              "cnf": {"jwk": public_jwk(key)}}
    header = {"typ": "oauth-client-attestation+jwt", "kid": "a1"}
    print(jwt.encode(claims, attester, algorithm="ES256", headers=header))


class Provider:
    def __init__(self, options, issuer):
        article = pathlib.Path(options.article).read_text()
        verifier = types.ModuleType("verifier")
        exec(re.search(r"^```python\n(.*?)^```", article, re.S | re.M).group(1), verifier.__dict__)
        self.verifier = verifier.ClientVerifier(options.jwks_url, options.attester, issuer)
        self.options = options
        self.issuer = issuer
        self.challenge = secrets.token_urlsafe(16) if options.challenge or options.nonce else None
        self.fresh = options.fresh
        self.seen = {"paths": {}, "accepted": [], "refused": []}
        # The key of each token; empty for one that is bound to none.
        self.tokens = {}

    def metadata(self):
        document = {
            "issuer": self.issuer, "token_endpoint": self.issuer + "/token", "jwks_uri": self.issuer + "/keys",
            "pushed_authorization_request_endpoint": self.issuer + "/par",
            "authorization_endpoint": self.issuer + "/authorize", "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": self.options.methods,
            "dpop_signing_alg_values_supported": ["ES256"],
        }
        if self.options.challenge == "endpoint":
            document["challenge_endpoint"] = self.issuer + "/challenge"
        return document

    def authenticate(self, headers, path):
        """The client and its key, or a pair of a refusal and its fields."""
        attestation = headers.get_all("OAuth-Client-Attestation", [])
        proof = headers.get_all("OAuth-Client-Attestation-PoP", [])
        dpop = headers.get_all("DPoP", [])
        combined = not proof
        if len(attestation) != 1 or len(dpop if combined else proof) != 1:
            return None, ("invalid_client", {})
        if self.fresh > 0:
            self.fresh -= 1
            return None, ("use_fresh_attestation", {})
        try:
            request = ("POST", self.issuer + path) if combined else None
            shown = (dpop if combined else proof)[0]
            client, key = self.verifier.client(attestation[0], shown, self.challenge, request)
        except jwt.PyJWTError as error:
            name = str(error).split(":")[0]
            if name == "use_attestation_challenge":
                if combined:
                    return None, ("use_dpop_nonce", {"DPoP-Nonce": self.challenge or ""})
                return None, (name, {"OAuth-Client-Attestation-Challenge": self.challenge or ""})
            self.seen["refused"].append(str(error))
            return None, (name if name == "use_fresh_attestation" else "invalid_client_attestation", {})
        self.seen["accepted"].append({"client": client, "combined": combined, "path": path})
        return key if combined else {}, None


    def service(self, headers, path):
        """The answer of a service that takes the tokens of this server."""
        kind, _, token = headers.get("Authorization", "").partition(" ")
        key = self.tokens.get(token)
        if key is None or kind != ("DPoP" if key else "Bearer"):
            return 401, {"error": "invalid_token"}
        try:
            if key:
                self.verifier.proved(headers.get("DPoP", ""), key, None, ("GET", self.issuer + path))
                claims = jwt.decode(headers["DPoP"], options={"verify_signature": False})
                if claims.get("ath") != base64url(hashlib.sha256(token.encode()).digest()):
                    raise jwt.InvalidTokenError("the proof is for another token")
        except (jwt.PyJWTError, LookupError) as error:
            return 401, {"error": "invalid_dpop_proof", "error_description": str(error)}
        return 200, {"accounts": ["checking", "savings"]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    def answer(self, status, document, fields=None):
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)),
                            **(fields or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        provider = self.server.provider
        match self.path:
            case "/.well-known/openid-configuration":
                self.answer(200, provider.metadata())
            case "/keys":
                self.answer(200, {"keys": []})
            case "/control":
                self.answer(200, provider.seen)
            case "/accounts":
                self.answer(*provider.service(self.headers, self.path))
            case _:
                self.answer(404, {})

    def do_POST(self):
        provider = self.server.provider
        body = self.rfile.read(min(int(self.headers.get("Content-Length", "0")), 65536)).decode()
        form = dict(urllib.parse.parse_qsl(body))
        provider.seen["paths"][self.path] = provider.seen["paths"].get(self.path, 0) + 1
        if self.path == "/challenge":
            fields = {"DPoP-Nonce": provider.challenge} if provider.options.nonce else {}
            return self.answer(200, {"attestation_challenge": provider.challenge}, fields)
        key, refusal = provider.authenticate(self.headers, self.path)
        if refusal:
            return self.answer(400, {"error": refusal[0]}, refusal[1])
        if self.path == "/par":
            return self.answer(201, {"request_uri": "urn:example:1", "expires_in": 60})
        token = f"token-{form.get('grant_type')}-{len(provider.tokens) + 1}"
        provider.tokens[token] = key
        kind = "DPoP" if key else "Bearer"
        return self.answer(200, {"access_token": token, "expires_in": 300, "token_type": kind})

    def log_message(self, *arguments):
        pass


def serve(options):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.provider = Provider(options, f"http://127.0.0.1:{server.server_port}")
    print("issuer " + server.provider.issuer, flush=True)
    server.serve_forever()


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("attest")
    command.add_argument("folder")
    command.add_argument("client")
    command.add_argument("--lifetime", type=int, default=600)
    command.add_argument("--key")
    command.add_argument("--other-key", action="store_true")
    command.set_defaults(run=attest)
    command = commands.add_parser("serve")
    command.add_argument("article")
    command.add_argument("jwks_url")
    command.add_argument("attester")
    command.add_argument("--methods", nargs="+", default=["attest_jwt_client_auth"])
    command.add_argument("--challenge", choices=["endpoint", "answer"])
    command.add_argument("--nonce", action="store_true")
    command.add_argument("--fresh", type=int, default=0)
    command.set_defaults(run=serve)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
