public import ByteCoding
internal import COpenSSL

/// Decides whether a chain of certificates leads to one of a few pinned roots (RFC 5280 section 6).
///
/// The system's trust store plays no part. Names of hosts, revocation and extended key usages are not looked at: the
/// protocols that use this know none, or check them themselves.
public struct ChainValidator: Sendable {
  private let roots: [Certificate]
  private let store: TrustStore?

  /// `roots` are trusted because they are here: their signatures are not verified, their validity is.
  public init(roots: [Certificate]) {
    self.roots = roots
    store = TrustStore(roots: roots)
  }

  /// The chain from `leaf` to the root that it leads to, both included.
  ///
  /// `intermediates` may come in any order and may contain the root itself, but nothing else besides the chain: each
  /// byte that was received is vouched for, by a signature or because it is pinned. Validity includes both ends, of
  /// every certificate, the root too. Unknown extensions are ignored, unknown critical ones refuse.
  public func validate(
    leaf: Certificate, intermediates: [Certificate], at instant: Timestamp
  ) throws(ChainRejection) -> [Certificate] {
    guard let store else { throw .operationFailed("the trust store could not be made") }
    let chain = try store.chain(from: leaf, through: intermediates, roots: roots)
    try Self.checkValidity(of: chain, at: instant)
    try Self.checkAuthority(of: chain)
    try Self.checkPurpose(of: leaf)
    for certificate in intermediates where !chain.contains(certificate) && !roots.contains(certificate) {
      throw .strayCertificate(subject: certificate.subject)
    }
    return chain
  }

  // OpenSSL reads a validity's end as exclusive, where RFC 5280 section 4.1.2.5 includes it.
  private static func checkValidity(of chain: [Certificate], at instant: Timestamp) throws(ChainRejection) {
    for certificate in chain {
      guard certificate.notBefore <= instant else {
        throw .notYetValid(subject: certificate.subject, notBefore: certificate.notBefore, at: instant)
      }
      guard instant <= certificate.notAfter else {
        throw .expired(subject: certificate.subject, notAfter: certificate.notAfter, at: instant)
      }
    }
  }

  // OpenSSL also takes issuers without basicConstraints, as they were before version 3.
  private static func checkAuthority(of chain: [Certificate]) throws(ChainRejection) {
    for issuer in chain.dropFirst() where X509_check_ca(issuer.handle.pointer) != 1 {
      throw .issuerIsNoAuthority(subject: issuer.subject)
    }
  }

  private static func checkPurpose(of leaf: Certificate) throws(ChainRejection) {
    guard X509_check_ca(leaf.handle.pointer) != 1 else { throw .leafIsAuthority(subject: leaf.subject) }
    // All bits are set where the extension is absent.
    guard X509_get_key_usage(leaf.handle.pointer) & UInt32(KU_DIGITAL_SIGNATURE) != 0 else {
      throw .leafMustNotSign(subject: leaf.subject)
    }
  }
}

/// An `X509_STORE` with the pinned roots. It is not changed after it was made; OpenSSL guards its cache with a lock.
private final class TrustStore: @unchecked Sendable {
  private let pointer: OpaquePointer

  init?(roots: [Certificate]) {
    guard let pointer = X509_STORE_new() else { return nil }
    self.pointer = pointer
    for root in roots where X509_STORE_add_cert(pointer, root.handle.pointer) != 1 { return nil }
  }

  deinit { X509_STORE_free(pointer) }

  func chain(
    from leaf: Certificate, through intermediates: [Certificate], roots: [Certificate]
  ) throws(ChainRejection) -> [Certificate] {
    OpenSSLErrors.clear()
    let untrusted = OPENSSL_sk_new_null()
    defer { OPENSSL_sk_free(untrusted) }
    for certificate in intermediates {
      guard OPENSSL_sk_push(untrusted, UnsafeRawPointer(certificate.handle.pointer)) > 0 else {
        throw .operationFailed(OpenSSLErrors.take())
      }
    }
    guard let context = X509_STORE_CTX_new() else { throw .operationFailed(OpenSSLErrors.take()) }
    defer { X509_STORE_CTX_free(context) }
    guard X509_STORE_CTX_init(context, pointer, leaf.handle.pointer, untrusted) == 1 else {
      throw .operationFailed(OpenSSLErrors.take())
    }
    // Times are checked by `ChainValidator`. Level 2 asks for 112 bits: no SHA-1, no short RSA keys.
    let parameters = X509_STORE_CTX_get0_param(context)
    X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_NO_CHECK_TIME))
    X509_VERIFY_PARAM_set_auth_level(parameters, 2)
    let candidates = [leaf] + intermediates + roots
    guard X509_verify_cert(context) == 1 else { throw Self.rejection(of: context, leaf: leaf, among: candidates) }
    let links = X509_STORE_CTX_get0_chain(context)
    return try (0..<max(0, OPENSSL_sk_num(links))).map { index throws(ChainRejection) in
      let link = OPENSSL_sk_value(links, index).map { OpaquePointer($0) }
      guard let certificate = candidates.first(where: { $0.handle.pointer == link }) else {
        throw .operationFailed("the chain holds a certificate from elsewhere")
      }
      return certificate
    }
  }

  private static func rejection(
    of context: OpaquePointer, leaf: Certificate, among candidates: [Certificate]
  ) -> ChainRejection {
    OpenSSLErrors.clear()
    let code = X509_STORE_CTX_get_error(context)
    let culprit = X509_STORE_CTX_get_current_cert(context)
    let subject = candidates.first { $0.handle.pointer == culprit }?.subject ?? leaf.subject
    let reason = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
    return .untrusted(subject: subject, reason: reason)
  }
}
