"""Registers security keys with a running backend and signs in by them, as clients that others wrote do.

usage: security_keys.py URL GATE_KEY_FILE RP_ID ORIGIN

python-fido2's client speaks CTAP 2 to an authenticator in this file, one for each algorithm; soft-webauthn is client and
authenticator in one. Prints a line for each that came through, and ends with 1 at the first thing that is not as it should
be.
"""

import base64
import hashlib
import json
import os
import struct
import sys
import time
import urllib.error
import urllib.request
import uuid

import fido2.features
import jwt
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from fido2 import cbor
from fido2.client import ClientError, Fido2Client
from fido2.cose import ES256, RS256, EdDSA
from fido2.ctap import CtapDevice
from fido2.hid import CAPABILITY, CTAPHID
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestationObject, AttestedCredentialData, AuthenticatorData, PublicKeyCredentialCreationOptions,
    PublicKeyCredentialRequestOptions,
)
from soft_webauthn import SoftWebauthnDevice

# Options come as the JSON of Web Authentication Level 3, and python-fido2 is to read them as that.
fido2.features.webauthn_json_mapping.enabled = True


class Backend:
    """One app instance: calls by REST, each with an identity signed as the gate does."""

    def __init__(self, url, key_file):
        self.url = url
        self.key = open(key_file).read()
        self.subject = uuid.uuid4().hex * 2

    def call(self, method, path, body=None, token=None):
        now = int(time.time())
        claims = {
            "iss": "https://gate.test", "aud": "mfa", "sub": self.subject, "jti": str(uuid.uuid4()), "iat": now,
            "exp": now + 60, "method": "app-attest", "env": "production", "app": "T.app", "sid": "s", "counter": 1,
            "client_ip": "192.0.2.1",
        }
        identity = jwt.encode(claims, self.key, algorithm="ES256", headers={"kid": "gate-1"})
        headers = {"X-Attest-Assertion": identity, "Content-Type": "application/json"}
        if token:
            headers["Authorization"] = "Bearer " + token
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def must(self, *arguments, **named):
        status, answer = self.call(*arguments, **named)
        if status != 200:
            sys.exit(f"{arguments}: {status} {answer}")
        return answer


class Phone:
    """The first factor: a device with a key."""

    def __init__(self, backend, name):
        self.backend, self.name = backend, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        point = self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        backend.must("POST", "/mfa/enroll", {
            "username": name, "deviceId": name, "method": "secureEnclave",
            "publicKey": base64.b64encode(point).decode(),
        })

    def sign_in(self):
        asked = self.backend.must("POST", "/auth/initiate", {"username": self.name, "deviceId": self.name})
        signature = self.key.sign(base64.b64decode(asked["challenge"]), ec.ECDSA(hashes.SHA256()))
        return self.backend.must("POST", "/auth/verify-signature", {
            "username": self.name, "deviceId": self.name, "challengeId": asked["challengeId"],
            "signature": base64.b64encode(signature).decode(),
        })


class Authenticator(CtapDevice):
    """A CTAP 2 authenticator with one credential, of one algorithm (CTAP 2.1, sections 6.1, 6.2 and 6.4)."""

    MAKE_CREDENTIAL, GET_ASSERTION, GET_INFO = 1, 2, 4

    def __init__(self, algorithm):
        self.algorithm = algorithm
        self.count = 0
        self.credential_id = os.urandom(48)
        if algorithm == ES256.ALGORITHM:
            self.key = ec.generate_private_key(ec.SECP256R1())
            self.cose = ES256.from_cryptography_key(self.key.public_key())
        elif algorithm == EdDSA.ALGORITHM:
            self.key = ed25519.Ed25519PrivateKey.generate()
            self.cose = EdDSA.from_cryptography_key(self.key.public_key())
        else:
            self.key = rsa.generate_private_key(65537, 2048)
            self.cose = RS256.from_cryptography_key(self.key.public_key())

    @property
    def capabilities(self):
        return CAPABILITY.CBOR

    @classmethod
    def list_devices(cls):
        return iter(())

    def sign(self, message):
        if self.algorithm == ES256.ALGORITHM:
            return self.key.sign(message, ec.ECDSA(hashes.SHA256()))
        if self.algorithm == EdDSA.ALGORITHM:
            return self.key.sign(message)
        return self.key.sign(message, padding.PKCS1v15(), hashes.SHA256())

    def call(self, cmd, data=b"", event=None, on_keepalive=None):
        assert cmd == CTAPHID.CBOR
        request = cbor.decode(data[1:]) if len(data) > 1 else {}
        answer = {
            self.GET_INFO: self.info, self.MAKE_CREDENTIAL: self.make, self.GET_ASSERTION: self.get,
        }[data[0]](request)
        return bytes([answer]) if isinstance(answer, int) else b"\0" + cbor.encode(answer)

    def info(self, request):
        return {1: ["FIDO_2_0"], 3: b"\0" * 16, 4: {"rk": False, "up": True, "uv": True}, 6: [1]}

    def data(self, rp_id, flags, credential=b""):
        hashed = hashlib.sha256(rp_id.encode()).digest()
        return hashed + struct.pack(">BI", flags, self.count) + credential

    def make(self, request):
        if not any(asked["alg"] == self.algorithm for asked in request[4]):
            return 0x26  # CTAP2_ERR_UNSUPPORTED_ALGORITHM
        if any(known["id"] == self.credential_id for known in request.get(5, [])):
            return 0x19  # CTAP2_ERR_CREDENTIAL_EXCLUDED
        credential = AttestedCredentialData.create(b"\0" * 16, self.credential_id, self.cose)
        data = self.data(request[2]["id"], 0x45, bytes(credential))
        statement = {"alg": self.algorithm, "sig": self.sign(data + request[1])}
        return {1: "packed", 2: data, 3: statement}

    def get(self, request):
        if all(known["id"] != self.credential_id for known in request[3]):
            return 0x2E  # CTAP2_ERR_NO_CREDENTIALS
        touched = request.get(5, {}).get("up", True)
        if touched:
            self.count += 1
        data = self.data(request[1], 0x05 if touched else 0x00)
        return {
            1: {"id": self.credential_id, "type": "public-key"}, 2: data, 3: self.sign(data + request[2]),
        }


class CTAPClient:
    """python-fido2's client, with an authenticator."""

    def __init__(self, algorithm, origin):
        self.device = Authenticator(algorithm)
        self.client = Fido2Client(self.device, origin)

    def create(self, options):
        made = self.client.make_credential(PublicKeyCredentialCreationOptions.from_dict(options))
        identity = websafe_encode(AttestationObject(made.attestation_object).auth_data.credential_data.credential_id)
        return {
            "id": identity, "rawId": identity, "type": "public-key", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": websafe_encode(made.client_data),
                "attestationObject": websafe_encode(made.attestation_object), "transports": ["usb"],
            },
        }

    def get(self, options):
        made = self.client.get_assertion(PublicKeyCredentialRequestOptions.from_dict(options)).get_response(0)
        identity = websafe_encode(self.device.credential_id)
        return {
            "id": identity, "rawId": identity, "type": "public-key", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": websafe_encode(made.client_data),
                "authenticatorData": websafe_encode(made.authenticator_data),
                "signature": websafe_encode(made.signature),
            },
        }


class SoftClient:
    """soft-webauthn, whose values are bytes."""

    def __init__(self, origin):
        self.device, self.origin = SoftWebauthnDevice(), origin

    def create(self, options):
        options = dict(options, challenge=websafe_decode(options["challenge"]))
        options["user"] = dict(options["user"], id=websafe_decode(options["user"]["id"]))
        return self.plain(self.device.create({"publicKey": options}, self.origin))

    def get(self, options):
        options = dict(options, challenge=websafe_decode(options["challenge"]))
        return self.plain(self.device.get({"publicKey": options}, self.origin))

    @staticmethod
    def plain(made):
        identity = websafe_encode(made["rawId"])
        return {
            "id": identity, "rawId": identity, "type": made["type"], "clientExtensionResults": {},
            "response": {name: websafe_encode(value) for name, value in made["response"].items()},
        }


def expect(condition, text):
    if not condition:
        sys.exit(text)


def walk(backend, phone, client, name):
    """A key's life: registered, asked for at a sign-in, used once and not twice, removed."""
    token = phone.sign_in()["token"]
    options = backend.must("POST", "/auth/webauthn/registration/options", {}, token)
    entry = backend.must("POST", "/auth/webauthn/registration", {**client.create(options), "name": name}, token)
    expect(entry["name"] == name, f"{name}: {entry}")
    for _ in range(2):
        begun = phone.sign_in()
        expect(begun["scope"] == "mfa", f"{name}: {begun}")
        pending = begun["token"]
        expect(backend.call("GET", f"/devices/{phone.name}", None, pending)[0] == 403, f"{name}: no second factor asked")
        asked = backend.must("POST", "/auth/webauthn/authentication/options", {}, pending)
        response = client.get(asked)
        given = backend.must("POST", "/auth/webauthn/authentication", response, pending)
        backend.must("GET", f"/devices/{phone.name}", None, given["token"])
        again, refusal = backend.call("POST", "/auth/webauthn/authentication", response, pending)
        expect(again == 401 and refusal["code"] == "authentication_failed", f"{name}: taken twice: {refusal}")
    backend.must("DELETE", "/auth/webauthn/keys/" + entry["id"], None, given["token"])
    expect(phone.sign_in()["scope"] == "full", f"{name}: still asked for")
    print(name, entry["algorithm"])


def main():
    url, key_file, rp_id, origin = sys.argv[1:]
    for name, client in [
        ("python-fido2 ES256", CTAPClient(ES256.ALGORITHM, origin)),
        ("python-fido2 EdDSA", CTAPClient(EdDSA.ALGORITHM, origin)),
        ("python-fido2 RS256", CTAPClient(RS256.ALGORITHM, origin)),
        ("soft-webauthn ES256", SoftClient(origin)),
    ]:
        backend = Backend(url, key_file)
        walk(backend, Phone(backend, uuid.uuid4().hex), client, name)

    # The client itself does not offer a key that is registered, since the options exclude it.
    backend = Backend(url, key_file)
    phone, client = Phone(backend, uuid.uuid4().hex), CTAPClient(ES256.ALGORITHM, origin)
    token = phone.sign_in()["token"]
    for attempt in range(2):
        options = backend.must("POST", "/auth/webauthn/registration/options", {}, token)
        expect(options["rp"]["id"] == rp_id, f"{options}")
        try:
            backend.must("POST", "/auth/webauthn/registration", client.create(options), token)
            expect(attempt == 0, "a key was offered twice")
        except ClientError as error:
            expect(attempt == 1 and error.code == ClientError.ERR.DEVICE_INELIGIBLE, f"{error}")
    print("excluded")

    # A page elsewhere gets nowhere with a key of its own making.
    elsewhere = SoftClient("https://elsewhere.example")
    options = backend.must("POST", "/auth/webauthn/registration/options", {}, token)
    status, refusal = backend.call("POST", "/auth/webauthn/registration", elsewhere.create(options), token)
    expect(status == 400 and "origin" in refusal["error"], f"{refusal}")
    print("refused elsewhere")


main()
