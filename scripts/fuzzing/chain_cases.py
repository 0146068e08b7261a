"""Generates valid and invalid certificate chains, and the expected verdicts according to `cryptography` and RFC 5280.

The model shares no code with the program: it uses another DER parser and its own implementation of the rules. It
searches all paths to the root, while OpenSSL follows one.
"""

import datetime
from collections import namedtuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cbor_cases import Verdict

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime(2026, 6, 1)
EPOCH = datetime.datetime(1970, 1, 1)
ORDER = 2 ** 255

Issuer = namedtuple("Issuer", "certificate key")


def seconds(instant):
    return int((instant - EPOCH).total_seconds())


# The model.

class Refused(Exception):
    pass


def extension(certificate, kind):
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def is_signed(certificate, issuer):
    try:
        issuer.public_key().verify(
            certificate.signature, certificate.tbs_certificate_bytes, ec.ECDSA(certificate.signature_hash_algorithm))
    except (InvalidSignature, TypeError, ValueError, AttributeError):
        return False
    # SHA-1 signatures are too weak to count.
    return not isinstance(certificate.signature_hash_algorithm, hashes.SHA1)


def may_have_issued(certificate, issuer):
    if certificate.issuer.public_bytes() != issuer.subject.public_bytes():
        return False
    own, other = extension(certificate, x509.AuthorityKeyIdentifier), extension(issuer, x509.SubjectKeyIdentifier)
    return not own or not other or own.key_identifier is None or own.key_identifier == other.digest


def paths(certificate, others, root):
    """Yields every path from `certificate` to `root`."""
    if certificate == root:
        yield [root]
        return
    for issuer in others + [root]:
        if may_have_issued(certificate, issuer):
            rest = [other for other in others if other != issuer]
            yield from ([certificate] + path for path in paths(issuer, rest, root))


def check(path, instant):
    for place, certificate in enumerate(path):
        if not certificate.not_valid_before <= instant <= certificate.not_valid_after:
            raise Refused("not valid at the instant")
        constraints, usage = extension(certificate, x509.BasicConstraints), extension(certificate, x509.KeyUsage)
        # The root is trusted for its name and its key (RFC 5280 section 6.1.1).
        for found in certificate.extensions if certificate != path[-1] else []:
            if found.critical and isinstance(found.value, x509.UnrecognizedExtension):
                raise Refused("an unknown critical extension")
        if place == 0:
            if constraints and constraints.ca:
                raise Refused("the leaf is a CA")
            if usage and not usage.digital_signature:
                raise Refused("the leaf must not sign")
            continue
        if not constraints or not constraints.ca:
            raise Refused("an issuer is not a CA")
        if usage and not usage.key_cert_sign:
            raise Refused("an issuer must not sign certificates")
        # Of the generated certificates only the root is self-issued, and it does not count for the path length.
        if constraints.path_length is not None and place - 1 > constraints.path_length:
            raise Refused("the path is too long")
        if not is_signed(path[place - 1], certificate):
            raise Refused("a signature is wrong")


def expected(root, leaf, intermediates, instant):
    try:
        root, leaf = x509.load_der_x509_certificate(root), x509.load_der_x509_certificate(leaf)
        intermediates = [x509.load_der_x509_certificate(der) for der in intermediates]
        reason = "no path to the root"
        if leaf == root:
            raise Refused("the leaf is the root")
        # RFC 5280 would accept such a root; OpenSSL accepts only self-issued roots.
        if root.issuer != root.subject:
            raise Refused("the root was issued by another")
        for path in paths(leaf, intermediates, root):
            try:
                check(path, instant)
            except Refused as refusal:
                reason = str(refusal)
                continue
            if any(certificate not in path for certificate in intermediates):
                raise Refused("a certificate that is not part of the chain")
            return Verdict("accepted " + facts(path), "")
        raise Refused(reason)
    except Refused as refusal:
        return Verdict("refused", str(refusal))
    except Exception as error:  # the parser raises many kinds of errors
        return Verdict("refused", f"cryptography: {error!r}")


def facts(path):
    leaf = path[0]
    spki = leaf.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    point = leaf.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    number = leaf.serial_number
    serial = number.to_bytes(number.bit_length() // 8 + 1, "big")
    return " ".join((str(len(path)), serial.hex(), str(seconds(leaf.not_valid_before)), str(seconds(leaf.not_valid_after)),
                     spki.hex(), point.hex() if leaf.public_key().curve.name == "secp256r1" else "-"))


# The cases.

def key(rng, curve=None):
    return ec.derive_private_key(rng.randrange(1, ORDER), curve or rng.choice((ec.SECP256R1(), ec.SECP384R1())))


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Test")])


def usage(**said):
    parts = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    return x509.KeyUsage(**{part: said.get(part, False) for part in parts})


class Flaws:
    """The rule that a chain violates, if any. Half of the chains are valid."""

    KINDS = ("early", "late", "no authority", "no constraints", "no cert sign", "path length", "critical", "wrong key",
             "wrong name", "sha1", "leaf authority", "leaf usage")

    def __init__(self, rng):
        self.kind = rng.choice(self.KINDS) if rng.random() < 0.5 else None
        self.place = rng.randrange(4)

    def at(self, place, kind):
        return self.kind == kind and self.place == place


def issue(rng, place, subject, issuer, flaws):
    """Issues the certificate at `place` of the chain; 0 is the leaf. Self-signed if `issuer` is `None`."""
    own = key(rng)
    by = issuer.key if issuer else own
    if flaws.at(place, "wrong key"):
        by = key(rng)
    start = NOW - rng.randrange(1, 400) * DAY if not flaws.at(place, "early") else NOW + DAY
    end = NOW + rng.choice((0, 1, 300, 9000)) * DAY if not flaws.at(place, "late") else NOW - datetime.timedelta(seconds=1)
    start = min(start, end)
    builder = (x509.CertificateBuilder().subject_name(name(subject)).public_key(own.public_key())
               .issuer_name(name("Nobody") if flaws.at(place, "wrong name") else
                            issuer.certificate.subject if issuer else name(subject))
               .serial_number(rng.randrange(1, 1 << 159)).not_valid_before(start).not_valid_after(end))
    for value, critical in extensions(rng, place, own, issuer, flaws):
        builder = builder.add_extension(value, critical)
    digest = hashes.SHA1() if flaws.at(place, "sha1") else rng.choice((hashes.SHA256(), hashes.SHA384()))
    return Issuer(builder.sign(by, digest), own)


def extensions(rng, place, own, issuer, flaws):
    is_leaf = place == 0
    is_authority = flaws.kind == "leaf authority" if is_leaf else not flaws.at(place, "no authority")
    if not flaws.at(place, "no constraints") and (not is_leaf or rng.random() < 0.7 or is_authority):
        length = rng.choice((None, 3)) if is_authority else None
        if flaws.at(place, "path length") and is_authority:
            length = rng.randrange(2)
        yield x509.BasicConstraints(is_authority, length), rng.random() < 0.8
    if is_leaf and (rng.random() < 0.5 or flaws.kind == "leaf usage"):
        yield usage(digital_signature=flaws.kind != "leaf usage", key_agreement=True), True
    if not is_leaf and (rng.random() < 0.7 or flaws.at(place, "no cert sign")):
        yield usage(key_cert_sign=not flaws.at(place, "no cert sign"), crl_sign=True), True
    if rng.random() < 0.6:
        yield x509.SubjectKeyIdentifier.from_public_key(own.public_key()), False
    if issuer and rng.random() < 0.6:
        yield x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), False
    if flaws.at(place, "critical") or rng.random() < 0.2:
        identifier = x509.ObjectIdentifier("1.2.840.113635.100.8.2")
        yield x509.UnrecognizedExtension(identifier, rng.randbytes(6)), flaws.at(place, "critical")


def chain(rng):
    """Returns the root, the leaf and the intermediates as DER."""
    flaws = Flaws(rng)
    length = rng.choice((0, 1, 1, 2))
    above = root = issue(rng, length + 1, "Root", None, flaws)
    intermediates = []
    for place in range(length, 0, -1):
        above = issue(rng, place, f"Authority {place}", above, flaws)
        intermediates.append(above)
    leaf = issue(rng, 0, "Leaf", above, flaws)
    if rng.random() < 0.1:
        intermediates.append(root)
    if rng.random() < 0.05:
        intermediates.append(issue(rng, 1, "Stray", root, flaws))
    if rng.random() < 0.05 and intermediates:
        intermediates.pop(0)
    rng.shuffle(intermediates)
    certificates = [root, leaf] + intermediates
    return [issuer.certificate.public_bytes(serialization.Encoding.DER) for issuer in certificates]


def damaged(rng, der):
    der, place = bytearray(der), rng.randrange(len(der))
    der[place] ^= 1 << rng.randrange(8)
    return bytes(der)


def cases(rng):
    chains = []
    while True:
        # Generating a chain takes longer than verifying it, so each chain is tested valid and with several damages.
        if len(chains) < 200 or rng.random() < 0.2:
            parts = chain(rng)
            chains = (chains + [parts])[-400:]
            instant = NOW
        else:
            parts = list(rng.choice(chains))
            instant = NOW + rng.choice((0, 0, 0, 1, -1, 300)) * DAY + datetime.timedelta(seconds=rng.choice((0, 0, 1)))
            if rng.random() < 0.6:
                place = rng.randrange(1, len(parts))
                parts[place] = damaged(rng, parts[place])
        root, leaf, *intermediates = parts
        line = " ".join(["chain", str(seconds(instant))] + [part.hex() for part in parts])
        yield line, expected(root, leaf, intermediates, instant)
