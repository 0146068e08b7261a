public import struct Foundation.Data

/// What must happen before a key signs: the access control of Apple's keychain.
public enum KeyProtection: String, Sendable, Hashable, Codable, CaseIterable {
  /// A face or a finger, or the passcode. Biometry is preferred.
  case userPresence
  /// The passcode. Biometry alone does not unlock the key.
  case devicePasscode
  /// A face or a finger that was enrolled when the key was made. Enrolling another one invalidates the key.
  case biometryCurrentSet

  /// What the app reports to the server about the key.
  public var authMethod: AuthMethod { self == .devicePasscode ? .passcode : .biometric }
}

/// The application tag of a key. Keys with different tags exist side by side.
public struct KeyTag: Sendable, Hashable, Codable, RawRepresentable, CustomStringConvertible {
  public let rawValue: String

  /// Creates a tag.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The tag of keys that biometry unlocks, of the app with this bundle identifier.
  public static func biometric(of bundleID: String) -> Self { Self(rawValue: bundleID + ".mfa.key.biometric") }
  /// The tag of keys that the passcode unlocks, of the app with this bundle identifier.
  public static func passcode(of bundleID: String) -> Self { Self(rawValue: bundleID + ".mfa.key.passcode") }

  /// The tag for a key that replaces the key with this tag: both keys exist until the server knows the new one.
  public var successor: Self {
    rawValue.hasSuffix(Self.suffix)
      ? Self(rawValue: String(rawValue.dropLast(Self.suffix.count))) : Self(rawValue: rawValue + Self.suffix)
  }

  private static let suffix = ".next"

  /// All tags that the app with this bundle identifier uses.
  static func all(of bundleID: String) -> [Self] {
    [biometric(of: bundleID), passcode(of: bundleID)].flatMap { [$0, $0.successor] }
  }

  public var description: String { rawValue }
}

/// The public half of a key pair on P-256. The private half never leaves the keychain.
public struct KeyPair: Sendable, Hashable {
  /// The tag that finds the key.
  public let tag: KeyTag
  /// What unlocks the private key.
  public let protection: KeyProtection
  /// Whether the Secure Enclave holds the private key. A simulator keeps it in the regular keychain.
  public let isHardwareBacked: Bool
  /// The public key in X9.63: 65 bytes, `04 ‖ X ‖ Y`.
  public let publicKey: [UInt8]

  /// Describes a key pair, for implementations of `KeychainService`.
  public init(tag: KeyTag, protection: KeyProtection, isHardwareBacked: Bool, publicKey: [UInt8]) {
    self.tag = tag
    self.protection = protection
    self.isHardwareBacked = isHardwareBacked
    self.publicKey = publicKey
  }

  /// Returns the 65 bytes of the public key, as `SecKeyCopyExternalRepresentation` does.
  public func getPublicKeyData() -> Data { Data(publicKey) }
}

/// Makes, finds, uses and deletes keys.
///
/// Calls that need the user show a prompt and return when the user has answered it. A cancelled task dismisses its
/// prompt with `LAError.appCancel`.
public protocol KeychainService: Sendable {
  /// Whether new keys are made in a Secure Enclave. A simulator keeps them in the regular keychain.
  func hasSecureEnclave() async -> Bool

  /// Makes a key pair, in the place of an older one with the same tag. Shows no prompt.
  ///
  /// - Throws: `.localAuthentication` with `passcodeNotSet`, or with `biometryNotEnrolled` for `.biometryCurrentSet`.
  func createKey(_ tag: KeyTag, protection: KeyProtection) async throws(DeviceSecurityError) -> KeyPair

  /// Returns the key pair with the tag, or `nil`. Shows no prompt.
  func key(_ tag: KeyTag) async throws(DeviceSecurityError) -> KeyPair?

  /// Deletes the key with the tag, if there is one. Shows no prompt.
  func deleteKey(_ tag: KeyTag) async throws(DeviceSecurityError)

  /// Signs `message` with ECDSA and SHA-256 after the user has approved, and returns the signature in X9.62 DER, 8 to
  /// 72 bytes.
  ///
  /// - Parameter reason: The text of the prompt.
  /// - Throws: `.keyMissing`; `.localAuthentication` or `.keychain` if the user did not approve, or if the key is no
  ///   longer valid.
  func sign(_ message: [UInt8], with tag: KeyTag, reason: String) async throws(DeviceSecurityError) -> [UInt8]
}

/// A prompt that the app evaluates by itself, Apple's `LAContext`.
///
/// The result unlocks something inside the app. It proves nothing to a server and is never part of a request.
public protocol BiometricService: Sendable {
  /// What the device offers now.
  func capability() async -> DeviceCapability

  /// The sensor of the device, whether or not a face or a finger is enrolled.
  func biometryType() async -> BiometryType

  /// Shows a prompt and returns when the user has approved it.
  ///
  /// - Parameters:
  ///   - policy: Whether the passcode suffices.
  ///   - reason: The text of the prompt.
  /// - Throws: `.localAuthentication` if the prompt cannot be shown or was not approved.
  func evaluate(_ policy: BiometricPolicy, reason: String) async throws(DeviceSecurityError)
}

/// What a prompt accepts.
public enum BiometricPolicy: String, Sendable, Hashable, CaseIterable {
  /// A face or a finger: `deviceOwnerAuthenticationWithBiometrics`.
  case biometrics
  /// A face or a finger, or the passcode: `deviceOwnerAuthentication`.
  case biometricsOrPasscode
}
