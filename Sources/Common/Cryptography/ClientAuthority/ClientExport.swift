/// The file format of an exported client certificate.
public enum ClientExport: Sendable, Hashable {
  /// The certificate and then its private key as text, for curl and other programs.
  case pem
  /// Only the certificate, in DER.
  case der
  /// The private key, certificate and authority encrypted with a password, for an app bundle or a keychain.
  case p12(password: String, PKCS12.Encryption)
  /// A configuration profile as text that installs the authority and the identity on an iPhone or a Mac. The device
  /// asks for the password.
  case mobileconfig(password: String, PKCS12.Encryption)

  /// The permissions of the file. Only the owner can access a file with a private key.
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
  /// Exports the certificate of `client` to a file.
  ///
  /// - Parameter path: The path of the file; `nil` for `NAME.EXTENSION` in the authority's folder.
  /// - Returns: The path of the file.
  /// - Throws: `.unusableName`, `.absent` or `.malformed` if the client's files cannot be read, `.exists` if a file
  ///   exists and `isReplacing` is `false`, `.system` or `.cryptography`.
  public func export(
    _ client: String, as form: ClientExport, to path: String?, isReplacing: Bool
  ) throws(ClientAuthorityError) -> String {
    let bytes = try content(of: client, as: form)
    let path = path ?? "\(folder)/\(client).\(form.fileExtension)"
    try NewFile.write(bytes, to: path, mode: form.mode, isReplacing: isReplacing)
    return path
  }

  private func content(of client: String, as form: ClientExport) throws(ClientAuthorityError) -> [UInt8] {
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
  ) throws(ClientAuthorityError) -> [UInt8] {
    let authority = try authorityCertificate()
    return try cryptographically { () throws(CryptographyError) in
      try PKCS12(certificate: identity.certificate, key: identity.key, authorities: [authority], friendlyName: name)
        .encoded(password: password, encryption: encryption)
    }
  }
}
