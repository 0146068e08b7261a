public import ByteCoding
internal import COpenSSL

/// Decides whether a chain of certificates leads to one of a few pinned roots (RFC 5280 section 6).
///
/// The system's trust store plays no part. Names of hosts, revocation and extended key usages are not looked at: the
/// protocols that use this know none, or check them themselves.
public struct ChainValidator: Sendable {
  /// Which certificates of a good chain are remembered, by all of their bytes, so that their signatures are verified
  /// once. Nothing else of a verdict is: the path, the instant and what an issuer may do are asked each time.
  public enum Memory: Sendable, Hashable {
    /// Remembers issuers that verified.
    case issuers
    /// The first certificate too, where it is one that comes again and again.
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

  /// The chain from `leaf` to the root that it leads to, both included.
  ///
  /// `intermediates` may come in any order and may contain a root itself, but nothing else besides the chain: each
  /// byte that was received is vouched for, by a signature or because it is pinned. Validity includes both ends, of
  /// every certificate, the root too. Unknown extensions are ignored, unknown critical ones refuse.
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

  /// Each certificate is signed by the next one, and the last is pinned: from there downwards, so that what is blamed
  /// is the first one that is wrong.
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

  /// Issuers are authorities, the first certificate is none, and its key is for signatures.
  private static func checkAuthority(of chain: [X509Handle]) throws(ChainRejection) {
    // OpenSSL also takes issuers without basicConstraints, as they were before version 3.
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
}
