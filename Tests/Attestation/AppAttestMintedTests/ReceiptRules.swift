@testable import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice

extension BrokenRule {
  /// Creates a rule for the receipt inside an attestation.
  private init(
    receipt description: String, _ step: ReceiptStep,
    alter: @escaping @Sendable (inout MintedAttestation) throws -> Void,
    isExpected: @escaping @Sendable (ReceiptRejection) -> Bool
  ) {
    self.init(description, .receipt, log: "receipt_\(step.rawValue)", alter: alter) {
      if case .receipt(let rejection) = $0 { isExpected(rejection) } else { false }
    }
  }

  static let receipt: [BrokenRule] = [
    BrokenRule(receipt: "a receipt that is not a CMS message", .format) {
      $0.alterations.statement = { $0.receipt = [0x30, 0x00] }
    } isExpected: {
      if case .notSignedData = $0 { true } else { false }
    },
    BrokenRule(receipt: "a receipt without its environment", .format) {
      $0.alterations.receipt = { $0[7] = nil }
    } isExpected: {
      $0 == .missingField(.environment)
    },
    BrokenRule(receipt: "a receipt that names two apps", .format) {
      $0.alterations.receipt = { $0.fields.append(.init(2, Array("AAABBBCCC2.com.example.app".utf8))) }
    } isExpected: {
      $0 == .repeatedField(.appID)
    },
    BrokenRule(receipt: "a receipt with a malformed creation time", .format) {
      $0.alterations.receipt = { $0[text: 12] = "today" }
    } isExpected: {
      $0 == .malformedField(.creationTime)
    },
    BrokenRule(receipt: "a receipt for another app", .appID) {
      $0.alterations.receipt = { $0[text: 2] = "AAABBBCCC1.com.example.other" }
    } isExpected: {
      if case .appIDMismatch(_, found: "AAABBBCCC1.com.example.other") = $0 { true } else { false }
    },
    BrokenRule(receipt: "a receipt for another key", .publicKey) {
      let other = $0.authority.receiptSigner.certificate.der
      $0.alterations.receipt = { $0[3] = other }
    } isExpected: {
      if case .publicKeyMismatch = $0 { true } else { false }
    },
    BrokenRule(receipt: "a receipt for another attestation", .clientDataHash) {
      $0.alterations.receipt = { $0[4] = SHA256.hash([1]) }
    } isExpected: {
      $0 == .clientDataHashMismatch
    },
    BrokenRule(receipt: "a receipt from the other environment", .environment) {
      $0.alterations.receipt = { $0[text: 7] = "production" }
    } isExpected: {
      $0 == .environmentMismatch(expected: .development, found: .production)
    },
    BrokenRule(receipt: "an expired receipt", .expiry) {
      $0.alterations.receipt = { $0.setTimes(created: Scene.now.advanced(by: .seconds(-91 * Scene.day))) }
    } isExpected: {
      if case .expired = $0 { true } else { false }
    },
    BrokenRule(receipt: "a receipt that another authority signed", .certificateChain) {
      let otherAuthority = $0.otherAuthority
      $0.alterations.receiptSigner = otherAuthority.receiptSigner
      $0.alterations.receiptMessage = {
        $0.certificates = [
          otherAuthority.receiptSigner, otherAuthority.receiptIntermediate, otherAuthority.receiptRoot,
        ]
        .map(\.certificate)
      }
    } isExpected: {
      if case .untrustedChain(.untrusted) = $0 { true } else { false }
    },
    BrokenRule(receipt: "a receipt that the server's certificate signed", .certificateChain) {
      let authority = $0.authority
      $0.alterations.receiptSigner = authority.server
      $0.alterations.receiptMessage = {
        $0.certificates = [authority.server, authority.tlsAuthority].map(\.certificate)
      }
    } isExpected: {
      if case .untrustedChain(.untrusted) = $0 { true } else { false }
    },
    BrokenRule(receipt: "a receipt whose signer lacks the marker", .certificateChain) {
      let signer = try $0.authority.unmarkedReceiptSigner()
      $0.alterations.receiptSigner = signer
    } isExpected: {
      if case .markerMissing = $0 { true } else { false }
    },
    BrokenRule(receipt: "a receipt that was changed after it was signed", .signature) {
      $0.alterations.statement = { $0.replaceInReceipt("2026-08", by: "2027-08") }
    } isExpected: {
      $0 == .invalidSignature
    },
  ]
}

extension AttestationStatement {
  /// Replaces a text in the receipt with one of the same length.
  mutating func replaceInReceipt(_ text: String, by other: String) {
    guard var bytes = receipt, let range = bytes.firstRange(of: Array(text.utf8)) else { return }
    bytes.replaceSubrange(range, with: other.utf8)
    receipt = bytes
  }
}

extension TestAuthority {
  /// Creates a signer under the right authority without the marker for receipts.
  func unmarkedReceiptSigner() throws -> SigningIdentity {
    let key = try ECPrivateKey(.p256)
    var template = CertificateTemplate(
      subject: DistinguishedName(.commonName("Something else")), subjectPublicKeyInfo: key.spki,
      notBefore: receiptRoot.certificate.notBefore, notAfter: receiptRoot.certificate.notAfter)
    template.extensions = [.basicConstraints(isAuthority: false), .keyUsage([.digitalSignature])]
    let certificate = try template.signed(by: receiptIntermediate.certificate, key: receiptIntermediate.key)
    return SigningIdentity(certificate: certificate, key: key)
  }
}

/// A change that violates no rule.
struct Harmless: Sendable {
  let testDescription: String
  let alter: @Sendable (inout MintedAttestation) throws -> Void

  init(_ description: String, alter: @escaping @Sendable (inout MintedAttestation) throws -> Void) {
    testDescription = description
    self.alter = alter
  }

  static let all: [Harmless] = [
    Harmless("a device before iOS 27") { $0.app.claims = nil },
    Harmless("extensions without their flag, as in Apple's sample") {
      $0.alterations.authenticatorData = { $0.flags = 0x40 }
    },
    Harmless("a category as a number") {
      let map: CBORMap = ["apple_validation_category_01": 4]
      $0.alterations.authenticatorData = { $0.extensions = CBORValue.map(map).encoded }
    },
    Harmless("extensions that are not known yet") {
      let map: CBORMap = ["zz": 1, "apple_bundle_version_01": "7"]
      $0.alterations.authenticatorData = { $0.extensions = CBORValue.map(map).encoded }
    },
    Harmless("an unknown extension that is not critical") {
      let oid = try unwrap(ObjectIdentifier("1.2.3.4"))
      $0.alterations.leaf = { $0.extensions.append(CertificateExtension(oid, value: DER.null)) }
    },
    Harmless("a leaf without extended key usage, as before 2026") {
      $0.alterations.leaf = { $0.extensions.remove(at: 2) }
    },
    Harmless("an intermediate with another name and curve") {
      let root = $0.authority.attestationRoot
      let key = try ECPrivateKey(.p256)
      var template = CertificateTemplate(
        subject: DistinguishedName(.commonName("CA 2")), subjectPublicKeyInfo: key.spki,
        notBefore: root.certificate.notBefore, notAfter: root.certificate.notAfter)
      template.extensions = [.basicConstraints(isAuthority: true, pathLength: 0), .keyUsage([.keyCertSign])]
      let certificate = try template.signed(by: root.certificate, key: root.key)
      $0.alterations.leafIssuer = SigningIdentity(certificate: certificate, key: key)
    },
    Harmless("a receipt in DER") { $0.alterations.receiptMessage = { $0.encoding = .der } },
    Harmless("a receipt without the root") {
      $0.alterations.receiptMessage = { $0.certificates.removeLast() }
    },
    Harmless("a receipt with its fields in another order and one more") {
      $0.alterations.receipt = { $0.fields = $0.fields.reversed() + [.init(99, [1])] }
    },
    Harmless("a receipt that cannot be renewed before tomorrow") {
      $0.alterations.receipt = {
        $0[text: 19] = ReceiptContent.milliseconds(Scene.now.advanced(by: .seconds(Scene.day)))
      }
    },
    Harmless("a key from production where production is allowed") {
      $0.app.environment = .production
      $0.environments = [.production, .development]
    },
  ]
}
