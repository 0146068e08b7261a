internal import ConfigurationEngine

/// The settings of the section `tls`, besides those in `acmeKeys`.
extension Keys {
  static let tlsKeys =
    [KeyDefinition](certificate, privateKey, furtherCertificate, furtherKey) + acmeKeys
    + [KeyDefinition](leastVersion, certificateReload)

  static let certificate = Key(
    "tls.cert_file", .file, credential: "tls.cert", example: "fullchain.pem",
    "The server's certificate chain (PEM), leaf first. Required, unless `tls.acme` obtains certificates.")
  static let privateKey = Key(
    "tls.key_file", .file, credential: "tls.key", example: "privkey.pem",
    "The certificate's private key (PEM), not encrypted. Required with `tls.cert_file`.")
  static let furtherCertificate = Key(
    "tls.certificates[].cert_file", .file, isRequired: true, example: "api.pem",
    "The chain (PEM) of another certificate, for clients that request one of its names (SNI).")
  static let furtherKey = Key(
    "tls.certificates[].key_file", .file, isRequired: true, example: "api-key.pem",
    "That certificate's private key (PEM), not encrypted.")
  static let leastVersion = Key<GateSettings.TLS.Version>(
    "tls.min_version", .choice(), default: "1.2", "The minimum TLS version.")
  static let certificateReload = Key<GateSettings.TLS.Reload>(
    "tls.reload", .choice(), default: "auto",
    "`auto` serves changed certificate, key and client CA files within seconds; `off` serves them after a reload."
  )
}
