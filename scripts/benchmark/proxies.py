"""Configurations of nginx, HAProxy and the gate for the same task, in front of one or several echo servers."""

import json
import subprocess
import time

from processes import Failed, free_port

PROXY_CORE, LOAD_CORE = 0, 1

NGINX = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log crit;
worker_rlimit_nofile {files};
events {{ worker_connections {files}; multi_accept on; }}
http {{
  access_log off;
  client_body_temp_path {folder}/nginx-body;
  proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-fastcgi;
  uwsgi_temp_path {folder}/nginx-uwsgi;
  scgi_temp_path {folder}/nginx-scgi;
  upstream echo {{
    {nginx_servers}
  }}
  server {{
    listen 127.0.0.1:{port} ssl backlog=4096;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    ssl_ecdh_curve X25519;
    ssl_session_cache off;
    ssl_session_tickets off;
    ssl_buffer_size 16k;
    location / {{
      proxy_pass http://echo;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
      proxy_set_header Host $host;
      proxy_buffer_size 16k;
      proxy_buffers 4 16k;
      proxy_read_timeout 1h;
      proxy_send_timeout 1h;
    }}
  }}
}}
"""

HAPROXY = """\
global
  nbthread 1
  maxconn {half}
  tune.bufsize 16384
  tune.ssl.cachesize 0
  ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets
  ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
  ssl-default-bind-curves X25519
defaults
  mode http
  timeout connect 10s
  timeout client 1h
  timeout server 1h
  timeout tunnel 1h
frontend front
  bind 127.0.0.1:{port} ssl crt {folder}/haproxy.pem backlog 4096
  default_backend echo
backend echo
  {haproxy_servers}
"""

GATE = """\
version: 1
listen: {{ address: 127.0.0.1, port: {port}, loops: {loops} }}
tls: {{ cert_file: "{certificate}", key_file: "{key}", min_version: "1.3" }}
app_attest:
  enforcement: {enforcement}
  apps: [{{ team_id: SALLYPORT1, bundle_id: com.example.app, environments: [development] }}]
  trust: {{ attestation_root_file: "{authority}/attestation-root.pem", receipt_root_file: "{authority}/receipt-root.pem" }}
routes: [{{ path: /, upstream: {upstreams} }}]
session: {{ idle_timeout: off, ping: off }}
store: {{ url: "{store}" }}
limits: {{ global_sessions: {sessions}, per_key: {{ sessions: off }} }}
{more}
"""


class Bench:
    """A folder with a CA, echo servers, and the configurations of the proxies in front of them."""

    def __init__(self, processes, folder, binaries, files, gate, echoes=1):
        """`binaries` is the folder of the build; `gate` is the gate to measure."""
        self.processes, self.folder, self.binaries, self.files, self.gate = processes, folder, binaries, files, gate
        self.authority = folder / "authority"
        self.certificate, self.key = folder / "server.pem", folder / "server.key"
        self._make_authority()
        self._make_certificate()
        self.backends = [self._start_echo() for _ in range(echoes)]
        self.count = 0

    def _start_echo(self):
        """Starts an echo server. Returns its port."""
        port = free_port()
        self.processes.start(
            [self.binaries / "attest", "echo", "--listen", f"127.0.0.1:{port}"], self.folder / "echo.log",
            LOAD_CORE).wait_for_port(port)
        return port

    def _make_authority(self):
        """Runs `sallyport dev` to create the roots of simulated devices."""
        port = free_port()
        dev = self.processes.start(
            [self.binaries / "sallyport", "dev", "--folder", self.authority, "--port", port], self.folder / "dev.log")
        dev.wait_for_port(port).end()

    def _make_certificate(self):
        """Creates the P-256 certificate of all proxies. It is self-signed, so that the load verifies no chain."""
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True)
        (self.folder / "haproxy.pem").touch(mode=0o600)
        (self.folder / "haproxy.pem").write_text(self.certificate.read_text() + self.key.read_text())

    def start(self, name, program=None, settings=None, **options):
        """Starts a new `nginx`, `haproxy`, `gate` (without enforcement), `gate-verified` or `gate-two-loops`.

        `program` replaces the built gate, and `settings` replace `store`, `sessions` and `more` in the gate's
        configuration; the options are those of `Proxy`.
        """
        self.count += 1
        port = free_port()
        addresses = [f"127.0.0.1:{backend}" for backend in self.backends]
        upstreams = [f"ws://{address}" for address in addresses]
        values = dict(
            folder=self.folder, authority=self.authority, certificate=self.certificate, key=self.key,
            nginx_servers="\n    ".join(f"server {address} max_fails=0;" for address in addresses),
            haproxy_servers="\n  ".join(f"server echo{number} {address}" for number, address in enumerate(addresses)),
            upstreams=json.dumps(upstreams if len(upstreams) > 1 else upstreams[0]), port=port, files=self.files,
            half=(self.files - 100) // 2, store=f"sqlite://{self.folder}/{name}-{self.count}.db", sessions=20_000,
            more="", enforcement="enforce" if name == "gate-verified" else "off",
            loops=2 if name == "gate-two-loops" else 1)
        values.update(settings or {})
        config = self.folder / f"{name}-{self.count}.conf"
        template = {"nginx": NGINX, "haproxy": HAPROXY}.get(name, GATE)
        config.write_text(template.format(**values))
        command = {
            "nginx": ["nginx", "-e", self.folder / "nginx.log", "-c", config],
            "haproxy": ["haproxy", "-db", "-f", config],
        }.get(name, [program or self.gate, "run", "-c", config])
        return Proxy(name, port, command, self, **options)


class Proxy:
    """A running proxy on its core."""

    def __init__(self, name, port, command, bench, wrapper=(), environment=None, patience=20):
        self.name, self.port, self.bench = name, port, bench
        self.url = f"wss://127.0.0.1:{port}/"
        self.process = bench.processes.start(
            [*wrapper, *command], bench.folder / f"{name}.log", PROXY_CORE if name != "gate-two-loops" else None,
            environment=environment)
        self.process.wait_for_port(port, patience)

    @property
    def is_verifying(self):
        return self.name == "gate-verified"

    def settled_memory(self):
        """Returns its memory once it no longer changes."""
        last = self.process.memory
        for _ in range(20):
            time.sleep(0.2)
            now = self.process.memory
            if abs(now - last) < 65536:
                return now
            last = now
        return last

    def end(self):
        self.process.end()


def versions():
    """Returns the versions of the compared programs, for the report."""
    nginx = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.strip().rpartition("/")[2]
    haproxy = subprocess.run(["haproxy", "-v"], capture_output=True, text=True).stdout.split()
    if not nginx or len(haproxy) < 3:
        raise Failed("nginx or haproxy does not print its version")
    return {"nginx": nginx, "haproxy": haproxy[2]}
