"""Gives the documented verifiers what a stranger could send them.

Usage: verifiers.py IDENTITY_FILE TOKENS_FILE, the two programs of the documentation. Publishes a key at a free port of
127.0.0.1, and writes one line of JSON: {"pyjwt": version, "cases": how many, "faults": [texts]}.
"""
import base64
import hashlib
import http.server
import importlib.util
import json
import sys
import threading
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

fetches = 0
faults = []
count = 0
key = ec.generate_private_key(ec.SECP256R1())


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def public(of):
    numbers = of.public_key().public_numbers()
    x, y = (encode(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def digest(text):
    return encode(hashlib.sha256(text.encode()).digest())


class Keys(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global fetches
        fetches += 1
        text = json.dumps({"keys": [public(key) | {"kid": "known", "use": "sig", "alg": "ES256"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def signed(header, claims, by=key):
    """A token of any two texts, with a valid signature."""
    texts = (part if isinstance(part, str) else json.dumps(part) for part in (header, claims))
    head = ".".join(encode(text.encode("utf-8", "surrogatepass")) for text in texts)
    r, s = utils.decode_dss_signature(by.sign(head.encode(), ec.ECDSA(SHA256())))
    return head + "." + encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(name, call):
    global count
    count += 1
    try:
        call()
        faults.append(f"{name}: accepted")
    except jwt.PyJWTError:
        pass
    except BaseException as error:
        faults.append(f"{name}: {type(error).__name__}: {str(error)[:80]}")


NESTED = "[" * 3000 + "]" * 3000
STRANGE = [("a text", "1795728841"), ("a word", "soon"), ("a list", []), ("an object", {}), ("null", None),
           ("true", True), ("a fraction", 1.5), ("not a number", float("nan")), ("infinite", float("inf")),
           ("large", 10 ** 400)]
# Only the gate could write such an end, and it is an end in the future.
TIMES = [(claim, name, value) for claim in ("iat", "exp") for name, value in STRANGE
         if (claim, name) != ("exp", "large")]
KNOWN = {"alg": "ES256", "typ": "JWT", "kid": "known"}


def headers(typ):
    base = KNOWN | {"typ": typ}
    for name, value in STRANGE:
        yield f"kid is {name}", base | {"kid": value}
        yield f"alg is {name}", base | {"alg": value}
        yield f"typ is {name}, and kid unknown", base | {"typ": value, "kid": "other"}
        yield f"the header is {name}", json.dumps(value)
    yield "a nested header", '{"alg":"ES256","typ":"%s","kid":"known","x":%s}' % (typ, NESTED)
    yield "a nested header alone", NESTED
    yield "a long number in the header", '{"alg":"ES256","typ":"%s","kid":%s}' % (typ, "9" * 5000)
    yield "a lone surrogate", '{"alg":"ES256","typ":"%s","kid":"\ud800"}' % typ
    yield "no header", ""


def identity(module, url):
    verifier = module.GateIdentity(url)
    now = int(time.time())
    good = {"iss": "sallyport", "aud": "sallyport-upstream", "sub": "device", "jti": "1", "iat": now, "exp": now + 60}
    if verifier.verify(signed(KNOWN, good))["sub"] != "device":
        faults.append("a good assertion was refused")
    before = fetches
    for name, header in headers("JWT"):
        refused(f"assertion, {name}", lambda: verifier.verify(signed(header, good)))
    for claim, name, value in TIMES:
        refused(f"assertion, {claim} is {name}", lambda: verifier.verify(signed(KNOWN, good | {claim: value})))
    for claim in ("iss", "aud"):
        for name, value in STRANGE:
            refused(f"assertion, {claim} is {name}", lambda: verifier.verify(signed(KNOWN, good | {claim: value})))
    nested = json.dumps(good)[:-1] + ',"x":%s}' % NESTED
    for name, token in [("nested claims", signed(KNOWN, nested)), ("a list of claims", signed(KNOWN, "[]")),
                        ("no text", ""), ("dots", "." * 8000), ("a long text", "a." * 100000),
                        ("no base64", "\u00e4.b.c"), ("a NUL", "\0.\0.\0")]:
        refused(f"assertion, {name}", lambda: verifier.verify(token))
    for number in range(50):
        refused("assertion, an unknown key", lambda: verifier.verify(signed(KNOWN | {"kid": f"k{number}"}, good)))
    if fetches - before > 1:
        faults.append(f"unknown keys of assertions caused {fetches - before} fetches")
    verifier.verify(signed(KNOWN, good))


def tokens(module, url):
    verifier = module.TokenVerifier(url, "gate", "api")
    now = int(time.time())
    device = ec.generate_private_key(ec.SECP256R1())
    thumbprint = digest(json.dumps(public(device), sort_keys=True, separators=(",", ":")))
    claims = {"iss": "gate", "aud": "api", "sub": "device", "jti": "1", "iat": now, "exp": now + 300,
              "cnf": {"jkt": thumbprint}}
    header = KNOWN | {"typ": "at+jwt"}
    serial = 0

    def proof(token, change=None, head=None):
        nonlocal serial
        serial += 1
        body = {"jti": f"p{serial}", "htm": "GET", "htu": "https://api/x", "iat": now, "ath": digest(token)}
        return signed(head or {"alg": "ES256", "typ": "dpop+jwt", "jwk": public(device)}, body | (change or {}), device)

    def call(token, shown):
        return verifier.verify("DPoP " + token, shown, "GET", "https://api/x")

    token = signed(header, claims)
    if call(token, proof(token))["sub"] != "device":
        faults.append("a good token was refused")
    before = fetches
    for name, changed in headers("at+jwt"):
        shown = signed(changed, claims)
        refused(f"token, {name}", lambda: call(shown, proof(shown)))
    others = [(claim, name, value) for claim in ("cnf", "aud", "iss") for name, value in STRANGE]
    for claim, name, value in TIMES + others:
        shown = signed(header, claims | {claim: value})
        refused(f"token, {claim} is {name}", lambda: call(shown, proof(shown)))
    for name, value in STRANGE:
        shown = signed(header, claims | {"cnf": {"jkt": value}})
        refused(f"token, jkt is {name}", lambda: call(shown, proof(shown)))
    for claim in ("iat", "jti", "htm", "htu", "ath"):
        for name, value in STRANGE:
            # Every short text is a valid jti.
            if claim != "jti" or not isinstance(value, str):
                refused(f"proof, {claim} is {name}", lambda: call(token, proof(token, {claim: value})))
    for member in ("kty", "crv", "x", "y"):
        for name, value in STRANGE:
            head = {"alg": "ES256", "typ": "dpop+jwt", "jwk": public(device) | {member: value}}
            refused(f"proof, {member} is {name}", lambda: call(token, proof(token, head=head)))
    for name, value in STRANGE:
        head = {"alg": "ES256", "typ": "dpop+jwt", "jwk": value}
        refused(f"proof, jwk is {name}", lambda: call(token, proof(token, head=head)))
    nested = '{"alg":"ES256","typ":"dpop+jwt","jwk":%s}' % NESTED
    refused("proof, a nested header", lambda: call(token, proof(token, head=nested)))
    refused("proof, a long jti", lambda: call(token, proof(token, {"jti": "x" * 5000})))
    refused("proof, a long text", lambda: call(token, "a." * 100000))
    for text in ("", "DPoP", "DPoP ", "Bearer x", "\0", " " * 100000):
        refused(f"token, {text[:10]!r} as Authorization", lambda: verifier.verify(text, "", "GET", "https://api/x"))
    for number in range(50):
        shown = signed(header | {"kid": f"k{number}"}, claims)
        refused("token, an unknown key", lambda: call(shown, proof(shown)))
    if fetches - before > 1:
        faults.append(f"unknown keys of tokens caused {fetches - before} fetches")
    call(token, proof(token))


def main(identity_file, tokens_file):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keys)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/keys"
    identity(load("identity", identity_file), url)
    tokens(load("tokens", tokens_file), url)
    print(json.dumps({"pyjwt": jwt.__version__, "cases": count, "faults": faults}))


main(*sys.argv[1:])
