import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice
import Testing

/// An assertion with one fault, and the rule that refuses it.
struct BrokenAssertion: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let step: String
  let alter: @Sendable (inout AssertionAlterations) throws -> Void

  init(_ name: String, _ step: String, _ alter: @escaping @Sendable (inout AssertionAlterations) throws -> Void) {
    testDescription = name
    self.step = step
    self.alter = alter
  }
}

@Suite("Assertions that violate one rule")
struct MintedAssertionTests {
  static let broken: [BrokenAssertion] = [
    .init("no signature", "format") { $0.statement = { $0.signature = nil } },
    .init("an additional member", "format") { $0.statement = { $0.additions = [("more", [])] } },
    .init("a member twice", "format") { $0.statement = { $0.additions = [("signature", [])] } },
    .init("a trailing byte", "format") { $0.statement = { $0.trailer = [0] } },
    .init("more than 4 KiB", "format") {
      $0.statement = { $0.additions = [("more", [UInt8](repeating: 0, count: 4096))] }
    },
    .init("no authenticator data", "format") { $0.statement = { $0.authenticatorData = [] } },
    .init("authenticator data of 36 bytes", "format") { $0.statement = { $0.authenticatorData.removeLast() } },
    .init("an empty signature", "signature") { $0.statement = { $0.signature = [] } },
    .init("a signature of 64 bytes", "signature") { $0.statement = { $0.signature = .init(repeating: 1, count: 64) } },
    .init("another counter than the signed one", "signature") { $0.statement = { $0.authenticatorData[36] += 1 } },
    .init("another app", "rp_id") { $0.authenticatorData = { $0.rpIDHash = SHA256.hash([]) } },
    .init("T-45 the bundle identifier without its team", "rp_id") {
      $0.authenticatorData = { $0.rpIDHash = SHA256.hash(Array("com.example.app".utf8)) }
    },
    .init("counter 0", "counter") { $0.authenticatorData = { $0.signCount = 0 } },
    .init("the last counter again", "counter") { $0.authenticatorData = { $0.signCount = 5 } },
  ]

  private func outcome(
    of bytes: [UInt8], by minted: Minted, after last: SignCount = SignCount(5)
  ) throws -> Result<SignCount, AssertionRejection> {
    let (key, hash) = (try minted.attestedKey, ClientDataHash(bytes: Minted.hash))
    let outcome = Result { () throws(AssertionRejection) in
      try AssertionVerifier().verify(Assertion(bytes), by: key, clientDataHash: hash, after: last)
    }
    let explanation = AssertionVerifier().explain(
      bytes, by: minted.key.publicKey, of: minted.app, clientDataHash: hash, after: last)
    switch outcome {
    case .success: #expect(explanation.holds)
    case .failure(let rejection):
      #expect(explanation.firstBroken?.name == rejection.step)
      #expect(explanation.firstBroken?.detail == rejection.description)
    }
    return outcome
  }

  @Test("The assertion of a simulated device verifies, with any counter", arguments: [6, 7, 1000, UInt32.max])
  func verifies(_ count: UInt32) throws {
    let minted = try Minted()
    let bytes = try AssertionMint(app: minted.mint.app).assertion(
      by: minted.key, clientDataHash: Minted.hash, signCount: count)
    #expect(try outcome(of: bytes, by: minted).get() == SignCount(count))
    #expect(throws: AssertionRejection.counterNotGreater(found: SignCount(count), last: SignCount(count))) {
      try outcome(of: bytes, by: minted, after: SignCount(count)).get()
    }
  }

  @Test("The violated rule refuses the assertion and is reported", arguments: broken)
  func refuses(_ example: BrokenAssertion) throws {
    let minted = try Minted()
    var mint = AssertionMint(app: minted.mint.app)
    try example.alter(&mint.alterations)
    let bytes = try mint.assertion(by: minted.key, clientDataHash: Minted.hash, signCount: 6)
    guard case .failure(let rejection) = try outcome(of: bytes, by: minted) else {
      Issue.record("accepted")
      return
    }
    #expect(rejection.step == example.step, "\(rejection)")
  }

  @Test("Flags are ignored", arguments: [0x00, 0x01, 0x40, 0x80, 0xFF] as [UInt8])
  func ignoresFlags(_ flags: UInt8) throws {
    let minted = try Minted()
    var mint = AssertionMint(app: minted.mint.app)
    mint.alterations.authenticatorData = { $0.flags = flags }
    let bytes = try mint.assertion(by: minted.key, clientDataHash: Minted.hash, signCount: 6)
    #expect(throws: Never.self) { try outcome(of: bytes, by: minted).get() }
  }

  @Test("Under a key that is not a point on the curve, no signature is valid")
  func refusesUnusableKeys() throws {
    let minted = try Minted()
    let bytes = try AssertionMint(app: minted.mint.app).assertion(
      by: minted.key, clientDataHash: Minted.hash, signCount: 6)
    let key = AttestedKey(
      keyID: try minted.keyID, publicKey: [UInt8](repeating: 4, count: 65), appID: minted.app, environment: .development
    )
    #expect(throws: AssertionRejection.invalidSignature) {
      try AssertionVerifier().verify(
        Assertion(bytes), by: key, clientDataHash: ClientDataHash(bytes: Minted.hash), after: .zero)
    }
  }
}
