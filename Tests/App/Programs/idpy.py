#!/usr/bin/python3
"""idpy.py PORT URL ACCOUNT: an OpenID provider made of the library idpyoidc, at a port of 127.0.0.1.

URL is its public address, ACCOUNT the clients and the user, as JSON. It has what the other providers of providers.py
lack: token exchange (RFC 8693). A person is signed in at once.
"""

import http.server
import json
import socketserver
import sys
import urllib.parse

from idpyoidc.server import Server
from idpyoidc.server.configure import OPConfiguration

SCOPES = ["openid", "profile", "email", "offline_access"]
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
TOKEN_TYPE = "urn:ietf:params:oauth:token-type:"
AUTHENTICATION = ["client_secret_basic", "client_secret_post", "none"]
TOKEN = {"class": "idpyoidc.server.token.jwt_token.JWTToken", "kwargs": {"lifetime": 3600, "aud": ["api"]}}
USAGE = {
    "authorization_code": {"supports_minting": ["access_token", "refresh_token", "id_token"], "max_usage": 1},
    # An exchange is the minting of one token by another.
    "access_token": {"supports_minting": ["access_token"]},
    "refresh_token": {"supports_minting": ["access_token", "refresh_token", "id_token"]}}


def configuration(url, account):
    """What differs from a provider of the library without settings."""
    exchange = {
        "class": "idpyoidc.server.oauth2.token_helper.token_exchange.TokenExchangeHelper",
        "kwargs": {
            "subject_token_types_supported": [TOKEN_TYPE + "access_token"],
            "requested_token_types_supported": [TOKEN_TYPE + "access_token"],
            "policy": {"": {"function": "idpyoidc.server.oauth2.token_helper.validate_token_exchange_policy",
                            "kwargs": {"audience": ["billing"], "scope": SCOPES}}}}}
    helpers = "idpyoidc.server.oidc.token_helper."
    grants = {
        "authorization_code": {"class": helpers + "access_token.AccessTokenHelper"},
        "refresh_token": {"class": helpers + "refresh_token.RefreshTokenHelper"}, EXCHANGE: exchange}

    def endpoint(path, name, **settings):
        return {"path": path, "class": name, "kwargs": settings}

    return {
        "issuer": url, "scopes_supported": SCOPES, "subject_types_supported": ["public"],
        "key_conf": {"key_defs": [{"type": "RSA", "use": ["sig"]}, {"type": "EC", "crv": "P-256", "use": ["sig"]}],
                     "uri_path": "jwks.json"},
        "endpoint": {
            "discovery": endpoint(
                ".well-known/openid-configuration", "idpyoidc.server.oidc.provider_config.ProviderConfiguration"),
            "authorization": endpoint(
                "authorization", "idpyoidc.server.oidc.authorization.Authorization",
                response_types_supported=["code"]),
            "token": endpoint(
                "token", "idpyoidc.server.oidc.token.Token", client_authn_method=AUTHENTICATION,
                grant_types_helpers=grants),
            "userinfo": endpoint("userinfo", "idpyoidc.server.oidc.userinfo.UserInfo")},
        "add_ons": {"pkce": {"function": "idpyoidc.server.oauth2.add_on.pkce.add_support",
                             "kwargs": {"code_challenge_length": 64, "code_challenge_method": "S256"}}},
        "token_handler_args": {
            "key_conf": {"key_defs": [{"type": "oct", "bytes": 24, "use": ["enc"], "kid": "code"}]},
            "code": {"lifetime": 600}, "token": TOKEN, "refresh": TOKEN,
            "id_token": {"class": "idpyoidc.server.token.id_token.IDToken"}},
        "authz": {"class": "idpyoidc.server.authz.AuthzHandling",
                  "kwargs": {"grant_config": {"usage_rules": USAGE, "expires_in": 43200}}},
        "authentication": {"anonymous": {
            "acr": "urn:oasis:names:tc:SAML:2.0:ac:classes:InternetProtocolPassword",
            "class": "idpyoidc.server.user_authn.user.NoAuthn", "kwargs": {"user": account["username"]}}},
        "userinfo": {"class": "idpyoidc.server.user_info.UserInfo", "kwargs": {"db": {
            account["username"]: {"sub": account["username"], "email": "user@example.com"}}}}}


def clients(account):
    client = {"redirect_uris": account["redirect_uris"], "allowed_scopes": SCOPES, "scope": SCOPES,
              "response_types_supported": ["code"], "response_types": ["code"],
              "grant_types_supported": ["authorization_code", "refresh_token", EXCHANGE]}
    return {
        account["public_client"]: {**client, "token_endpoint_auth_method": "none"},
        account["confidential_client"]: {
            **client, "client_secret": account["secret"], "token_endpoint_auth_method": "client_secret_basic"}}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        self.call(address.path, dict(urllib.parse.parse_qsl(address.query)))

    def do_POST(self):
        length = min(int(self.headers.get("Content-Length") or 0), 1 << 20)
        body = self.rfile.read(length).decode()
        self.call(urllib.parse.urlsplit(self.path).path, dict(urllib.parse.parse_qsl(body)))

    def call(self, path, request):
        """Lets the endpoint with this path answer."""
        provider = self.server.provider
        if path == "/jwks.json":
            return self.answer(200, provider.keyjar.export_jwks_as_json(), "application/json")
        found = [endpoint for endpoint in provider.endpoint.values() if path == "/" + endpoint.endpoint_path]
        if not found:
            return self.answer(404, "{}", "application/json")
        endpoint = found[0]
        http_info = {"headers": {name.lower(): value for name, value in self.headers.items()},
                     "url": provider.issuer + path, "method": self.command}
        parsed = endpoint.parse_request(request, http_info=http_info)
        if "error" not in parsed:
            parsed = endpoint.process_request(parsed, http_info=http_info)
        if "error" in parsed:
            error = {name: parsed[name] for name in ("error", "error_description") if name in parsed}
            return self.answer(400, json.dumps(error), "application/json")
        answer = endpoint.do_response(**parsed)
        if "://" in answer["response"][:8]:
            return self.answer(302, "", "text/plain", answer["response"])
        kind = dict(answer.get("http_headers", [])).get("Content-type", "application/json")
        return self.answer(200, answer["response"], kind)

    def answer(self, status, text, kind, location=None):
        self.send_response(status)
        for name, value in [("Content-Type", kind), ("Content-Length", len(text.encode())), ("Location", location)]:
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text.encode())


class HTTPServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


def program():
    port, url, account = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    provider = Server(OPConfiguration(conf=configuration(url, account), base_path=".", domain="localhost", port=port))
    provider.context.cdb.update(clients(account))
    server = HTTPServer(("127.0.0.1", port), Handler)
    server.provider = provider
    server.serve_forever()


if __name__ == "__main__":
    program()
