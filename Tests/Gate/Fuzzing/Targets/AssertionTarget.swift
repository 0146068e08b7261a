import Cryptography

@testable import AppAttest
@testable import SimulatedDevice

extension FuzzTarget {
  static let assertion = FuzzTarget(
    name: "assertion", longest: 1024, words: ["signature", "authenticatorData"], seeds: { Fixtures.shared.assertions },
    accepts: AssertionInvariants.check)
}

/// Only the device makes assertions: an assertion that verifies has the content of a fixture.
enum AssertionInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let key, let assertion = try? Assertion(input) else { return false }
    let statement = AssertionStatement(
      signature: assertion.signature, authenticatorData: assertion.authenticatorData)
    try require(statement.encoded.count == input.count, "an assertion consists of its two members")
    let hash = ClientDataHash(bytes: Fixtures.clientDataHash)
    guard let count = try? AssertionVerifier().verify(assertion, by: key, clientDataHash: hash, after: .zero) else {
      return false
    }
    try require(count == assertion.counter && count > .zero, "the returned counter is the signed counter")
    try require(
      originals.contains { $0.signature == assertion.signature && $0.authenticatorData == assertion.authenticatorData },
      "an assertion that verifies was signed by the device")
    try require(
      (try? AssertionVerifier().verify(assertion, by: key, clientDataHash: hash, after: count)) == nil,
      "an assertion does not verify twice")
    return true
  }

  private static let originals = Fixtures.shared.assertions.compactMap { try? Assertion($0) }
  private static let key = AppID(Fixtures.app.appID).map {
    AttestedKey(
      keyID: AttestationInvariants.keyID, publicKey: Fixtures.shared.key.publicKey.x963, appID: $0,
      environment: .development
    )
  }
}
