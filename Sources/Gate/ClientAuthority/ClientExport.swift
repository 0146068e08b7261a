public import Cryptography

/// What others want a client's certificate as.
public enum ClientExport: Sendable, Hashable {
  /// The certificate, then its private key: what curl and other programs take. Text.
  case pem
  /// The certificate alone, in DER.
  case der
  /// Key, certificate and authority under a password, for an app's bundle or a key chain.
  case p12(password: String, PKCS12.Encryption)
  /// A configuration profile that installs the authority and the identity on an iPhone or a Mac, which ask for the
  /// password. Text.
  case mobileconfig(password: String, PKCS12.Encryption)

  /// Permissions of a file with it: what holds a key is its owner's alone.
  public var mode: UInt32 {
    switch self {
    case .der: 0o644
    case .pem, .p12, .mobileconfig: 0o600
    }
  }

  public var fileExtension: String {
    switch self {
    case .pem: "pem"
    case .der: "der"
    case .p12: "p12"
    case .mobileconfig: "mobileconfig"
    }
  }
}

extension ClientAuthority {
  /// Writes what was issued to `client` in another form.
  ///
  /// - Parameter path: where to; `nil` for `NAME.` and the extension in the authority's folder.
  /// - Returns: the path of the file.
  public func export(
    _ client: String, as form: ClientExport, to path: String?, isReplacing: Bool
  ) throws(ClientAuthorityFault) -> String {
    let bytes = try content(of: client, as: form)
    let path = path ?? "\(folder)/\(client).\(form.fileExtension)"
    try NewFile.write(bytes, to: path, mode: form.mode, isReplacing: isReplacing)
    return path
  }

  private func content(of client: String, as form: ClientExport) throws(ClientAuthorityFault) -> [UInt8] {
    let identity = try identity(of: client)
    switch form {
    case .pem:
      return try cryptographically { () throws(CryptographyError) in
        Array((try identity.certificate.pem + identity.key.pkcs8PEM).utf8)
      }
    case .der:
      return identity.certificate.der
    case .p12(let password, let encryption):
      return try bundle(identity, named: client, password, encryption)
    case .mobileconfig(let password, let encryption):
      let profile = ConfigurationProfile(
        name: client, authority: try authorityCertificate(), client: identity.certificate,
        bundle: try bundle(identity, named: client, password, encryption))
      return Array(profile.propertyList.utf8)
    }
  }

  private func bundle(
    _ identity: ClientIdentity, named name: String, _ password: String, _ encryption: PKCS12.Encryption
  ) throws(ClientAuthorityFault) -> [UInt8] {
    let authority = try authorityCertificate()
    return try cryptographically { () throws(CryptographyError) in
      try PKCS12(certificate: identity.certificate, key: identity.key, authorities: [authority], friendlyName: name)
        .encoded(password: password, encryption: encryption)
    }
  }
}
