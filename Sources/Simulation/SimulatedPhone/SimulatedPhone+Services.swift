internal import Cryptography
public import MFAClient

extension SimulatedPhone: BiometricService {
  /// What the settings and a lockout allow now.
  public func capability() async -> DeviceCapability {
    guard settings.isPasscodeSet else { return .none }
    return settings.allowsBiometry && !isLockedOut ? .biometricsAvailable : .passcodeOnly
  }

  /// The sensor of the settings.
  public func biometryType() async -> BiometryType { settings.biometry }

  /// Shows the prompts of the policy until they are answered.
  public func evaluate(_ policy: BiometricPolicy, reason: String) async throws(DeviceSecurityError) {
    try await approve(Unlock(acceptsBiometry: true, acceptsPasscode: policy == .biometricsOrPasscode), reason: reason)
  }
}

extension SimulatedPhone: KeychainService {
  /// Whether this phone is not a simulator.
  public func hasSecureEnclave() async -> Bool { !settings.isSimulator }

  /// Makes a key pair. Keys of a simulator are not hardware-backed.
  public func createKey(_ tag: KeyTag, protection: KeyProtection) async throws(DeviceSecurityError) -> KeyPair {
    let settings = settings
    guard settings.isPasscodeSet else { throw .localAuthentication(.passcodeNotSet) }
    if protection == .biometryCurrentSet, !settings.isBiometryEnrolled {
      throw .localAuthentication(settings.biometry == .none ? .biometryNotAvailable : .biometryNotEnrolled)
    }
    // Fails for want of memory only; the keychain's general error is then errSecAllocate.
    let enrolment = storedKey(tag).enrolment
    guard let privateKey = try? P256PrivateKey() else { throw .keychain(status: -108) }
    let pair = KeyPair(
      tag: tag, protection: protection, isHardwareBacked: !settings.isSimulator, publicKey: privateKey.publicKey.x963)
    try replaceKey(tag, by: StoredKey(pair: pair, privateKey: privateKey, enrolment: enrolment))
    return pair
  }

  /// Returns the public half, or `nil`.
  public func key(_ tag: KeyTag) async throws(DeviceSecurityError) -> KeyPair? {
    storedKey(tag).key?.pair
  }

  /// Deletes the key, if there is one.
  public func deleteKey(_ tag: KeyTag) async throws(DeviceSecurityError) { try replaceKey(tag, by: nil) }

  /// Shows the prompts of the key's protection, and signs when they are approved.
  ///
  /// A key that was deleted, replaced or invalidated while a prompt was shown does not sign.
  public func sign(
    _ message: [UInt8], with tag: KeyTag, reason: String
  ) async throws(DeviceSecurityError) -> [UInt8] {
    let key = try validKey(tag)
    do throws(DeviceSecurityError) {
      try await approve(key.pair.protection.unlock, reason: reason)
    } catch {
      throw settings.reportsKeychainStatus ? error.asKeychainStatus : error
    }
    // The owner may have removed the passcode, or enrolled another face, while the prompt was shown.
    let current = try validKey(tag)
    guard current.pair == key.pair else { throw .keyMissing }
    guard let signature = try? current.privateKey.signature(for: message) else { throw .keychain(status: -108) }
    return signature
  }

  private func validKey(_ tag: KeyTag) throws(DeviceSecurityError) -> StoredKey {
    let (key, enrolment) = storedKey(tag)
    guard let key else { throw .keyMissing }
    guard key.pair.protection != .biometryCurrentSet || key.enrolment == enrolment else {
      throw .keychainAuthenticationFailed
    }
    return key
  }
}

extension KeyProtection {
  fileprivate var unlock: Unlock {
    switch self {
    case .userPresence: Unlock(acceptsBiometry: true, acceptsPasscode: true)
    case .devicePasscode: Unlock(acceptsBiometry: false, acceptsPasscode: true)
    case .biometryCurrentSet: Unlock(acceptsBiometry: true, acceptsPasscode: false)
    }
  }
}

extension DeviceSecurityError {
  /// The OSStatus that the keychain reports for a prompt that was cancelled or failed.
  fileprivate var asKeychainStatus: Self {
    if self == .localAuthentication(.userCancel) { return .keychainCancelled }
    if self == .localAuthentication(.authenticationFailed) { return .keychainAuthenticationFailed }
    return self
  }
}
