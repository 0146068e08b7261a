import AttestGate
import ByteCoding
import ConfigurationEngine
import Cryptography
import Foundation
import Glibc
import GateRuntime
import SQLiteStore
import Settings
import SimulatedDevice
import TestSupport
import Testing

/// A folder with a valid gate configuration, in which a test breaks one thing.
struct Bench {
  static let now = Timestamp(seconds: 1_780_000_000)
  static let day = Duration.seconds(86400)
  static let authority = Result { try TestAuthority(appID: "SALLYPORT1.com.example.app", at: now) }

  let folder: String

  /// Calls `body` with a new folder that contains an authority's files.
  static func with<R>(_ body: (Bench) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      try AuthorityFolder(path: folder).save(authority.get())
      return try await body(Bench(folder: folder))
    }
  }

  func write(_ text: String, to name: String, mode: Int = 0o600) throws {
    try text.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder + "/" + name)
  }

  func pem(_ certificates: Certificate...) throws -> String { try certificates.map { try $0.pem }.joined() }

  /// Loads settings in which no process listens at the upstream's port 1, and the gate listens at any port.
  ///
  /// - Parameters:
  ///   - extra: Further sections. If there are no routes among them, there is one to port 1: at the port of the default,
  ///     a server of this machine may listen.
  ///   - section: A section to leave out because `extra` contains it.
  func settings(
    _ extra: String = "", without section: String? = nil, set flags: [String: String] = [:]
  ) throws -> GateSettings {
    let sections = """
      listen: { address: 127.0.0.1, port: 0 }
      tls: { cert_file: server.pem, key_file: server.key }
      store: { url: "sqlite://\(folder)/state.db" }

      """
    let yaml = sections.split(separator: "\n").filter { line in section.map { !line.hasPrefix($0 + ":") } ?? true }
    let routes = extra.contains("routes:") ? "" : "\nroutes: [{ upstream: 'ws://127.0.0.1:1' }]\n"
    try write(yaml.joined(separator: "\n") + "\n" + extra + routes, to: "gate.yaml")
    let flags = flags.sorted { $0.key < $1.key }.map { FlagSetting(flag: "--set", key: $0.key, text: $0.value) }
    return try SettingsLoader(file: "gate.yaml", flags: flags, environment: [:], workingDirectory: folder).load()
  }

  /// Returns the failures and warnings of a preflight as `outcome: key: text`; DIR replaces the path of the folder.
  func findings(_ settings: GateSettings, at instant: Timestamp = now) async throws -> [String] {
    try await results(settings, at: instant).filter { $0.outcome != .passed }.map(line)
  }

  func results(_ settings: GateSettings, at instant: Timestamp = now) async throws -> [ProbeResult] {
    guard case .sqlite(let path) = settings.store else { throw NotThisKind() }
    return await Preflight(settings, store: SQLiteStore(path: path), at: instant).run()
  }

  func line(_ result: ProbeResult) -> String {
    "\(result.outcome): \(result.key): \(result.text)".replacingOccurrences(of: folder, with: "DIR")
  }

  struct NotThisKind: Error {}
}

/// A listening TCP socket.
final class ListeningSocket {
  let port: UInt16
  private let descriptor: Int32

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0 && listen(descriptor, 8) == 0
      }
    }
    port = UInt16(bigEndian: address.sin_port)
    try #require(isListening)
  }

  deinit { close(descriptor) }
}

/// A listening Unix socket.
final class ListeningPath {
  private let descriptor: Int32
  private let path: String

  init(_ path: String) throws {
    self.path = path
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let isListening = withUnsafePointer(to: &address) { [descriptor] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 && listen(descriptor, 8) == 0
      }
    }
    try #require(isListening)
  }

  deinit {
    close(descriptor)
    unlink(path)
  }
}
