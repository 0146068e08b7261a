import SimulatedDevice

@testable import AppAttest
@testable import Cryptography

extension FuzzTarget {
  static let receipt = FuzzTarget(
    name: "receipt", longest: 8192, words: ["ATTEST", "RECEIPT", "sandbox", "production", "0\u{0}", "\u{0}\u{0}"],
    seeds: { Fixtures.shared.receipts }, accepts: ReceiptInvariants.check)
}

/// Only the authority makes receipts: a receipt that verifies has the content of a fixture.
enum ReceiptInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let receipt = try? Receipt(input) else { return false }
    try require(receipt.bytes == input, "a receipt keeps its bytes")
    guard let expectation, (try? verifier.verify(receipt, for: expectation, at: Fixtures.instant)) != nil else {
      return false
    }
    try require(originals.contains { isSame($0, receipt) }, "a receipt that verifies was signed by the authority")
    return true
  }

  /// The frame of signed data may have several encodings (BER). Certificates that the verifier already has may be
  /// missing or repeated. Nothing else may differ.
  static func isSame(_ first: Receipt, _ second: Receipt) -> Bool {
    let (original, found) = (first.signedData, second.signedData)
    return original.content == found.content && original.signer == found.signer
      && Set(found.certificates).isSubset(of: Set(original.certificates))
  }

  private static let originals =
    Fixtures.shared.receipts.compactMap { try? Receipt($0) }
    + Fixtures.shared.attestations.compactMap { try? AttestationObject($0).receipt }
  private static let verifier = ReceiptVerifier(roots: [Fixtures.shared.authority.receiptRoot.certificate])
  private static let expectation = AppID(Fixtures.app.appID).map {
    ReceiptExpectation(
      appID: $0, publicKey: Fixtures.shared.key.publicKey.x963,
      clientDataHash: ClientDataHash(bytes: Fixtures.clientDataHash), environment: .development)
  }
}
