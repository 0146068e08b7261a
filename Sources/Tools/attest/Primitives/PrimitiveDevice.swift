internal import AttestClient
internal import Commands
internal import SimulatedDevice

/// A device that signs without a network.
struct PrimitiveDevice {
  let device: Device
  let authority: TestAuthority
  let store: DeviceStore
  /// The keys of the device.
  let keys: KeyErrorRecorder
  private let lock: FileLock

  /// Locks the device that the options name. The device by default is made if it is not there.
  init(_ options: GlobalOptions) async throws(Failure) {
    let options = options.withStandardAuthority
    authority = try options.loadAuthority()
    store = try options.deviceStore()
    device = try options.device(in: store, under: authority)
    lock = try await store.lock(device.name)
    keys = KeyErrorRecorder(FolderKeyStore(folder: store.keysFolder(device.name)))
  }

  /// Lets other processes use the device.
  func release() { lock.release() }

  /// The failure of a key service. Here most failures are failures of its files.
  func failure(_ error: KeyServiceError) -> Failure {
    if case .systemFailure = error, let fault = keys.last { return Failure(fault) }
    return Failure(error)
  }

  /// An Android device signs the nonce itself.
  static func challenge(for android: SignedChallenge) throws(Failure) -> Challenge {
    guard let challenge = android.challenge else {
      throw Failure(
        .usage, "an Android device attests and signs the nonce, and knows no client data hash",
        hint: "use --nonce HEX, or an iOS device")
    }
    return challenge
  }
}

/// Where a command writes an object.
enum ObjectFile {
  /// Checks that `write` can write to `path`. Call it before a key is made or a counter is taken.
  static func check(_ path: String) throws(Failure) {
    guard path != "-" else { return }
    do throws(PrivateFile.AccessError) { try PrivateFile.checkWriting(to: path) } catch { throw failure(error) }
  }

  /// Writes `bytes` to `path`, or to standard output for `-`.
  static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
    if path == "-" {
      StandardOutput.write(bytes)
      return
    }
    do throws(PrivateFile.AccessError) { try PrivateFile.write(bytes, to: path) } catch { throw failure(error) }
  }

  private static func failure(_ error: PrivateFile.AccessError) -> Failure {
    Failure(.cannotCreate, "\(error)", hint: "name a file in a folder that is there, or - for standard output")
  }
}
