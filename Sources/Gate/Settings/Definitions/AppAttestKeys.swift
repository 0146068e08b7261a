internal import ConfigurationEngine

/// The settings of the section `app_attest`, besides those in `riskKeys`, `androidAppKeys` and `statusListKeys`.
extension Keys {
  static let appAttestKeys =
    [KeyDefinition](enforcement, platform, teamID, bundleID, environments, allowedCategories, missingCategory)
    + riskKeys + androidAppKeys + statusListKeys
    + [KeyDefinition](
      attestationRoot, receiptRoot, androidRoot, challengeTTL, challengeKeys, challengeKeyRotation, counterWindow)

  static let enforcement = Key<GateSettings.AppAttest.Enforcement>(
    "app_attest.enforcement", .choice(), default: "enforce",
    "`monitor` logs and counts clients that fail verification, and admits them anonymously; `off` verifies nothing.")
  static let platform = Key<GateSettings.Platform>(
    "app_attest.apps[].platform", .choice(), default: "ios", "The platform of the app's devices.")
  static let teamID = Key(
    "app_attest.apps[].team_id", .teamID, isRequired: true, only: .ios, "The app's Apple Developer team ID.")
  static let bundleID = Key(
    "app_attest.apps[].bundle_id", .bundleID, isRequired: true, only: .ios, "The app's bundle identifier.")
  static let environments = Key<GateSettings.App.Environment>(
    "app_attest.apps[].environments[]", .choice(), default: "production", only: .ios,
    "The App Attest environments of the app's keys.")
  static let allowedCategories = Key<GateSettings.App.ValidationCategory>(
    "app_attest.apps[].validation_category.allow[]", .choice(), only: .ios, example: "app_store",
    "Validation categories (how the app was installed, from iOS 27) to admit. By default all.")
  static let missingCategory = Key<GateSettings.App.Missing>(
    "app_attest.apps[].validation_category.when_missing", .choice(), default: "accept", only: .ios,
    "The rule for devices that send no category: those before iOS 27.")
  static let attestationRoot = Key(
    "app_attest.trust.attestation_root_file", .file, example: "attestation-root.pem",
    "A root for simulated devices (PEM) instead of Apple's. Not allowed with an app in environment production.")
  static let receiptRoot = Key(
    "app_attest.trust.receipt_root_file", .file, example: "receipt-root.pem",
    "A root for receipts of simulated devices (PEM) instead of Apple's.")
  static let challengeTTL = Key(
    "app_attest.challenge_ttl", .duration(1000...600_000), default: "60s", "How long a nonce is valid.")
  static let challengeKeys = Key(
    "app_attest.challenge_keys_file", .file, credential: "challenge_keys", example: "challenge.keys",
    "The file of the challenge keys. By default the store creates and keeps them.")
  static let challengeKeyRotation = Key(
    "app_attest.challenge_key_rotation", .durationOrOff(600_000...31_536_000_000), default: "24h",
    "The age at which the challenge key in the store is replaced. Keys in a file are not.")
  static let counterWindow = Key(
    "app_attest.counter_window", .integer(0...63), default: "0",
    "How far a counter may be below the highest seen, each used once; for devices with parallel connections."
  )
}
