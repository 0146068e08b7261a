import CBOR
import SimulatedDevice

@testable import AppAttest

extension FuzzTarget {
  static let authenticatorData = FuzzTarget(
    name: "authenticator-data", longest: 1024,
    words: ["appattest", "appattestdevelop", "apple_validation_category_01", "apple_bundle_version_01"],
    seeds: AuthenticatorDataInvariants.seeds, accepts: AuthenticatorDataInvariants.check)
}

/// Every byte of authenticator data is in one of its parts.
enum AuthenticatorDataInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    guard let head = try? AuthenticatorDataHead(input[...]) else {
      try require(input.count < AuthenticatorDataHead.size, "37 bytes are enough for a head")
      return false
    }
    let counter = (0..<4).map { UInt8(truncatingIfNeeded: head.counter.value >> (24 - 8 * $0)) }
    try require(head.rpIDHash + [head.flags] + counter == Array(input.prefix(37)), "a head consists of its parts")
    let rest = input.dropFirst(AuthenticatorDataHead.size)
    let isAssertion = try extensions(in: rest)
    guard let credential = try? AttestedCredential(rest) else { return isAssertion }
    try require(encoded(credential)[...] == rest.prefix(AttestedCredential.size), "a credential consists of its parts")
    return try extensions(in: rest.dropFirst(AttestedCredential.size)) || isAssertion
  }

  /// Reports whether `bytes` are empty or valid extensions.
  private static func extensions(in bytes: ArraySlice<UInt8>) throws(InvariantViolation) -> Bool {
    guard !bytes.isEmpty else { return true }
    guard let extensions = try? AuthenticatorExtensions.read(bytes) else { return false }
    let map = CBORValue.map(extensions.all)
    let written = CBORInvariants.inOrder(map)
    try require(
      written[...] == bytes || CBORInvariants.holdsFloat(map) && written.count <= bytes.count,
      "extensions are one map and nothing else, except for the width of floats")
    return true
  }

  private static func encoded(_ credential: AttestedCredential) -> [UInt8] {
    credential.aaguid + [0, 32] + credential.credentialID
      + SimulatedAuthenticatorData.Credential.coseKey(x963: credential.publicKey)
  }

  static func seeds() throws -> [[UInt8]] {
    try Fixtures.shared.attestations.map { try AttestationObject($0).authenticatorData }
      + (try Fixtures.shared.assertions.map { try Assertion($0).authenticatorData })
  }
}
