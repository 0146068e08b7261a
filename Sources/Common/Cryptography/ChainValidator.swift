public import ByteCoding
internal import COpenSSL

/// Decides whether a chain of certificates leads to one of a few pinned roots (RFC 5280 section 6).
///
/// The system's trust store is not used. Host names, revocation and extended key usages are not checked: the
/// protocols that use this type have none of them, or check them themselves.
public struct ChainValidator: Sendable {
  /// The certificates of valid chains that are cached, by all of their bytes, so that their signatures are verified
  /// once. The other conditions (the path, the instant and the rights of an issuer) are checked each time.
  public enum Memory: Sendable, Hashable {
    /// Remembers issuers that verified.
    case issuers
    /// Also the first certificate, if the same one is validated often.
    case everyCertificate
  }

  private let store: Result<TrustStore, ChainRejection>
  private let remembered: Memory
  let memory = VerifiedIssuerCache()

  /// `roots` are trusted because they are here: their signatures are not verified, their validity is.
  public init(roots: [Certificate], remembering remembered: Memory = .issuers) {
    store = Result { () throws(ChainRejection) in try TrustStore(roots: roots) }
    self.remembered = remembered
  }

  /// Returns the chain from `leaf` to its root, both included.
  ///
  /// `intermediates` may have any order and may contain a root, but no certificate outside the chain: each received
  /// byte is covered by a signature or pinned. The validity of every certificate, including the root, contains both
  /// of its ends. An extension that is not processed is ignored unless it is critical; a critical one is refused (RFC 5280
  /// section 4.2). The root is pinned, so that its extensions say nothing more.
  public func validate(
    leaf: Certificate, intermediates: [Certificate], at instant: Timestamp
  ) throws(ChainRejection) -> [Certificate] {
    let store = try store.get()
    let chain = try store.path(
      from: try handle(of: leaf, in: store),
      through: try intermediates.map { certificate throws(ChainRejection) in try handle(of: certificate, in: store) },
      at: instant, signatureFault: signatureFault)
    try Self.checkValidity(of: chain, at: instant)
    try Self.checkAuthority(of: chain)
    try Self.checkCriticalExtensions(of: chain)
    let certificates = chain.map(\.certificate)
    for certificate in intermediates where !certificates.contains(certificate) && !store.roots.contains(certificate) {
      throw .strayCertificate(subject: certificate.subject)
    }
    memory.keep(remembered == .everyCertificate ? chain[...] : chain.dropFirst())
    return certificates
  }

  private func handle(of certificate: Certificate, in store: TrustStore) throws(ChainRejection) -> X509Handle {
    if let handle = memory.handle(of: certificate) ?? store.handle(of: certificate) { return handle }
    do throws(CryptographyError) {
      return try X509Handle(certificate)
    } catch {
      throw .untrusted(subject: certificate.subject, reason: "\(error)")
    }
  }

  /// Each certificate must be signed by the next one, and the last is pinned. The check starts at the root, so that
  /// it reports the first wrong signature.
  private func signatureFault(in chain: [X509Handle]) -> ChainRejection? {
    for (subject, issuer) in zip(chain, chain.dropFirst()).reversed()
    where !memory.vouches(for: subject, under: issuer) {
      guard let fault = subject.signatureFault(under: issuer) else { continue }
      return .untrusted(subject: subject.certificate.subject, reason: fault)
    }
    return nil
  }

  // OpenSSL reads a validity's end as exclusive, where RFC 5280 section 4.1.2.5 includes it.
  private static func checkValidity(of chain: [X509Handle], at instant: Timestamp) throws(ChainRejection) {
    for certificate in chain.map(\.certificate) {
      guard certificate.notBefore <= instant else {
        throw .notYetValid(subject: certificate.subject, notBefore: certificate.notBefore, at: instant)
      }
      guard instant <= certificate.notAfter else {
        throw .expired(subject: certificate.subject, notAfter: certificate.notAfter, at: instant)
      }
    }
  }

  /// Issuers must be authorities. The first certificate must not be one, and its key must be for signatures.
  private static func checkAuthority(of chain: [X509Handle]) throws(ChainRejection) {
    // OpenSSL also accepts issuers without basicConstraints, as before version 3.
    for issuer in chain.dropFirst() where issuer.withPointer({ X509_check_ca($0) }) != 1 {
      throw .issuerIsNoAuthority(subject: issuer.certificate.subject)
    }
    for leaf in chain.prefix(1) {
      guard leaf.withPointer({ X509_get_extension_flags($0) }) & UInt32(EXFLAG_CA) == 0 else {
        throw .leafIsAuthority(subject: leaf.certificate.subject)
      }
      // All bits are set where the extension is absent.
      guard leaf.withPointer({ X509_get_key_usage($0) }) & UInt32(KU_DIGITAL_SIGNATURE) != 0 else {
        throw .leafMustNotSign(subject: leaf.certificate.subject)
      }
    }
  }

  /// basicConstraints and keyUsage are processed above and by OpenSSL; names and their constraints by OpenSSL. It also
  /// knows certificate policies, extended key usages and CRL distribution points, and processes none of them here.
  private static let processedExtensions: Set<ObjectIdentifier> = [
    .basicConstraints, .keyUsage, .nameConstraints, .subjectAlternativeName,
  ]

  private static func checkCriticalExtensions(of chain: [X509Handle]) throws(ChainRejection) {
    for certificate in chain.dropLast().map(\.certificate) {
      let unknown = certificate.fields.extensions.first {
        $0.isCritical && !processedExtensions.contains($0.identifier)
      }
      guard let unknown else { continue }
      throw .criticalExtension(subject: certificate.subject, identifier: "\(unknown.identifier)")
    }
  }
}
