"""certificates.py FOLDER: creates valid and invalid client certificates, each with its key: NAME.pem, NAME.key,
and NAME.chain.pem if it has a chain.

`authority.pem` is the authority for the gate's configuration.
"""
import base64
import datetime
import pathlib
import subprocess
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

folder = pathlib.Path(sys.argv[1])
now = datetime.datetime.utcnow()
day = datetime.timedelta(days=1)
basic = {"authority": x509.BasicConstraints(True, None), "leaf": x509.BasicConstraints(False, None)}


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def make(subject, issuer=None, kind="leaf", start=-1, end=365, further=()):
    """Returns a certificate and its key; `issuer` is such a pair, or None for a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    own, signer = (issuer[0].subject, issuer[1]) if issuer else (name(subject), key)
    builder = (x509.CertificateBuilder().subject_name(name(subject)).issuer_name(own).public_key(key.public_key())
               .serial_number(x509.random_serial_number()).not_valid_before(now + start * day)
               .not_valid_after(now + end * day).add_extension(basic[kind], critical=True))
    for extension, critical in further:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signer, hashes.SHA256()), key


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_bytes(key, encoding=serialization.Encoding.PEM):
    return key.private_bytes(encoding, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


def save(title, pair, *chain):
    (folder / f"{title}.pem").write_bytes(pem(pair[0]))
    if chain:
        (folder / f"{title}.chain.pem").write_bytes(b"".join(map(pem, chain)))
    (folder / f"{title}.key").write_bytes(key_bytes(pair[1]))


def spliced(key, other):
    """Returns a key with the public half of `key` and the private half of `other`."""
    one, two = (bytearray(key_bytes(k, serialization.Encoding.DER)) for k in (key, other))
    # SEQUENCE, version 1, OCTET STRING of 32 bytes: the private half is at 7 in both.
    one[7:39] = two[7:39]
    text = base64.encodebytes(bytes(one)).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n"


authority = make("Debug CA", kind="authority")
rogue = make("Debug CA", kind="authority")
intermediate = make("Debug CA 2", authority, "authority")
good = make("good", authority)
server_only = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
client_only = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
unknown = x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4.5.6.7"), b"\x05\x00")

save("authority", authority)
save("good", good)
save("client-only", make("client-only", authority, further=[(client_only, False)]))
save("intermediate", (leaf := make("intermediate", intermediate)), intermediate[0])
save("intermediate-missing", leaf)
save("expired", make("expired", authority, start=-20, end=-1))
save("not-yet-valid", make("not-yet-valid", authority, start=1))
save("other-authority", make("other-authority", make("Another CA", kind="authority")))
save("same-name-authority", make("same-name-authority", rogue), rogue[0])
save("self-signed", make("self-signed"))
save("self-signed-in-the-name", make("Debug CA"))
save("leaf-as-issuer", make("leaf-as-issuer", good), good[0])
save("expired-intermediate", make("below", (old := make("Old CA", authority, "authority", -20, -1))), old[0])
save("server-only", make("server-only", authority, further=[(server_only, False)]))
save("unknown-critical", make("unknown-critical", authority, further=[(unknown, True)]))
save("unknown-uncritical", make("unknown-uncritical", authority, further=[(unknown, False)]))
save("bad-signature", good)
(folder / "bad-signature.key").write_text(spliced(good[1], rogue[1]))

# The library cannot create version 1 certificates, so openssl does.
key = folder / "version-1.key"
key.write_bytes(key_bytes(ec.generate_private_key(ec.SECP256R1())))
request = subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=version-1"], check=True, capture_output=True)
subprocess.run(["openssl", "x509", "-req", "-days", "30", "-CA", folder / "authority.pem", "-CAkey", folder / "authority.key",
                "-CAcreateserial", "-out", folder / "version-1.pem"], check=True, capture_output=True, input=request.stdout)
