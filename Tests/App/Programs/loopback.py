"""loopback.py: what the programs of the sign-in tests share: a temporary folder, child processes, free ports and
certificates. A program runs until its standard input closes or it gets SIGTERM, and leaves nothing behind."""

import ctypes
import datetime
import ipaddress
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DEADLINE = 30  # Seconds until a child must answer.
DAY = datetime.timedelta(days=1)


class Failure(Exception):
    """An error for the operator, with a hint that says what to do."""

    def __init__(self, text, hint):
        super().__init__(text)
        self.hint = hint


class Run:
    """A temporary folder with child processes. At its end, the children exit first and the folder is removed then."""

    def __init__(self, name):
        self.name, self.children = name, []

    def __enter__(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"sallyport-{self.name}-"))
        return self

    def __exit__(self, *error):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for child in reversed(self.children):
            end(child)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, arguments, **environment):
        """Starts a child. Its output is in the file `NAME.log` of the folder."""
        log = open(self.folder / f"{name}.log", "wb")
        try:
            child = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                env={**os.environ, **environment}, preexec_fn=die_with_parent)
        except FileNotFoundError:
            raise Failure(f"{arguments[0]} is not installed", "run scripts/test --providers, which installs it") from None
        finally:
            log.close()
        child.name = name
        self.children.append(child)
        return child

    def check_children(self):
        """Throws if a child exited."""
        for child in self.children:
            if child.poll() is not None:
                log = (self.folder / f"{child.name}.log").read_text(errors="replace")
                raise Failure(f"{child.name} exited with status {child.returncode}", "its output ends with:\n" + log[-2000:])

    def wait_for_port(self, port):
        """Returns as soon as `port` accepts connections."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            self.check_children()
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise Failure(f"no answer at port {port} within {DEADLINE} s", "try again on a machine with less load")

    def serve(self, description):
        """Prints one line of JSON, and returns when standard input closes."""
        print(json.dumps(description), flush=True)
        while True:
            self.check_children()
            readable, _, _ = select.select([0], [], [], 0.5)
            if readable and not os.read(0, 65536):
                return


def die_with_parent():
    """Linux kills the child if this program is killed without a chance to clean up."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def end(child):
    """Ends a child and the processes that it started, by their session."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        if child.poll() is None:
            try:
                os.killpg(child.pid, number)
                child.wait(patience)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


def free_port():
    """A port of 127.0.0.1 that is free, and that Linux gives to no client and no server that listens on port 0."""
    first, last = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    fixed = [port for port in range(10_000, 65_536) if not first <= port <= last]
    for port in random.sample(fixed, len(fixed)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise Failure("no port of 127.0.0.1 is free", "end other programs")


def main_of(program):
    """Runs `program` and prints a failure as `error:` and `hint:`."""
    try:
        sys.exit(program())
    except Failure as failure:
        print(f"error: {failure}\nhint: {failure.hint}", file=sys.stderr)
        sys.exit(1)


class Authority:
    """A throw-away certificate authority. Its certificate is in `file`."""

    def issue_client(self, name, kind=ExtendedKeyUsageOID.CLIENT_AUTH):
        """Writes a certificate for a client called `name` and its key, and returns both paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            builder(subject, self.certificate.subject, key, x509.BasicConstraints(False, None))
            .add_extension(x509.ExtendedKeyUsage([kind]), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(self.key, hashes.SHA256()))
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(private_pem(key))
        paths[1].chmod(0o600)
        return paths

    def __init__(self, folder):
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.file = folder / "ca.pem"
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sallyport sign-in tests")])
        self.certificate = builder(name, name, self.key, x509.BasicConstraints(True, 0)).sign(self.key, hashes.SHA256())
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, kind="good"):
        """Writes a certificate for localhost and its key, and returns both paths.

        `kind` is `good`, or what is wrong: `self_signed`, `expired` or `other_host`.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        host = "other.example" if kind == "other_host" else "localhost"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        names = [x509.DNSName(host)]
        if host == "localhost":
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        issuer, signer = (subject, key) if kind == "self_signed" else (self.certificate.subject, self.key)
        certificate = (
            builder(subject, issuer, key, x509.BasicConstraints(False, None), expired=kind == "expired")
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
            .sign(signer, hashes.SHA256()))
        paths = self.folder / "server.pem", self.folder / "server.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(private_pem(key))
        paths[1].chmod(0o600)
        return paths


def builder(subject, issuer, key, constraints, expired=False):
    now = datetime.datetime.utcnow()
    end = now - DAY if expired else now + 30 * DAY
    return (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - 5 * DAY).not_valid_after(end)
        .add_extension(constraints, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False))


def private_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
