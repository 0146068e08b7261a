import Cryptography
import ByteCoding
import SimulatedDevice

@testable import AppAttest

extension FuzzTarget {
  static let attestation = FuzzTarget(
    name: "attestation", longest: 8192, words: ["fmt", "attStmt", "authData", "x5c", "receipt", "apple-appattest"],
    seeds: { Fixtures.shared.attestations }, accepts: AttestationInvariants.check)
}

/// Only the authority makes attestations: an attestation that verifies has the content of a fixture.
enum AttestationInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let explanation = verifier.explain(input, keyID: keyID, clientDataHash: hash, at: Fixtures.instant)
    guard let object = try? AttestationObject(input) else {
      try require(!explanation.holds, "the explanation of an unreadable attestation is negative")
      return false
    }
    try require(object.bytes == input, "an attestation object keeps its bytes")
    let verified = try? verifier.verify(object, keyID: keyID, clientDataHash: hash, at: Fixtures.instant)
    try require(explanation.holds == (verified != nil), "the explanation and the verifier agree")
    guard let verified else { return false }
    try require(originals.contains { isSame($0, object) }, "an attestation that verifies was issued by the authority")
    try require(verified.key.publicKey == Fixtures.shared.key.publicKey.x963, "the verified key is the device's key")
    let other = ClientDataHash(bytes: SHA256.hash(hash.bytes))
    try require(
      (try? verifier.verify(object, keyID: keyID, clientDataHash: other, at: Fixtures.instant)) == nil,
      "an attestation verifies for no other challenge")
    return true
  }

  /// Compares every byte outside the receipt, except for the order of pairs; see `ReceiptInvariants`.
  private static func isSame(_ first: AttestationObject, _ second: AttestationObject) -> Bool {
    first.leaf == second.leaf && first.intermediate == second.intermediate
      && first.authenticatorData == second.authenticatorData && ReceiptInvariants.isSame(first.receipt, second.receipt)
  }

  private static let originals = Fixtures.shared.attestations.compactMap { try? AttestationObject($0) }
  private static let hash = ClientDataHash(bytes: Fixtures.clientDataHash)
  static let keyID: KeyID = {
    guard let keyID = KeyID(bytes: SHA256.hash(Fixtures.shared.key.publicKey.x963)) else {
      preconditionFailure("a SHA-256 hash and a key identifier both have 32 bytes")
    }
    return keyID
  }()
  static let verifier = AttestationVerifier(
    apps: AppID(Fixtures.app.appID).map { [$0: [.development]] } ?? [:],
    attestationRoots: [Fixtures.shared.authority.attestationRoot.certificate],
    receiptRoots: [Fixtures.shared.authority.receiptRoot.certificate])
}
