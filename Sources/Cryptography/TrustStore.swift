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
    // `ChainValidator` verifies the signatures, so that it need not verify one twice.
    X509_STORE_set_verify(pointer) { _ in 1 }
    for handle in handles where X509_STORE_add_cert(pointer, handle.pointer) != 1 {
      throw .operationFailed(OpenSSLErrors.take())
    }
  }

  deinit { X509_STORE_free(pointer) }

  /// What OpenSSL made of `certificate`, if it is a root.
  func handle(of certificate: Certificate) -> X509Handle? { handles.first { $0.certificate == certificate } }

  /// The path from `leaf` to a root: each certificate names the next one as its issuer, which is an authority for paths
  /// as long and names as these. Of several issuers that could be it, one that is valid at `instant`, if one is.
  /// **Neither the signatures nor the validity are verified.**
  func path(
    from leaf: X509Handle, through intermediates: [X509Handle], at instant: Timestamp
  ) throws(ChainRejection) -> [X509Handle] {
    OpenSSLErrors.clear()
    let untrusted = OPENSSL_sk_new_null()
    defer { OPENSSL_sk_free(untrusted) }
    for handle in intermediates {
      guard OPENSSL_sk_push(untrusted, UnsafeRawPointer(handle.pointer)) > 0 else {
        throw .operationFailed(OpenSSLErrors.take())
      }
    }
    guard let context = X509_STORE_CTX_new() else { throw .operationFailed(OpenSSLErrors.take()) }
    defer { X509_STORE_CTX_free(context) }
    guard X509_STORE_CTX_init(context, pointer, leaf.pointer, untrusted) == 1 else {
      throw .operationFailed(OpenSSLErrors.take())
    }
    // Times are checked by `ChainValidator`; OpenSSL, whose own check went with that of the signatures, chooses by it.
    // Level 2 asks for 112 bits: no SHA-1, no short RSA keys.
    let parameters = X509_STORE_CTX_get0_param(context)
    X509_VERIFY_PARAM_set_time(parameters, Int(instant.seconds))
    X509_VERIFY_PARAM_set_auth_level(parameters, 2)
    let candidates = [leaf] + intermediates + handles
    guard X509_verify_cert(context) == 1 else { throw Self.rejection(of: context, leaf: leaf, among: candidates) }
    return try Self.links(of: X509_STORE_CTX_get0_chain(context), among: candidates)
  }

  private static func links(
    of chain: OpaquePointer?, among candidates: [X509Handle]
  ) throws(ChainRejection) -> [X509Handle] {
    try (0..<max(0, OPENSSL_sk_num(chain))).map { index throws(ChainRejection) in
      let link = OPENSSL_sk_value(chain, index).map { OpaquePointer($0) }
      guard let handle = candidates.first(where: { $0.pointer == link }) else {
        throw .operationFailed("the chain holds a certificate from elsewhere")
      }
      return handle
    }
  }

  private static func rejection(
    of context: OpaquePointer, leaf: X509Handle, among candidates: [X509Handle]
  ) -> ChainRejection {
    OpenSSLErrors.clear()
    let code = X509_STORE_CTX_get_error(context)
    let culprit = X509_STORE_CTX_get_current_cert(context)
    let certificate = (candidates.first { $0.pointer == culprit } ?? leaf).certificate
    let reason = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
    return .untrusted(subject: certificate.subject, reason: reason)
  }
}
