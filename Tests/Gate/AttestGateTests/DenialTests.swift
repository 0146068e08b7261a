import AppAttest
import Wire
import AttestGate
import ByteCoding
import CBOR
import Cryptography
import Testing

@Suite("Details of a denial in the log")
struct DenialTests {
  private static let instant = Timestamp(seconds: 1_800_000_000)
  private static let earlier = Timestamp(seconds: 1_700_000_000)

  static let details: [(Denial, String?)] = [
    (
      .attestationRefused(.notCBOR(.notShortest(offset: 7))),
      "a CBOR number or length not in its shortest form at byte 7"
    ),
    (.attestationRefused(.unexpectedMembers(of: "attStmt")), "attStmt"),
    (.attestationRefused(.unexpectedFormat("text of a client")), nil),
    (.attestationRefused(.unexpectedCertificateCount(3)), "3 certificates"),
    (
      .attestationRefused(.malformedAuthenticatorData(.tooShort(100, minimum: 164))),
      "100 bytes where at least 164 should be"
    ),
    (
      .attestationRefused(.malformedAuthenticatorData(.extensionsNotCBOR(.duplicateKey(offset: 3)))),
      "the extensions, counted from their first byte: a CBOR map with the same key again at byte 3"
    ),
    (.attestationRefused(.unknownEnvironment(aaguid: [1, 2, 0xFF])), "aaguid 0102ff"),
    (.attestationRefused(.counterNotZero(SignCount(2))), "2"),
    (.attestationRefused(.nonceMismatch(expected: [1], found: [2])), nil),
    (
      .attestationRefused(.receipt(.missingField(.expirationTime))),
      "the receipt has no field 21 (expirationTime)"
    ),
    (
      .attestationRefused(.receipt(.unexpectedKind(.receipt))),
      "the receipt is of the kind RECEIPT, not one that comes with an attestation"
    ),
    (
      .attestationRefused(.receipt(.expired(earlier, at: instant))), "expired \(earlier), now \(instant)"
    ),
    (.attestationRefused(.receipt(.publicKeyMismatch(expected: [1], found: [2]))), nil),
    (.assertionMalformed(.notCBOR(.truncated(offset: 0))), "CBOR ends inside of the data item at byte 0"),
    (
      .assertionMalformed(.malformedAuthenticatorData(.malformedExtension("apple_bundle_version_01"))),
      "the extension apple_bundle_version_01 has a value of another type"
    ),
    (.assertionMalformed(.unexpectedMembers), nil),
  ]

  @Test("The detail names the part and the offset and quotes no input", arguments: details)
  func detail(_ example: (denial: Denial, detail: String?)) {
    #expect(example.denial.report.detail == example.detail)
  }

  @Test("Details that a client can make long are cut")
  func bounded() {
    let error = CryptographyError.malformedCertificate(String(repeating: "1.", count: 5000))
    #expect(Denial.attestationRefused(.malformedCertificate(error)).report.detail?.count == 200)
  }

  @Test("A failure of the gate itself is reported as overload, not as the client's fault")
  func ownFailure() {
    let failure = ChainRejection.operationFailed("out of memory")
    #expect(Denial.attestationRefused(.untrustedChain(failure)).code == .overloaded)
    #expect(Denial.attestationRefused(.receipt(.untrustedChain(failure))).code == .overloaded)
    #expect(Denial.attestationRefused(.untrustedChain(failure)).report.detail == "out of memory")
  }

  @Test("An attestation that cannot be read follows no verification, whichever part of it is malformed")
  func followsVerification() {
    let malformed: [AttestationRejection] = [
      .notCBOR(.truncated(offset: 0)), .receipt(.tooLong(20_000, limit: 16_384)),
      .receipt(.missingField(.expirationTime)), .receipt(.malformedFields(.truncated)),
    ]
    for rejection in malformed {
      let report = Denial.attestationRefused(rejection).report
      #expect(report.code == .malformedAttestation && !report.followsVerification, "\(rejection)")
    }
    for rejection in [ReceiptRejection.invalidSignature, .clientDataHashMismatch, .unexpectedKind(.receipt)] {
      #expect(Denial.attestationRefused(.receipt(rejection)).report.followsVerification, "\(rejection)")
    }
  }
}
