import ByteCoding
import CBOR
import Cryptography
import Testing

@testable import AppAttest

/// Verification detects every changed byte of data that a device or Apple's server has written.
///
/// A verifier checks all rules and refuses if one of them is violated. These tests check the same rules, the fastest
/// ones first.
@Suite("Changed bytes of real data", .enabled(if: Vectors.arePresent, Vectors.absence))
struct EveryByteTests {
  @Test("An attestation with any byte changed does not verify", arguments: Vectors.attestations.indices)
  func attestations(_ index: Int) async throws {
    let vector = Vectors.attestations[index]
    let (bytes, verifier) = (try vector.bytes, try vector.verifier())
    let claim = { (object: AttestationObject) in
      AttestationClaim(
        attestation: object, keyID: try vector.keyID, clientDataHash: try vector.hash, instant: try vector.instant)
    }
    #expect(!Self.isRefused(try claim(AttestationObject(bytes)), by: verifier))
    for change in try Self.changes(of: bytes, fixture: index) {
      await Self.yieldRegularly(at: change)
      guard let object = try? AttestationObject(change.applied(to: bytes)) else { continue }
      #expect(Self.isRefused(try claim(object), by: verifier), "\(change)")
    }
  }

  @Test("A receipt with any byte changed does not verify", arguments: Vectors.receipts.indices)
  func receipts(_ index: Int) async throws {
    let vector = Vectors.receipts[index]
    let (bytes, expectation, instant) = (try vector.bytes, try vector.expectation, try vector.instant)
    let verifier = ReceiptVerifier(roots: [AppleRoots.appleRootG3])
    #expect(!Self.isRefused(try Receipt(bytes), for: expectation, at: instant, by: verifier))
    for change in try Self.changes(of: bytes, fixture: Vectors.attestations.count + index) {
      await Self.yieldRegularly(at: change)
      guard let receipt = try? Receipt(change.applied(to: bytes)) else { continue }
      #expect(Self.isRefused(receipt, for: expectation, at: instant, by: verifier), "\(change)")
    }
  }

  @Test(
    "The verifier refuses an attestation that violates one rule, for every 97th byte", arguments: Vectors.attestations)
  func attestationsAtLarge(_ vector: Vectors.Attestation) throws {
    let (bytes, verifier) = (try vector.bytes, try vector.verifier())
    for offset in stride(from: 0, to: bytes.count, by: 97) {
      let changed = ByteChange(offset: offset, mask: 1).applied(to: bytes)
      #expect(throws: AttestationRejection.self, "byte \(offset)") {
        try verifier.verify(
          AttestationObject(changed), keyID: vector.keyID, clientDataHash: vector.hash, at: vector.instant)
      }
    }
  }

  @Test(
    "An attestation that is truncated at any byte or has a trailing byte is refused", arguments: Vectors.attestations)
  func lengths(_ vector: Vectors.Attestation) throws {
    let bytes = try vector.bytes
    for count in 0..<bytes.count {
      #expect(throws: AttestationRejection.self) { try AttestationObject(Array(bytes.prefix(count))) }
    }
    let rejection = AttestationRejection.notCBOR(.trailingBytes(offset: bytes.count))
    #expect(throws: rejection) { try AttestationObject(bytes + [0]) }
  }

  /// Returns the certificates in each fixture: the attestations, then the receipts.
  private static func certificates() throws -> [[Certificate]] {
    let attestations = try Vectors.attestations.map { vector in
      let object = try AttestationObject(vector.bytes)
      return [object.leaf, object.intermediate] + object.receipt.signedData.certificates
    }
    return attestations + (try Vectors.receipts.map { try Receipt($0.bytes).signedData.certificates })
  }

  /// Returns one change for every byte of a fixture. If a certificate also occurs in an earlier fixture, only every
  /// eighth byte of it is changed, because the same chain was tested there with every byte.
  private static func changes(of bytes: [UInt8], fixture: Int) throws -> [ByteChange] {
    let changes = ByteChange.all(of: bytes)
    if ByteChange.areExhaustive { return changes }
    let certificates = try certificates()
    let earlier = Set(certificates[..<fixture].joined())
    let known = certificates[fixture].filter(earlier.contains).compactMap { range(of: $0.der, in: bytes) }
    return changes.filter { change in
      change.offset % 8 == fixture % 8 || !known.contains { $0.contains(change.offset) }
    }
  }

  private static func range(of part: [UInt8], in bytes: [UInt8]) -> Range<Int>? {
    (0...bytes.count - part.count).first { bytes[$0..<$0 + part.count].elementsEqual(part) }
      .map { $0..<$0 + part.count }
  }

  /// Yields regularly: these tests take long, and other tests share the same few threads.
  private static func yieldRegularly(at change: ByteChange) async {
    if change.offset % 16 == 0 { await Task.yield() }
  }

  private static func isRefused(_ claim: AttestationClaim, by verifier: AttestationVerifier) -> Bool {
    let cheapFirst = AttestationStep.allCases.filter { $0 != .certificateChain && $0 != .receipt }
    if cheapFirst.contains(where: { step in (try? verifier.check(step, of: claim)) == nil }) { return true }
    guard let expectation = try? verifier.receiptExpectation(for: claim) else { return true }
    return isRefused(claim.attestation.receipt, for: expectation, at: claim.instant, by: verifier.receipts)
      || (try? verifier.check(.certificateChain, of: claim)) == nil
  }

  private static func isRefused(
    _ receipt: Receipt, for expectation: ReceiptExpectation, at instant: Timestamp, by verifier: ReceiptVerifier
  ) -> Bool {
    let cheapFirst = ReceiptStep.allCases.filter { $0 != .certificateChain } + [.certificateChain]
    return cheapFirst.contains { step in
      (try? verifier.check(step, of: receipt, for: expectation, at: instant)) == nil
    }
  }
}
