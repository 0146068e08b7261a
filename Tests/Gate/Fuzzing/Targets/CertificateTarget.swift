import AppAttest
import Cryptography
import SimulatedDevice

extension FuzzTarget {
  static let certificate = FuzzTarget(
    name: "certificate", longest: 3000, words: ["-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n"],
    seeds: CertificateInvariants.seeds, accepts: CertificateInvariants.check)
}

/// Certificates as DER and as PEM: a certificate that leads to the root was issued by the authority.
enum CertificateInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    if input.starts(with: Array("-----".utf8)) { return try checkPEM(String(decoding: input, as: UTF8.self)) }
    guard let certificate = try? Certificate(der: input) else { return false }
    try require(certificate.der == input, "a certificate keeps its bytes")
    try require((try? Certificate(der: input + [0])) == nil, "no byte may follow a certificate")
    try require((try? Certificate(der: input.dropLast())) == nil, "no prefix of a certificate is a certificate")
    // Only a crash would be a finding here; the values do not matter.
    _ = (certificate.subject, certificate.p256PublicKey, certificate.extensionValue(oid: "2.5.29.19"))
    let chain = try? validator.validate(
      leaf: certificate, intermediates: [Fixtures.shared.authority.attestationIntermediate.certificate],
      at: Fixtures.instant)
    guard let chain else { return true }
    try require(
      chain.first == certificate && chain.count == 3, "the chain begins with the certificate and has three elements")
    try require(leaves.contains(certificate), "a certificate that leads to the root was issued")
    return true
  }

  private static func checkPEM(_ text: String) throws(InvariantViolation) -> Bool {
    guard let certificates = try? Certificate.certificates(pem: text) else { return false }
    try require(!certificates.isEmpty, "an accepted PEM file contains at least one certificate")
    for certificate in certificates {
      let pem = (try? certificate.pem) ?? ""
      try require(
        (try? Certificate.certificates(pem: pem)) == [certificate], "a certificate written as PEM is read again")
    }
    return true
  }

  private static let leaves = Fixtures.shared.attestations.compactMap { try? AttestationObject($0).leaf }
  private static let validator = ChainValidator(
    roots: [Fixtures.shared.authority.attestationRoot.certificate], remembering: .issuers)

  static func seeds() throws -> [[UInt8]] {
    let authority = Fixtures.shared.authority
    let all =
      leaves
      + [
        authority.attestationRoot, authority.attestationIntermediate, authority.receiptIntermediate,
        authority.receiptSigner, authority.server,
      ].map(\.certificate)
    return all.map(\.der) + (try all.suffix(2).map { Array(try $0.pem.utf8) })
  }
}
