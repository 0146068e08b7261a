internal import AttestClient
internal import ByteCoding
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

  /// Locks the device and makes ready to speak with the gate. The device `default` is made if it is not there.
  init(_ options: GlobalOptions, address: GateURL, engine: ClientEngine) async throws(Failure) {
    let authority = try options.loadAuthority()
    let tls = try options.makeTLS()
    let store = try options.deviceStore()
    let name = options.device ?? GlobalOptions.defaultDevice
    if options.device == nil, !store.exists(name) {
      let device = Device(name: name, appId: authority.appID, claims: AppClaims(), createdAt: .now())
      do throws(Failure) {
        try store.make(device)
      } catch {
        // Another process has made it in the meantime: that one is as good.
        guard store.exists(name) else { throw error }
      }
    }
    device = try store.load(name)
    lock = try await store.lock(name)
    self.address = address
    transport = EngineTransport(engine: engine, tls: tls)
    let keys = SimulatedKeyService(
      authority: authority, app: device.app, keys: FolderKeyStore(folder: store.keysFolder(name)))
    let record = FileKeyIDStore(path: store.recordPath(name, GateUnderAuthority(gate: address.gateName, authority)))
    // What cannot be read is told by the session, when it is used.
    remembersKey = (try? record.load())?.keyID != nil
    do throws(AttestError) {
      session = try AttestSession(gate: address.url, keys: keys, store: record, http: transport)
    } catch {
      throw Failure(error)
    }
  }

  static func makeEngine() throws(Failure) -> ClientEngine {
    do throws(ClientFault) { return try ClientEngine() } catch { throw Failure(.unavailable, "\(error)") }
  }
}
