internal import ConfigurationEngine

// The settings of Android apps and of the revocation of their devices' certificates.
extension Keys {
  static let androidAppKeys = [KeyDefinition](
    package, signers, securityLevel, verifiedBoot, bootKeys, leastPatchLevel, requiresRKP)
  static let statusListKeys = [KeyDefinition](statusList, statusListCA, statusListRefresh, statusListMaximumAge)

  static let package = Key(
    "app_attest.apps[].package", .packageName, isRequired: true, only: .android, "The name of the app's package.")
  static let signers = Key(
    "app_attest.apps[].signers[]", .sha256, isRequired: true, only: .android,
    "SHA-256 of the certificates that may sign the app.")
  static let securityLevel = Key<GateSettings.AndroidApp.SecurityLevel>(
    "app_attest.apps[].security_level", .choice(), default: "tee", only: .android,
    "The least secure hardware of keys; `strongbox` is a separate chip.")
  static let verifiedBoot = Key<GateSettings.AndroidApp.VerifiedBoot>(
    "app_attest.apps[].verified_boot", .choice(), default: "verified", only: .android,
    "The systems of devices: those of the maker, or also those with a key in `boot_keys_file`.")
  static let bootKeys = Key(
    "app_attest.apps[].boot_keys_file", .file, only: .android, example: "boot-keys.txt",
    "SHA-256 of boot keys to allow, one per line, or the JSON that GrapheneOS publishes.")
  static let leastPatchLevel = Key(
    "app_attest.apps[].min_patch_level", .month, only: .android, example: "2026-01",
    "The oldest month of security patches, as the attestation reported it. By default any, also an unknown one.")
  static let requiresRKP = Key(
    "app_attest.apps[].require_rkp", .boolean, default: "false", only: .android,
    "Whether the device's attestation key must be provisioned remotely. Leaked factory keys are then useless.")

  static let statusList = Key(
    "app_attest.android.status_list", .fileOrURL, example: "https://android.googleapis.com/attestation/status",
    "The list of revoked Android attestation certificates: a URL or a file. By default none is checked.")
  static let statusListCA = Key(
    "app_attest.android.ca_file", .file, example: "internal-ca.pem",
    "The CA (PEM) of the server of `status_list`, instead of the system's CAs.")
  static let statusListRefresh = Key(
    "app_attest.android.refresh", .duration(1000...604_800_000), default: "1h",
    "How often the status list is read. Keys with a certificate in it are revoked, and their sessions closed.")
  static let statusListMaximumAge = Key(
    "app_attest.android.max_age", .duration(60_000...31_536_000_000), default: "7d",
    "How old the status list may be. With an older one no Android key is registered; registered ones are admitted.")

  static let androidRoot = Key(
    "app_attest.trust.android_root_file", .file, example: "android-root.pem",
    "Roots for simulated Android devices (PEM) instead of Google's. Not with an app in environment production.")
}
