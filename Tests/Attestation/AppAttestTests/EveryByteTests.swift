import ByteCoding
import CBOR
import Cryptography
import Testing

@testable import AppAttest

/// Nothing that a device or Apple's server wrote may change without being noticed, wherever it stands.
///
/// A verifier refuses if one of its rules does, and it goes through all of them: asked here are the same rules, those
/// first that take the least time.
@Suite("Every byte counts", .enabled(if: Vectors.arePresent, Vectors.absence))
struct EveryByteTests {
  @Test("With any one byte changed, an attestation does not verify", arguments: Vectors.attestations.indices)
  func attestations(_ index: Int) async throws {
    let vector = Vectors.attestations[index]
    let (bytes, verifier) = (try vector.bytes, try vector.verifier())
    let claim = { (object: AttestationObject) in
      AttestationClaim(
        attestation: object, keyID: try vector.keyID, clientDataHash: try vector.hash, instant: try vector.instant)
    }
    #expect(!Self.isRefused(try claim(AttestationObject(bytes)), by: verifier))
    for change in try Self.changes(of: bytes, specimen: index) {
      await Self.letOthersRun(at: change)
      guard let object = try? AttestationObject(change.applied(to: bytes)) else { continue }
      #expect(Self.isRefused(try claim(object), by: verifier), "\(change)")
    }
  }

  @Test("With any one byte changed, a receipt does not verify", arguments: Vectors.receipts.indices)
  func receipts(_ index: Int) async throws {
    let vector = Vectors.receipts[index]
    let (bytes, expectation, instant) = (try vector.bytes, try vector.expectation, try vector.instant)
    let verifier = ReceiptVerifier(roots: [AppleRoots.appleRootG3])
    #expect(!Self.isRefused(try Receipt(bytes), for: expectation, at: instant, by: verifier))
    for change in try Self.changes(of: bytes, specimen: Vectors.attestations.count + index) {
      await Self.letOthersRun(at: change)
      guard let receipt = try? Receipt(change.applied(to: bytes)) else { continue }
      #expect(Self.isRefused(receipt, for: expectation, at: instant, by: verifier), "\(change)")
    }
  }

  @Test("What one rule refuses, the verifier refuses: every 97th byte", arguments: Vectors.attestations)
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

  @Test("Cut short at any place, or with a byte behind it, it is no attestation", arguments: Vectors.attestations)
  func lengths(_ vector: Vectors.Attestation) throws {
    let bytes = try vector.bytes
    for count in 0..<bytes.count {
      #expect(throws: AttestationRejection.self) { try AttestationObject(Array(bytes.prefix(count))) }
    }
    let rejection = AttestationRejection.notCBOR(.trailingBytes(offset: bytes.count))
    #expect(throws: rejection) { try AttestationObject(bytes + [0]) }
  }

  /// The certificates in each specimen: the attestations, then the receipts.
  private static func certificates() throws -> [[Certificate]] {
    let attestations = try Vectors.attestations.map { vector in
      let object = try AttestationObject(vector.bytes)
      return [object.leaf, object.intermediate] + object.receipt.signedData.certificates
    }
    return attestations + (try Vectors.receipts.map { try Receipt($0.bytes).signedData.certificates })
  }

  /// Every byte of a specimen, once. Of a certificate that is in an earlier specimen, too, where every byte of it was
  /// changed, every eighth is: it is the same chain that refuses.
  private static func changes(of bytes: [UInt8], specimen: Int) throws -> [ByteChange] {
    let changes = ByteChange.all(of: bytes)
    if ByteChange.areExhaustive { return changes }
    let certificates = try certificates()
    let earlier = Set(certificates[..<specimen].joined())
    let known = certificates[specimen].filter(earlier.contains).compactMap { range(of: $0.der, in: bytes) }
    return changes.filter { change in
      change.offset % 8 == specimen % 8 || !known.contains { $0.contains(change.offset) }
    }
  }

  private static func range(of part: [UInt8], in bytes: [UInt8]) -> Range<Int>? {
    (0...bytes.count - part.count).first { bytes[$0..<$0 + part.count].elementsEqual(part) }
      .map { $0..<$0 + part.count }
  }

  /// These tests take long, and other tests wait for the same few threads.
  private static func letOthersRun(at change: ByteChange) async {
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
