#!/usr/bin/python3
"""hostile_self_test.py: checks that hostile_provider.py behaves well without a fault, and shows each fault that it has."""

import concurrent.futures
import json
import pathlib
import secrets
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import jwt
from cryptography.hazmat.primitives import serialization

import round_trips
from loopback import Failure, main_of
from round_trips import DEVICE, Client, outcome

PROGRAM = pathlib.Path(__file__).with_name("hostile_provider.py")
# The PyJWT error, or the answer, by which each fault shows.
WRONG_TOKENS = {
    "alg_none": "InvalidAlgorithmError", "hs256_public_key": "InvalidAlgorithmError",
    "other_key_type": "InvalidAlgorithmError", "unknown_kid": "StopIteration", "no_kid_two_keys": "no kid",
    "wrong_iss": "InvalidIssuerError", "wrong_aud": "InvalidAudienceError", "wrong_azp": "azp",
    "expired": "ExpiredSignatureError", "future_iat": "ImmatureSignatureError", "wrong_nonce": "Failure",
    "wrong_at_hash": "at_hash", "bad_signature": "InvalidSignatureError"}
ANSWERS = {
    "token_500": "500 server_error", "token_503_retry_after": "503 temporarily_unavailable",
    "token_429_retry_after": "429 too_many_requests", "invalid_grant": "400 invalid_grant",
    "invalid_client": "401 invalid_client"}


class Hostile:
    """A running hostile_provider.py."""

    def __init__(self, *options):
        self.child = subprocess.Popen([sys.executable, PROGRAM, *options], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.description = {**json.loads(self.child.stdout.readline()), "grants": [], "redirect_ports": None}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.child.stdin.close()
        check(self.child.wait(10) == 0, "exits 0 when its standard input closes")
        check(not pathlib.Path(self.description["ca_file"]).parent.exists(), "removes its folder")

    def client(self, authentication="none"):
        return Client(self.description, authentication)

    def control(self, **change):
        trust = ssl.create_default_context(cafile=self.description["ca_file"])
        data = json.dumps(change).encode() if change else None
        with urllib.request.urlopen(self.description["control"], data, context=trust) as answer:
            return json.load(answer)


def check(condition, text):
    if not condition:
        raise Failure(f"not so: {text}", "see hostile_provider.py")


def equal(found, expected, text):
    check(found == expected, f"{text} is {expected!r}; found {found!r}")


def redeem(client):
    query, _, fields = client.code()
    return query, client.token("authorization_code", **fields)


def fault_of_token(client):
    """The name of what is wrong with the ID token, or None."""
    query, (_, tokens) = redeem(client)
    if "kid" not in jwt.get_unverified_header(tokens["id_token"]):
        keys = client.fetch(client.metadata["jwks_uri"])[1]["keys"]
        return "no kid" if len([key for key in keys if key["kty"] == "RSA"]) == 2 else "one key"
    try:
        claims = verify_strictly(client, tokens["id_token"], query["nonce"])
    except (jwt.PyJWTError, StopIteration, Failure) as error:
        return type(error).__name__
    if claims.get("azp", client.id) != client.id:
        return "azp"
    return None if round_trips.digest_of(claims, tokens["access_token"]) else "at_hash"


def verify_strictly(client, token, nonce):
    """As a client that expects RS256."""
    header = jwt.get_unverified_header(token)
    keys = client.fetch(client.metadata["jwks_uri"])[1]["keys"]
    key = next(key for key in keys if key["kid"] == header["kid"])
    if header["alg"] != "RS256" or key["alg"] != "RS256":
        raise jwt.InvalidAlgorithmError("not RS256")
    return round_trips.verify(client, token, nonce)


def check_good(hostile):
    client = hostile.client()
    equal(fault_of_token(client), None, "the ID token's fault")
    seen = round_trips.observe(hostile.description)
    expected = {"redirect_has_iss": True, "refresh": "ok", "refresh_rotates": True, "userinfo": True,
                "old_refresh_token": "400 invalid_grant", "new_refresh_token_after_reuse": "400 invalid_grant",
                "wrong_verifier": "400 invalid_grant", "code_used_twice": "400 invalid_grant",
                "wrong_secret": "401 invalid_client", "none: code": "ok", "basic: code": "ok", "none: revoke": "ok",
                "none: refresh after revoke": "400 invalid_grant", "none: password": "ok", "dpop": "ok",
                "wrong_password": "400 invalid_grant", "dpop_token_type": "DPoP", "dpop_binds": True}
    for name, value in expected.items():
        equal(seen.get(name), value, name)
    post = hostile.client("post")
    post.id = "post-client"
    equal(outcome(redeem(post)[1]), "ok", "client_secret_post")
    hostile.control(algorithm="ES256")
    equal(jwt.get_unverified_header(redeem(client)[1][1]["id_token"])["alg"], "ES256", "the algorithm")
    hostile.control(reset=True)


def check_key_client(hostile):
    client = hostile.client()
    client.id = "key-client"
    key = serialization.load_pem_private_key(pathlib.Path(hostile.description["key_file"]).read_bytes(), None)
    now = int(time.time())
    claims = {"iss": client.id, "sub": client.id, "aud": hostile.description["issuer"], "iat": now, "exp": now + 60,
              "jti": secrets.token_urlsafe()}
    fields = {"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
              "client_assertion": jwt.encode(claims, key, "ES256")}
    code = client.code()[2]
    equal(outcome(client.token("authorization_code", **code, **fields)), "ok", "private_key_jwt")
    equal(outcome(client.token("authorization_code", **client.code()[2], **fields)), "401 invalid_client",
          "an assertion that is used twice")


def check_grants(hostile):
    client = hostile.client()
    hostile.control(pending=1, device_outcome="slow_down")
    device = client.call("device_authorization_endpoint", scope="openid")[1]["device_code"]
    polls = [outcome(client.token(DEVICE, device_code=device)) for _ in range(4)]
    equal(polls, ["400 authorization_pending", "400 slow_down", "ok", "400 invalid_grant"], "the device grant")
    for result in ("expired_token", "access_denied"):
        hostile.control(pending=0, device_outcome=result)
        device = client.call("device_authorization_endpoint")[1]["device_code"]
        equal(outcome(client.token(DEVICE, device_code=device)), "400 " + result, "the device grant")
    hostile.control(mfa_required=True)
    equal(outcome(client.token("password", username="user", password="x")), "403 mfa_required", "the password grant")
    hostile.control(reset=True, dpop_nonce=True)
    seen = {}
    round_trips.observe_dpop(client, seen)
    equal(seen["dpop"], "400 use_dpop_nonce", "a proof without nonce")
    hostile.control(reset=True)


def check_faults(hostile):
    client = hostile.client()
    for fault, expected in WRONG_TOKENS.items():
        hostile.control(fault=fault)
        equal(fault_of_token(client), expected, fault)
    for fault, expected in ANSWERS.items():
        hostile.control(fault=fault)
        equal(outcome(redeem(client)[1]), expected, fault)
    check_documents(hostile, client)
    check_refresh_faults(hostile, client)
    hostile.control(reset=True)


def check_documents(hostile, client):
    issuer = hostile.description["issuer"]
    for fault, path in [("discovery_too_large", "/.well-known/openid-configuration"), ("jwks_too_large", "/jwks")]:
        hostile.control(fault=fault)
        check(len(json.dumps(client.fetch(issuer + path)[1])) > 256 * 1024, fault)
    hostile.control(fault="discovery_other_issuer")
    check(client.fetch(issuer + "/.well-known/openid-configuration")[1]["issuer"] != issuer, "another issuer")
    hostile.control(fault="redirect_other_iss")
    check(client.code()[1]["iss"] != issuer, "another iss in the redirect")
    hostile.control(fault="redirect_no_iss")
    check("iss" not in client.code()[1], "no iss in the redirect")
    hostile.control(fault="wrong_state")
    try:
        client.code()
        raise AssertionError("wrong_state is not seen")
    except Failure:
        pass
    for fault, test in [
            ("token_not_json", lambda answer: isinstance(answer, str)), ("no_id_token", lambda a: "id_token" not in a),
            ("wrong_token_type", lambda answer: answer["token_type"] == "mac"),
            ("token_response_too_large", lambda answer: len(answer["padding"]) > 256 * 1024),
            ("large_token", lambda a: all(60_000 < len(a[name]) < 65_537 for name in ("access_token", "id_token")))]:
        hostile.control(fault=fault)
        check(test(redeem(client)[1][1]), fault)


def check_refresh_faults(hostile, client):
    hostile.control(reset=True)
    token = redeem(client)[1][1]["refresh_token"]
    hostile.control(fault="refresh_other_subject")
    _, tokens = client.token("refresh_token", refresh_token=token)
    equal(jwt.decode(tokens["id_token"], options={"verify_signature": False})["sub"], "user 2", "the subject")
    hostile.control(fault="token_answer_lost")
    try:
        client.token("refresh_token", refresh_token=tokens["refresh_token"])
        raise AssertionError("the answer is not lost")
    except OSError:
        pass
    hostile.control(fault=None)
    equal(outcome(client.token("refresh_token", refresh_token=tokens["refresh_token"])), "400 invalid_grant",
          "the refresh token whose answer was lost")
    counters = hostile.control()
    equal(counters["refresh_tokens"][tokens["refresh_token"]], 2, "the count of uses of a refresh token")
    equal(counters["grants"]["refresh_token"], 3, "the count of refreshes")
    before = client.fetch(client.metadata["jwks_uri"])[1]["keys"][0]["kid"]
    hostile.control(rotate_keys=True)
    check(client.fetch(client.metadata["jwks_uri"])[1]["keys"][0]["kid"] != before, "the keys rotate")
    hostile.control(fault="token_redirect")
    try:
        client.token("refresh_token", refresh_token="x")
    except urllib.error.HTTPError:
        pass
    hostile.control(fault="token_hang")
    trust = ssl.create_default_context(cafile=hostile.description["ca_file"])
    try:
        urllib.request.urlopen(client.metadata["token_endpoint"], b"grant_type=password", timeout=0.5, context=trust)
        raise AssertionError("the token endpoint answers")
    except (TimeoutError, urllib.error.URLError):
        pass


def check_load(hostile):
    """100 clients at once, each with a connection of its own."""
    client = hostile.client()
    hostile.control(delay_ms=300)
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: outcome(client.token(
            "password", username="user", password=hostile.description["password"], scope="openid")), range(100)))
    equal(set(answers), {"ok"}, "the answers to 100 clients at once")
    print(f"100 clients at once, each answer delayed by 300 ms: {time.monotonic() - start:.2f} s")


def check_certificates():
    for kind, word in [("self_signed", "self-signed"), ("expired", "expired"), ("other_host", "Hostname mismatch")]:
        with Hostile("--certificate", kind) as hostile:
            try:
                hostile.client()
                raise AssertionError(f"the certificate {kind} is accepted")
            except urllib.error.URLError as error:
                check(word in str(error), f"{kind}: {error}")
    with Hostile("--plain") as hostile:
        check(hostile.description["issuer"].startswith("http://127.0.0.1:"), "plain http")
        equal(outcome(redeem(hostile.client())[1]), "ok", "a sign-in over plain http")


def check_signal():
    with Hostile("--fault", "wrong_iss") as hostile:
        equal(fault_of_token(hostile.client()), "InvalidIssuerError", "the fault of the command line")
        idle = socket.create_connection(("localhost", int(hostile.description["issuer"].rsplit(":", 1)[1])))
        folder = pathlib.Path(hostile.description["ca_file"]).parent
        hostile.child.terminate()
        equal(hostile.child.wait(5), 143, "the exit status after SIGTERM")
        check(not folder.exists(), "removes its folder after SIGTERM")
        idle.close()
        hostile.child.returncode = 0


def program():
    with Hostile() as hostile:
        for step in (check_good, check_key_client, check_grants, check_faults, check_load):
            step(hostile)
    check_certificates()
    check_signal()
    print("all is well")
    return 0


if __name__ == "__main__":
    main_of(program)
