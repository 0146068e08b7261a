import ByteCoding
import Cryptography

/// A root, an intermediate and a leaf. A test can alter each template before it is signed.
struct SmallPKI {
  static let start = Timestamp(seconds: 1_700_000_000)
  static let end = Timestamp(seconds: 1_800_000_000)
  static let middle = Timestamp(seconds: 1_750_000_000)

  let root: Certificate
  let intermediate: Certificate
  let leaf: Certificate
  let rootKey: ECPrivateKey
  let intermediateKey: ECPrivateKey
  let leafKey: ECPrivateKey

  init(
    root alterRoot: (inout CertificateTemplate) -> Void = { _ in },
    intermediate alterIntermediate: (inout CertificateTemplate) -> Void = { _ in },
    leaf alterLeaf: (inout CertificateTemplate) -> Void = { _ in },
    leafSigner: ECPrivateKey? = nil
  ) throws {
    rootKey = try ECPrivateKey(.p384)
    intermediateKey = try ECPrivateKey(.p256)
    leafKey = try ECPrivateKey(.p256)
    var rootTemplate = Self.template("Root", rootKey)
    rootTemplate.extensions = [.basicConstraints(isAuthority: true), .keyUsage([.keyCertSign, .crlSign])]
    alterRoot(&rootTemplate)
    root = try rootTemplate.selfSigned(with: rootKey)

    var intermediateTemplate = Self.template("Intermediate", intermediateKey)
    intermediateTemplate.extensions = [
      .basicConstraints(isAuthority: true, pathLength: 0), .keyUsage([.keyCertSign, .crlSign]),
    ]
    alterIntermediate(&intermediateTemplate)
    intermediate = try intermediateTemplate.signed(by: root, key: rootKey)

    var leafTemplate = Self.template("Leaf", leafKey)
    leafTemplate.extensions = [.basicConstraints(isAuthority: false), .keyUsage([.digitalSignature])]
    alterLeaf(&leafTemplate)
    leaf = try leafTemplate.signed(by: intermediate, key: leafSigner ?? intermediateKey)
  }

  static func template(_ name: String, _ key: ECPrivateKey) -> CertificateTemplate {
    CertificateTemplate(
      subject: DistinguishedName(.commonName(name)), subjectPublicKeyInfo: key.spki, notBefore: start, notAfter: end)
  }

  /// Validates the leaf and returns the rejection; `nil` if the leaf is trusted.
  func rejection(
    roots: [Certificate]? = nil, through others: [Certificate]? = nil, at instant: Timestamp = middle
  ) -> ChainRejection? {
    do throws(ChainRejection) {
      _ = try ChainValidator(roots: roots ?? [root]).validate(
        leaf: leaf, intermediates: others ?? [intermediate], at: instant)
      return nil
    } catch {
      return error
    }
  }
}
