internal import COpenSSL

extension Certificate {
  /// Why `issuer` did not sign this certificate, or may not have; `nil` if it did. Times play no part.
  public func issuanceFault(by issuer: Certificate) -> String? {
    do throws(CryptographyError) {
      return try X509Handle(self).signatureFault(under: X509Handle(issuer))
    } catch {
      return "\(error)"
    }
  }

  /// Whether the certificate may issue others: by its basic constraints, or because it is a self-signed certificate
  /// of version 1, which has none.
  public var isAuthority: Bool {
    guard let handle = try? X509Handle(self) else { return false }
    return handle.withPointer { X509_check_ca($0) } != 0
  }
}
