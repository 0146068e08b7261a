"""hostile_state.py: the good behaviour of hostile_provider.py: clients, keys, codes, token families and DPoP."""

import base64
import collections
import dataclasses
import hashlib
import hmac
import json
import secrets
import select
import ssl
import threading
import time
import urllib.parse

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import hostile_faults
from loopback import private_pem

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"
SECRET = "secret-of-the-client-42"
# The SHA-256 hash of the client's certificate, in base64url. The server removes what a client sends under this name.
CERTIFICATE = "Test-Client-Certificate"


class Refusal(Exception):
    """An answer that refuses a request."""

    def __init__(self, status, error, description=None, headers=None, **more):
        super().__init__(error)
        self.status, self.headers = status, headers or {}
        self.document = {"error": error, **({"error_description": description} if description else {}), **more}


@dataclasses.dataclass
class Settings:
    """What `POST /control` can change."""

    fault: str | None = None
    delay_ms: int = 0  # Milliseconds before every answer.
    hold_tokens: bool = False  # Requests for tokens wait, for a minute at most, until this is false again.
    access_token_lifetime: int = 3600  # Seconds.
    id_token_lifetime: int = 300
    algorithm: str = "RS256"  # Or ES256.
    subject: str = "user 1"
    pending: int = 0  # This many polls of a device code are answered with `authorization_pending`.
    device_outcome: str = "ok"  # Or slow_down (once, then ok), expired_token, access_denied.
    device_interval: int = 1
    mfa_required: bool = False  # The password grant demands a second factor.
    rotation: bool = True  # Each refresh returns a new refresh token.
    refresh_id_token: bool = True
    dpop_nonce: bool = False  # DPoP proofs need the nonce of the provider.
    dpop_required: bool = False
    push_required: bool = False  # The browser must bring a pushed request (RFC 9126).
    retry_after: int = 1  # Seconds, in the answers of the faults with Retry-After.
    claims: dict | None = None  # Further claims of ID tokens, such as groups.
    redirect_uri: str | None = None  # The one redirect of a web application, besides those on loopback.


@dataclasses.dataclass
class Family:
    """The refresh tokens that descend from one sign-in. A second use of an old one revokes all."""

    client: str
    scope: str
    nonce: str | None
    thumbprint: str | None
    subject: str
    current: str = ""
    certificate: str | None = None
    revoked: bool = False


def unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """All state of one provider, guarded by `lock`."""

    def __init__(self, issuer, folder):
        self.issuer, self.settings, self.lock = issuer, Settings(), threading.RLock()
        self.folder, self.generation = folder, 0
        self.counters = {name: collections.Counter() for name in ("paths", "grants", "refresh_tokens", "refusals")}
        self.codes, self.families, self.devices, self.access_tokens = {}, {}, {}, {}
        self.proofs, self.nonce = set(), secrets.token_urlsafe()
        self.keys, self.certificate, self.pushed = {}, None, {}
        self.client_key = ec.generate_private_key(ec.SECP256R1())
        (folder / "client.key").write_bytes(private_pem(self.client_key))
        (folder / "client.key").chmod(0o600)
        self.rotate_keys()

    def rotate_keys(self):
        """Replaces both signing keys. Tokens that were issued before are no longer valid."""
        self.generation += 1
        self.keys = {"RS256": (f"rsa-{self.generation}", rsa.generate_private_key(65537, 2048)),
                     "ES256": (f"p256-{self.generation}", ec.generate_private_key(ec.SECP256R1()))}

    def description(self):
        return {"issuer": self.issuer, "public_client": "public-client", "confidential_client": "confidential-client",
                "post_client": "post-client", "secret": SECRET, "key_client": "key-client",
                "key_file": str(self.folder / "client.key"), "username": "user",
                "password": "password-of-the-user-42", "control": self.issuer + "/control"}

    def count(self, counter, name):
        with self.lock:
            self.counters[counter][name] += 1

    def control(self, change):
        """Applies a change, all of it or nothing, and returns the settings and the counters."""
        with self.lock:
            change = dict(change or {})
            rotate, reset = change.pop("rotate_keys", False), change.pop("reset", False)
            self.issuer = change.pop("issuer", self.issuer)  # For a proxy in front, which has another port.
            self.access_tokens.pop(change.pop("forget", None), None)  # Withdraws an access token.
            known = {field.name for field in dataclasses.fields(Settings)}
            if set(change) - known or change.get("fault") not in (None, *hostile_faults.NAMES):
                raise Refusal(400, "unknown_setting", f"known: {sorted(known)}, faults: {hostile_faults.NAMES}")
            if reset:
                self.settings = Settings()
                for counter in self.counters.values():
                    counter.clear()
            for name, value in change.items():
                setattr(self.settings, name, value)
            if rotate or change.get("fault") == "keys_rotated":
                self.rotate_keys()
            return {"settings": dataclasses.asdict(self.settings), "families": len(self.families),
                    "revoked_families": sum(family.revoked for family in self.all_families()),
                    "jwks_fetches": self.counters["paths"]["/jwks"],
                    **{name: dict(counter) for name, counter in self.counters.items()}}

    def all_families(self):
        return {id(family): family for family in self.families.values()}.values()

    def wait_for_end(self, connection):
        """Returns when the client hangs up or the fault is switched."""
        while self.settings.fault == "token_hang":
            if select.select([connection], [], [], 0.1)[0]:
                return

    # Clients

    def authenticate(self, fields, headers):
        """Returns the client ID. Each client has exactly one way to authenticate."""
        client, way, valid = self.credentials(fields, headers)
        expected = {"public-client": "none", "confidential-client": "basic", "post-client": "post",
                    "key-client": "private_key_jwt", "certificate-client": "certificate"}.get(client)
        if self.settings.fault == "invalid_client" or way != expected or not valid:
            raise self.refused(401, "invalid_client", headers={"WWW-Authenticate": 'Basic realm="provider"'})
        return client

    def credentials(self, fields, headers):
        """Returns the client ID, how the client authenticates, and whether the credential is valid."""
        scheme, _, value = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "basic":
            pair = base64.b64decode(value).decode().split(":", 1)
            client, secret = (urllib.parse.unquote_plus(part) for part in pair)
            return client, "basic", hmac.compare_digest(secret, SECRET) and "client_secret" not in fields
        if fields.get("client_assertion_type") == ASSERTION:
            return self.assertion(fields.get("client_assertion", ""))
        if "client_secret" in fields:
            return fields.get("client_id"), "post", hmac.compare_digest(fields["client_secret"], SECRET)
        if fields.get("client_id") == "certificate-client":
            return fields["client_id"], "certificate", headers.get(CERTIFICATE) == self.certificate_hash()
        return fields.get("client_id"), "none", True

    def certificate_hash(self):
        """RFC 8705, section 3.1."""
        der = ssl.PEM_cert_to_DER_cert(self.certificate.read_text())
        return unpadded(hashlib.sha256(der).digest())

    def assertion(self, token):
        """RFC 7523, section 3. An assertion is accepted once."""
        try:
            claims = jwt.decode(token, self.client_key.public_key(), ["ES256"], audience=[
                self.issuer, self.issuer + "/token"], options={"require": ["exp", "iss", "sub", "aud", "jti"]})
        except jwt.PyJWTError:
            return "key-client", "private_key_jwt", False
        valid = claims["iss"] == claims["sub"] == "key-client" and self.is_new("assertion " + claims["jti"])
        return claims["sub"], "private_key_jwt", valid

    def is_new(self, name):
        with self.lock:
            known = name in self.proofs
            self.proofs.add(name)
            return not known

    def refused(self, status, error, description=None, headers=None, **more):
        self.count("refusals", error)
        return Refusal(status, error, description, headers, **more)

    # Tokens

    def token(self, fields, headers, url):
        """The token endpoint. Requests are processed one after another, as by a database transaction."""
        with self.lock:
            client = self.authenticate(fields, headers)
            if self.settings.fault == "invalid_grant":
                raise self.refused(400, "invalid_grant")
            thumbprint = self.proof(headers, "POST", url)
            grant = {"authorization_code": self.redeem_code, "refresh_token": self.refresh,
                     "password": self.check_password, DEVICE: self.poll_device}.get(fields.get("grant_type"))
            if fields.get("grant_type") == EXCHANGE:
                return self.exchange(client, fields, thumbprint)
            if fields.get("grant_type") == "client_credentials":
                return self.own_token(client, fields, thumbprint, headers.get(CERTIFICATE))
            if grant is None:
                raise self.refused(400, "unsupported_grant_type")
            return grant(client, fields, thumbprint)

    def exchange(self, client, fields, thumbprint):
        """RFC 8693: an access token of this provider, for the service `billing`, with the actor's name."""
        subject = self.access_tokens.get(fields.get("subject_token"), (None,))[0]
        if subject is None or fields.get("subject_token_type") != TOKEN_TYPE + "access_token":
            raise self.refused(400, "invalid_request", f"the token {fields.get('subject_token')} is unknown")
        if fields.get("audience", "billing") != "billing":
            raise self.refused(400, "invalid_target")
        if fields.get("requested_token_type", TOKEN_TYPE + "access_token") != TOKEN_TYPE + "access_token":
            raise self.refused(400, "invalid_request", "only access tokens are issued")
        family = Family(client, fields.get("scope", ""), None, thumbprint, subject.subject)
        answer = self.issue(family, thumbprint, refreshed=True)
        self.families.pop(answer.pop("refresh_token", None), None)
        return {**answer, "issued_token_type": TOKEN_TYPE + "access_token"}

    def push(self, fields, headers):
        """RFC 9126: keeps the request of a client for a minute."""
        with self.lock:
            client = self.authenticate(fields, headers)
            if fields.get("client_id", client) != client or "request_uri" in fields:
                raise self.refused(400, "invalid_request")
            if fields.get("prompt") == "create":
                raise self.refused(400, "invalid_request", "prompt is not supported")
            uri = "urn:ietf:params:oauth:request_uri:" + secrets.token_urlsafe()
            self.pushed[uri] = {**fields, "client_id": client}
            return {"request_uri": uri, "expires_in": 60}

    def authorize(self, query):
        """Signs the user in and returns a code."""
        if "request_uri" in query:
            with self.lock:
                pushed = self.pushed.pop(query["request_uri"], None)
            if (pushed is None or set(query) != {"client_id", "request_uri"}
                    or query["client_id"] != pushed["client_id"]):
                raise self.refused(400, "invalid_request", "the request was not pushed by this client")
            query.update(pushed)
        elif self.settings.push_required:
            raise self.refused(400, "invalid_request", "the request must be pushed")
        if query.get("response_type") != "code" or query.get("code_challenge_method") != "S256":
            raise self.refused(400, "invalid_request", "response_type must be code, with PKCE S256")
        redirect = query.get("redirect_uri", "")
        if (redirect != self.settings.redirect_uri
                and not redirect.startswith(("http://127.0.0.1:", "http://[::1]:", "http://localhost:"))):
            raise self.refused(400, "invalid_request", "redirect_uri must be a loopback address")
        code = secrets.token_urlsafe()
        with self.lock:
            self.codes[code] = query
        return code

    def redeem_code(self, client, fields, thumbprint):
        query = self.codes.pop(fields.get("code"), None)
        challenge = unpadded(hashlib.sha256(fields.get("code_verifier", "").encode()).digest())
        if (query is None or query.get("client_id") != client or query["redirect_uri"] != fields.get("redirect_uri")
                or query.get("code_challenge") != challenge):
            raise self.refused(400, "invalid_grant", "code, redirect_uri or code_verifier is wrong")
        return self.new_family(client, query.get("scope", "openid"), query.get("nonce"), thumbprint)

    def refresh(self, client, fields, thumbprint):
        token = fields.get("refresh_token", "")
        family = self.families.get(token)
        if family is None or family.client != client or family.revoked:
            raise self.refused(400, "invalid_grant", "the refresh token is unknown, or revoked")
        if token != family.current:
            family.revoked = True
            raise self.refused(400, "invalid_grant", "the refresh token was used before")
        if family.thumbprint and family.client == "public-client" and thumbprint != family.thumbprint:
            raise self.refused(400, "invalid_grant", "the refresh token is bound to another key")
        return self.issue(family, thumbprint, refreshed=True)

    def check_password(self, client, fields, thumbprint):
        if self.settings.mfa_required and not fields.get("otp"):
            raise self.refused(403, "mfa_required", "give a second factor", mfa_token=secrets.token_urlsafe())
        known = self.description()
        if fields.get("username") != known["username"] or fields.get("password") != known["password"]:
            raise self.refused(400, "invalid_grant", "user name or password is wrong")
        return self.new_family(client, fields.get("scope", "openid"), None, thumbprint)

    def own_token(self, client, fields, thumbprint, certificate):
        """RFC 6749, section 4.4: no refresh token, and for clients that authenticate alone."""
        if client == "public-client":
            raise self.refused(400, "unauthorized_client")
        if "openid" in fields.get("scope", ""):
            raise self.refused(400, "invalid_scope")
        family = Family(client, fields.get("scope", ""), None, thumbprint, client, certificate=certificate)
        answer = self.issue(family, thumbprint, refreshed=True)
        self.families.pop(answer.pop("refresh_token", None), None)
        return answer

    def start_device(self, fields, headers):
        with self.lock:
            client = self.authenticate(fields, headers)
            device, user = secrets.token_urlsafe(), "-".join(secrets.token_hex(2).upper() for _ in range(2))
            self.devices[device] = {"client": client, "scope": fields.get("scope", "openid"), "polls": 0}
            return {"device_code": device, "user_code": user, "verification_uri": self.issuer + "/device",
                    "verification_uri_complete": f"{self.issuer}/device?user_code={user}", "expires_in": 600,
                    "interval": self.settings.device_interval}

    def poll_device(self, client, fields, thumbprint):
        device, settings = self.devices.get(fields.get("device_code")), self.settings
        if device is None or device["client"] != client:
            raise self.refused(400, "invalid_grant")
        device["polls"] += 1
        if device["polls"] <= settings.pending:
            raise self.refused(400, "authorization_pending")
        if settings.device_outcome == "slow_down" and device["polls"] == settings.pending + 1:
            raise self.refused(400, "slow_down")
        if settings.device_outcome in ("expired_token", "access_denied"):
            raise self.refused(400, settings.device_outcome)
        del self.devices[fields["device_code"]]
        return self.new_family(client, device["scope"], None, thumbprint)

    def new_family(self, client, scope, nonce, thumbprint):
        return self.issue(Family(client, scope, nonce, thumbprint, self.settings.subject), thumbprint)

    def issue(self, family, thumbprint, refreshed=False):
        """Returns the answer of the token endpoint, with the next refresh token of `family`."""
        now = int(time.time())
        access = hostile_faults.access_token(self, family, thumbprint, now)
        self.access_tokens[access] = family, now + self.settings.access_token_lifetime, thumbprint
        answer = {"access_token": access, "token_type": "DPoP" if thumbprint else "Bearer", "scope": family.scope,
                  "expires_in": self.settings.access_token_lifetime}
        if not refreshed or self.settings.rotation:
            family.current = secrets.token_urlsafe(48)
            self.families[family.current] = family
            answer["refresh_token"] = family.current
        if "openid" in family.scope.split() and (not refreshed or self.settings.refresh_id_token):
            answer["id_token"] = hostile_faults.id_token(self, family, access, now, refreshed)
        return answer

    def revoke(self, fields, headers):
        with self.lock:
            client = self.authenticate(fields, headers)
            token = fields.get("token", "")
            family = self.families.get(token) or self.access_tokens.get(token, (None,))[0]
            if family and family.client == client:
                family.revoked = True

    def userinfo(self, headers):
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        with self.lock:
            family, expiry, thumbprint = self.access_tokens.get(token, (None, 0, None))
            bound = thumbprint is not None
            if bound and self.proof(headers, "GET", self.issuer + "/userinfo", token) != thumbprint:
                family = None
            wanted = "dpop" if bound else "bearer"
            if family is None or family.revoked or expiry <= time.time() or scheme.lower() != wanted:
                raise self.refused(401, "invalid_token", headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
            return {"sub": family.subject, "email": "user@example.com"}

    # DPoP, RFC 9449

    def proof(self, headers, method, url, access=None):
        """Checks the DPoP proof and returns the thumbprint of its key, or None without a proof."""
        token = headers.get("DPoP")
        if token is None:
            if self.settings.dpop_required:
                raise self.refused(400, "invalid_dpop_proof", "a DPoP proof is required")
            return None
        try:
            header = jwt.get_unverified_header(token)
            jwk = header["jwk"]
            claims = jwt.decode(token, jwt.algorithms.ECAlgorithm.from_jwk(json.dumps(jwk)), ["ES256"],
                                options={"require": ["jti", "htm", "htu", "iat"]})
        except (jwt.PyJWTError, KeyError, ValueError) as error:
            raise self.refused(400, "invalid_dpop_proof", str(error)) from None
        hash_of_access = unpadded(hashlib.sha256(access.encode()).digest()) if access else None
        if (header.get("typ") != "dpop+jwt" or "d" in jwk or claims["htm"] != method or claims["htu"] != url
                or abs(claims["iat"] - time.time()) > 60 or (access and claims.get("ath") != hash_of_access)
                or not self.is_new("proof " + claims["jti"])):
            raise self.refused(400, "invalid_dpop_proof", "typ, htm, htu, iat, ath or jti is wrong")
        if self.settings.dpop_nonce and claims.get("nonce") != self.nonce:
            status = 401 if access else 400
            raise self.refused(status, "use_dpop_nonce", headers={
                "DPoP-Nonce": self.nonce, **({"WWW-Authenticate": 'DPoP error="use_dpop_nonce"'} if access else {})})
        required = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
        return unpadded(hashlib.sha256(json.dumps(required, separators=(",", ":"), sort_keys=True).encode()).digest())
