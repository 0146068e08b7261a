#!/usr/bin/env python3
"""signed_objects.py: verifies signed objects of a client with PyJWT and prints their headers and claims, as JSON.

Reads a list from standard input: {"token": ..., "key": PEM of the private key} for a client assertion, {"token": ...}
for a DPoP proof, whose key is in its header. The times are compared by the caller.
"""

import base64
import hashlib
import json
import sys

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

OPTIONS = {"verify_aud": False, "verify_exp": False, "verify_iat": False}


def judged(item):
    header = jwt.get_unverified_header(item["token"])
    if item.get("key"):
        key = load_pem_private_key(item["key"].encode(), None).public_key()
        algorithms = ["ES256", "RS256", "PS256"]
        thumbprint = None
    else:
        key = jwt.algorithms.ECAlgorithm.from_jwk(json.dumps(header["jwk"]))
        algorithms = ["ES256"]
        # RFC 7638: the required members in lexicographic order, without spaces.
        members = {name: header["jwk"][name] for name in ("crv", "kty", "x", "y")}
        text = json.dumps(members, sort_keys=True, separators=(",", ":"))
        thumbprint = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        assert set(header["jwk"]) == {"crv", "kty", "x", "y"}, "the public key has further members"
    claims = jwt.decode(item["token"], key, algorithms=algorithms, options=OPTIONS)
    return {"algorithm": header["alg"], "type": header.get("typ"), "keyID": header.get("kid"), "claims": claims,
            "thumbprint": thumbprint}


print(json.dumps([judged(item) for item in json.load(sys.stdin)]))
