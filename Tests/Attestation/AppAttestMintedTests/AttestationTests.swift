@testable import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice
import Testing

/// One rule that an attestation breaks, and how its verifier must say so.
struct BrokenRule: Sendable, CustomTestStringConvertible {
  let testDescription: String
  /// The word in the log.
  let step: String
  /// The rules that do not hold, by themselves, in consequence; the first one alone unless named.
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

@Suite("A minted attestation")
struct AttestationTests {
  @Test("verifies, and proves the device's key")
  func honest() throws {
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

  @Test("breaks no rule when asked for each by itself")
  func honestSteps() throws {
    let (rejection, steps) = try MintedAttestation().broken()
    #expect(rejection == nil)
    #expect(steps.isEmpty)
  }

  @Test("has the sizes of a real one")
  func sizes() throws {
    var minted = try MintedAttestation()
    #expect(try AttestationObject(minted.encoded()).authenticatorData.count == 226)
    #expect((4000...6000).contains(try minted.encoded().count))
    minted.app.claims = nil
    #expect(try AttestationObject(minted.encoded()).authenticatorData.count == 164)
  }

  @Test("is refused for the one rule that it breaks", arguments: BrokenRule.all)
  func broken(rule: BrokenRule) throws {
    var minted = try MintedAttestation()
    try rule.alter(&minted)
    let (rejection, steps) = try minted.broken()
    let found = try #require(rejection)
    #expect(rule.isExpected(found), "rejected with \(found)")
    #expect(found.step == rule.step)
    #expect(steps == rule.steps)
  }

  @Test("is accepted with what does not matter", arguments: Harmless.all)
  func harmless(change: Harmless) throws {
    var minted = try MintedAttestation()
    try change.alter(&minted)
    _ = try minted.verify()
  }

  @Test(
    "is accepted from the first to the last instant of its leaf, and not beyond",
    arguments: [
      (-Scene.day, true), (-Scene.day - 1, false), (2 * Scene.day, true), (2 * Scene.day + 1, false),
    ])
  func validity(offset: Int64, isAccepted: Bool) throws {
    var minted = try MintedAttestation()
    minted.instant = Scene.now.advanced(by: .seconds(offset))
    #expect((try minted.broken().rejection == nil) == isAccepted)
  }

  /// Every byte would take minutes here; the real data is tried byte by byte.
  @Test("is refused with a byte of any part changed", arguments: Part.allCases)
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
  /// Changes the lowest bit of the byte at `offset`, counted in circles.
  fileprivate mutating func flip(at offset: Int) { self[offset % count] ^= 0x01 }
}
