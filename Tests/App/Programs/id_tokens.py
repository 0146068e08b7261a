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
P521 = ec.generate_private_key(ec.SECP521R1())
ED = ed25519.Ed25519PrivateKey.generate()
HASHES = {"RS256": "sha256", "PS256": "sha256", "ES256": "sha256", "RS384": "sha384", "ES384": "sha384",
          "RS512": "sha512", "EdDSA": "sha512", "PS384": "sha384", "PS512": "sha512", "ES512": "sha512",
          "Ed25519": "sha512"}


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


KEYS = [jwk(RSA, "rsa"), jwk(P256, "p256"), jwk(P384, "p384"), jwk(P521, "p521"), jwk(ED, "ed")]
cases = []


def case(name, code, token, keys=None):
    cases.append({"name": name, "code": code, "token": token, "keys": json.dumps({"keys": KEYS if keys is None else keys})})


# Valid ones.
for algorithm, key, kid in [("RS256", RSA, "rsa"), ("RS384", RSA, "rsa"), ("RS512", RSA, "rsa"), ("PS256", RSA, "rsa"),
                            ("PS384", RSA, "rsa"), ("PS512", RSA, "rsa"), ("ES256", P256, "p256"),
                            ("ES384", P384, "p384"), ("ES512", P521, "p521"), ("EdDSA", ED, "ed")]:
    case(algorithm, None, minted(key=key, algorithm=algorithm, kid=kid))
    wrong = {"rsa": OTHER_RSA, "p256": ec.generate_private_key(ec.SECP256R1()),
             "p384": ec.generate_private_key(ec.SECP384R1()), "p521": ec.generate_private_key(ec.SECP521R1()), "ed": ed25519.Ed25519PrivateKey.generate()}[kid]
    case(algorithm + " by another key", "wrong_signature", minted(key=wrong, algorithm=algorithm, kid=kid))
case("at_hash of EdDSA with SHA-256", None, minted(claims("RS256"), key=ED, algorithm="EdDSA", kid="ed"))
case("no kid, one key", None, minted(kid=None), [jwk(RSA, None)])
case("no kid, one key of the kind", None, minted(kid=None))
case("aud is a list", None, minted(claims(aud=["app"])))
case("azp is the client", None, minted(claims(azp="app")))
case("no at_hash", None, minted(claims(at_hash=None)))
case("expired within the leeway", None, minted(claims(exp=NOW - 299)))
case("issued ahead within the leeway", None, minted(claims(iat=NOW + 299)))
case("a key for encryption beside it", None, minted(kid=None), [jwk(RSA, None), jwk(OTHER_RSA, None, use="enc")])
case("aud lists the client twice", None, minted(claims(aud=["app", "app"])))
for kind in ("jwt", "application/jwt", "ID", "id_token", "id_token+jwt", None):
    case(f"typ {kind}", None, minted(typ=kind))
case("a fraction of a second", None, minted(claims(iat=NOW - 0.5)))

# One thing is wrong.
for kind in ("at+jwt", "AT+JWT", "application/at+jwt", "logout+jwt", "application/logout+jwt", "secevent+jwt", "dpop+jwt"):
    case(f"typ {kind}", "not_an_id_token", minted(typ=kind))
case("another issuer", "wrong_issuer", minted(claims(iss="https://login.example.com/")))
case("no issuer", "wrong_issuer", minted(claims(iss=None)))
case("another audience", "wrong_audience", minted(claims(aud="other")))
case("a further audience", "wrong_audience", minted(claims(aud=["app", "other"], azp="app")))
case("azp missing beside a further audience", "wrong_audience", minted(claims(aud=["app", "app", "other"], azp="app")))
case("another azp", "wrong_authorized_party", minted(claims(azp="other")))
case("expired", "token_expired", minted(claims(exp=NOW - 300)))
case("no exp", "token_expired", minted(claims(exp=None)))
case("issued in the future", "wrong_issue_time", minted(claims(iat=NOW + 301)))
case("issued long ago", "wrong_issue_time", minted(claims(iat=NOW - 901)))
case("valid from now on", None, minted(claims(nbf=NOW + 300)))
case("not yet valid", "token_not_yet_valid", minted(claims(nbf=NOW + 301)))
case("nbf as text without a number", "token_malformed", minted(claims(nbf="later")))
case("a key that is listed twice", None, minted(), [jwk(RSA, "rsa"), jwk(RSA, "rsa")])
case("a key that is listed twice, without kid", None, minted(kid=None), [jwk(RSA, "a"), jwk(RSA, "b")])
case("no iat", "wrong_issue_time", minted(claims(iat=None)))
case("another nonce", "wrong_nonce", minted(claims(nonce="other")))
case("no nonce", "wrong_nonce", minted(claims(nonce=None)))
case("another at_hash", "wrong_access_token_hash", minted(claims(at_hash=b64(bytes(16)))))
case("at_hash of another algorithm", "wrong_access_token_hash",
     minted(claims("RS512"), algorithm="RS256"))
case("no sub", "wrong_subject", minted(claims(sub=None)))
case("a sub with U+0000", "wrong_subject", minted(claims(sub="user 1\0evil")))
case("a sub with a control character", "wrong_subject", minted(claims(sub="user\x9b1")))
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
for kid, name, code in [("ed", None, None), ("ed", "EdDSA", None), ("ed", "Ed25519", None),
                        ("ed", "ES256", "algorithm_refused"), ("rsa", None, "algorithm_refused")]:
    key = jwk(ED if kid == "ed" else RSA, kid, **({"alg": name} if name else {}))
    case(f"Ed25519 (RFC 9864) with the key {kid} for {name}", code, joined(
        {"alg": "Ed25519", "kid": kid}, b64(json.dumps(claims("Ed25519")).encode()), ED.sign), [key])
case("EdDSA with a key for Ed25519", None, minted(key=ED, algorithm="EdDSA", kid="ed"), [jwk(ED, "ed", alg="Ed25519")])
case("Ed25519 by another key", "wrong_signature", joined(
    {"alg": "Ed25519", "kid": "ed"}, b64(json.dumps(claims("Ed25519")).encode()),
    ed25519.Ed25519PrivateKey.generate().sign))
case("Ed448", "algorithm_refused", joined({"alg": "Ed448", "kid": "ed"}, sign=ED.sign))
case("ES512 with a key of P-256", "algorithm_refused", joined(
    {"alg": "ES512", "kid": "p256"}, b64(json.dumps(claims("ES512")).encode())))

# What providers write in place of what the specification says, with one meaning; and its neighbours without.
case("times that are texts", None, minted(claims(exp=str(NOW + 300), iat=str(NOW - 2))))
case("members of no use with other types", None, minted(claims(email=[], name=5, auth_time="long ago", amr="pwd")))
case("empty optional members", None, minted(claims(azp="", at_hash="", email="")))
case("a key with empty members", None, minted(), [jwk(RSA, "rsa", use="", alg="", key_ops=[], x5t="")])
case("key_ops is a text", None, minted(), [jwk(RSA, "rsa", key_ops="verify")])
case("a time that is no number", "token_malformed", minted(claims(exp="soon")))
case("a time that is hexadecimal", "token_malformed", minted(claims(exp=hex(NOW + 300))))
case("a time that is not finite", "token_malformed", minted(claims(exp="inf")))
case("a nonce that is a number", "token_malformed", minted(claims(nonce=5)))
case("an azp that is a list", "token_malformed", minted(claims(azp=["app"])))
case("an empty nonce", "wrong_nonce", minted(claims(nonce="")))
case("an empty audience", "wrong_audience", minted(claims(aud="", azp="app")))
case("an audience that is empty next to the client", "wrong_audience", minted(claims(aud=["app", ""], azp="app")))
case("an audience that is a number next to the client", "token_malformed", minted(claims(aud=["app", 5], azp="app")))
case("a key whose kid is a number", "unknown_key", minted(), [{**jwk(RSA, None), "kid": 5}])
case("not JSON", "token_malformed", b64(b"{") + "." + payload + "." + signature)
case("a token of 64 KiB and more", "token_malformed", minted(claims(note="x" * 70_000)))
case("a token of nearly 64 KiB", None, minted(claims(note="x" * 47_000)))
print(json.dumps({"cases": cases}))
