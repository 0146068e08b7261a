import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice
import TestSupport
import Testing

/// No input crashes the process, and damaged input is never accepted.
@Suite("Random and damaged input")
struct GarbageTests {
  @Test("Damaged input is refused without a crash", arguments: 0..<8 as Range<UInt64>)
  func survivesDamage(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let minted = try Minted(claims: AppClaims())
    let attestation = try minted.attestation()
    let receipt = try AttestationObject(attestation).receipt.bytes
    let assertion = try AssertionMint(app: minted.mint.app).assertion(
      by: minted.key, clientDataHash: Minted.hash, signCount: 1)
    for _ in 0..<100 {
      Self.readAll(Self.damaged(attestation, using: &generator))
      Self.readAll(Self.damaged(receipt, using: &generator))
      Self.readAll(Self.damaged(assertion, using: &generator))
    }
    for _ in 0..<3 {
      #expect(throws: AttestationRejection.self) {
        try minted.outcome(of: Self.damaged(attestation, using: &generator)).get()
      }
    }
  }

  @Test("Random bytes are refused without a crash", arguments: 0..<4 as Range<UInt64>)
  func survivesRandomBytes(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let beginnings: [[UInt8]] = [[], [0xA3], [0xA2], [0x30, 0x80], [0x30, 0x82], [0x31], [0x30]]
    for _ in 0..<400 {
      let count = Int.random(in: 0..<200, using: &generator)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let all = (beginnings.randomElement(using: &generator) ?? []) + bytes
      Self.readAll(all)
      #expect((try? AttestationObject(all)) == nil)
      #expect((try? Assertion(all)) == nil)
      #expect((try? Receipt(all)) == nil)
    }
  }

  /// Passes the same bytes to every parser: valid input of one parser is garbage for the others.
  private static func readAll(_ bytes: [UInt8]) {
    _ = try? AttestationObject(bytes)
    _ = try? Assertion(bytes)
    _ = try? Receipt(bytes)
    _ = try? SignedData(bytes)
    _ = try? CBORValue(decoding: bytes)
    if let certificate = try? Certificate(der: bytes) { _ = certificate.subject }
    _ = try? Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
    _ = try? P256PrivateKey(pkcs8DER: bytes)
    _ = try? P256PublicKey(spki: bytes)
  }

  /// Returns `bytes` with one to four faults: bytes that are changed, removed, doubled or replaced by limits of ranges.
  private static func damaged(_ bytes: [UInt8], using generator: inout SeededGenerator) -> [UInt8] {
    var damaged = bytes
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let offset = Int.random(in: 0..<damaged.count - 16, using: &generator)
      switch Int.random(in: 0..<5, using: &generator) {
      case 0: damaged[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 1: damaged.remove(at: offset)
      case 2: damaged.insert(damaged[offset], at: offset)
      case 3: damaged[offset] = [0, 0x7F, 0x80, 0xFF].randomElement(using: &generator) ?? 0
      default: damaged.replaceSubrange(offset..<offset + 8, with: [UInt8](repeating: 0xFF, count: 8))
      }
    }
    return damaged == bytes ? Array(bytes.dropLast()) : damaged
  }
}
