internal import ArgumentParser
internal import MFADomain
internal import MFASettings

/// The relying party of security keys.
struct WebAuthnOptions: ParsableArguments {
  @Option(
    name: .customLong("webauthn-rp-id"),
    help: "The domain that security keys are registered for. Without it they are off.")
  var relyingParty: String?

  @Option(
    name: .customLong("webauthn-origins"),
    help: "Where keys may be used: web origins and Android apps, a comma between; https://RP_ID by default.")
  var origins: String?

  @Option(
    name: .customLong("webauthn-user-verification"),
    help: "Whether a key must verify its user by a PIN or a finger: required, preferred or discouraged.")
  var userVerification: String?

  var flags: [SettingFlag] {
    [
      SettingFlag("--webauthn-rp-id", "webauthn.rp_id", relyingParty),
      SettingFlag("--webauthn-origins", "webauthn.origins", origins),
      SettingFlag("--webauthn-user-verification", "webauthn.user_verification", userVerification),
    ].compactMap(\.self)
  }
}

extension RelyingParty {
  init(_ settings: BackendSettings.WebAuthn) {
    self.init(
      id: settings.relyingParty, origins: settings.origins,
      // What was given is one of the three.
      userVerification: UserVerification(rawValue: settings.userVerification) ?? .required)
  }
}
