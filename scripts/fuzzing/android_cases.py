"""Generates Android certificate chains with and without flaws, and the results of the rules about certificates.

The model reads certificates with `cryptography`, which shares no code with the program, and has its own implementation
of the rules: names, signatures, root, authorities, dates, and the place of the attestation extension.
"""

import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

from cbor_cases import Verdict
from chain_cases import DAY, NOW, extension, key, seconds, usage

ATTESTATION = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.1.17")
MODULI = {}


def attests(certificate):
    return any(found.oid == ATTESTATION for found in certificate.extensions)


def is_signed(certificate, issuer):
    algorithm, public = certificate.signature_hash_algorithm, issuer.public_key()
    try:
        if isinstance(public, rsa.RSAPublicKey):
            if not isinstance(algorithm, hashes.SHA256) or not 1024 <= public.key_size <= 4096:
                return False
            public.verify(certificate.signature, certificate.tbs_certificate_bytes, padding.PKCS1v15(), algorithm)
        else:
            if not isinstance(algorithm, (hashes.SHA256, hashes.SHA384)):
                return False
            public.verify(certificate.signature, certificate.tbs_certificate_bytes, ec.ECDSA(algorithm))
    except (InvalidSignature, TypeError, ValueError, AttributeError):
        return False
    return True


def spki(certificate):
    return certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def provisioning(certificate):
    def values(oid):
        return [attribute.value for attribute in certificate.subject.get_attributes_for_oid(oid)]
    names = values(NameOID.COMMON_NAME)
    if values(NameOID.ORGANIZATION_NAME)[:1] == ["Google LLC"] and names and names[0].startswith("Droid CA"):
        return "remote"
    return "factory" if values(NameOID.SERIAL_NUMBER) else "unknown"


def broken(root, chain, instant):
    """Yields the codes of the broken rules."""
    chain = [x509.load_der_x509_certificate(der) for der in chain]
    root = x509.load_der_x509_certificate(root)
    for certificate in chain:
        _ = certificate.extensions  # both refuse an extension that occurs twice
    last = len(chain) - 1
    is_self_issued = chain[-1].issuer.public_bytes() == chain[-1].subject.public_bytes()
    has_root = is_self_issued or spki(chain[-1]) == spki(root)
    issuers = range(1, last if has_root else last + 1)
    kind = provisioning(chain[issuers[-1]]) if issuers else "unknown"
    for place, (certificate, issuer) in enumerate(zip(chain, chain[1:])):
        if certificate.issuer.public_bytes() != issuer.subject.public_bytes():
            yield f"name_chaining[{place}]"
        if not is_signed(certificate, issuer):
            yield f"signature[{place}]"
    if has_root:
        if is_self_issued and not is_signed(chain[-1], chain[-1]):
            yield f"signature[{last}]"
        if spki(chain[-1]) != spki(root):
            yield "root_unknown"
    elif not is_signed(chain[-1], root):
        yield "root_missing_and_not_signed_by_a_known_root"
    for place, certificate in enumerate(chain):
        if any(found.critical and isinstance(found.value, x509.UnrecognizedExtension) and found.oid != ATTESTATION
               for found in certificate.extensions):
            yield f"critical_extension[{place}]"
        if place == 0:
            continue
        if (place < last or not has_root) and certificate.issuer.public_bytes() == certificate.subject.public_bytes():
            yield f"self_issued[{place}]"
        constraints, said = extension(certificate, x509.BasicConstraints), extension(certificate, x509.KeyUsage)
        # Some factories' attestation certificates say that they are no authorities; the root's key signed the one above.
        may_lack_right = place == 1 and issuers == range(1, 3) and kind == "factory" and constraints
        if not may_lack_right and (not constraints or not constraints.ca or said and not said.key_cert_sign):
            yield f"issuer_is_not_a_ca[{place}]"
        if constraints and constraints.path_length is not None and place - 1 > constraints.path_length:
            yield f"path_length[{place}]"
        if attests(certificate):
            yield f"attestation_extension[{place}]"
    expires = kind == "remote"
    for place in issuers:
        if instant < chain[place].not_valid_before:
            yield f"not_yet_valid[{place}]"
        elif expires and chain[place].not_valid_after < instant:
            yield f"expired[{place}]"
    if not attests(chain[0]):
        yield "attestation_extension_missing"


def expected(root, chain, instant):
    try:
        codes = sorted(broken(root, chain, instant))
    except Exception as error:  # the parser raises many kinds of errors
        return Verdict("refused", f"cryptography: {error!r}")
    return Verdict("refused " + ",".join(codes) if codes else "accepted", "")


# The cases.

def rsa_key(rng):
    """One of a few keys: making one takes long."""
    place = rng.randrange(3)
    if place not in MODULI:
        MODULI[place] = rsa.generate_private_key(65537, (2048, 3072, 4096)[place])
    return MODULI[place]


def name(attributes):
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in attributes])


def subject(rng, kind, place, length):
    if kind == "remote" and place >= 2:
        return name([(NameOID.ORGANIZATION_NAME, "Google LLC"), (NameOID.COMMON_NAME, f"Droid CA{place}")])
    if kind == "unknown":
        return name([(NameOID.COMMON_NAME, f"authority {place} {rng.randrange(1 << 30)}")])
    return name([(NameOID.SERIAL_NUMBER, f"{rng.randrange(1 << 60):x}"), (NameOID.TITLE, "TEE")])


FLAWS = ("early", "late", "no authority", "no cert sign", "path length", "critical", "wrong key", "wrong name", "sha1",
         "attestation", "no attestation", "sha512")


def chain(rng):
    """Returns the root and the chain, leaf first, as DER."""
    kind = rng.choice(("factory", "factory", "remote", "unknown"))
    length = rng.choice((2, 2, 3, 4))
    flaw = rng.choice(FLAWS) if rng.random() < 0.5 else None
    at = rng.randrange(length + 1)
    above, made = None, []
    for place in range(length, -1, -1):
        own = rsa_key(rng) if place and rng.random() < 0.2 else key(rng)
        is_flawed = flaw is not None and place == at
        by = above[1] if above else own
        if is_flawed and flaw == "wrong key":
            by = key(rng)
        holder = subject(rng, kind, place, length)
        issuer = above[0].subject if above else holder
        if is_flawed and flaw == "wrong name":
            issuer = name([(NameOID.COMMON_NAME, "Nobody")])
        start = NOW + DAY if is_flawed and flaw == "early" else NOW - rng.randrange(1, 400) * DAY
        end = NOW - datetime.timedelta(seconds=1) if is_flawed and flaw == "late" else NOW + rng.choice((1, 300)) * DAY
        builder = (x509.CertificateBuilder().subject_name(holder).issuer_name(issuer).public_key(own.public_key())
                   .serial_number(rng.randrange(1, 1 << 159)).not_valid_before(min(start, end)).not_valid_after(end))
        if place:
            is_authority = not (is_flawed and flaw == "no authority") and not (place == 1 and rng.random() < 0.2)
            limit = max(0, place - 2) if is_flawed and flaw == "path length" else rng.choice((None, None, 4))
            builder = builder.add_extension(
                x509.BasicConstraints(is_authority, limit if is_authority else None), True)
            if rng.random() < 0.7 or is_flawed and flaw == "no cert sign":
                signs = not (is_flawed and flaw == "no cert sign")
                builder = builder.add_extension(usage(key_cert_sign=signs, digital_signature=not signs), True)
        if place == 0 and flaw != "no attestation" or is_flawed and flaw == "attestation" and place:
            builder = builder.add_extension(x509.UnrecognizedExtension(ATTESTATION, rng.randbytes(20)), False)
        if is_flawed and flaw == "critical":
            builder = builder.add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.840.113635.100.8.2"), rng.randbytes(6)), True)
        digest = hashes.SHA256() if isinstance(by, rsa.RSAPrivateKey) else rng.choice(
            (hashes.SHA256(), hashes.SHA384()))
        if is_flawed and flaw in ("sha1", "sha512"):
            digest = hashes.SHA1() if flaw == "sha1" else hashes.SHA512()
        above = (builder.sign(by, digest), own)
        made.insert(0, above[0])
    root, parts = made[-1], list(made)
    if rng.random() < 0.25:
        parts.pop()
    if rng.random() < 0.08 and len(parts) > 2:
        parts.pop(rng.randrange(len(parts)))
    if rng.random() < 0.05:
        parts.reverse()
    return [certificate.public_bytes(serialization.Encoding.DER) for certificate in [root] + parts]


def damaged(rng, der):
    """Changes a bit of the signature, of which `cryptography` and the program judge every byte alike."""
    der = bytearray(der)
    der[len(der) - 1 - rng.randrange(32)] ^= 1 << rng.randrange(8)
    return bytes(der)


def cases(rng):
    chains = []
    while True:
        if len(chains) < 100 or rng.random() < 0.2:
            parts = chain(rng)
            chains = (chains + [parts])[-300:]
            instant = NOW
        else:
            parts = list(rng.choice(chains))
            instant = NOW + rng.choice((0, 0, 0, 1, -1, 300)) * DAY + datetime.timedelta(seconds=rng.choice((0, 0, 1)))
            if rng.random() < 0.05:
                parts[0] = rng.choice(chains)[0]
            if rng.random() < 0.05:
                parts.append(parts[-1])
            if rng.random() < 0.4:
                place = rng.randrange(1, len(parts))
                parts[place] = damaged(rng, parts[place])
        if len(parts) < 3:
            continue
        line = " ".join(["android", str(seconds(instant))] + [part.hex() for part in parts])
        yield line, expected(parts[0], parts[1:], instant)
