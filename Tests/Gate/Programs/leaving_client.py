"""A client that leaves: leaving_client.py PORT AUTHORITY.

Sends what it reads from standard input over TLS, waits half a second, and resets the connection.
"""

import socket
import ssl
import struct
import sys
import time

connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
tls = ssl.create_default_context(cafile=sys.argv[2]).wrap_socket(connection, server_hostname="localhost")
tls.sendall(sys.stdin.buffer.read())
time.sleep(0.5)
tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
tls.close()
