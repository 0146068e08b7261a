internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Foundation
internal import Glibc

/// The simulated devices of a user: a folder each, mode 0700, with files of mode 0600.
struct DeviceStore: Sendable {
  /// The path of the folder with the devices' folders.
  let path: String

  /// The store in the user's data folder (XDG Base Directory): `$XDG_DATA_HOME/sallyport/attest/devices`.
  init(environment: [String: String]) throws(Failure) {
    // The XDG specification requires that relative paths are ignored.
    if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") {
      path = data + "/sallyport/attest/devices"
    } else if let home = environment["HOME"], home.hasPrefix("/") {
      path = home + "/.local/share/sallyport/attest/devices"
    } else {
      throw Failure(.noInput, "there is no folder for devices", hint: "set HOME or XDG_DATA_HOME")
    }
  }

  /// Names of the devices, sorted.
  func names() throws(Failure) -> [String] {
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    let entries: [String]
    do {
      entries = try FileManager.default.contentsOfDirectory(atPath: path)
    } catch {
      throw Failure(.noInput, "cannot read \(path)")
    }
    return entries.filter(Self.isName).sorted()
  }

  func exists(_ name: String) -> Bool { Self.isName(name) && FileManager.default.fileExists(atPath: folder(name)) }

  /// Makes a device without keys. Of two processes that make the same device at once, one fails.
  func make(_ device: Device) throws(Failure) {
    try Self.check(device.name)
    let temporary = "\(path)/.\(device.name).\(getpid()).tmp"
    do throws(PrivateFile.AccessError) {
      try PrivateFile.makeFolder(temporary + "/keys")
      try PrivateFile.makeFolder(temporary + "/gates")
      try PrivateFile.write(Array(JSONOutput.line(device).utf8), to: temporary + "/device.json")
    } catch {
      try? FileManager.default.removeItem(atPath: temporary)
      throw Failure(.cannotCreate, "\(error)")
    }
    // A folder that is there already has content, and is not replaced.
    guard rename(temporary, folder(device.name)) == 0 else {
      let code = errno
      try? FileManager.default.removeItem(atPath: temporary)
      guard code == ENOTEMPTY || code == EEXIST else {
        throw Failure(.cannotCreate, "cannot create \(folder(device.name)): \(String(cString: strerror(code)))")
      }
      throw Failure(
        .cannotCreate, "there is a device \(device.name) already",
        hint: "`attest device rm \(device.name)` removes it, or choose another name")
    }
  }

  /// The description of the device called `name`.
  func load(_ name: String) throws(Failure) -> Device {
    try Self.check(name)
    let bytes: [UInt8]
    do throws(PrivateFile.AccessError) {
      bytes = try PrivateFile.read(folder(name) + "/device.json")
    } catch  where error.isAbsence {
      throw Failure(
        .noInput, "there is no device \(name)",
        hint: "`attest device list` shows those there are, `attest device new \(name) --authority DIR` makes it")
    } catch {
      throw Failure(.noInput, "\(error)")
    }
    let device: Device
    do {
      device = try JSONDecoder().decode(Device.self, from: Data(bytes))
    } catch {
      throw Self.unreadable(name, because: error)
    }
    guard device.name == name else { throw Self.damaged(name) }
    return device
  }

  private static func damaged(_ name: String) -> Failure {
    Failure(.badData, "the description of device \(name) is damaged", hint: "`attest device rm \(name)` removes it")
  }

  /// Names the member that this version does not know, if the text is JSON.
  private static func unreadable(_ name: String, because error: any Error) -> Failure {
    let member: String? =
      switch error {
      case DecodingError.dataCorrupted(let context), DecodingError.typeMismatch(_, let context),
        DecodingError.valueNotFound(_, let context):
        context.codingPath.last?.stringValue
      case DecodingError.keyNotFound(let key, _): key.stringValue
      default: nil
      }
    guard let member else { return damaged(name) }
    return Failure(
      .badData, "the description of device \(name) is of another version of attest, or damaged: see its \(member)",
      hint: "use it with the version that made it; `attest device rm \(name)` removes it")
  }

  /// Removes the device called `name` and its keys, unless another process is using it.
  func remove(_ name: String) throws(Failure) {
    try Self.check(name)
    guard exists(name) else { throw Failure(.noInput, "there is no device \(name)") }
    let lock = try lockNow(name)
    defer { lock.release() }
    // Renamed first, so that a removal that is interrupted leaves no half of a device.
    let doomed = "\(path)/.\(name).\(getpid()).rm"
    guard rename(folder(name), doomed) == 0 else {
      throw Failure(.cannotCreate, "cannot remove \(folder(name)): \(String(cString: strerror(errno)))")
    }
    do {
      try FileManager.default.removeItem(atPath: doomed)
    } catch {
      throw Failure(.cannotCreate, "cannot remove \(doomed)")
    }
  }

  /// Locks the device for this process. If another process uses it, waits for at most ten seconds.
  func lock(_ name: String) async throws(Failure) -> FileLock {
    for _ in 0..<200 {
      do throws(PrivateFile.AccessError) {
        return try FileLock(path: folder(name), waits: false)
      } catch  where error.code == EWOULDBLOCK {
        try? await Task.sleep(for: .milliseconds(50))
      } catch {
        throw Failure(.noInput, "\(error)")
      }
    }
    throw Self.inUse(name)
  }

  private func lockNow(_ name: String) throws(Failure) -> FileLock {
    do throws(PrivateFile.AccessError) {
      return try FileLock(path: folder(name), waits: false)
    } catch  where error.code == EWOULDBLOCK {
      throw Self.inUse(name)
    } catch {
      throw Failure(.noInput, "\(error)")
    }
  }

  private static func inUse(_ name: String) -> Failure {
    Failure(.retryLater, "another process is using the device \(name)", hint: "try again, or name another `--device`")
  }

  func folder(_ name: String) -> String { "\(path)/\(name)" }
  func keysFolder(_ name: String) -> String { "\(path)/\(name)/keys" }
  /// The record of the key that `attest attestation` made last.
  func lastKey(_ name: String) -> FileKeyIDStore { FileKeyIDStore(path: "\(path)/\(name)/last-key.json") }
  func tokenKeyPath(_ name: String) -> String { "\(path)/\(name)/token-key.pem" }
  func recordPath(_ name: String, _ gate: GateUnderAuthority) -> String {
    "\(path)/\(name)/gates/\(gate.fileName).json"
  }

  private static func check(_ name: String) throws(Failure) {
    guard isName(name) else {
      throw Failure(
        .usage, "not a name for a device: \(name)", hint: "1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot")
    }
  }

  private static func isName(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count) && !name.hasPrefix(".")
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }
}
