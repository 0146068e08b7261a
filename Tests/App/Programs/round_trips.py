"""round_trips.py: signs in at a provider of providers.py by each of its grants, with Python's standard library as the
client, and compares what was seen with the provider's table of quirks."""

import base64
import hashlib
import json
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

import sign_in
from loopback import Failure

SCOPES = ["openid", "profile", "email", "offline_access"]
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


class Client:
    """An OAuth client. `authentication` is `none`, `basic` or `post`."""

    def __init__(self, description, authentication):
        self.description, self.authentication = description, authentication
        self.id = description["public_client" if authentication == "none" else "confidential_client"]
        self.secret = description["secret"]
        self.trust = ssl.create_default_context(cafile=description["ca_file"])
        self.metadata = self.fetch(description["issuer"] + "/.well-known/openid-configuration")[1]

    def fetch(self, url, fields=None, headers=None):
        """Returns the status and the JSON of the answer, `{}` if it is empty and its text if it is not JSON."""
        data = urllib.parse.urlencode(fields).encode() if fields is not None else None
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers or {}), context=self.trust) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode(errors="replace")
        try:
            return status, json.loads(text or "{}")
        except ValueError:
            return status, text

    def call(self, endpoint, headers=None, **fields):
        """Calls an endpoint of the discovery document as this client."""
        headers = dict(headers or {})
        if self.authentication == "basic":
            pair = f"{urllib.parse.quote_plus(self.id)}:{urllib.parse.quote_plus(self.secret)}"
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            fields["client_id"] = self.id
        if self.authentication == "post":
            fields["client_secret"] = self.secret
        return self.fetch(self.metadata[endpoint], fields, headers)

    def token(self, grant, headers=None, **fields):
        return self.call("token_endpoint", headers, grant_type=grant, **fields)

    def code(self, scope="openid"):
        """Signs in, and returns the fields of the redirect and those that the token request needs."""
        verifier = secrets.token_urlsafe(48)
        challenge = unpadded(hashlib.sha256(verifier.encode()).digest())
        port = (self.description.get("redirect_ports") or [45671])[0]
        redirect = f"http://127.0.0.1:{port}/callback"
        query = {"response_type": "code", "client_id": self.id, "redirect_uri": redirect, "scope": scope,
                 "state": secrets.token_urlsafe(), "nonce": secrets.token_urlsafe(), "code_challenge": challenge,
                 "code_challenge_method": "S256"}
        end = sign_in.authorize(
            self.metadata["authorization_endpoint"] + "?" + urllib.parse.urlencode(query),
            self.description["username"], self.description["password"], self.description["ca_file"])
        answer = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(end).query))
        if answer.get("state") != query["state"] or "code" not in answer:
            raise Failure(f"the redirect has the fields {sorted(answer)}", "it needs code and the same state")
        return query, answer, {"code": answer["code"], "redirect_uri": redirect, "code_verifier": verifier}


def unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def outcome(answer):
    """One word for an answer: `ok`, or its status with the error code."""
    status, document = answer
    if status == 200:
        return "ok"
    error = document.get("error") if isinstance(document, dict) else "not JSON"
    return f"{status} {error or 'without a body'}"


def observe(description):
    """Signs in by every grant and returns what was seen."""
    seen = {}
    confidential = Client(description, "basic")
    client = Client(description, "none") if description["public_client"] else confidential
    observe_discovery(client, seen)
    tokens = observe_code(client, seen)
    observe_refresh(client, tokens, seen)
    observe_refusals(client, confidential, seen)
    for authentication in ("none", "basic", "post"):
        if authentication != "none" or description["public_client"]:
            observe_authentication(Client(description, authentication), authentication, seen)
    if DEVICE in description["grants"]:
        observe_device(client, seen)
    if "dpop_signing_alg_values_supported" in client.metadata:
        observe_dpop(client, seen)
    return seen


def observe_discovery(client, seen):
    metadata = client.metadata
    seen["discovery_grants"] = sorted(metadata.get("grant_types_supported", []))
    seen["discovery_authentication"] = sorted(metadata.get("token_endpoint_auth_methods_supported", []))
    seen["discovery_endpoints"] = sorted(
        name for name in ("revocation_endpoint", "device_authorization_endpoint", "end_session_endpoint")
        if name in metadata)
    seen["discovery_promises_iss"] = metadata.get("authorization_response_iss_parameter_supported", False)
    seen["discovery_offers_dpop"] = "dpop_signing_alg_values_supported" in metadata
    seen["key_has_kid"] = all("kid" in key for key in client.fetch(metadata["jwks_uri"])[1]["keys"])


def observe_code(client, seen):
    query, answer, fields = client.code()
    seen["redirect_has_iss"] = answer.get("iss") == client.description["issuer"]
    status, tokens = client.token("authorization_code", **fields)
    if status != 200:
        raise Failure(f"the code is refused: {outcome((status, tokens))}", "see the provider's log")
    claims = verify(client, tokens["id_token"], query["nonce"])
    seen["at_hash_digest"] = digest_of(claims, tokens["access_token"])
    seen["id_token_has_kid"] = "kid" in jwt.get_unverified_header(tokens["id_token"])
    seen["id_token_algorithm"] = jwt.get_unverified_header(tokens["id_token"])["alg"]
    seen["id_token_claims"] = sorted(claims)
    seen["token_type"] = tokens["token_type"]
    seen["refresh_without_offline_access"] = "refresh_token" in tokens
    status, _ = client.fetch(client.metadata["userinfo_endpoint"],
                             headers={"Authorization": "Bearer " + tokens["access_token"]})
    seen["userinfo"] = status == 200
    return tokens


def verify(client, token, nonce):
    """Verifies an ID token by PyJWT. Without `kid`, the first key is used."""
    keys = client.fetch(client.metadata["jwks_uri"])[1]["keys"]
    header = jwt.get_unverified_header(token)
    jwk = next(key for key in keys if key.get("kid") == header.get("kid") or "kid" not in header)
    kind = {"RSA": jwt.algorithms.RSAAlgorithm, "EC": jwt.algorithms.ECAlgorithm, "OKP": jwt.algorithms.OKPAlgorithm}
    claims = jwt.decode(token, kind[jwk["kty"]].from_jwk(json.dumps(jwk)), [header["alg"]], audience=client.id,
                        issuer=client.description["issuer"])
    if nonce and claims.get("nonce") != nonce:
        raise Failure("the ID token has another nonce", "see the provider's settings")
    return claims


def digest_of(claims, access_token):
    """The name of the digest that `at_hash` was made with, or None if it belongs to another access token."""
    for name in ("sha256", "sha384", "sha512"):
        digest = hashlib.new(name, access_token.encode()).digest()
        if claims.get("at_hash") == unpadded(digest[:len(digest) // 2]):
            return name
    return None


def observe_refresh(client, tokens, seen):
    first = tokens["refresh_token"]
    status, second = client.token("refresh_token", refresh_token=first)
    seen["refresh"] = outcome((status, second))
    seen["refresh_rotates"] = second.get("refresh_token", first) != first
    seen["refresh_returns_id_token"] = "id_token" in second
    if "id_token" in second:
        seen["refreshed_id_token_claims"] = sorted(verify(client, second["id_token"], None))
    seen["old_refresh_token"] = outcome(client.token("refresh_token", refresh_token=first))
    latest = second.get("refresh_token", first)
    seen["new_refresh_token_after_reuse"] = outcome(client.token("refresh_token", refresh_token=latest))


def observe_refusals(client, confidential, seen):
    seen["unknown_refresh_token"] = outcome(client.token("refresh_token", refresh_token="unknown"))
    _, _, fields = client.code()
    seen["wrong_verifier"] = outcome(client.token("authorization_code", **{**fields, "code_verifier": "w" * 43}))
    _, _, fields = client.code()
    client.token("authorization_code", **fields)
    seen["code_used_twice"] = outcome(client.token("authorization_code", **fields))
    confidential.secret, secret = "wrong", confidential.secret
    _, _, fields = confidential.code()
    seen["wrong_secret"] = outcome(confidential.token("authorization_code", **fields))
    confidential.secret = secret


def observe_authentication(client, name, seen):
    """Whether a code, a refresh token, a password and a revocation are accepted from a client that authenticates so."""
    _, _, fields = client.code(" ".join(SCOPES))
    status, tokens = client.token("authorization_code", **fields)
    seen[f"{name}: code"] = outcome((status, tokens))
    if status == 200 and "refresh_token" in tokens:
        status, again = client.token("refresh_token", refresh_token=tokens["refresh_token"])
        seen[f"{name}: refresh"] = outcome((status, again))
        latest = (again if status == 200 else {}).get("refresh_token", tokens["refresh_token"])
        if "revocation_endpoint" in client.metadata:
            seen[f"{name}: revoke"] = outcome(
                client.call("revocation_endpoint", token=latest, token_type_hint="refresh_token"))
            seen[f"{name}: refresh after revoke"] = outcome(client.token("refresh_token", refresh_token=latest))
    person = {"username": client.description["username"], "scope": "openid"}
    status, tokens = client.token("password", password=client.description["password"], **person)
    seen[f"{name}: password"] = outcome((status, tokens))
    if status == 200:
        seen["password_returns"] = sorted(set(tokens) & {"id_token", "refresh_token"})
        seen["wrong_password"] = outcome(client.token("password", password="wrong", **person))


def observe_device(client, seen):
    _, device = client.call("device_authorization_endpoint", scope="openid")
    seen["device_fields"] = sorted(device)
    fields = {"device_code": device["device_code"]}
    seen["device_pending"] = outcome(client.token(DEVICE, **fields))
    seen["device_polled_at_once"] = outcome(client.token(DEVICE, **fields))
    sign_in.approve_device(device["verification_uri"], device["user_code"], client.description["username"],
                           client.description["password"], client.description["ca_file"])
    end = time.monotonic() + 30
    answer = 400, {"error": "authorization_pending"}
    while time.monotonic() < end and outcome(answer) in ("400 authorization_pending", "400 slow_down"):
        time.sleep(device["interval"] + 0.2)
        answer = client.token(DEVICE, **fields)
    seen["device"] = outcome(answer)
    seen["device_returns"] = sorted(set(answer[1]) & {"id_token", "refresh_token"})
    seen["device_code_used_twice"] = outcome(client.token(DEVICE, **fields))
    seen["unknown_device_code"] = outcome(client.token(DEVICE, device_code="unknown"))


def observe_dpop(client, seen):
    key = ec.generate_private_key(ec.SECP256R1())
    jwk = {"kty": "EC", "crv": "P-256", **{
        name: unpadded(getattr(key.public_key().public_numbers(), name).to_bytes(32, "big")) for name in "xy"}}
    proof = jwt.encode({"jti": secrets.token_urlsafe(), "htm": "POST", "htu": client.metadata["token_endpoint"],
                        "iat": int(time.time())}, key, "ES256", {"typ": "dpop+jwt", "jwk": jwk})
    _, _, fields = client.code()
    status, tokens = client.token("authorization_code", {"DPoP": proof}, **fields)
    seen["dpop"] = outcome((status, tokens))
    if status == 200:
        seen["dpop_token_type"] = tokens["token_type"]
        seen["dpop_binds"] = "jkt" in jwt.decode(
            tokens["access_token"], options={"verify_signature": False}).get("cnf", {})


def compare(description, algorithm):
    """Prints what was seen at the issuer of `algorithm`, and returns 1 if the table of quirks says otherwise."""
    seen = observe({**description, "issuer": description["issuers"][algorithm]})
    print(json.dumps(seen, indent=1))
    table = {**description["quirks"], "id_token_algorithm": algorithm}
    wrong = {name for name in {*seen, *table} if seen.get(name) != table.get(name)}
    for name in sorted(wrong):
        print(f"error: {algorithm}: {name} is {seen.get(name)!r}, and the table says {table.get(name)!r}",
              file=sys.stderr)
    if wrong:
        print("hint: correct the table in provider_quirks.py if the provider is right", file=sys.stderr)
    return 1 if wrong else 0
