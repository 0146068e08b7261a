internal import ArgumentParser
internal import ConfigurationEngine
internal import MFADomain

/// The options for security keys.
struct WebAuthnOptions: ParsableArguments {
  @Option(
    name: .customLong("webauthn-rp-id"),
    help: "The domain of security keys. Without it, security keys are off.")
  var relyingParty: String?

  @Option(
    name: .customLong("webauthn-origins"),
    help: "Where keys may be used: web origins and Android apps, separated by commas; https://RP_ID by default.")
  var origins: String?

  @Option(
    name: .customLong("webauthn-user-verification"),
    help: "Whether a key must verify its user by PIN or biometry: required, preferred or discouraged.")
  var userVerification: String?

  var flags: [FlagSetting] {
    [
      FlagSetting("--webauthn-rp-id", "webauthn.rp_id", relyingParty),
      FlagSetting("--webauthn-origins", "webauthn.origins", origins),
      FlagSetting("--webauthn-user-verification", "webauthn.user_verification", userVerification),
    ].compactMap(\.self)
  }
}

extension RelyingParty {
  init(_ settings: BackendSettings.WebAuthn) {
    self.init(
      id: settings.relyingParty, origins: settings.origins,
      // The settings reader accepts only these three values.
      userVerification: UserVerification(rawValue: settings.userVerification) ?? .required)
  }
}
