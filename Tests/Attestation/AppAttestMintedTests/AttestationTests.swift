@testable import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice
import Testing

/// One rule that an attestation violates, and the expected rejection.
struct BrokenRule: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// The name of the step in the log.
  let step: String
  /// All rules that the change violates if each is checked separately: the first one, and those in `also`.
  let steps: Set<AttestationStep>
  let alter: @Sendable (inout MintedAttestation) throws -> Void
  let isExpected: @Sendable (AttestationRejection) -> Bool

  init(
    _ description: String, _ step: AttestationStep, also: Set<AttestationStep> = [], log: String? = nil,
    alter: @escaping @Sendable (inout MintedAttestation) throws -> Void,
    isExpected: @escaping @Sendable (AttestationRejection) -> Bool
  ) {
    testDescription = description
    self.step = log ?? step.rawValue
    steps = also.union([step])
    self.alter = alter
    self.isExpected = isExpected
  }
}

@Suite("Minted attestations")
struct AttestationTests {
  @Test("An attestation verifies and proves the device's key")
  func valid() throws {
    let minted = try MintedAttestation()
    let verified = try minted.verify()
    #expect(verified.key.keyID.bytes == minted.keyID)
    #expect(verified.key.publicKey == minted.key.publicKey.x963)
    #expect(verified.key.appID.text == Scene.appID)
    #expect(verified.key.environment == .development)
    #expect(verified.key.validationCategory == .development)
    #expect(verified.key.bundleVersion == "1")
    #expect(verified.receipt.kind == .attest)
    #expect(verified.receipt.creationTime > Scene.now)
    #expect(verified.receipt.creationTime.since(Scene.now) < .seconds(1))
  }

  @Test("A valid attestation passes each rule separately")
  func validSteps() throws {
    let (rejection, steps) = try MintedAttestation().broken()
    #expect(rejection == nil)
    #expect(steps.isEmpty)
  }

  @Test("A minted attestation has the sizes of a real one")
  func sizes() throws {
    var minted = try MintedAttestation()
    #expect(try AttestationObject(minted.encoded()).authenticatorData.count == 226)
    #expect((4000...6000).contains(try minted.encoded().count))
    minted.app.claims = nil
    #expect(try AttestationObject(minted.encoded()).authenticatorData.count == 164)
  }

  @Test("An attestation that violates one rule is refused for that rule", arguments: BrokenRule.all)
  func broken(rule: BrokenRule) throws {
    var minted = try MintedAttestation()
    try rule.alter(&minted)
    let (rejection, steps) = try minted.broken()
    let found = try #require(rejection)
    #expect(rule.isExpected(found), "rejected with \(found)")
    #expect(found.step == rule.step)
    #expect(steps == rule.steps)
  }

  @Test("The receipt of another key does not say which part of the nonce differs")
  func foreignReceipt() throws {
    var other = try MintedAttestation()
    other.attestedHash = SHA256.hash([8])
    let receipt = try AttestationObject(other.encoded()).receipt.bytes
    var minted = try MintedAttestation()
    minted.clientDataHash = SHA256.hash([9])
    func detail(_ step: String) throws -> String {
      let steps = try minted.explain().steps
      return try #require(steps.first { $0.name == step && $0.outcome == .broken }).detail
    }
    #expect(try detail("nonce").hasSuffix(" was attested; the authenticator data is unchanged"))
    minted.alterations.statement = { $0.receipt = receipt }
    #expect(
      try detail("nonce").hasSuffix(
        ": another client data hash was attested, or the authenticator data was changed"))
    #expect(try detail("receipt_public_key").contains("another key"))
  }

  @Test("An attestation with a harmless change is accepted", arguments: Harmless.all)
  func harmless(change: Harmless) throws {
    var minted = try MintedAttestation()
    try change.alter(&minted)
    _ = try minted.verify()
  }

  @Test(
    "An attestation is accepted only within the validity period of its leaf, including both limits",
    arguments: [
      (-Scene.day, true), (-Scene.day - 1, false), (2 * Scene.day, true), (2 * Scene.day + 1, false),
    ])
  func validity(offset: Int64, isAccepted: Bool) throws {
    var minted = try MintedAttestation()
    minted.instant = Scene.now.advanced(by: .seconds(offset))
    #expect((try minted.broken().rejection == nil) == isAccepted)
  }

  /// Changes only some bytes, because all of them would take minutes. `EveryByteTests` changes each byte of real data.
  @Test("An attestation with a changed byte in any part is refused", arguments: Part.allCases)
  func changedByte(part: Part) throws {
    let minted = try MintedAttestation()
    for offset in stride(from: 0, to: 6000, by: 61) {
      var changed = minted
      changed.alterations.statement = { statement in
        switch part {
        case .authenticatorData: statement.authenticatorData.flip(at: offset)
        case .leaf: statement.chain[0].flip(at: offset)
        case .intermediate: statement.chain[1].flip(at: offset)
        case .receipt: statement.receipt?.flip(at: offset)
        }
      }
      #expect(try changed.broken().rejection != nil, "byte \(offset)")
    }
  }

  enum Part: CaseIterable {
    case authenticatorData
    case leaf
    case intermediate
    case receipt
  }
}

extension [UInt8] {
  /// Changes the lowest bit of the byte at `offset` modulo the length.
  fileprivate mutating func flip(at offset: Int) { self[offset % count] ^= 0x01 }
}
