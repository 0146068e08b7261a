"""A server on loopback whose answers are no HTTP: answers.py CERTIFICATE KEY

Speaks HTTP/2 or HTTP/1.1, as the client chooses. The target of a request is its answer: `/204` is an answer with this
status, `/mute` none at all; after `/mute` the connection stays silent. Prints its port, then `connection` for each one.
"""
import socket
import ssl
import sys
import threading

import h2.config
import h2.connection
import h2.events

MUTE = "/mute"


def ignore(connection):
    while connection.recv(65536):
        pass


def http1(connection):
    text = b""
    while b"\r\n\r\n" not in text:
        more = connection.recv(65536)
        if not more:
            return
        text += more
    target = text.split()[1].decode()
    if target == MUTE:
        return ignore(connection)
    connection.sendall(f"HTTP/1.1 {target[1:]} X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi".encode())


def http2(connection):
    # Without the library's own checks, which know what a status is.
    config = h2.config.H2Configuration(
        client_side=False, validate_outbound_headers=False, normalize_outbound_headers=False)
    session = h2.connection.H2Connection(config)
    session.initiate_connection()
    connection.sendall(session.data_to_send())
    while True:
        data = connection.recv(65536)
        if not data:
            return
        for event in session.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                # Versions of the library differ in whether fields are texts or bytes.
                fields = {(name if isinstance(name, str) else name.decode()): value for name, value in event.headers}
                target = fields[":path"]
                target = target if isinstance(target, str) else target.decode()
                if target == MUTE:
                    return ignore(connection)
                session.send_headers(event.stream_id, [(":status", target[1:])])
                session.send_data(event.stream_id, b"hi", end_stream=True)
        connection.sendall(session.data_to_send())


def serve(connection, context):
    try:
        with context.wrap_socket(connection, server_side=True) as secured:
            print("connection", flush=True)
            (http2 if secured.selected_alpn_protocol() == "h2" else http1)(secured)
    except (OSError, ssl.SSLError):
        pass


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    context.set_alpn_protocols(["h2", "http/1.1"])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, context), daemon=True).start()


main()
