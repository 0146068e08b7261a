@testable import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice
import Testing

/// An assertion to be minted and verified. It is valid unless a test changes something.
struct MintedAssertion {
  let key: P256PrivateKey
  var app = Scene.app()
  var alterations = AssertionAlterations()
  var signCount: UInt32 = 5
  var signedHash = SHA256.hash(Scene.nonce)

  // The verifier's input.
  var verifyingKey: [UInt8]
  var clientDataHash = SHA256.hash(Scene.nonce)
  var last = SignCount(4)

  init() throws {
    key = try P256PrivateKey()
    verifyingKey = key.publicKey.x963
  }

  func encoded() throws -> [UInt8] {
    var mint = AssertionMint(app: app)
    mint.alterations = alterations
    return try mint.assertion(by: key, clientDataHash: signedHash, signCount: signCount)
  }

  func verify() throws -> SignCount {
    let attestedKey = AttestedKey(
      keyID: try unwrap(KeyID(bytes: SHA256.hash(verifyingKey))), publicKey: verifyingKey,
      appID: try unwrap(AppID(Scene.appID)), environment: .development, validationCategory: nil, bundleVersion: nil)
    return try AssertionVerifier().verify(
      Assertion(encoded()), by: attestedKey, clientDataHash: ClientDataHash(bytes: clientDataHash), after: last)
  }
}

/// One rule that an assertion violates, and the expected rejection.
struct BrokenAssertionRule: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let step: AssertionStep
  let alter: @Sendable (inout MintedAssertion) throws -> Void
  let isExpected: @Sendable (AssertionRejection) -> Bool

  init(
    _ description: String, _ step: AssertionStep,
    alter: @escaping @Sendable (inout MintedAssertion) throws -> Void,
    isExpected: @escaping @Sendable (AssertionRejection) -> Bool
  ) {
    testDescription = description
    self.step = step
    self.alter = alter
    self.isExpected = isExpected
  }

  static let all: [BrokenAssertionRule] = [
    BrokenAssertionRule("no signature", .format) {
      $0.alterations.statement = { $0.signature = nil }
    } isExpected: {
      $0 == .unexpectedMembers
    },
    BrokenAssertionRule("a third member", .format) {
      $0.alterations.statement = { $0.additions = [("more", [])] }
    } isExpected: {
      $0 == .unexpectedMembers
    },
    BrokenAssertionRule("a member twice", .format) {
      $0.alterations.statement = { $0.additions = [("authenticatorData", $0.authenticatorData)] }
    } isExpected: {
      if case .notCBOR(.duplicateKey) = $0 { true } else { false }
    },
    BrokenAssertionRule("a trailing byte", .format) {
      $0.alterations.statement = { $0.trailer = [0] }
    } isExpected: {
      if case .notCBOR(.trailingBytes) = $0 { true } else { false }
    },
    BrokenAssertionRule("authenticator data of 36 bytes", .format) {
      $0.app.claims = nil
      $0.alterations.statement = { $0.authenticatorData.removeLast() }
    } isExpected: {
      if case .malformedAuthenticatorData(.tooShort) = $0 { true } else { false }
    },
    BrokenAssertionRule("a byte after the extensions", .extensions) {
      $0.alterations.authenticatorData = { $0.extensions.append(0) }
    } isExpected: {
      if case .malformedAuthenticatorData(.extensionsNotCBOR(.trailingBytes)) = $0 { true } else { false }
    },
    BrokenAssertionRule("another client data hash", .signature) {
      $0.clientDataHash = SHA256.hash([1])
    } isExpected: {
      $0 == .invalidSignature
    },
    BrokenAssertionRule("the hash of the nonce's text instead of its bytes", .signature) {
      $0.signedHash = SHA256.hash(Array(Hex.encode(Scene.nonce).utf8))
    } isExpected: {
      $0 == .invalidSignature
    },
    BrokenAssertionRule("another key", .signature) {
      $0.verifyingKey = try P256PrivateKey().publicKey.x963
    } isExpected: {
      $0 == .invalidSignature
    },
    BrokenAssertionRule("a counter that was changed after signing", .signature) {
      $0.alterations.statement = { $0.authenticatorData[36] += 1 }
    } isExpected: {
      $0 == .invalidSignature
    },
    BrokenAssertionRule("a signature over data that must be hashed once more", .signature) {
      let key = $0.key
      let hash = $0.signedHash
      // The concatenation itself is signed, so it is hashed once instead of twice.
      $0.alterations.statement = { $0.signature = try? key.signature(for: $0.authenticatorData + hash) }
    } isExpected: {
      $0 == .invalidSignature
    },
    BrokenAssertionRule("a signature with a trailing byte", .signature) {
      $0.alterations.statement = { $0.signature?.append(0) }
    } isExpected: {
      $0 == .invalidSignature
    },
    BrokenAssertionRule("another app", .rpID) {
      $0.app.appID = "AAABBBCCC1.com.example.other"
    } isExpected: {
      if case .rpIDMismatch = $0 { true } else { false }
    },
    BrokenAssertionRule("the last counter again", .counter) {
      $0.signCount = 4
    } isExpected: {
      $0 == .counterNotGreater(found: SignCount(4), last: SignCount(4))
    },
    BrokenAssertionRule("an older counter", .counter) {
      $0.signCount = 1
    } isExpected: {
      $0 == .counterNotGreater(found: SignCount(1), last: SignCount(4))
    },
    BrokenAssertionRule("a counter of zero", .counter) {
      $0.signCount = 0
      $0.last = .zero
    } isExpected: {
      $0 == .counterNotGreater(found: .zero, last: .zero)
    },
  ]
}

@Suite("Minted assertions")
struct AssertionTests {
  @Test(
    "An assertion verifies with any higher counter, with and without extensions",
    arguments: [UInt32(5), 6, 1000, .max], [true, false])
  func valid(signCount: UInt32, hasClaims: Bool) throws {
    var minted = try MintedAssertion()
    minted.signCount = signCount
    if !hasClaims { minted.app.claims = nil }
    #expect(try minted.verify() == SignCount(signCount))
  }

  @Test("A minted assertion has the sizes of a real one")
  func sizes() throws {
    var minted = try MintedAssertion()
    #expect(try Assertion(minted.encoded()).authenticatorData.count == 99)
    minted.app.claims = nil
    #expect(try Assertion(minted.encoded()).authenticatorData.count == 37)
    #expect(try Assertion(minted.encoded()).authenticatorData[32] == 0x40)
  }

  @Test("An assertion that violates one rule is refused for that rule", arguments: BrokenAssertionRule.all)
  func broken(rule: BrokenAssertionRule) throws {
    var minted = try MintedAssertion()
    try rule.alter(&minted)
    let rejection = #expect(throws: AssertionRejection.self) { try minted.verify() }
    let found = try #require(rejection)
    #expect(rule.isExpected(found), "rejected with \(found)")
    #expect(found.brokenStep == rule.step)
  }

  @Test("An assertion is refused with any bit changed, and if truncated at any byte")
  func anyBit() throws {
    let minted = try MintedAssertion()
    let valid = try minted.encoded()
    for offset in valid.indices {
      for bit in 0..<8 { #expect(!isAccepted(valid, changedAt: offset, bit: bit, of: minted)) }
      #expect(throws: AssertionRejection.self) { try Assertion(Array(valid.prefix(offset))) }
    }
  }

  private func isAccepted(_ valid: [UInt8], changedAt offset: Int, bit: Int, of minted: MintedAssertion) -> Bool {
    var bytes = valid
    bytes[offset] ^= 1 << UInt8(bit)
    guard let appID = AppID(Scene.appID), let keyID = KeyID(bytes: SHA256.hash(minted.verifyingKey)),
      let assertion = try? Assertion(bytes)
    else { return false }
    let key = AttestedKey(
      keyID: keyID, publicKey: minted.verifyingKey, appID: appID, environment: .development,
      validationCategory: nil, bundleVersion: nil)
    let hash = ClientDataHash(bytes: minted.clientDataHash)
    return (try? AssertionVerifier().verify(assertion, by: key, clientDataHash: hash, after: minted.last)) != nil
  }
}
