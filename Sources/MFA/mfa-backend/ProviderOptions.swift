internal import ArgumentParser
internal import MFASettings
internal import MFATokens

/// The options for an identity provider.
struct ProviderOptions: ParsableArguments {
  @Option(
    name: .customLong("oidc-issuer"),
    help: "The identity provider whose ID tokens are a first factor: an https URL, or http on loopback.")
  var issuer: String?

  @Option(
    name: .customLong("oidc-audience"), help: "The app's client ids at the identity provider, separated by commas.")
  var audience: String?

  @Option(name: .customLong("oidc-ca"), help: "PEM file with the roots that verify the identity provider.")
  var authority: String?

  var flags: [SettingFlag] {
    [
      SettingFlag("--oidc-issuer", "oidc.issuer", issuer), SettingFlag("--oidc-audience", "oidc.audience", audience),
      SettingFlag("--oidc-ca", "oidc.ca_file", authority),
    ].compactMap(\.self)
  }
}

extension BackendSettings.Provider {
  /// The verifier of the provider's tokens.
  ///
  /// - Throws: `CommandError` if the file with the roots cannot be read.
  func tokens() throws(CommandError) -> ProviderTokens {
    if let authorityFile { try InputFile.require(authorityFile, "the identity provider's root file") }
    return ProviderTokens(issuer: issuer, audiences: audiences, authorityFile: authorityFile)
  }
}
