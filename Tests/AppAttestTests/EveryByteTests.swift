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
  @Test("With any one byte changed, an attestation does not verify", arguments: Vectors.attestations)
  func attestations(_ vector: Vectors.Attestation) throws {
    let (bytes, verifier) = (try vector.bytes, try vector.verifier())
    let claim = { (object: AttestationObject) in
      AttestationClaim(
        attestation: object, keyID: try vector.keyID, clientDataHash: try vector.hash, instant: try vector.instant)
    }
    let real = try claim(AttestationObject(bytes))
    #expect(!Self.isRefused(real, by: verifier))
    for change in ByteChange.all(of: bytes) {
      guard let object = try? AttestationObject(change.applied(to: bytes)) else { continue }
      #expect(Self.isRefused(try claim(object), by: verifier), "\(change)")
    }
  }

  @Test("With any one byte changed, a receipt does not verify", arguments: Vectors.receipts)
  func receipts(_ vector: Vectors.Receipt) throws {
    let (bytes, expectation, instant) = (try vector.bytes, try vector.expectation, try vector.instant)
    let verifier = ReceiptVerifier(roots: [AppleRoots.appleRootG3])
    #expect(!Self.isRefused(try Receipt(bytes), for: expectation, at: instant, by: verifier))
    for change in ByteChange.all(of: bytes) {
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
