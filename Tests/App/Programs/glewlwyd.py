"""glewlwyd.py: sets up Debian's glewlwyd for providers.py: an SQLite database, one plugin that signs with ES256, one that
signs with EdDSA, two clients and a user, by the API that glewlwyd's own administration page uses."""

import gzip
import json
import pathlib
import shutil
import sqlite3
import urllib.error
import urllib.request

from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from loopback import Failure, private_pem, public_pem

SCHEMA = pathlib.Path("/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz")
DEBIAN_SCHEMA = pathlib.Path("/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3")
WEB_PAGES = pathlib.Path("/usr/share/glewlwyd/webapp")
WEB_SETTINGS = pathlib.Path("/etc/glewlwyd/config-2.7.json/config.json")
MODULES = "/usr/lib/glewlwyd"
ADMINISTRATOR = {"username": "admin", "password": "password"}  # In the initial database.
SCOPES = ["profile", "email", "offline_access"]
CERTIFICATE = "X-Client-Certificate"  # The field of the client's certificate, from the proxy.
MIME_TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "application/javascript", ".json": "application/json",
    ".png": "image/png", ".ico": "image/x-icon", ".ttf": "font/ttf", ".woff": "font/woff", ".woff2": "font/woff2"}

CONFIGURATION = """
port={port}
bind_address="127.0.0.1"
external_url="{url}"
login_url="login.html"
api_prefix="api"
static_files_path="{folder}/webapp/"
log_mode="console"
log_level="WARNING"
cookie_secure=1
session_key="GLEWLWYD2_SESSION_ID"
session_expiration=2419200
admin_scope="g_admin"
profile_scope="g_profile"
admin_session_authentication="cookie"
profile_session_authentication="cookie"
login_api_enabled=true
user_module_path="{modules}/user"
user_middleware_module_path="{folder}/no-modules"
client_module_path="{modules}/client"
user_auth_scheme_module_path="{modules}/scheme"
plugin_module_path="{modules}/plugin"
use_secure_connection=false
secure_connection_key_file="unused"
secure_connection_pem_file="unused"
secure_connection_ca_file="unused"
hash_algorithm="SHA512"
database = {{ type = "sqlite3"; path = "{folder}/glewlwyd.db"; }};
static_files_mime_types = ( {types} )
"""

# Only what differs from a plugin that allows nothing.
PLUGIN = {
    "access-token-duration": 3600, "refresh-token-duration": 1209600, "code-duration": 600,
    "refresh-token-rolling": True, "refresh-token-one-use": "always", "allow-non-oidc": True,
    "oauth-as-iss-id": True, "jwks-show": True, "subject-type": "public", "secret-type": "public",
    "auth-type-code-enabled": True, "auth-type-code-revoke-replayed": True, "auth-type-token-enabled": False,
    "auth-type-id-token-enabled": True, "auth-type-none-enabled": False, "auth-type-password-enabled": True,
    "auth-type-client-enabled": True, "auth-type-device-enabled": True, "auth-type-refresh-enabled": True,
    "device-authorization-expiration": 600, "device-authorization-interval": 1,
    "pkce-allowed": True, "pkce-method-plain-allowed": False, "pkce-required-public-client": True,
    "introspection-revocation-allowed": True, "introspection-revocation-allow-target-client": True,
    "introspection-revocation-auth-scope": [], "session-management-allowed": True,
    "session-cookie-name": "GLEWLWYD2_OIDC_SID", "session-cookie-expiration": 2419200,
    "front-channel-logout-allowed": False, "back-channel-logout-allowed": False,
    "oauth-dpop-allowed": True, "oauth-dpop-iat-duration": 60, "oauth-dpop-iat-gap-duration": 5,
    "oauth-dpop-nonce-mandatory": False, "oauth-dpop-nonce-counter": 10,
    "client-cert-source": "header", "client-cert-header-name": CERTIFICATE, "client-cert-use-endpoint-aliases": False,
    "client-cert-self-signed-allowed": False, "oauth-par-allowed": True, "oauth-par-required": False,
    "oauth-par-request_uri-prefix": "urn:ietf:params:oauth:request_uri:", "oauth-par-duration": 90,
    "request-parameter-allow": True, "request-maximum-exp": 3600, "client-pubkey-parameter": "pubkey",
    "client-jwks-parameter": "jwks", "client-jwks_uri-parameter": "jwks_uri",
    "name-claim": "mandatory", "email-claim": "mandatory", "scope-claim": "no", "allowed-scope": ["openid", *SCOPES]}


def start(run, port, url):
    """Starts glewlwyd at `port` with the public URL `url`."""
    if not SCHEMA.exists() and not DEBIAN_SCHEMA.exists():
        raise Failure("glewlwyd is not installed", "run scripts/test --providers, which installs it")
    create_database(run.folder / "glewlwyd.db")
    (run.folder / "no-modules").mkdir()
    # Debian links config.json to a folder, so that its login page finds no settings.
    shutil.copytree(WEB_PAGES, run.folder / "webapp", ignore=shutil.ignore_patterns("config.json"))
    shutil.copy(WEB_SETTINGS, run.folder / "webapp" / "config.json")
    types = ",\n".join(f'{{ extension = "{end}"; mime_type = "{kind}"; }}' for end, kind in MIME_TYPES.items())
    configuration = run.folder / "glewlwyd.conf"
    configuration.write_text(
        CONFIGURATION.format(port=port, url=url, folder=run.folder, modules=MODULES, types=types))
    run.start("glewlwyd", ["glewlwyd", "--config-file", str(configuration)])
    run.wait_for_port(port)


def create_database(path):
    schema = gzip.decompress(SCHEMA.read_bytes()).decode() if SCHEMA.exists() else DEBIAN_SCHEMA.read_text()
    # A new installation has no field for the subject of a client's certificate (RFC 8705, section 2.1.2).
    field = '"tls_client_auth_san_dns":'
    schema = schema.replace(
        field, '"tls_client_auth_subject_dn":{"multiple":false,"read":true,"write":true},' + field)
    path.touch(mode=0o600)
    database = sqlite3.connect(path)
    database.executescript(schema)
    database.close()


def configure(port, url, account, redirect_uris):
    """Adds scopes, both plugins, clients and the user of `account`."""
    admin = Admin(f"http://127.0.0.1:{port}/api")
    admin.post("/auth/", ADMINISTRATOR)
    for scope in SCOPES:
        admin.post("/scope/", {"name": scope, "display_name": scope, "password_required": False, "scheme": {}})
    for name, kind, key in plugins():
        admin.post("/mod/plugin/", {
            "module": "oidc", "name": name, "display_name": name, "order_rank": 0, "readonly": False,
            "parameters": {**PLUGIN, "iss": f"{url}/api/{name}", "jwt-type": kind, "jwt-key-size": "256",
                           "key": private_pem(key).decode(), "cert": public_pem(key).decode()}})
    grants = ["code", "refresh_token", "password", "device_authorization"]
    client = {"enabled": True, "scope": [], "redirect_uri": redirect_uris, "authorization_type": grants}
    admin.post("/client/", {**client, "client_id": account["public_client"], "name": "public client",
                            "confidential": False, "token_endpoint_auth_method": ["none"]})
    admin.post("/client/", {
        **client, "client_id": account["confidential_client"], "name": "confidential client", "confidential": True,
        "scope": SCOPES, "client_secret": account["secret"], "authorization_type": [*grants, "client_credentials"],
        "token_endpoint_auth_method": ["client_secret_basic", "client_secret_post"]})
    admin.post("/client/", {
        **client, "client_id": account["certificate_client"], "name": "client with a certificate", "confidential": True,
        "scope": SCOPES, "authorization_type": ["client_credentials"],
        "token_endpoint_auth_method": ["tls_client_auth"],
        "tls_client_auth_subject_dn": f"CN={account['certificate_client']}"})
    admin.post("/user/", {
        "username": account["username"], "password": account["password"], "name": "Test User", "enabled": True,
        "email": "user@example.com", "scope": ["g_profile", "openid", *SCOPES]})


def plugins():
    return [("es256", "ecdsa", ec.generate_private_key(ec.SECP256R1())),
            ("eddsa", "eddsa", ed25519.Ed25519PrivateKey.generate())]


class Admin:
    """A session of the administrator."""

    def __init__(self, url):
        self.url, self.cookie = url, None

    def post(self, path, document):
        request = urllib.request.Request(
            self.url + path, json.dumps(document).encode(), {"Content-Type": "application/json"})
        if self.cookie:
            request.add_header("Cookie", self.cookie)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                # The cookie is for TLS only, so that a cookie jar would not send it here.
                self.cookie = (response.headers["Set-Cookie"] or self.cookie or "").split(";")[0]
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise Failure(f"glewlwyd refuses {path}: {error.code} {text}", "see the settings in glewlwyd.py") from None
