"""Gives each of Schemathesis' requests an identity of its own, signed as the gate does.

The environment names the key (MFA_GATE_KEY, a PEM file), the second that it is (MFA_NOW) and the token of a session
(MFA_TOKEN), which goes with every other request.
"""

import itertools
import os
import uuid

import jwt
import schemathesis

KEY = open(os.environ["MFA_GATE_KEY"]).read()
NOW = int(os.environ["MFA_NOW"])
TURN = itertools.count()


@schemathesis.auth(refresh_interval=None)
class GateIdentity:
    def get(self, case, context):
        claims = {
            "iss": "https://gate.test", "aud": "mfa", "sub": os.environ["MFA_SUBJECT"], "jti": str(uuid.uuid4()),
            "iat": NOW, "exp": NOW + 60, "method": "app-attest", "env": "production", "app": "T.app", "sid": "s",
            "client_ip": "192.0.2.1",
        }
        return jwt.encode(claims, KEY, algorithm="ES256", headers={"kid": "gate-1"})

    def set(self, case, data, context):
        case.headers = case.headers or {}
        case.headers["X-Attest-Assertion"] = data
        if next(TURN) % 2 == 0:
            case.headers["Authorization"] = "Bearer " + os.environ["MFA_TOKEN"]
        else:
            case.headers.pop("Authorization", None)
