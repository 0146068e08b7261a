internal import AndroidKeyAttestation
internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Foundation
internal import SimulatedDevice

/// The properties of a simulated device. Its keys and registrations are in separate files.
struct Device: Sendable, Hashable {
  let name: String
  /// RFC 3339.
  let createdAt: String
  let model: Model

  /// What the device is, and the app that it runs.
  enum Model: Sendable, Hashable {
    case ios(SimulatedApp)
    case android(AndroidProfile)

    var platform: Platform {
      switch self {
      case .ios: .ios
      case .android: .android
      }
    }
  }

  init(name: String, model: Model, createdAt: Timestamp) {
    self.name = name
    self.model = model
    self.createdAt = Timestamp(seconds: createdAt.seconds).description
  }

  /// The device of a platform with its properties by default, which runs the authority's app.
  init(name: String, on platform: Platform, authority: TestAuthority, createdAt: Timestamp) {
    let model: Model =
      switch platform {
      case .ios: .ios(SimulatedApp(appID: authority.appID, claims: AppClaims()))
      case .android: .android(AndroidProfile(app: authority.androidApp))
      }
    self.init(name: name, model: model, createdAt: createdAt)
  }

  var platform: Platform { model.platform }

  /// The name of this device in the receipt of its next key, by which `attest dev-apple` counts its keys. The attestation
  /// key of an Android device follows from it, by which a gate counts them.
  func receiptName(in store: DeviceStore) -> SimulatedDeviceName {
    let files = try? FileManager.default.contentsOfDirectory(atPath: store.keysFolder(name))
    return SimulatedDeviceName(seed: "\(name) \(createdAt)", attestedKeys: UInt32(clamping: (files?.count ?? 0) + 1))
  }

  /// The app as lists show it: `TEAM.bundle`, or the package.
  var appName: String {
    switch model {
    case .ios(let app): app.appID
    case .android(let profile): profile.app.package
    }
  }

  /// The bundle identifier or the package.
  var bundleID: String {
    switch model {
    case .ios(let app): String(app.appID.split(separator: ".", maxSplits: 1).last ?? "app")
    case .android(let profile): profile.app.package
    }
  }
}

extension Device: Codable {
  private enum Key: String, CodingKey {
    case name, createdAt, platform
    case appId, validationCategory, bundleVersion
    case package, signer, securityLevel, provisioning, boot, patchLevel
  }

  /// A file without a platform is of a version that knew iOS alone. A file of an Android device has no `appId`, so that
  /// such a version refuses it.
  init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: Key.self)
    name = try values.decode(String.self, forKey: .name)
    createdAt = try values.decode(String.self, forKey: .createdAt)
    model =
      switch try values.decodeIfPresent(Platform.self, forKey: .platform) ?? .ios {
      case .ios: .ios(try Self.app(values))
      case .android: .android(try Self.profile(values))
      }
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(name, forKey: .name)
    try values.encode(createdAt, forKey: .createdAt)
    try values.encode(platform, forKey: .platform)
    switch model {
    case .ios(let app):
      try values.encode(app.appID, forKey: .appId)
      try values.encodeIfPresent(app.claims?.validationCategory, forKey: .validationCategory)
      try values.encodeIfPresent(app.claims?.bundleVersion, forKey: .bundleVersion)
    case .android(let profile):
      try values.encode(profile.app.package, forKey: .package)
      try values.encode(Hex.encode(profile.app.signer), forKey: .signer)
      try values.encode(profile.securityLevel, forKey: .securityLevel)
      try values.encode(profile.provisioning, forKey: .provisioning)
      try values.encode(profile.boot, forKey: .boot)
      try values.encodeIfPresent(profile.patchLevel?.description, forKey: .patchLevel)
    }
  }

  private static func app(_ values: KeyedDecodingContainer<Key>) throws -> SimulatedApp {
    let category = try values.decodeIfPresent(UInt32.self, forKey: .validationCategory)
    let version = try values.decodeIfPresent(String.self, forKey: .bundleVersion)
    let claims = category.map {
      AppClaims(validationCategory: $0, bundleVersion: version ?? AppClaims().bundleVersion)
    }
    return SimulatedApp(appID: try values.decode(String.self, forKey: .appId), claims: claims)
  }

  private static func profile(_ values: KeyedDecodingContainer<Key>) throws -> AndroidProfile {
    guard let signer = Hex.decode(try values.decode(String.self, forKey: .signer)), signer.count == 32 else {
      throw DecodingError.dataCorruptedError(forKey: .signer, in: values, debugDescription: "not a digest")
    }
    let month = try values.decodeIfPresent(String.self, forKey: .patchLevel)
    let patchLevel = month.flatMap { PatchLevel($0) }
    guard month == nil || patchLevel != nil else {
      throw DecodingError.dataCorruptedError(forKey: .patchLevel, in: values, debugDescription: "not a month")
    }
    var profile = AndroidProfile(
      app: AndroidApp(package: try values.decode(String.self, forKey: .package), signer: signer))
    profile.securityLevel = try values.decode(AndroidProfile.SecurityLevel.self, forKey: .securityLevel)
    profile.provisioning = try values.decode(AndroidProfile.Provisioning.self, forKey: .provisioning)
    profile.boot = try values.decode(AndroidProfile.Boot.self, forKey: .boot)
    profile.patchLevel = patchLevel
    return profile
  }
}

/// A device as `attest device show` prints it, without secrets.
struct DeviceReport: Sendable, Encodable {
  struct Key: Sendable, Encodable {
    let keyId: String
    let publicKey: PublicKeyForms
    let isAttested: Bool
    /// `nil` for keys of Android, which have no counter.
    let signCount: UInt32?
    /// The serial number of its attestation key's certificate, as status lists have it; `nil` on iOS.
    let attestationKey: String?
  }

  struct Registration: Sendable, Encodable {
    /// `host:port`.
    let gate: String
    /// The authority whose roots the gate trusts: two gates may have had the same address.
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
      keys = try Self.keys(of: device.platform, in: store.keysFolder(device.name))
      registrations = try Self.registrations(of: device.name, in: store)
    } catch {
      throw Failure(error)
    }
  }

  private static func keys(of platform: Platform, in folder: String) throws(KeyStoreError) -> [Key] {
    let store = FolderKeyStore(folder: folder)
    var keys: [Key] = []
    for bytes in try names(in: folder).compactMap({ Hex.decode($0) }) {
      guard let key = try store.key(Base64.encode(bytes)) else { continue }
      let isOnAndroid = platform == .android
      keys.append(
        Key(
          keyId: key.keyID, publicKey: try PublicKeyForms(of: key), isAttested: key.isAttested,
          signCount: isOnAndroid ? nil : key.signCount,
          attestationKey: key.attestationKeySerial.map(AndroidStatusList.text(ofSerial:))))
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
