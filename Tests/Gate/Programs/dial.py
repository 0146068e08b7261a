"""A client by Python's websockets: opens a socket, sends messages, prints the answers.

    dial.py URL --ca PEM [--cert PEM --key PEM] [--tls 1.2|1.3] [--offer SUBPROTOCOL]... [MESSAGE ...]

Reads header lines `Name: value` from standard input until its end. Writes lines of JSON: {"opened": TLS version}, with
--offer {"chosen": subprotocol}, and {"received": text} for each message, or {"refused": status} and {"failed": reason}, and exits 1.
"""
import argparse
import asyncio
import inspect
import json
import ssl
import sys

import websockets


def tell(**event):
    print(json.dumps(event), flush=True)


def context(options):
    context = ssl.create_default_context(cafile=options.ca)
    if options.cert:
        context.load_cert_chain(options.cert, options.key)
    if options.tls:
        version = ssl.TLSVersion.TLSv1_2 if options.tls == "1.2" else ssl.TLSVersion.TLSv1_3
        context.minimum_version = context.maximum_version = version
    return context


def status(error):
    answer = getattr(error, "response", None)
    return answer.status_code if answer else getattr(error, "status_code", None)


async def main(options):
    headers = [tuple(part.strip() for part in line.split(":", 1)) for line in sys.stdin if line.strip()]
    # The parameter's name before version 14, and since.
    known = inspect.signature(websockets.connect.__init__).parameters
    name = "extra_headers" if "extra_headers" in known else "additional_headers"
    try:
        async with websockets.connect(
                options.url, ssl=context(options), subprotocols=options.offer, **{name: headers}) as socket:
            transport = getattr(socket, "transport")
            tell(opened=transport.get_extra_info("ssl_object").version())
            if options.offer:
                tell(chosen=socket.subprotocol or "")
            for message in options.messages:
                await socket.send(message)
                answer = await asyncio.wait_for(socket.recv(), 10)
                tell(received=answer if isinstance(answer, str) else answer.decode())
        return 0
    except Exception as error:
        if status(error):
            tell(refused=status(error))
        else:
            tell(failed=f"{type(error).__name__}: {error}")
        return 1


parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("--ca", required=True)
parser.add_argument("--cert")
parser.add_argument("--key")
parser.add_argument("--tls")
parser.add_argument("--offer", action="append")
parser.add_argument("messages", nargs="*")
sys.exit(asyncio.run(main(parser.parse_intermixed_args())))
