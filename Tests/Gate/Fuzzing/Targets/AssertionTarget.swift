import Cryptography

@testable import AppAttest
@testable import SimulatedDevice

extension FuzzTarget {
  static let assertion = FuzzTarget(
    name: "assertion", longest: 1024, words: ["signature", "authenticatorData"], seeds: { Fixtures.shared.assertions },
    accepts: AssertionLaws.check)
}

/// Nobody but the device makes assertions: one that verifies says what the specimens say.
enum AssertionLaws {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let key, let assertion = try? Assertion(input) else { return false }
    let statement = AssertionStatement(
      signature: assertion.signature, authenticatorData: assertion.authenticatorData)
    try require(statement.encoded.count == input.count, "an assertion is its two members")
    let hash = ClientDataHash(bytes: Fixtures.clientDataHash)
    guard let count = try? AssertionVerifier().verify(assertion, by: key, clientDataHash: hash, after: .zero) else {
      return false
    }
    try require(count == assertion.counter && count > .zero, "the counter that is told is the one that is signed")
    try require(
      originals.contains { $0.signature == assertion.signature && $0.authenticatorData == assertion.authenticatorData },
      "what verifies is what the device signed")
    try require(
      (try? AssertionVerifier().verify(assertion, by: key, clientDataHash: hash, after: count)) == nil,
      "it does not verify after itself")
    return true
  }

  private static let originals = Fixtures.shared.assertions.compactMap { try? Assertion($0) }
  private static let key = AppID(Fixtures.app.appID).map {
    AttestedKey(
      keyID: AttestationLaws.keyID, publicKey: Fixtures.shared.key.publicKey.x963, appID: $0, environment: .development
    )
  }
}
