// Declarations for type checks, not an implementation.
public import Foundation

// MARK: Items

public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  fatalError()
}
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  fatalError()
}
public func SecItemDelete(_ query: CFDictionary) -> OSStatus { fatalError() }
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus { fatalError() }

public var kSecAttrAccessControl: CFString { fatalError() }
public var kSecAttrAccessible: CFString { fatalError() }
public var kSecAttrAccessibleAfterFirstUnlock: CFString { fatalError() }
public var kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString { fatalError() }
public var kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString { fatalError() }
public var kSecAttrAccessibleWhenUnlockedThisDeviceOnly: CFString { fatalError() }
public var kSecAttrAccount: CFString { fatalError() }
public var kSecAttrApplicationTag: CFString { fatalError() }
public var kSecAttrIsPermanent: CFString { fatalError() }
public var kSecAttrKeyClass: CFString { fatalError() }
public var kSecAttrKeyClassPrivate: CFString { fatalError() }
public var kSecAttrKeySizeInBits: CFString { fatalError() }
public var kSecAttrKeyType: CFString { fatalError() }
public var kSecAttrKeyTypeECSECPrimeRandom: CFString { fatalError() }
public var kSecAttrLabel: CFString { fatalError() }
public var kSecAttrService: CFString { fatalError() }
public var kSecAttrSynchronizable: CFString { fatalError() }
public var kSecAttrTokenID: CFString { fatalError() }
public var kSecAttrTokenIDSecureEnclave: CFString { fatalError() }
public var kSecClass: CFString { fatalError() }
public var kSecClassGenericPassword: CFString { fatalError() }
public var kSecClassKey: CFString { fatalError() }
public var kSecMatchLimit: CFString { fatalError() }
public var kSecMatchLimitAll: CFString { fatalError() }
public var kSecPrivateKeyAttrs: CFString { fatalError() }
public var kSecReturnAttributes: CFString { fatalError() }
public var kSecReturnData: CFString { fatalError() }
public var kSecReturnRef: CFString { fatalError() }
public var kSecUseAuthenticationContext: CFString { fatalError() }
public var kSecUseDataProtectionKeychain: CFString { fatalError() }
public var kSecValueData: CFString { fatalError() }
public var kSecValueRef: CFString { fatalError() }

public var errSecSuccess: OSStatus { 0 }
public var errSecAllocate: OSStatus { -108 }
public var errSecInternalComponent: OSStatus { -2070 }
public var errSecItemNotFound: OSStatus { -25300 }
public var errSecDecode: OSStatus { -26275 }

// MARK: Access control

public final class SecAccessControl {}

public struct SecAccessControlCreateFlags: OptionSet, Sendable {
  public let rawValue: CFOptionFlags
  public init(rawValue: CFOptionFlags) { self.rawValue = rawValue }
  public static let userPresence = Self(rawValue: 1 << 0)
  public static let biometryAny = Self(rawValue: 1 << 1)
  public static let biometryCurrentSet = Self(rawValue: 1 << 3)
  public static let devicePasscode = Self(rawValue: 1 << 4)
  public static let privateKeyUsage = Self(rawValue: 1 << 30)
}

public func SecAccessControlCreateWithFlags(
  _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? { fatalError() }

// MARK: Keys

public final class SecKey {}

public struct SecKeyAlgorithm: RawRepresentable, Hashable, @unchecked Sendable {
  public let rawValue: CFString
  public init(rawValue: CFString) { self.rawValue = rawValue }
  public static var ecdsaSignatureMessageX962SHA256: SecKeyAlgorithm { fatalError() }
}

public func SecKeyGetTypeID() -> CFTypeID { fatalError() }
public func SecKeyCreateRandomKey(
  _ parameters: CFDictionary, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecKey? { fatalError() }
public func SecKeyCopyPublicKey(_ key: SecKey) -> SecKey? { fatalError() }
public func SecKeyCopyExternalRepresentation(
  _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? { fatalError() }
public func SecKeyCopyAttributes(_ key: SecKey) -> CFDictionary? { fatalError() }
public func SecKeyCreateSignature(
  _ key: SecKey, _ algorithm: SecKeyAlgorithm, _ dataToSign: CFData,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? { fatalError() }

// MARK: Identities

public func SecIdentityGetTypeID() -> CFTypeID { fatalError() }
public func SecPKCS12Import(
  _ pkcs12_data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
) -> OSStatus { fatalError() }

public var kSecImportExportPassphrase: CFString { fatalError() }
public var kSecImportItemIdentity: CFString { fatalError() }
