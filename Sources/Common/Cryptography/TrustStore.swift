internal import ByteCoding
internal import COpenSSL

/// An `X509_STORE` with pinned roots. It is not changed after it was made; OpenSSL guards its cache with a lock.
final class TrustStore: @unchecked Sendable {
  let roots: [Certificate]
  private let handles: [X509Handle]
  private let pointer: OpaquePointer

  init(roots: [Certificate]) throws(ChainRejection) {
    self.roots = roots
    handles = try roots.map { root throws(ChainRejection) in
      do throws(CryptographyError) {
        return try X509Handle(root)
      } catch {
        throw .operationFailed("the root \(root.subject): \(error)")
      }
    }
    OpenSSLErrors.clear()
    guard let pointer = X509_STORE_new() else { throw .operationFailed(OpenSSLErrors.take()) }
    self.pointer = pointer
    // In the place of OpenSSL's own step, so that `ChainValidator` need not verify a signature twice.
    X509_STORE_set_verify(pointer) { context in
      guard let context, let step = X509_STORE_CTX_get_ex_data(context, SignatureStep.index) else { return 0 }
      // `path` keeps the step alive as long as the context.
      return Unmanaged<SignatureStep>.fromOpaque(step).takeUnretainedValue().holds(in: context) ? 1 : 0
    }
    // The store retains the certificate.
    for handle in handles where handle.withPointer({ X509_STORE_add_cert(pointer, $0) }) != 1 {
      throw .operationFailed(OpenSSLErrors.take())
    }
  }

  deinit { X509_STORE_free(pointer) }

  /// Returns OpenSSL's object for `certificate` if it is a root.
  func handle(of certificate: Certificate) -> X509Handle? { handles.first { $0.certificate == certificate } }

  /// Returns the path from `leaf` to a root: each certificate names the next one as its issuer, which may issue paths
  /// of this length and these names. If several issuers fit, one that is valid at `instant` is preferred. **The
  /// validity is not verified.**
  ///
  /// - Parameter signatureFault: Returns the fault of a path's signatures. It is called when the path is known and
  ///   its extensions are valid, before statements of a certificate about others, such as permitted names, are
  ///   evaluated: an unsigned statement must cost no work.
  func path(
    from leaf: X509Handle, through intermediates: [X509Handle], at instant: Timestamp,
    signatureFault: @escaping ([X509Handle]) -> ChainRejection?
  ) throws(ChainRejection) -> [X509Handle] {
    OpenSSLErrors.clear()
    guard let untrusted = CertificateStack(intermediates), let context = X509_STORE_CTX_new() else {
      throw .operationFailed(OpenSSLErrors.take())
    }
    defer { X509_STORE_CTX_free(context) }
    let step = SignatureStep(candidates: [leaf] + intermediates + handles, fault: signatureFault)
    // The context does not retain the store, the certificates or the step; they must outlive it.
    try withExtendedLifetime((self, step)) { () throws(ChainRejection) in
      try leaf.withPointer { leaf throws(ChainRejection) in
        try untrusted.withPointer { untrusted throws(ChainRejection) in
          guard X509_STORE_CTX_init(context, pointer, leaf, untrusted) == 1 else {
            throw .operationFailed(OpenSSLErrors.take())
          }
          try step.run(in: context, at: instant)
        }
      }
    }
    return step.path
  }
}

/// Replaces OpenSSL's verification of signatures while it verifies one path.
private final class SignatureStep {
  /// Where a context has it: the first place is the application's own.
  static let index: CInt = 0

  /// The leaf, then all that can be above it.
  private let candidates: [X509Handle]
  private let fault: ([X509Handle]) -> ChainRejection?
  /// The path that OpenSSL has found, from the leaf to the root.
  private(set) var path: [X509Handle] = []
  private var rejection: ChainRejection?

  /// `candidates` begins with the leaf.
  init(candidates: [X509Handle], fault: @escaping ([X509Handle]) -> ChainRejection?) {
    self.candidates = candidates
    self.fault = fault
  }

  /// Verifies the path of `context`, which was initialized with the candidates.
  func run(in context: OpaquePointer, at instant: Timestamp) throws(ChainRejection) {
    // `ChainValidator` checks times. OpenSSL's own time check was disabled together with that of the signatures;
    // OpenSSL still uses the time to choose between issuers. Level 2 requires 112 bits: no SHA-1 and no short RSA
    // keys.
    let parameters = X509_STORE_CTX_get0_param(context)
    X509_VERIFY_PARAM_set_time(parameters, Int(instant.seconds))
    X509_VERIFY_PARAM_set_auth_level(parameters, 2)
    // `ChainValidator` refuses critical extensions that nothing processes, and names them. OpenSSL also accepts those
    // that it can parse.
    X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_IGNORE_CRITICAL))
    guard X509_STORE_CTX_set_ex_data(context, Self.index, Unmanaged.passUnretained(self).toOpaque()) == 1 else {
      throw .operationFailed(OpenSSLErrors.take())
    }
    let isGood = withExtendedLifetime(self) { X509_verify_cert(context) == 1 }
    if let rejection { throw rejection }
    guard isGood else { throw fault(of: context) }
  }

  private func fault(of context: OpaquePointer) -> ChainRejection {
    OpenSSLErrors.clear()
    let code = X509_STORE_CTX_get_error(context)
    let culprit = X509_STORE_CTX_get_current_cert(context)
    let certificate = candidates.first { $0.isSame(as: culprit) } ?? candidates.first
    if let certificate, let fault = linkFault(of: certificate, code) { return fault }
    let reason = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
    return .untrusted(subject: certificate?.certificate.subject ?? "", reason: reason)
  }

  /// The reason why OpenSSL does not even try an issuer, or a certificate at all, if that is why it found no issuer.
  private func linkFault(of certificate: X509Handle, _ code: CInt) -> ChainRejection? {
    let subject = certificate.certificate.subject
    if certificate.hasUnreadableExtension { return .unreadableExtension(subject: subject) }
    let codesWithoutIssuer = [
      X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
    ]
    guard codesWithoutIssuer.contains(code) else { return nil }
    let named = candidates.filter {
      $0 !== certificate && $0.certificate.subjectName == certificate.certificate.issuerName
    }
    if let issuer = named.first(where: \.hasUnreadableExtension) {
      return .unreadableExtension(subject: issuer.certificate.subject)
    }
    return named.lazy.compactMap { certificate.issuanceFault(under: $0) }.first.map {
      .untrusted(subject: subject, reason: $0)
    }
  }

  func holds(in context: OpaquePointer) -> Bool {
    let chain = X509_STORE_CTX_get0_chain(context)
    let links = (0..<max(0, OPENSSL_sk_num(chain))).map { OPENSSL_sk_value(chain, $0).map { OpaquePointer($0) } }
    path = links.compactMap { link in candidates.first { $0.isSame(as: link) } }
    rejection =
      path.count == links.count ? fault(path) : .operationFailed("the chain holds a certificate from elsewhere")
    return rejection == nil
  }
}
