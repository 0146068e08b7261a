@testable import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice

extension BrokenRule {
  static let all = format + chain + nonce + identity + extensions + receipt

  private static let format: [BrokenRule] = [
    BrokenRule("another format", .format) {
      $0.alterations.statement = { $0.format = "packed" }
    } isExpected: {
      $0 == .unexpectedFormat("packed")
    },
    BrokenRule("no receipt", .format) {
      $0.alterations.statement = { $0.receipt = nil }
    } isExpected: {
      if case .unexpectedMembers = $0 { true } else { false }
    },
    BrokenRule("a fourth member", .format) {
      $0.alterations.statement = { $0.additions = [("more", [])] }
    } isExpected: {
      if case .unexpectedMembers = $0 { true } else { false }
    },
    BrokenRule("a member twice", .format) {
      $0.alterations.statement = { $0.additions = [("authData", $0.authenticatorData)] }
    } isExpected: {
      if case .notCBOR(.duplicateKey) = $0 { true } else { false }
    },
    BrokenRule("a trailing byte", .format) {
      $0.alterations.statement = { $0.trailer = [0] }
    } isExpected: {
      if case .notCBOR(.trailingBytes) = $0 { true } else { false }
    },
    BrokenRule("a leaf alone", .format) {
      $0.alterations.statement = { $0.chain.removeLast() }
    } isExpected: {
      $0 == .unexpectedCertificateCount(1)
    },
    BrokenRule("a root in the chain", .format) {
      let root = $0.authority.attestationRoot.certificate.der
      $0.alterations.statement = { $0.chain.append(root) }
    } isExpected: {
      $0 == .unexpectedCertificateCount(3)
    },
    BrokenRule("a leaf that is not a certificate", .format) {
      $0.alterations.statement = { $0.chain[0] = [0x30, 0x00] }
    } isExpected: {
      if case .malformedCertificate = $0 { true } else { false }
    },
    BrokenRule("authenticator data without a credential", .format) {
      $0.alterations.authenticatorData = {
        $0.credential = nil; $0.extensions = []
      }
    } isExpected: {
      // The length of the whole authenticator data.
      $0 == .malformedAuthenticatorData(.tooShort(37, minimum: 164))
    },
    BrokenRule("a credential identifier of 31 bytes", .format) {
      $0.alterations.authenticatorData = { $0.credential?.credentialID.removeLast() }
    } isExpected: {
      $0 == .malformedAuthenticatorData(.credentialIDLength(31))
    },
    BrokenRule("a credential key for another algorithm", .format) {
      $0.alterations.authenticatorData = { $0.credential?.publicKey[4] = 0x27 }
    } isExpected: {
      $0 == .malformedAuthenticatorData(.malformedCredentialKey)
    },
  ]

  private static let chain: [BrokenRule] = [
    BrokenRule("a leaf from an authority that is not pinned", .certificateChain) {
      $0.alterations.leafIssuer = $0.otherAuthority.attestationIntermediate
    } isExpected: {
      if case .untrustedChain(.untrusted) = $0 { true } else { false }
    },
    BrokenRule("a leaf that the root issued directly", .certificateChain) {
      $0.alterations.leafIssuer = $0.authority.attestationRoot
    } isExpected: {
      $0 == .untrustedChain(.unexpectedLength(found: 2, expected: 3))
    },
    BrokenRule("a leaf from the authority for receipts", .certificateChain) {
      $0.alterations.leafIssuer = $0.authority.receiptIntermediate
    } isExpected: {
      if case .untrustedChain(.untrusted) = $0 { true } else { false }
    },
    BrokenRule("another authority's certificate after the leaf", .certificateChain) {
      let other = $0.otherAuthority.attestationIntermediate.certificate.der
      $0.alterations.statement = { $0.chain[1] = other }
    } isExpected: {
      if case .untrustedChain(.untrusted) = $0 { true } else { false }
    },
    BrokenRule("an expired leaf", .certificateChain) {
      $0.alterations.leaf = { $0.notAfter = Scene.now.advanced(by: .seconds(-1)) }
    } isExpected: {
      if case .untrustedChain(.expired) = $0 { true } else { false }
    },
    BrokenRule("a leaf that is not valid before tomorrow", .certificateChain) {
      $0.alterations.leaf = { $0.notBefore = Scene.now.advanced(by: .seconds(Scene.day)) }
    } isExpected: {
      if case .untrustedChain(.notYetValid) = $0 { true } else { false }
    },
    BrokenRule("an expired intermediate", .certificateChain, also: [.receipt]) {
      $0.instant = Scene.now.advanced(by: .seconds(11 * 365 * Scene.day))
      $0.alterations.leaf = { $0.notAfter = Scene.now.advanced(by: .seconds(12 * 365 * Scene.day)) }
    } isExpected: {
      if case .untrustedChain(.expired) = $0 { true } else { false }
    },
    BrokenRule("an unknown critical extension", .certificateChain) {
      let oid = try unwrap(ObjectIdentifier("1.2.3.4"))
      $0.alterations.leaf = { $0.extensions.append(CertificateExtension(oid, isCritical: true, value: DER.null)) }
    } isExpected: {
      if case .untrustedChain(.criticalExtension(_, "1.2.3.4")) = $0 { true } else { false }
    },
    BrokenRule("a leaf that is an authority", .certificateChain) {
      $0.alterations.leaf = {
        $0.extensions[0] = .basicConstraints(isAuthority: true)
        $0.extensions[1] = .keyUsage([.digitalSignature, .keyCertSign])
      }
    } isExpected: {
      if case .untrustedChain(.leafIsAuthority) = $0 { true } else { false }
    },
    BrokenRule("a leaf whose key must not sign", .certificateChain) {
      $0.alterations.leaf = { $0.extensions[1] = .keyUsage([.keyEncipherment]) }
    } isExpected: {
      if case .untrustedChain(.leafMustNotSign) = $0 { true } else { false }
    },
    BrokenRule("a leaf with a key on P-384", .certificateChain, also: [.keyID, .credentialKey, .receipt]) {
      let other = try ECPrivateKey(.p384)
      $0.alterations.leaf = { $0.subjectPublicKeyInfo = other.spki }
      // The receipt contains the leaf, and a receipt with such a key cannot be read.
      let readable = $0.authority.receiptSigner.certificate.der
      $0.alterations.receipt = { $0[3] = readable }
    } isExpected: {
      $0 == .unexpectedLeafKey
    },
  ]

  private static let nonce: [BrokenRule] = [
    BrokenRule("another client data hash", .nonce, also: [.receipt]) {
      $0.clientDataHash = SHA256.hash([1])
    } isExpected: {
      if case .nonceMismatch = $0 { true } else { false }
    },
    BrokenRule("the hash of the nonce's text instead of its bytes", .nonce, also: [.receipt]) {
      $0.attestedHash = SHA256.hash(Array(Hex.encode(Scene.nonce).utf8))
    } isExpected: {
      if case .nonceMismatch = $0 { true } else { false }
    },
    BrokenRule("other authenticator data than the attested data", .nonce) {
      $0.alterations.statement = { $0.authenticatorData[32] ^= 0x01 }
    } isExpected: {
      if case .nonceMismatch = $0 { true } else { false }
    },
    BrokenRule("a leaf without a nonce", .nonce) {
      $0.alterations.leaf = { $0.extensions.removeAll { $0.identifier == .appAttestNonce } }
    } isExpected: {
      $0 == .nonceMissing
    },
    BrokenRule("a nonce of 31 bytes", .nonce) {
      $0.alterations.leaf = {
        $0.replace(.appAttestNonce, by: DER.sequence(DER.context(1, DER.octetString(zeros(31)))))
      }
    } isExpected: {
      $0 == .malformedNonce
    },
    BrokenRule("a nonce under another tag", .nonce) {
      $0.alterations.leaf = {
        $0.replace(.appAttestNonce, by: DER.sequence(DER.context(2, DER.octetString(zeros(32)))))
      }
    } isExpected: {
      $0 == .malformedNonce
    },
    BrokenRule("another nonce", .nonce) {
      $0.alterations.leaf = {
        $0.replace(.appAttestNonce, by: DER.sequence(DER.context(1, DER.octetString(zeros(32)))))
      }
    } isExpected: {
      if case .nonceMismatch(_, found: zeros(32)) = $0 { true } else { false }
    },
  ]

  private static let identity: [BrokenRule] = [
    BrokenRule("a key identifier that does not name the key", .keyID) {
      let other = zeros(32)
      $0.keyID = other
      $0.alterations.authenticatorData = { $0.credential?.credentialID = other }
    } isExpected: {
      if case .keyIDMismatch = $0 { true } else { false }
    },
    BrokenRule("another app", .rpID, also: [.environment, .receipt]) {
      $0.alterations.authenticatorData = { $0.rpIDHash = SHA256.hash(Array("AAABBBCCC1.com.example.other".utf8)) }
    } isExpected: {
      if case .rpIDMismatch = $0 { true } else { false }
    },
    BrokenRule("another team", .rpID, also: [.environment, .receipt]) {
      $0.alterations.authenticatorData = { $0.rpIDHash = SHA256.hash(Array("AAABBBCCC2.com.example.app".utf8)) }
    } isExpected: {
      if case .rpIDMismatch = $0 { true } else { false }
    },
    BrokenRule("a counter of one", .counter) {
      $0.alterations.authenticatorData = { $0.signCount = 1 }
    } isExpected: {
      $0 == .counterNotZero(SignCount(1))
    },
    BrokenRule("a key from production where development is allowed", .environment, also: [.receipt]) {
      $0.app.environment = .production
    } isExpected: {
      if case .environmentNotAllowed(.production, _) = $0 { true } else { false }
    },
    BrokenRule("a key from development where production is allowed", .environment, also: [.receipt]) {
      $0.environments = [.production]
    } isExpected: {
      if case .environmentNotAllowed(.development, _) = $0 { true } else { false }
    },
    BrokenRule("an authenticator that is not Apple's", .environment, also: [.receipt]) {
      $0.alterations.authenticatorData = { $0.credential?.aaguid = zeros(16) }
    } isExpected: {
      $0 == .unknownEnvironment(aaguid: zeros(16))
    },
    BrokenRule("a credential with another identifier", .credentialID) {
      $0.alterations.authenticatorData = { $0.credential?.credentialID = zeros(32) }
    } isExpected: {
      if case .credentialIDMismatch(_, found: zeros(32)) = $0 { true } else { false }
    },
    BrokenRule("a credential with another key than the leaf", .credentialKey) {
      let other = try P256PrivateKey().publicKey.x963
      $0.alterations.authenticatorData = {
        $0.credential?.publicKey = SimulatedAuthenticatorData.Credential.coseKey(x963: other)
      }
    } isExpected: {
      if case .credentialKeyMismatch = $0 { true } else { false }
    },
  ]

  private static let extensions: [BrokenRule] = [
    BrokenRule("a byte after the extensions", .extensions) {
      $0.alterations.authenticatorData = { $0.extensions.append(0) }
    } isExpected: {
      if case .malformedAuthenticatorData(.extensionsNotCBOR(.trailingBytes)) = $0 { true } else { false }
    },
    BrokenRule("two maps of extensions", .extensions) {
      $0.alterations.authenticatorData = { $0.extensions += $0.extensions }
    } isExpected: {
      if case .malformedAuthenticatorData(.extensionsNotCBOR(.trailingBytes)) = $0 { true } else { false }
    },
    BrokenRule("extensions that are not a map", .extensions) {
      $0.alterations.authenticatorData = { $0.extensions = [0x80] }
    } isExpected: {
      $0 == .malformedAuthenticatorData(.extensionsNotMap)
    },
    BrokenRule("a category of three bytes", .extensions) {
      let map: CBORMap = ["apple_validation_category_01": .bytes([4, 0, 0])]
      $0.alterations.authenticatorData = { $0.extensions = CBORValue.map(map).encoded }
    } isExpected: {
      $0 == .malformedAuthenticatorData(.malformedExtension("apple_validation_category_01"))
    },
    BrokenRule("a bundle version that is a number", .extensions) {
      let map: CBORMap = ["apple_bundle_version_01": 1]
      $0.alterations.authenticatorData = { $0.extensions = CBORValue.map(map).encoded }
    } isExpected: {
      $0 == .malformedAuthenticatorData(.malformedExtension("apple_bundle_version_01"))
    },
  ]

  static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
}

extension CertificateTemplate {
  /// Replaces the value of the extension `identifier`.
  mutating func replace(_ identifier: ObjectIdentifier, by value: [UInt8]) {
    for index in extensions.indices where extensions[index].identifier == identifier {
      extensions[index].value = value
    }
  }
}
