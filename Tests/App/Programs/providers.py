#!/usr/bin/python3
"""providers.py NAME, providers.py --self-test NAME: starts an OpenID provider that others wrote, with TLS by Caddy.

NAME is nanoidp, glewlwyd, mock or idpy. Prints one line of JSON when the provider is ready, and runs until standard
input closes; then ends its children and removes its folder. The packages of requirements.txt are in PYTHONPATH.
`--self-test` signs in by each grant instead, prints what was seen, and exits 1 if provider_quirks.py says otherwise.

In the JSON, `redirect_ports` null means any port of http://127.0.0.1:PORT/callback, and a list means these ports only.

nanoidp 3.4    RS256. `iss` in the redirect. The public client may use each grant and revoke. Rotates refresh tokens; a
               second use revokes the family. Refresh returns an ID token without `nonce`. The confidential client
               must use client_secret_basic. Never answers `slow_down`.
glewlwyd 2.7   ES256, and EdDSA at a second issuer, whose `at_hash` is made with SHA-256. Access tokens are JWTs. `iss`
               in the redirect, although discovery does not promise it. Discovery lists neither `refresh_token` nor
               `password` in grant_types_supported. `token_type` is `bearer`. Refuses refresh tokens with 400 and
               passwords with 403, both without a body; codes with 403 `invalid_code`; device codes that are unknown
               with `access_denied`. One-use refresh tokens; a second use revokes the chain. Refresh returns no ID
               token. The public client may neither revoke (401) nor use passwords (403). `slow_down` after a fast
               poll. DPoP. `sub` is random, and not the user name.
mock 0.3       RS256; ID tokens have no `kid`, and the key has one. No `iss` in the redirect. No public client:
               client_secret_basic with any secret; refresh refuses client_secret_post. No password, PKCE check,
               rotation or revocation. Refresh returns no ID token and no refresh token. Any user name signs in.
idpy 5.0       A provider made of the library idpyoidc by idpy.py, for token exchange. A person is signed in at once.
All but idpy   return a refresh token without the scope offline_access.
"""

import importlib.util
import json
import os
import pathlib
import sys

import glewlwyd
import round_trips
from loopback import Authority, Failure, Run, free_port, main_of
from provider_quirks import QUIRKS

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
ACCOUNT = {"public_client": "public-client", "confidential_client": "confidential-client",
           "certificate_client": "certificate-client", "secret": "secret-of-the-client-42", "username": "user",
           "password": "password-of-the-user-42"}


class Provider:
    """A provider at `port`, whose public URL is `url`. `issuers` has one issuer for each algorithm."""

    grants = ["authorization_code", "refresh_token", "password", DEVICE]
    public_client = ACCOUNT["public_client"]
    redirect_ports = None  # Any port.

    def __init__(self, run, url):
        self.run, self.url, self.port, self.issuers = run, url, free_port(), {"RS256": url}

    def start(self):
        """Starts the provider, and returns when it accepts connections."""
        raise NotImplementedError


class NanoIDP(Provider):
    def start(self):
        require("nanoidp")
        import yaml
        folder = self.run.folder / "nanoidp"
        folder.mkdir()
        client = {"redirect_uris": ["http://127.0.0.1/callback"], "allowed_scopes": round_trips.SCOPES}
        settings = {
            "config_version": 1,
            "server": {"host": "127.0.0.1", "port": self.port},
            "oauth": {
                "issuer": self.url, "issuer_from_proxy_headers": True, "audience": "api",
                "refresh_token_rotation": True, "require_pkce": True,
                "clients": [
                    {**client, "client_id": ACCOUNT["public_client"], "token_endpoint_auth_method": "none"},
                    {**client, "client_id": ACCOUNT["confidential_client"], "client_secret": ACCOUNT["secret"]}]},
            "jwt": {"keys_dir": str(folder / "keys")},
            "session": {"secret_key": os.urandom(16).hex(), "enforce_password_check": True},
            "device_flow": {"polling_interval": 1},
            "logging": {"level": "WARNING", "log_token_requests": False, "verbose_logging": False}}
        users = {"config_version": 1, "users": {
            ACCOUNT["username"]: {"password": ACCOUNT["password"], "email": "user@example.com"}}}
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
        (folder / "users.yaml").write_text(yaml.safe_dump(users))
        self.run.start("nanoidp", [sys.executable, "-m", "nanoidp", "--config", str(folder), "--strict-config"])
        self.run.wait_for_port(self.port)


class Mock(Provider):
    grants = ["authorization_code", "refresh_token"]
    public_client = None  # The token endpoint wants a secret, and accepts any.

    def start(self):
        require("oidc_provider_mock")
        self.run.start("mock", [
            sys.executable, "-m", "oidc_provider_mock", "--port", str(self.port), "--user-claims",
            json.dumps({"sub": ACCOUNT["username"], "email": "user@example.com"})])
        self.run.wait_for_port(self.port)


class Glewlwyd(Provider):
    def __init__(self, run, url):
        super().__init__(run, url)
        self.issuers = {"ES256": f"{url}/api/es256", "EdDSA": f"{url}/api/eddsa"}
        # Glewlwyd compares whole redirect URIs, and knows no rule for loopback addresses.
        self.redirect_ports = [free_port() for _ in range(8)]

    def start(self):
        glewlwyd.start(self.run, self.port, self.url)
        uris = [f"http://127.0.0.1:{port}/callback" for port in self.redirect_ports]
        glewlwyd.configure(self.port, self.url, ACCOUNT, uris)


def require(module):
    if importlib.util.find_spec(module) is None:
        raise Failure(f"Python has no module {module}", "run scripts/test --providers, or set PYTHONPATH to "
                      "a folder into which pip installed Tests/App/Programs/requirements.txt")


class IdPy(Provider):
    grants = ["authorization_code"]

    def __init__(self, run, url):
        super().__init__(run, url)
        self.redirect_ports = [free_port() for _ in range(8)]

    def start(self):
        require("idpyoidc")
        uris = [f"http://127.0.0.1:{port}/callback" for port in self.redirect_ports]
        program = pathlib.Path(__file__).with_name("idpy.py")
        self.run.start("idpy", [
            sys.executable, str(program), str(self.port), self.url, json.dumps({**ACCOUNT, "redirect_uris": uris})])
        self.run.wait_for_port(self.port)


PROVIDERS = {"nanoidp": NanoIDP, "glewlwyd": Glewlwyd, "mock": Mock, "idpy": IdPy}


def start(run, name):
    """Starts the provider behind Caddy and returns what a client must know of it."""
    authority, port = Authority(run.folder), free_port()
    provider = PROVIDERS[name](run, f"https://localhost:{port}")
    certificate, key = authority.issue_client(ACCOUNT["certificate_client"])
    start_caddy(run, authority, port, provider.port)
    provider.start()
    run.wait_for_port(port)
    return {
        "issuer": next(iter(provider.issuers.values())), "issuers": provider.issuers, "ca_file": str(authority.file),
        "cert_file": str(certificate), "cert_key_file": str(key),
        **ACCOUNT, "public_client": provider.public_client, "grants": provider.grants,
        "redirect_ports": provider.redirect_ports, "quirks": QUIRKS.get(name, {})}


def start_caddy(run, authority, port, upstream):
    certificate, key = authority.issue()
    # It replaces what a client sends under the name.
    pem = "-----BEGIN CERTIFICATE----- {http.request.tls.client.certificate_der_base64} -----END CERTIFICATE-----"
    file = run.folder / "Caddyfile"
    file.write_text(f"""{{
\tadmin off
\tauto_https off
\tstorage file_system {run.folder}/caddy
}}
https://localhost:{port} {{
\tbind 127.0.0.1
\ttls {certificate} {key} {{
\t\tclient_auth {{
\t\t\tmode verify_if_given
\t\t\ttrusted_ca_cert_file {authority.file}
\t\t}}
\t}}
\t@certified vars_regexp {{http.request.tls.client.fingerprint}} ^[0-9a-f]{{64}}$
\thandle @certified {{
\t\treverse_proxy 127.0.0.1:{upstream} {{
\t\t\theader_up {glewlwyd.CERTIFICATE} "{pem}"
\t\t}}
\t}}
\thandle {{
\t\treverse_proxy 127.0.0.1:{upstream} {{
\t\t\theader_up -{glewlwyd.CERTIFICATE}
\t\t}}
\t}}
}}
""")
    run.start("caddy", ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)],
              HOME=str(run.folder), XDG_CONFIG_HOME=str(run.folder), XDG_DATA_HOME=str(run.folder))


def program():
    arguments = sys.argv[1:]
    test = arguments[:1] == ["--self-test"]
    name = (arguments[1:] if test else arguments)[:1]
    if len(arguments) != 1 + test or name[0] not in PROVIDERS:
        raise Failure("providers.py needs one name", f"choose one of {', '.join(PROVIDERS)}")
    with Run(name[0]) as run:
        description = start(run, name[0])
        if test:
            return max(round_trips.compare(description, algorithm) for algorithm in description["issuers"])
        run.serve(description)
    return 0


if __name__ == "__main__":
    main_of(program)
