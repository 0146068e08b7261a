"""Simulated devices outside of what is tested, and what a gate has acknowledged to them."""
import http.client
import re
import socket
import ssl

from virtual_machine import Failed, run


class Phone:
    """A device of its own, and what the gate has acknowledged to it."""

    def __init__(self, number, device, work):
        self.number, self.device, self.worker = number, device, None
        self.environment = {**device.environment, "XDG_DATA_HOME": str(work / f"phone{number}")}
        # The identifier of its key, once the gate has acknowledged the registration.
        self.key, self.is_revoked = None, False
        # Whether a revocation was sent. If no answer came, both outcomes are possible.
        self.may_be_revoked = False
        self.accepted = []

    def attest(self, command, *arguments, within=60):
        return run(*self.device.program("attest"), command, self.device.url, "--authority", self.device.authority,
                   *arguments, within=within, env=self.environment)

    def register(self):
        self.attest("register")
        self.key = self.key_of(self.fields())

    def fields(self):
        return [line for line in self.attest("headers").splitlines() if ": " in line]

    def key_of(self, proof):
        return next(line.split(": ", 1)[1] for line in proof if line.startswith("X-App-Assert-KeyId: "))

    def proof(self):
        """The header fields of a connection that no gate has seen yet."""
        proof = self.fields()
        if self.key_of(proof) != self.key:
            raise Failed(f"phone {self.number}: it has another key than the one that was registered")
        return proof

    def get_in(self):
        proof = self.proof()
        status = opening(self.device, proof)
        if status != 101:
            raise Failed(f"phone {self.number}: the gate answered {status}")
        self.accepted.append(proof)


def opening(device, proof):
    """Opens a WebSocket with these header fields, and returns the status of the answer."""
    context = ssl.create_default_context(cafile=device.authority / "tls-ca.pem")
    port = int(re.search(r":(\d+)", device.url).group(1))
    head = ["GET / HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *proof, "", ""]
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        with context.wrap_socket(connection, server_hostname="localhost") as stream:
            stream.sendall("\r\n".join(head).encode())
            answer = b""
            while b"\r\n" not in answer:
                part = stream.recv(4096)
                if not part:
                    raise OSError("the gate closed the connection without an answer")
                answer += part
    return int(answer.split(b" ")[1])


def answer(device, path, fields, within=120):
    """Sends GET with these header fields, and returns the status of the answer."""
    context = ssl.create_default_context(cafile=device.authority / "tls-ca.pem")
    port = int(re.search(r":(\d+)", device.url).group(1))
    connection = http.client.HTTPSConnection("localhost", port, timeout=within, context=context)
    try:
        connection.request("GET", path, headers=dict(field.split(": ", 1) for field in fields))
        response = connection.getresponse()
        response.read()
        return response.status
    except http.client.HTTPException as error:
        raise OSError(f"{path}: {error!r}") from error
    finally:
        connection.close()
