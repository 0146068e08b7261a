import AppAttest
import ByteCoding
import CBOR
import Cryptography
import Testing

@Suite("Receipts from Apple's server", .enabled(if: Vectors.arePresent, Vectors.absence))
struct RealReceiptTests {
  private let verifier = ReceiptVerifier(roots: [AppleRoots.appleRootG3])

  @Test("A real receipt verifies at its creation, and all fields are read", arguments: Vectors.receipts)
  func verifies(_ vector: Vectors.Receipt) throws {
    let receipt = try Receipt(vector.bytes)
    try verifier.verify(receipt, for: vector.expectation, at: vector.instant)
    #expect(receipt.kind.rawValue == vector.type)
    #expect(receipt.appID == vector.appID)
    #expect(receipt.environment == .development)
    #expect(receipt.creationTime == (try vector.instant))
    #expect(receipt.expirationTime == (try time(vector.expirationTime)))
    #expect(receipt.renewableFrom == (try vector.notBefore.map(time)))
    #expect(receipt.riskMetric == vector.riskMetric.map(String.init))
    #expect(receipt.bytes == (try vector.bytes))
  }

  @Test("A real receipt verifies until its expiration time, to the millisecond", arguments: Vectors.receipts)
  func expires(_ vector: Vectors.Receipt) throws {
    let receipt = try Receipt(vector.bytes)
    let end = try time(vector.expirationTime)
    try verifier.verify(receipt, for: vector.expectation, at: end)
    let late = end.advanced(by: .milliseconds(1))
    #expect(throws: ReceiptRejection.expired(end, at: late)) {
      try verifier.verify(receipt, for: vector.expectation, at: late)
    }
  }

  @Test("A real receipt verifies before the start of its renewal period", arguments: Vectors.receipts)
  func isValidBeforeRenewal(_ vector: Vectors.Receipt) throws {
    let receipt = try Receipt(vector.bytes)
    let start = receipt.renewableFrom ?? receipt.creationTime
    try verifier.verify(receipt, for: vector.expectation, at: start.advanced(by: .seconds(-1)))
  }

  @Test("A real receipt does not verify before its signer's certificate is valid", arguments: Vectors.receipts)
  func refusesEarly(_ vector: Vectors.Receipt) throws {
    let early = try time("2019-01-01T00:00:00Z")
    let error = #expect(throws: ReceiptRejection.self) {
      try verifier.verify(Receipt(vector.bytes), for: vector.expectation, at: early)
    }
    guard case .untrustedChain(.notYetValid) = error else {
      Issue.record("not refused as not yet valid")
      return
    }
  }

  @Test("A real receipt does not verify for another app, key or environment", arguments: Vectors.receipts)
  func refusesOthers(_ vector: Vectors.Receipt) throws {
    let receipt = try Receipt(vector.bytes)
    let expected = try vector.expectation
    let app = try #require(AppID("AAABBBCCC1.com.example.app"))
    let key = try P256PrivateKey().publicKey.x963
    let cases: [(ReceiptExpectation, ReceiptRejection)] = [
      (
        ReceiptExpectation(appID: app, publicKey: expected.publicKey),
        .appIDMismatch(expected: app, found: vector.appID)
      ),
      (
        ReceiptExpectation(appID: expected.appID, publicKey: key),
        .publicKeyMismatch(expected: key, found: expected.publicKey)
      ),
      (
        ReceiptExpectation(appID: expected.appID, publicKey: expected.publicKey, environment: .production),
        .environmentMismatch(expected: .production, found: .development)
      ),
    ]
    for (expectation, rejection) in cases {
      #expect(throws: rejection) { try verifier.verify(receipt, for: expectation, at: vector.instant) }
    }
  }

  @Test("The client data hash is compared in the first receipt and not in newer ones", arguments: Vectors.receipts)
  func comparesHash(_ vector: Vectors.Receipt) throws {
    let receipt = try Receipt(vector.bytes)
    let expected = try vector.expectation
    let other = ReceiptExpectation(
      appID: expected.appID, publicKey: expected.publicKey, clientDataHash: ClientDataHash(bytes: SHA256.hash([])))
    switch receipt.kind {
    case .attest:
      #expect(throws: ReceiptRejection.clientDataHashMismatch) {
        try verifier.verify(receipt, for: other, at: vector.instant)
      }
    case .receipt:
      try verifier.verify(receipt, for: other, at: vector.instant)
    }
  }

  @Test("A real receipt that is truncated at any byte or has a trailing byte is refused", arguments: Vectors.receipts)
  func refusesOtherLengths(_ vector: Vectors.Receipt) throws {
    let bytes = try vector.bytes
    for count in 0..<bytes.count {
      #expect(throws: ReceiptRejection.self) { try Receipt(Array(bytes.prefix(count))) }
    }
    #expect(throws: ReceiptRejection.notSignedData(.malformed(.trailingBytes(1)))) { try Receipt(bytes + [0]) }
  }
}
