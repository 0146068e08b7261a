#if canImport(Security) && canImport(LocalAuthentication)
  internal import CryptoKit
  internal import Foundation
  internal import LocalAuthentication
  internal import Security

  /// The keychain of a real device. Private keys are made in the Secure Enclave and never leave it.
  ///
  /// The system deletes the keys when the passcode is removed. They are on this device alone, and not in its backups.
  /// The key's label in the keychain is the raw value of its `KeyProtection`, because the keychain does not reveal the
  /// access control of a key.
  ///
  /// In a simulator, which has no Secure Enclave, keys are in the regular keychain, and the app itself shows the prompt
  /// before it signs. Such a key shows how an app behaves and protects nothing: `KeyPair.isHardwareBacked` is `false`.
  ///
  /// Keys are made, found and deleted one after another, in all services of a process. Of two tasks that make a key with
  /// the same tag, the later one replaces the other's key.
  public struct SecurityKeychainService: KeychainService {
    /// Creates a service for the default access group of the app.
    public init() {}

    /// Makes a key pair, in the place of an older one with the same tag. Shows no prompt.
    ///
    /// - Throws: `.localAuthentication` with `passcodeNotSet`, or, for `.biometryCurrentSet`, with
    ///   `biometryNotEnrolled` or `biometryNotAvailable`: the older key is then kept. `.keychain` if the keychain fails.
    public func createKey(_ tag: KeyTag, protection: KeyProtection) async throws(DeviceSecurityError) -> KeyPair {
      try await BlockingCalls.serial.run { () throws(DeviceSecurityError) in
        try Self.requireSecurity(for: protection)
        let attributes = try KeychainItem.attributes(ofNewKey: tag, protection: protection)
        // Before the new key is made: if two keys had the same tag, a lookup could find either.
        try KeychainItem.delete(tag)
        return try KeychainItem.create(attributes).pair(tag: tag, protection: protection)
      }
    }

    /// Whether new keys are made in the Secure Enclave: not in a simulator.
    public func hasSecureEnclave() async -> Bool {
      #if targetEnvironment(simulator)
        false
      #else
        SecureEnclave.isAvailable
      #endif
    }

    /// Returns the key pair with the tag, or `nil`. Shows no prompt.
    ///
    /// - Throws: `.keychain` if the keychain fails, or with `errSecDecode` (-26275) if other code made the key.
    public func key(_ tag: KeyTag) async throws(DeviceSecurityError) -> KeyPair? {
      try await BlockingCalls.serial.run { () throws(DeviceSecurityError) in
        do throws(DeviceSecurityError) {
          let item = try KeychainItem.find(tag, PromptContext())
          return try item.pair(tag: tag, protection: item.protection)
        } catch .keyMissing {
          return nil
        }
      }
    }

    /// Deletes the key with the tag, if there is one. Shows no prompt.
    public func deleteKey(_ tag: KeyTag) async throws(DeviceSecurityError) {
      try await BlockingCalls.serial.run { () throws(DeviceSecurityError) in try KeychainItem.delete(tag) }
    }

    /// Shows the prompt of the key's protection, and signs when the user has approved.
    ///
    /// A cancelled task dismisses the prompt. If the user approves at the same time, the signature may be returned.
    public func sign(
      _ message: [UInt8], with tag: KeyTag, reason: String
    ) async throws(DeviceSecurityError) -> [UInt8] {
      let prompt = PromptContext(reason: reason)
      return try await prompt.dismissingWhenCancelled { () async throws(DeviceSecurityError) in
        #if targetEnvironment(simulator)
          let policy = try await BlockingCalls.serial.run { () throws(DeviceSecurityError) in
            try KeychainItem.find(tag, prompt).protection.simulatedPolicy
          }
          try await prompt.evaluate(policy, reason: reason)
        #endif
        return try await BlockingCalls.concurrent.run { () throws(DeviceSecurityError) in
          try KeychainItem.find(tag, prompt).signature(of: message)
        }
      }
    }

    /// Throws if the device cannot protect a key so. A lockout is no obstacle: it ends before the key is used.
    private static func requireSecurity(for protection: KeyProtection) throws(DeviceSecurityError) {
      let context = PromptContext()
      try context.require(.deviceOwnerAuthentication)
      guard protection == .biometryCurrentSet else { return }
      do throws(DeviceSecurityError) {
        try context.require(.deviceOwnerAuthenticationWithBiometrics)
      } catch .localAuthentication(code: LocalAuthenticationCode.biometryLockout.rawValue) {}
    }
  }

  /// A private key of the keychain, and the label that was found with it.
  private struct KeychainItem {
    private let key: SecKey
    private let label: String?

    /// What unlocks the key: its label.
    var protection: KeyProtection {
      get throws(DeviceSecurityError) {
        guard let protection = label.flatMap(KeyProtection.init(rawValue:)) else {
          throw .keychain(status: errSecDecode)
        }
        return protection
      }
    }

    // MARK: Finding and deleting

    private static func query(_ tag: KeyTag) -> [CFString: Any] {
      [
        kSecClass: kSecClassKey, kSecAttrKeyClass: kSecAttrKeyClassPrivate,
        kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrApplicationTag: Data(tag.rawValue.utf8),
        // On a Mac the older keychain has no Secure Enclave; elsewhere this is the only one.
        kSecUseDataProtectionKeychain: true,
      ]
    }

    /// Finds the key with the tag. What is done with it later uses `prompt`.
    static func find(_ tag: KeyTag, _ prompt: PromptContext) throws(DeviceSecurityError) -> Self {
      var query = query(tag)
      query[kSecReturnRef] = true
      query[kSecReturnAttributes] = true
      query[kSecUseAuthenticationContext] = prompt.context
      var result: CFTypeRef?
      let status = SecItemCopyMatching(query as CFDictionary, &result)
      guard status == errSecSuccess else { throw DeviceSecurityError(status: status) }
      guard let attributes = result as? [String: Any], let value = attributes[kSecValueRef as String],
        CFGetTypeID(value as CFTypeRef) == SecKeyGetTypeID()
      else { throw .keychain(status: errSecDecode) }
      // The type identifier was compared above; a conditional cast to a Core Foundation type always succeeds.
      return Self(key: value as! SecKey, label: attributes[kSecAttrLabel as String] as? String)
    }

    static func delete(_ tag: KeyTag) throws(DeviceSecurityError) {
      let status = SecItemDelete(query(tag) as CFDictionary)
      guard status == errSecSuccess || status == errSecItemNotFound else { throw DeviceSecurityError(status: status) }
    }

    // MARK: Making

    /// The attributes of a key that does not exist yet.
    static func attributes(
      ofNewKey tag: KeyTag, protection: KeyProtection
    ) throws(DeviceSecurityError) -> [CFString: Any] {
      var key: [CFString: Any] = [
        kSecAttrIsPermanent: true, kSecAttrApplicationTag: Data(tag.rawValue.utf8), kSecAttrLabel: protection.rawValue,
      ]
      var attributes: [CFString: Any] = [
        kSecAttrKeyType: kSecAttrKeyTypeECSECPrimeRandom, kSecAttrKeySizeInBits: 256,
        kSecUseDataProtectionKeychain: true,
      ]
      #if targetEnvironment(simulator)
        key[kSecAttrAccessible] = kSecAttrAccessibleWhenUnlockedThisDeviceOnly
      #else
        key[kSecAttrAccessControl] = try accessControl(protection)
        attributes[kSecAttrTokenID] = kSecAttrTokenIDSecureEnclave
      #endif
      attributes[kSecPrivateKeyAttrs] = key
      return attributes
    }

    private static func accessControl(_ protection: KeyProtection) throws(DeviceSecurityError) -> SecAccessControl {
      var error: Unmanaged<CFError>?
      let accessControl = SecAccessControlCreateWithFlags(
        nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, [.privateKeyUsage, protection.flag], &error)
      guard let accessControl else { throw DeviceSecurityError(retained: error) }
      return accessControl
    }

    static func create(_ attributes: [CFString: Any]) throws(DeviceSecurityError) -> Self {
      var error: Unmanaged<CFError>?
      guard let key = SecKeyCreateRandomKey(attributes as CFDictionary, &error) else {
        throw DeviceSecurityError(retained: error)
      }
      return Self(key: key, label: nil)
    }

    // MARK: Using

    func pair(tag: KeyTag, protection: KeyProtection) throws(DeviceSecurityError) -> KeyPair {
      var error: Unmanaged<CFError>?
      guard let publicKey = SecKeyCopyPublicKey(key) else { throw .keychain(status: errSecDecode) }
      guard let bytes = SecKeyCopyExternalRepresentation(publicKey, &error) else {
        throw DeviceSecurityError(retained: error)
      }
      let token = (SecKeyCopyAttributes(key) as? [String: Any])?[kSecAttrTokenID as String] as? String
      return KeyPair(
        tag: tag, protection: protection, isHardwareBacked: token == kSecAttrTokenIDSecureEnclave as String,
        publicKey: [UInt8](bytes as Data))
    }

    func signature(of message: [UInt8]) throws(DeviceSecurityError) -> [UInt8] {
      var error: Unmanaged<CFError>?
      let algorithm = SecKeyAlgorithm.ecdsaSignatureMessageX962SHA256
      guard let signature = SecKeyCreateSignature(key, algorithm, Data(message) as CFData, &error) else {
        throw DeviceSecurityError(retained: error)
      }
      return [UInt8](signature as Data)
    }
  }

  extension KeyProtection {
    fileprivate var flag: SecAccessControlCreateFlags {
      switch self {
      case .userPresence: .userPresence
      case .devicePasscode: .devicePasscode
      case .biometryCurrentSet: .biometryCurrentSet
      }
    }

    /// The prompt that the app shows in a simulator. No policy accepts the passcode alone.
    fileprivate var simulatedPolicy: LAPolicy {
      self == .biometryCurrentSet ? .deviceOwnerAuthenticationWithBiometrics : .deviceOwnerAuthentication
    }
  }

  extension DeviceSecurityError {
    /// Translates the error of a function of Security, which the caller releases.
    fileprivate init(retained error: Unmanaged<CFError>?) {
      self = error.map { Self(systemError: $0.takeRetainedValue()) } ?? .keychain(status: errSecInternalComponent)
    }
  }
#endif
