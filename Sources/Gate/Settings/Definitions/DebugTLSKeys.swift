internal import ConfigurationEngine

/// The settings of the section `debug_mtls`.
extension Keys {
  static let debugTLSKeys = [KeyDefinition](
    clientCA, partialChain, revocationLists, allowedSubjects, forbidWithProduction)

  static let clientCA = Key(
    "debug_mtls.client_ca_file", .file, example: "client-ca/ca.pem",
    "The CA (PEM) of client certificates for debug builds. By default no client certificate is requested.")
  static let partialChain = Key(
    "debug_mtls.partial_chain", .boolean, default: "false",
    "Trust each CA of the client CA file, also an intermediate CA without its root. The root is not needed then.")
  static let revocationLists = Key(
    "debug_mtls.crl_file", .file, example: "client-ca/crl.pem",
    "Lists of revoked client certificates (PEM), one of each CA. Without a valid list of its CA, a certificate is refused."
  )
  static let allowedSubjects = Key(
    "debug_mtls.allow_subjects[]", .subject, example: "CN=MudApp Debug Client",
    "Subjects to admit. By default every certificate of the CA is admitted.")
  static let forbidWithProduction = Key(
    "debug_mtls.forbid_with_production", .boolean, default: "false",
    "Refuse to start if a client CA is set and an app has environment production.")
}
