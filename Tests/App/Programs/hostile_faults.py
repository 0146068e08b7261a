"""hostile_faults.py: the faults of hostile_provider.py. Each function builds one document, and changes it if the fault of
the settings concerns it."""

import base64
import hashlib
import hmac
import json
import secrets
import urllib.parse

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from loopback import public_pem

PADDING = "x" * (257 * 1024)
LARGE = "x" * 48_000  # A token with this claim has about 64,000 characters.

# Faults of the token endpoint that answer before the request is processed.
ANSWERS = {
    "token_redirect": (302, {}), "token_500": (500, {"error": "server_error"}),
    "token_503_retry_after": (503, {"error": "temporarily_unavailable"}),
    "token_429_retry_after": (429, {"error": "too_many_requests"})}
ID_TOKEN = ["alg_none", "hs256_public_key", "other_key_type", "unknown_kid", "no_kid_two_keys", "wrong_iss", "wrong_aud",
            "wrong_azp", "expired", "future_iat", "wrong_nonce", "wrong_at_hash", "bad_signature",
            "refresh_other_subject"]
NAMES = [*ID_TOKEN, *ANSWERS, "discovery_other_issuer", "discovery_too_large", "jwks_too_large",
         "token_response_too_large", "redirect_other_iss", "redirect_no_iss", "wrong_state", "token_hang",
         "token_answer_lost", "token_not_json", "wrong_token_type", "no_id_token", "large_token", "keys_rotated",
         "invalid_grant", "invalid_client", "userinfo_other_subject", "userinfo_signed", "userinfo_bad_signature",
         "userinfo_other_audience", "discovery_elsewhere", "pushed_without_lifetime",
         "pushed_two_words"]
SIGNED_CLAIMS = ["userinfo_signed", "userinfo_bad_signature", "userinfo_other_audience"]


def unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def answer_headers(provider):
    """The header fields of an answer of `ANSWERS`. A client that follows the redirect is counted at /token2."""
    fault = provider.settings.fault
    if fault == "token_redirect":
        return {"Location": provider.issuer + "/token2"}
    return {"Retry-After": provider.settings.retry_after} if fault.endswith("retry_after") else {}


def discovery(provider):
    issuer, fault = provider.issuer, provider.settings.fault
    return {
        "issuer": "https://other.example" if fault == "discovery_other_issuer" else issuer,
        **{name + "_endpoint": f"{issuer}/{path}" for name, path in [
            ("authorization", "authorize"), ("token", "token"), ("userinfo", "userinfo"), ("revocation", "revoke"),
            ("end_session", "end_session"), ("device_authorization", "device_authorization"),
            ("pushed_authorization_request", "par")]},
        "require_pushed_authorization_requests": provider.settings.push_required,
        "jwks_uri": issuer + "/jwks", "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "ES256"], "code_challenge_methods_supported": ["S256"],
        "grant_types_supported": ["authorization_code", "refresh_token", "password",
                                  "urn:ietf:params:oauth:grant-type:device_code"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post",
                                                  "private_key_jwt", "tls_client_auth"],
        "tls_client_certificate_bound_access_tokens": True,
        "token_endpoint_auth_signing_alg_values_supported": ["ES256"], "scopes_supported": ["openid", "offline_access"],
        "dpop_signing_alg_values_supported": ["ES256"], "authorization_response_iss_parameter_supported": True,
        **({"padding": PADDING} if fault == "discovery_too_large" else {})}


def pushed(provider, document):
    """The answer to a pushed request."""
    fault = provider.settings.fault
    if fault == "pushed_without_lifetime":
        return {"request_uri": document["request_uri"]}
    return {**document, "request_uri": "two words"} if fault == "pushed_two_words" else document


def user_claims(provider, claims):
    return {**claims, "sub": "user 2"} if provider.settings.fault == "userinfo_other_subject" else claims


def signed_claims(provider, claims):
    """The claims as a signed answer (OpenID Connect Core 1.0, section 5.3.2)."""
    fault, (kid, key) = provider.settings.fault, provider.keys["RS256"]
    if fault == "userinfo_bad_signature":
        key = rsa.generate_private_key(65537, 2048)
    audience = "other-client" if fault == "userinfo_other_audience" else "public-client"
    return jwt.encode({**claims, "iss": provider.issuer, "aud": audience}, key, "RS256", {"kid": kid})


def key_set(provider):
    """The public keys. With `no_kid_two_keys`, two RSA keys without `kid`."""
    fault = provider.settings.fault
    with provider.lock:
        keys = [jwk(key, kid, algorithm) for algorithm, (kid, key) in provider.keys.items()]
    if fault == "no_kid_two_keys":
        keys = [keys[0], jwk(rsa.generate_private_key(65537, 2048), None, "RS256")]
        keys[0].pop("kid")
    return {"keys": keys, **({"padding": PADDING} if fault == "jwks_too_large" else {})}


def jwk(key, kid, algorithm):
    numbers = key.public_key().public_numbers()
    if isinstance(key, rsa.RSAPrivateKey):
        fields = {"kty": "RSA", "n": unpadded(numbers.n.to_bytes(256, "big")), "e": "AQAB"}
    else:
        fields = {"kty": "EC", "crv": "P-256", "x": unpadded(numbers.x.to_bytes(32, "big")),
                  "y": unpadded(numbers.y.to_bytes(32, "big"))}
    return {**fields, "use": "sig", "alg": algorithm, **({"kid": kid} if kid else {})}


def redirect(provider, query):
    """The URL of the app with a code. Faults: another `iss` or none (RFC 9207), another `state`."""
    fault = provider.settings.fault
    answer = {"code": provider.authorize(query), "state": query.get("state", ""), "iss": provider.issuer}
    if fault == "redirect_other_iss":
        answer["iss"] = "https://other.example"
    if fault == "redirect_no_iss":
        del answer["iss"]
    if fault == "wrong_state":
        answer["state"] = secrets.token_urlsafe()
    return query["redirect_uri"] + "?" + urllib.parse.urlencode(answer)


def access_token(provider, family, thumbprint, now):
    kid, key = provider.keys[provider.settings.algorithm]
    claims = {"iss": provider.issuer, "sub": family.subject, "aud": "api", "client_id": family.client, "iat": now,
              "exp": now + provider.settings.access_token_lifetime, "scope": family.scope,
              "jti": secrets.token_urlsafe(), **({"cnf": {"jkt": thumbprint}} if thumbprint else {}),
              **({"cnf": {"x5t#S256": family.certificate}} if family.certificate else {})}
    if provider.settings.fault == "large_token":
        claims["note"] = LARGE
    return jwt.encode(claims, key, provider.settings.algorithm, {"kid": kid, "typ": "at+jwt"})


def id_token(provider, family, access, now, refreshed):
    """An ID token in which at most one thing is wrong."""
    settings = provider.settings
    digest = hashlib.sha256(access.encode()).digest()
    claims = {"iss": provider.issuer, "sub": family.subject, "aud": family.client, "iat": now, "auth_time": now,
              "exp": now + settings.id_token_lifetime, "at_hash": unpadded(digest[:16]), "email": "user@example.com"}
    claims.update(settings.claims or {})
    if family.nonce and not refreshed:
        claims["nonce"] = family.nonce
    changes = {
        "wrong_iss": {"iss": "https://other.example"}, "wrong_aud": {"aud": "other-client"},
        "wrong_azp": {"azp": "other-client"}, "expired": {"iat": now - 700, "exp": now - 400},
        "future_iat": {"iat": now + 400, "exp": now + 700}, "wrong_nonce": {"nonce": secrets.token_urlsafe()},
        "wrong_at_hash": {"at_hash": unpadded(bytes(16))}, "large_token": {"note": LARGE},
        "refresh_other_subject": {"sub": "user 2"} if refreshed else {}}
    return signed({**claims, **changes.get(settings.fault, {})}, provider)


def signed(claims, provider):
    """Signs with the key of the settings, except for the faults of header and signature."""
    fault, algorithm = provider.settings.fault, provider.settings.algorithm
    kid, key = provider.keys[algorithm]
    if fault == "alg_none":
        return jwt.encode(claims, None, "none", {"kid": kid})
    if fault == "hs256_public_key":
        return mac(claims, kid, public_pem(key))
    if fault == "other_key_type":
        # The header names the other key, of another type than the algorithm.
        other = "ES256" if algorithm == "RS256" else "RS256"
        return jwt.encode(claims, key, algorithm, {"kid": provider.keys[other][0]})
    if fault == "unknown_kid":
        return jwt.encode(claims, key, algorithm, {"kid": "unknown"})
    if fault == "no_kid_two_keys":
        return jwt.encode(claims, provider.keys["RS256"][1], "RS256")
    if fault == "bad_signature":
        other = rsa.generate_private_key(65537, 2048) if algorithm == "RS256" else ec.generate_private_key(ec.SECP256R1())
        return jwt.encode(claims, other, algorithm, {"kid": kid})
    return jwt.encode(claims, key, algorithm, {"kid": kid})


def mac(claims, kid, secret):
    """HS256 with a public key as the secret, which PyJWT refuses to sign."""
    parts = [{"alg": "HS256", "typ": "JWT", "kid": kid}, claims]
    text = ".".join(unpadded(json.dumps(part).encode()) for part in parts)
    return text + "." + unpadded(hmac.new(secret, text.encode(), hashlib.sha256).digest())


def token_answer(provider, tokens):
    fault = provider.settings.fault
    if fault == "wrong_token_type":
        return {**tokens, "token_type": "mac"}
    if fault == "no_id_token":
        return {name: value for name, value in tokens.items() if name != "id_token"}
    if fault == "token_response_too_large":
        return {**tokens, "padding": PADDING}
    return tokens
