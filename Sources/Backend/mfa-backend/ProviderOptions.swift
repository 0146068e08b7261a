internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import MFAService

/// The options for an identity provider.
struct ProviderOptions: ParsableArguments {
  @Option(
    name: .customLong("oidc-issuer"),
    help: "The identity provider whose ID tokens are a first factor: an https URL, or http on loopback.")
  var issuer: String?

  @Option(
    name: .customLong("oidc-audience"), help: "The app's client ids at the identity provider, separated by commas.")
  var audience: String?

  @Option(
    name: .customLong("oidc-trusted-audiences"),
    help: "Audiences that an ID token may have in addition to a client id of the app, separated by commas.")
  var trustedAudiences: String?

  @Option(
    name: .customLong("oidc-clock-skew"),
    help: "The difference between the clocks of the identity provider and of the backend that is allowed.")
  var clockSkew: String?

  @Option(name: .customLong("oidc-ca"), help: "PEM file with the roots that verify the identity provider.")
  var authority: String?

  var flags: [FlagSetting] {
    [
      FlagSetting("--oidc-issuer", "oidc.issuer", issuer), FlagSetting("--oidc-audience", "oidc.audience", audience),
      FlagSetting("--oidc-trusted-audiences", "oidc.trusted_audiences", trustedAudiences),
      FlagSetting("--oidc-clock-skew", "oidc.clock_skew", clockSkew),
      FlagSetting("--oidc-ca", "oidc.ca_file", authority),
    ].compactMap(\.self)
  }
}

extension BackendSettings.Provider {
  /// The verifier of the provider's tokens.
  ///
  /// - Throws: `Failure` if the file with the roots cannot be read.
  func tokens() throws(Failure) -> ProviderTokens {
    if let authorityFile { try InputFile.require(authorityFile, "the identity provider's root file") }
    return ProviderTokens(
      issuer: issuer, audiences: audiences, trustedAudiences: trustedAudiences, clockSkew: clockSkew,
      authorityFile: authorityFile)
  }
}
