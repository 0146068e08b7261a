public import AttestClient
internal import ByteCoding
internal import Cryptography
internal import Foundation
internal import Locking

/// A key of a simulated device, and whether it was attested.
public struct SimulatedKey: Sendable, Hashable, Codable {
  /// Base64 of the SHA-256 of the public key.
  public let keyID: String
  /// PKCS #8 in PEM. A secret.
  public let privateKeyPEM: String
  /// Whether the key was attested, which is possible once.
  public var isAttested = false
  /// The counter of its last assertion; 0 for a key of an Android device, which has none.
  public var signCount: UInt32 = 0
  /// The certificates of an attested key of an Android device, base64 of DER, leaf first; `nil` for others.
  public var chain: [String]?

  /// The serial number of the certificate of the attestation key that vouches for a key of an Android device. Status
  /// lists have it. `nil` for other keys, and before the attestation.
  public var attestationKeySerial: [UInt8]? {
    guard let chain, chain.count > 1, let der = Base64.decode(chain[1]) else { return nil }
    return (try? Certificate(der: der))?.serialNumber
  }

  /// Creates a key that has not been attested.
  public init(keyID: String, privateKeyPEM: String) {
    self.keyID = keyID
    self.privateKeyPEM = privateKeyPEM
  }
}

/// Where a simulated device keeps its keys, as the Secure Enclave would.
public protocol SimulatedKeyStore: Sendable {
  /// Returns the key with the identifier `keyID`, or `nil` if there is none.
  func key(_ keyID: String) throws(KeyStoreError) -> SimulatedKey?
  /// Adds or replaces `key`. It is durable when this returns.
  func save(_ key: SimulatedKey) throws(KeyStoreError)
}

/// Keys that end with the process.
public final class MemoryKeyStore: SimulatedKeyStore {
  private let keys = LockedValue<[String: SimulatedKey]>([:])

  /// Creates an empty store.
  public init() {}

  /// Returns the key, or `nil` if the store does not have it.
  public func key(_ keyID: String) -> SimulatedKey? { keys.withLock { $0[keyID] } }

  /// Stores the key, in place of an older version.
  public func save(_ key: SimulatedKey) { keys.withLock { $0[key.keyID] = key } }

  /// Loses every key, as a device does when its app is installed again.
  public func removeAll() { keys.withLock { $0.removeAll() } }
}

/// One file a key, mode 0600, in a folder that exists.
public struct FolderKeyStore: SimulatedKeyStore {
  private let folder: String

  /// Creates a store in a folder, which must exist.
  public init(folder: String) { self.folder = folder }

  /// Returns the key, or `nil` if the folder does not have it.
  public func key(_ keyID: String) throws(KeyStoreError) -> SimulatedKey? {
    guard let path = path(of: keyID) else { return nil }
    let bytes: [UInt8]
    do throws(PrivateFile.AccessError) {
      bytes = try PrivateFile.read(path)
    } catch  where error.isAbsence {
      return nil
    } catch {
      throw .unreadable("\(error)")
    }
    guard let key = try? JSONDecoder().decode(SimulatedKey.self, from: Data(bytes)), key.keyID == keyID else {
      throw .malformed("\(path) is not a key")
    }
    return key
  }

  /// Writes the key to its file, in place of an older version.
  public func save(_ key: SimulatedKey) throws(KeyStoreError) {
    guard let path = path(of: key.keyID) else { throw .malformed("not a key identifier") }
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      try PrivateFile.write([UInt8](encoder.encode(key)), to: path)
    } catch {
      throw .unwritable("\(error)")
    }
  }

  /// Key identifiers are base64, and a file name cannot contain its slash. Returns `nil` for text that is not a key
  /// identifier.
  private func path(of keyID: String) -> String? {
    guard let bytes = Base64.decode(keyID), bytes.count == 32 else { return nil }
    return "\(folder)/\(Hex.encode(bytes)).json"
  }
}
