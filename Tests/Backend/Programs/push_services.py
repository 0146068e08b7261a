"""A push service on loopback that checks what it gets, as Apple's and Google's do.

    push_services.py apns CERTIFICATE KEY PUBLIC_KEY      HTTP/2 with TLS
    push_services.py fcm PUBLIC_KEY                       HTTP/1.1: the token server and the messages

Prints `port N`, then one line of JSON for each request. Lines of JSON on standard input are commands:

    {"answer": STATUS, "headers": {...}, "body": {...}}   the answer to the next request that passes the checks
    {"hang": true}                                        no answer to the next request
    {"now": SECONDS}                                      the time of the service, instead of the clock
    {"token": STATUS, "headers": {...}}                   the answer to the next request for an access token
    {"sync": true}                                        nothing; its answer follows those of the requests before
    {"forget": true}                                      access tokens given so far are not valid any more
    {"strange": STATUS}                                   from now on every answer has this status and no JSON; 0 ends it
"""
import collections
import http.server
import json
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse

import jwt

answers = collections.deque()
token_answers = collections.deque()
state = {"now": None, "tokens": set(), "issued": 0, "connections": 0, "strange": 0}
lock = threading.Lock()
output = threading.Lock()


def now():
    return state["now"] or time.time()


def tell(**line):
    with output:
        print(json.dumps(line), flush=True)


def obey():
    for line in sys.stdin:
        command = json.loads(line)
        with lock:
            if "now" in command:
                state["now"] = command["now"]
            elif "strange" in command:
                state["strange"] = command["strange"]
            elif "token" in command:
                token_answers.append(command)
            elif "sync" in command:
                pass
            elif "forget" in command:
                state["tokens"].clear()
            else:
                answers.append(command)
        tell(obeyed=True)
    import os
    os._exit(0)


def scripted():
    with lock:
        return answers.popleft() if answers else {"answer": 200}


class Refused(Exception):
    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


# --- APNs

def provider_token(headers, key, used):
    """Checks the provider token, and returns it with its claims."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme != "bearer" or not text:
        raise Refused(403, "MissingProviderToken")
    try:
        header = jwt.get_unverified_header(text)
        claims = jwt.decode(text, key, algorithms=["ES256"], options={"verify_iat": False})
    except jwt.PyJWTError:
        raise Refused(403, "InvalidProviderToken")
    if header.get("alg") != "ES256" or len(header.get("kid", "")) != 10 or len(claims.get("iss", "")) != 10:
        raise Refused(403, "InvalidProviderToken")
    if set(claims) != {"iss", "iat"} or not isinstance(claims["iat"], int):
        raise Refused(403, "InvalidProviderToken")
    if not -60 < now() - claims["iat"] < 3600:
        raise Refused(403, "ExpiredProviderToken")
    if used and used[-1][0] != text:
        if claims["iat"] - used[-1][1] < 1200:
            raise Refused(429, "TooManyProviderTokenUpdates")
    used.append((text, claims["iat"]))
    return {"kid": header["kid"], **claims}


def check_apns(headers, body):
    if headers[":method"] != "POST":
        raise Refused(405, "MethodNotAllowed")
    path = re.fullmatch(r"/3/device/([0-9a-f]+)", headers[":path"])
    if not path:
        raise Refused(404, "BadPath")
    if not headers.get("apns-topic"):
        raise Refused(400, "MissingTopic")
    if len(path[1]) < 64:
        raise Refused(400, "BadDeviceToken")
    if headers.get("apns-push-type") != "alert":
        raise Refused(400, "InvalidPushType")
    if headers.get("apns-priority") not in ("5", "10"):
        raise Refused(400, "BadPriority")
    if not headers.get("apns-expiration", "").isdigit():
        raise Refused(400, "BadExpirationDate")
    if not 1 <= len(headers.get("apns-collapse-id", "").encode()) <= 64:
        raise Refused(400, "BadCollapseId")
    if len(body) > 4096:
        raise Refused(413, "PayloadTooLarge")
    try:
        payload = json.loads(body)
        assert payload["aps"]["alert"]["title"] and payload["aps"]["alert"]["body"]
    except (ValueError, KeyError, AssertionError, TypeError):
        raise Refused(400, "PayloadEmpty")
    return payload


def serve_apns(certificate, key_file, public_key):
    import h2.config
    import h2.connection
    import h2.events

    key = open(public_key).read()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key_file)
    context.set_alpn_protocols(["h2"])
    used = []

    def answer(connection, stream, headers, body, number):
        status, fields, reply, claims, payload = 200, {}, None, None, None
        if state["strange"]:
            connection.send_headers(stream, [(":status", str(state["strange"]))])
            connection.send_data(stream, b"<html>", end_stream=True)
            return
        try:
            claims = provider_token(headers, key, used)
            payload = check_apns(headers, body)
            script = scripted()
            if script.get("hang"):
                tell(path=headers[":path"], hung=True, connection=number)
                return
            status, fields, reply = script["answer"], script.get("headers", {}), script.get("body")
        except Refused as fault:
            status, reply = fault.status, {"reason": fault.reason}
        tell(path=headers[":path"], headers=headers, claims=claims, payload=payload, status=status,
             reason=(reply or {}).get("reason"), connection=number, size=len(body))
        text = json.dumps(reply).encode() if reply is not None else b""
        connection.send_headers(stream, [(":status", str(status)), *fields.items()], end_stream=not text)
        if text:
            connection.send_data(stream, text, end_stream=True)

    def serve(plain):
        try:
            channel = context.wrap_socket(plain, server_side=True)
        except (ssl.SSLError, OSError):
            return
        with lock:
            state["connections"] += 1
            number = state["connections"]
        if channel.selected_alpn_protocol() != "h2":
            return channel.close()
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        channel.sendall(connection.data_to_send())
        requests = {}
        try:
            while data := channel.recv(65536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        requests[event.stream_id] = (dict(event.headers), bytearray())
                    elif isinstance(event, h2.events.DataReceived):
                        requests[event.stream_id][1].extend(event.data)
                        connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, h2.events.StreamEnded):
                        headers, body = requests.pop(event.stream_id)
                        answer(connection, event.stream_id, headers, bytes(body), number)
                channel.sendall(connection.data_to_send())
        except OSError:
            pass

    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(f"port {listener.getsockname()[1]}", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


# --- FCM

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def fcm_error(status, name, code=None, field=None):
    details = []
    if code:
        details.append({"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code})
    if field:
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest",
                        "fieldViolations": [{"field": field, "description": "invalid"}]})
    return status, {"error": {"code": status, "message": "refused", "status": name, "details": details}}


def check_fcm(message):
    """Checks the JSON of a message as Google's API does: unknown names and wrong types are refused."""
    def names(value, allowed, place):
        if not isinstance(value, dict) or set(value) - allowed:
            raise Refused(400, place)

    names(message, {"token", "notification", "data", "android"}, "message")
    names(message["notification"], {"title", "body"}, "message.notification")
    if not all(isinstance(value, str) for value in message["data"].values()):
        raise Refused(400, "message.data")
    android = message["android"]
    names(android, {"priority", "ttl", "collapse_key", "notification"}, "message.android")
    if android["priority"] not in ("HIGH", "NORMAL"):
        raise Refused(400, "message.android.priority")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?s", android["ttl"]):
        raise Refused(400, "message.android.ttl")
    names(android["notification"], {"channel_id", "click_action", "tag", "visibility"}, "message.android.notification")


def serve_fcm(public_key):
    key = open(public_key).read()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/token":
                return self.token(body)
            self.message(body)

        def reply(self, status, value, fields=None):
            text = json.dumps(value).encode()
            self.send_response(status)
            for name, field in (fields or {}).items():
                self.send_header(name, field)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def token(self, body):
            form = urllib.parse.parse_qs(body.decode())
            with lock:
                script = token_answers.popleft() if token_answers else {"token": 200}
            status, fault, claims = script["token"], None, None
            try:
                address = f"http://127.0.0.1:{self.server.server_address[1]}/token"
                assert form["grant_type"] == [GRANT]
                header = jwt.get_unverified_header(form["assertion"][0])
                claims = jwt.decode(form["assertion"][0], key, algorithms=["RS256"], audience=address,
                                    options={"verify_exp": False, "verify_iat": False})
                assert header["alg"] == "RS256" and header["kid"] and claims["scope"] == SCOPE
                assert claims["exp"] - claims["iat"] <= 3600 and claims["exp"] > now() and claims["iat"] <= now() + 60
            except (AssertionError, KeyError, jwt.PyJWTError) as error:
                status, fault = 400, repr(error)
            tell(path=self.path, status=status, claims=claims, fault=fault)
            if status != 200:
                return self.reply(status, {"error": "invalid_grant"}, script.get("headers"))
            with lock:
                state["issued"] += 1
                text = f"access-{state['issued']}"
                state["tokens"].add(text)
            self.reply(200, {"access_token": text, "expires_in": script.get("lifetime", 3599), "token_type": "Bearer"})

        def message(self, body):
            authorization, message, fields = self.headers.get("Authorization", ""), None, {}
            with lock:
                isKnown = authorization.removeprefix("Bearer ") in state["tokens"]
            if state["strange"]:
                status, value = state["strange"], "<html>"
            elif self.path != "/v1/projects/demo-project/messages:send":
                status, value = fcm_error(404, "NOT_FOUND")
            elif not isKnown:
                status, value = fcm_error(401, "UNAUTHENTICATED")
            else:
                try:
                    request = json.loads(body)
                    message = request["message"]
                    if request.get("validate_only"):
                        raise Refused(400, "message.token")
                    check_fcm(message)
                    script = scripted()
                    if script.get("hang"):
                        tell(path=self.path, hung=True)
                        time.sleep(600)
                    status, value = script["answer"], script.get("body", {"name": "projects/demo-project/messages/1"})
                    fields = script.get("headers", {})
                except Refused as fault:
                    status, value = fcm_error(fault.status, "INVALID_ARGUMENT", "INVALID_ARGUMENT", fault.reason)
                except (ValueError, KeyError, TypeError):
                    status, value = fcm_error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message")
            tell(path=self.path, authorization=authorization, message=message, status=status, size=len(body),
                 refusal=value if status != 200 else None)
            self.reply(status, value, fields)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"port {server.server_address[1]}", flush=True)
    server.serve_forever()


threading.Thread(target=obey, daemon=True).start()
if sys.argv[1] == "apns":
    serve_apns(*sys.argv[2:5])
else:
    serve_fcm(sys.argv[2])
