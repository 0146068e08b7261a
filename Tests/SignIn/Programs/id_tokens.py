#!/usr/bin/env python3
"""id_tokens.py: prints ID tokens with the keys of their provider, as JSON: for each algorithm one that is valid, and
tokens in which one thing is wrong, each with the code of its refusal.

The client is "app", the provider https://login.example.com, the time 1,800,000,000 seconds after 1970.
"""

import base64
import hashlib
import hmac
import json

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

NOW = 1_800_000_000


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, length=None):
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
SHORT_RSA = rsa.generate_private_key(65537, 1024)
P256 = ec.generate_private_key(ec.SECP256R1())
P384 = ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()
HASHES = {"RS256": "sha256", "PS256": "sha256", "ES256": "sha256", "RS384": "sha384", "ES384": "sha384",
          "RS512": "sha512", "EdDSA": "sha512"}


def jwk(key, kid, **more):
    public = key.public_key()
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = public.public_numbers()
        fields = {"kty": "RSA", "n": number(numbers.n), "e": number(numbers.e)}
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        numbers, length = public.public_numbers(), (key.curve.key_size + 7) // 8
        fields = {"kty": "EC", "crv": f"P-{key.curve.key_size}", "x": number(numbers.x, length),
                  "y": number(numbers.y, length)}
    else:
        raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        fields = {"kty": "OKP", "crv": "Ed25519", "x": b64(raw)}
    return {**fields, **({"kid": kid} if kid else {}), **more}


def claims(algorithm="RS256", **changes):
    digest = hashlib.new(HASHES[algorithm], b"access token").digest()
    result = {"iss": "https://login.example.com", "sub": "user 1", "aud": "app", "exp": NOW + 300, "iat": NOW - 2,
              "nonce": "n-0S6_WzA2Mj", "at_hash": b64(digest[:len(digest) // 2]), "email": "user@example.com"}
    result.update(changes)
    return {name: value for name, value in result.items() if value is not None}


def minted(payload=None, key=RSA, algorithm="RS256", kid="rsa", **header):
    return jwt.encode(payload or claims(algorithm), key, algorithm=algorithm,
                      headers={**({"kid": kid} if kid else {}), **header})


KEYS = [jwk(RSA, "rsa"), jwk(P256, "p256"), jwk(P384, "p384"), jwk(ED, "ed")]
cases = []


def case(name, code, token, keys=None):
    cases.append({"name": name, "code": code, "token": token, "keys": json.dumps({"keys": KEYS if keys is None else keys})})


# Valid ones.
for algorithm, key, kid in [("RS256", RSA, "rsa"), ("RS384", RSA, "rsa"), ("RS512", RSA, "rsa"), ("PS256", RSA, "rsa"),
                            ("ES256", P256, "p256"), ("ES384", P384, "p384"), ("EdDSA", ED, "ed")]:
    case(algorithm, None, minted(key=key, algorithm=algorithm, kid=kid))
    wrong = {"rsa": OTHER_RSA, "p256": ec.generate_private_key(ec.SECP256R1()),
             "p384": ec.generate_private_key(ec.SECP384R1()), "ed": ed25519.Ed25519PrivateKey.generate()}[kid]
    case(algorithm + " by another key", "wrong_signature", minted(key=wrong, algorithm=algorithm, kid=kid))
case("at_hash of EdDSA with SHA-256", None, minted(claims("RS256"), key=ED, algorithm="EdDSA", kid="ed"))
case("no kid, one key", None, minted(kid=None), [jwk(RSA, None)])
case("no kid, one key of the kind", None, minted(kid=None))
case("aud is a list", None, minted(claims(aud=["app"])))
case("azp is the client", None, minted(claims(azp="app")))
case("no at_hash", None, minted(claims(at_hash=None)))
case("expired within the leeway", None, minted(claims(exp=NOW - 59)))
case("issued ahead within the leeway", None, minted(claims(iat=NOW + 59)))
case("a key for encryption beside it", None, minted(kid=None), [jwk(RSA, None), jwk(OTHER_RSA, None, use="enc")])
case("a fraction of a second", None, minted(claims(iat=NOW - 0.5)))

# One thing is wrong.
case("another issuer", "wrong_issuer", minted(claims(iss="https://login.example.com/")))
case("no issuer", "wrong_issuer", minted(claims(iss=None)))
case("another audience", "wrong_audience", minted(claims(aud="other")))
case("a further audience", "wrong_audience", minted(claims(aud=["app", "other"], azp="app")))
case("another azp", "wrong_authorized_party", minted(claims(azp="other")))
case("expired", "token_expired", minted(claims(exp=NOW - 60)))
case("no exp", "token_expired", minted(claims(exp=None)))
case("issued in the future", "wrong_issue_time", minted(claims(iat=NOW + 61)))
case("issued long ago", "wrong_issue_time", minted(claims(iat=NOW - 700)))
case("no iat", "wrong_issue_time", minted(claims(iat=None)))
case("another nonce", "wrong_nonce", minted(claims(nonce="other")))
case("no nonce", "wrong_nonce", minted(claims(nonce=None)))
case("another at_hash", "wrong_access_token_hash", minted(claims(at_hash=b64(bytes(16)))))
case("at_hash of another algorithm", "wrong_access_token_hash",
     minted(claims("RS512"), algorithm="RS256"))
case("no sub", "wrong_subject", minted(claims(sub=None)))
case("an empty sub", "wrong_subject", minted(claims(sub="")))
case("a sub of 256 characters", "wrong_subject", minted(claims(sub="x" * 256)))
case("an unknown kid", "unknown_key", minted(kid="other"))
case("no kid, two keys", "ambiguous_key", minted(kid=None), [jwk(RSA, "a"), jwk(OTHER_RSA, "b")])
case("the kid of a key of another kind", "algorithm_refused", minted(kid="p256"))
case("a key that is for another algorithm", "algorithm_refused", minted(), [jwk(RSA, "rsa", alg="PS256")])
case("a key of 1,024 bits", "algorithm_refused", minted(key=SHORT_RSA, kid="short"), [jwk(SHORT_RSA, "short")])
case("a key for encryption", "unknown_key", minted(), [jwk(RSA, "rsa", use="enc")])
case("a header with crit", "token_malformed", minted(crit=["exp"]))

# What no library would mint.
header, payload, signature = minted().split(".")


def joined(fields, text=None, sign=lambda data: b""):
    data = b64(json.dumps(fields).encode()) + "." + (text or payload)
    return data + "." + b64(sign(data.encode()))


pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
case("HMAC with the public key", "algorithm_refused", joined(
    {"alg": "HS256", "kid": "rsa"}, sign=lambda data: hmac.new(pem, data, hashlib.sha256).digest()))
case("alg none", "algorithm_refused", joined({"alg": "none"}))
case("alg None", "algorithm_refused", joined({"alg": "None", "kid": "rsa"}))
case("two parts", "token_malformed", header + "." + payload)
case("five parts", "token_malformed", ".".join(["e30"] * 5))
case("padding", "token_malformed", header + "." + payload + "." + signature + "=")
case("claims that are a list", "token_malformed", header + "." + b64(b"[]") + "." + signature)
case("a time that is a text", "token_malformed", header + "." + b64(b'{"exp":"soon"}') + "." + signature)
case("not JSON", "token_malformed", b64(b"{") + "." + payload + "." + signature)
case("a token of 64 KiB and more", "token_malformed", minted(claims(note="x" * 70_000)))
case("a token of nearly 64 KiB", None, minted(claims(note="x" * 47_000)))
print(json.dumps({"cases": cases}))
