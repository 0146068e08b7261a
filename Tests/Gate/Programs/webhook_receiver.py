"""A receiver of webhooks that verifies them by the reference library: webhook_receiver.py SECRET [CERTIFICATE KEY].

Answers the first requests with the statuses in RECEIVER_ANSWERS, separated by blanks, and later ones with 204.

Prints {"port": ...} first, then one line of JSON for each request: its status, its id, and its message; a message that
the library does not accept is printed with "error" and answered with 400.
"""

import http.server
import json
import os
import ssl
import sys

from standardwebhooks.webhooks import Webhook

ANSWERS = iter([int(status) for status in os.environ.get("RECEIVER_ANSWERS", "").split()])
HOOK = Webhook(sys.argv[1])


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        line = {"id": self.headers["webhook-id"], "path": self.path, "type": self.headers["Content-Type"]}
        try:
            line["message"] = HOOK.verify(body, dict(self.headers.items()))
            line["status"] = next(ANSWERS, 204)
        except Exception as error:
            line.update(error=repr(error), status=400)
        print(json.dumps(line, sort_keys=True), flush=True)
        self.send_response(line["status"])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
if len(sys.argv) == 4:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(json.dumps({"port": server.server_address[1]}), flush=True)
server.serve_forever()
