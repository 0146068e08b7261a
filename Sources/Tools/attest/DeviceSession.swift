internal import AttestClient
internal import ByteCoding
internal import Commands
internal import SimulatedDevice
internal import TransportEngine

/// A device of this user at work with one gate.
struct DeviceSession {
  let device: Device
  let address: GateURL
  let session: AttestSession
  let transport: EngineTransport
  /// Held while keys and counters are used; a socket that is open needs it no longer.
  let lock: FileLock
  /// Whether a key was registered before, as far as the device remembers.
  let remembersKey: Bool
  private let keyFaults: KeyErrorRecorder

  /// Locks the device and makes ready to speak with the gate. The device `default` is made if it is not there.
  ///
  /// - Parameter replacesKey: Whether the device makes another key, although one is registered.
  init(
    _ options: GlobalOptions, address: GateURL, engine: ClientEngine, replacesKey: Bool = false
  ) async throws(Failure) {
    let options = options.forGate(at: address)
    let authority = try options.loadAuthority()
    let tls = try options.makeTLS()
    let store = try options.deviceStore()
    device = try options.device(in: store, under: authority)
    lock = try await store.lock(device.name)
    self.address = address
    transport = EngineTransport(engine: engine, tls: tls)
    keyFaults = KeyErrorRecorder(FolderKeyStore(folder: store.keysFolder(device.name)))
    let keys = try authority.keyService(of: device.model, named: device.receiptName(in: store), keys: keyFaults)
    let file = FileKeyIDStore(
      path: store.recordPath(device.name, GateUnderAuthority(gate: address.gateName, authority)))
    let record: any KeyIDStore = if replacesKey { ReplacedKeyRecord(file) } else { file }
    // A record that cannot be read is reported by the session when it is used.
    remembersKey = (try? record.load())?.keyID != nil
    do throws(AttestError) {
      session = try AttestSession(gate: address.url, deviceKeys: keys, store: record, http: transport)
    } catch {
      throw Failure(error)
    }
  }

  /// Translates an error of `session`. Here most failures of the key service are failures of its files.
  func failure(_ error: AttestError) -> Failure {
    if case .keyService(.systemFailure) = error, let fault = keyFaults.last { return Failure(fault) }
    return Failure(error, of: device.platform)
  }

  static func makeEngine() throws(Failure) -> ClientEngine {
    do throws(ClientError) { return try ClientEngine() } catch { throw Failure(.unavailable, "\(error)") }
  }
}

extension Device {
  /// Throws unless the device is of the platform that the user asked for, and the authority vouches for its app.
  func check(on platform: Platform?, under authority: TestAuthority) throws(Failure) {
    if let platform, platform != self.platform {
      throw Failure(
        .usage, "the device \(name) is of the platform \(self.platform.rawValue), not \(platform.rawValue)",
        hint: "--device NAME names another device, `attest device new NAME --platform \(platform.rawValue) --authority "
          + "DIR` makes one")
    }
    // Any app can run on an Android device: its maker vouches for the hardware alone.
    if case .ios(let app) = model, app.appID != authority.appID {
      throw Failure(
        .usage, "the device \(name) runs \(app.appID), and the authority vouches for \(authority.appID) alone",
        hint: "--device NAME names another device, `attest device new NAME --authority DIR` makes one that runs the "
          + "authority's app")
    }
  }
}

/// An empty record until another key is saved: until then the file keeps the registered key, which stays in use if the
/// gate does not accept the other one.
private struct ReplacedKeyRecord: KeyIDStore {
  private let file: FileKeyIDStore
  private let hasSaved = Shared(false)

  init(_ file: FileKeyIDStore) { self.file = file }

  func load() throws(KeyStoreError) -> KeyRecord { try hasSaved.get() ? file.load() : KeyRecord() }

  func save(_ record: KeyRecord) throws(KeyStoreError) {
    try file.save(record)
    hasSaved.set(true)
  }
}

/// The keys of a folder and the last error of their files: a key service has only one error for all of them.
struct KeyErrorRecorder: SimulatedKeyStore {
  private let keys: FolderKeyStore
  private let fault = Shared<KeyStoreError?>(nil)

  init(_ keys: FolderKeyStore) { self.keys = keys }

  var last: KeyStoreError? { fault.get() }

  func key(_ keyID: String) throws(KeyStoreError) -> SimulatedKey? {
    try noting { () throws(KeyStoreError) in try keys.key(keyID) }
  }

  func save(_ key: SimulatedKey) throws(KeyStoreError) { try noting { () throws(KeyStoreError) in try keys.save(key) } }

  private func noting<Value>(_ body: () throws(KeyStoreError) -> Value) throws(KeyStoreError) -> Value {
    do throws(KeyStoreError) {
      return try body()
    } catch {
      fault.set(error)
      throw error
    }
  }
}
