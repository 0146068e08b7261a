internal import CommandSupport
internal import AttestClient
internal import ByteCoding
internal import Foundation
internal import SimulatedDevice

/// The properties of a simulated device. Its keys and registrations are in separate files.
struct Device: Sendable, Hashable, Codable {
  let name: String
  /// The app that it runs, `TEAM.bundle`.
  let appId: String
  /// RFC 3339.
  let createdAt: String
  /// The category that the device reports for its app, as devices do since iOS 27; `nil` for an older device.
  let validationCategory: UInt32?
  let bundleVersion: String?

  init(name: String, appId: String, claims: AppClaims?, createdAt: Timestamp) {
    self.name = name
    self.appId = appId
    self.createdAt = Timestamp(seconds: createdAt.seconds).description
    validationCategory = claims?.validationCategory
    bundleVersion = claims?.bundleVersion
  }

  var app: SimulatedApp {
    let claims = validationCategory.map {
      AppClaims(validationCategory: $0, bundleVersion: bundleVersion ?? AppClaims().bundleVersion)
    }
    return SimulatedApp(appID: appId, environment: .development, claims: claims)
  }
}

/// A device as `attest device show` prints it, without secrets.
struct DeviceReport: Sendable, Encodable {
  struct Key: Sendable, Encodable {
    let keyId: String
    let isAttested: Bool
    let signCount: UInt32
  }

  struct Registration: Sendable, Encodable {
    /// `host:port`.
    let gate: String
    /// Of those under whose roots it is registered there, to tell gates at one address apart.
    let authority: String
    /// `nil` while no key is registered.
    let keyId: String?
  }

  let device: Device
  let folder: String
  let keys: [Key]
  let registrations: [Registration]

  init(_ device: Device, in store: DeviceStore) throws(Failure) {
    self.device = device
    folder = store.folder(device.name)
    do throws(KeyStoreError) {
      keys = try Self.keys(in: store.keysFolder(device.name))
      registrations = try Self.registrations(of: device.name, in: store)
    } catch {
      throw Failure(error)
    }
  }

  private static func keys(in folder: String) throws(KeyStoreError) -> [Key] {
    let store = FolderKeyStore(folder: folder)
    var keys: [Key] = []
    for bytes in try names(in: folder).compactMap({ Hex.decode($0) }) {
      guard let key = try store.key(Base64.encode(bytes)) else { continue }
      keys.append(Key(keyId: key.keyID, isAttested: key.isAttested, signCount: key.signCount))
    }
    return keys
  }

  private static func registrations(
    of name: String, in store: DeviceStore
  ) throws(KeyStoreError) -> [Registration] {
    var registrations: [Registration] = []
    for gate in try names(in: store.folder(name) + "/gates").compactMap(GateUnderAuthority.init(fileName:)) {
      let record = try FileKeyIDStore(path: store.recordPath(name, gate)).load()
      registrations.append(Registration(gate: gate.gate, authority: gate.authority, keyId: record.keyID))
    }
    return registrations
  }

  /// Returns the names of the JSON files in a folder without their extension, sorted.
  private static func names(in folder: String) throws(KeyStoreError) -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder)
        .filter { $0.hasSuffix(".json") }.map { String($0.dropLast(5)) }.sorted()
    } catch {
      throw .unreadable(folder)
    }
  }
}
