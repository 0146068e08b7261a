/// The content of a CMS `SignedData` message (RFC 5652 section 5): content of type `data`, one signer, SHA-256, and
/// no signed attributes, as Apple signs receipts.
public struct SignedDataTemplate: Sendable {
  /// The encoding of the structure.
  public enum Encoding: Sendable, Hashable {
    /// The Distinguished Encoding Rules.
    case der
    /// Indefinite lengths, and the content in pieces of 1000 bytes.
    case ber
  }

  /// The signed content.
  public var content: [UInt8]
  /// In the order of the message.
  public var certificates: [Certificate]
  /// The encoding of the structure.
  public var encoding = Encoding.ber

  /// Creates a template.
  public init(content: [UInt8], certificates: [Certificate]) {
    self.content = content
    self.certificates = certificates
  }

  /// The message, signed by `signer`, whose private key is `key`.
  public func signed(by signer: Certificate, key: ECPrivateKey) throws(CryptographyError) -> [UInt8] {
    let signature = try key.signature(for: content, digest: .sha256)
    let information = DER.sequence(
      DER.integer(1),
      DER.sequence(Array(signer.fields.issuer), DER.element(.integer, Array(signer.fields.serialNumber))),
      Self.digestAlgorithm,
      SignatureDigest.sha256.signatureAlgorithm,
      DER.octetString(signature))
    return envelope(information)
  }

  private static let digestAlgorithm = DER.sequence(DER.objectIdentifier(.sha256), DER.null)

  private func envelope(_ signerInfo: [UInt8]) -> [UInt8] {
    let prologue = DER.integer(1) + DER.set(of: [Self.digestAlgorithm])
    let chain = Array(certificates.map(\.der).joined())
    let signers = DER.set(of: [signerInfo])
    switch encoding {
    case .der:
      let content = DER.sequence(DER.objectIdentifier(.data), DER.context(0, DER.octetString(content)))
      let signedData = DER.sequence(prologue, content, DER.context(0, chain), signers)
      return DER.sequence(DER.objectIdentifier(.signedData), DER.context(0, signedData))
    case .ber:
      let octets = DER.indefinite(.constructedOctetString, pieces)
      let content = DER.indefinite(
        .sequence, DER.objectIdentifier(.data), DER.indefinite(.context(0), octets))
      let signedData = DER.indefinite(.sequence, prologue, content, DER.indefinite(.context(0), chain), signers)
      return DER.indefinite(.sequence, DER.objectIdentifier(.signedData), DER.indefinite(.context(0), signedData))
    }
  }

  private var pieces: [UInt8] {
    var encoded: [UInt8] = []
    var rest = content[...]
    while !rest.isEmpty {
      encoded += DER.octetString(Array(rest.prefix(1000)))
      rest = rest.dropFirst(1000)
    }
    return encoded
  }
}
