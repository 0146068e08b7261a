import Foundation
import Glibc

/// Paths, temporary folders and ports for tests.
public enum Places {
  /// The folder of the programs under test: the value of `SALLYPORT_TEST_PROGRAMS`, for example the folder of a release
  /// build, otherwise the folder of this test's executable.
  public static let products: String = {
    if let folder = ProcessInfo.processInfo.environment["SALLYPORT_TEST_PROGRAMS"], !folder.isEmpty { return folder }
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "."
    return (own as NSString).deletingLastPathComponent
  }()

  /// Returns the path of an executable of this package.
  public static func product(_ name: String) throws -> String {
    let path = products + "/" + name
    guard FileManager.default.isExecutableFile(atPath: path) else { throw NotThere(what: path) }
    return path
  }

  /// Returns the path of a program of the system, such as `curl`.
  public static func tool(_ name: String) throws -> String {
    for folder in ["/usr/bin", "/bin", "/usr/local/bin"] {
      let path = folder + "/" + name
      if FileManager.default.isExecutableFile(atPath: path) { return path }
    }
    throw NotThere(what: name)
  }

  /// The folder for temporary files, with a slash at its end: that of `TMPDIR`, otherwise `/tmp`.
  public static var temporary: String { NSTemporaryDirectory() }

  /// Calls `body` with a new folder, and removes the folder and its contents afterwards.
  ///
  /// Its path is short, because that of a Unix socket in it has at most 107 bytes.
  public static func withTemporaryFolder<R>(_ body: (String) async throws -> R) async throws -> R {
    let path = temporary + "sallyport-" + UUID().uuidString.prefix(13)
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let result: R
    do {
      result = try await body(path)
    } catch {
      try? await remove(path)
      throw error
    }
    try await remove(path)
    return result
  }

  /// Removes a folder. A process that was just killed may still create a file in it, so this tries again for 10 seconds.
  /// Throws `FolderStays` if the folder then still has files.
  private static func remove(_ path: String) async throws {
    let manager = FileManager.default
    for _ in 0..<100 {
      try? manager.removeItem(atPath: path)
      guard manager.fileExists(atPath: path) else { return }
      // A test that was cancelled waits as well.
      await Task { try? await Task.sleep(for: .milliseconds(100)) }.value
    }
    throw FolderStays(path: path, files: (try? manager.subpathsOfDirectory(atPath: path)) ?? [])
  }
}

/// A temporary folder that could not be removed.
struct FolderStays: Error, CustomStringConvertible {
  let path: String
  let files: [String]

  var description: String { "\(path) cannot be removed: it has \(files.prefix(20).joined(separator: ", "))" }
}

public struct NotThere: Error, CustomStringConvertible {
  let what: String

  public var description: String {
    "\(what) is missing: scripts/test builds and installs everything that the tests need"
  }
}

extension Places {
  /// Returns a port of 127.0.0.1 on which no process listens. No other test gets it while this process runs, so a client
  /// that still connects to a server of an earlier test does not reach a later one. The port is outside the range from
  /// which Linux takes the ports of clients and of servers that listen on port 0. If a program can report its port, let
  /// it listen on port 0 instead.
  public static func freePort() throws -> UInt16 {
    for _ in 0..<1000 {
      guard let port = fixedPorts.randomElement() else { break }
      // An abstract name of a Unix socket belongs to one process, until that exits.
      guard let claim = claimedName("sallyport-test-port-\(port)") else { continue }
      if isFree(port) { return port }
      close(claim)
    }
    throw NotThere(what: "a free port")
  }

  /// The ports that Linux gives to a program only if it asks for them by number.
  private static let fixedPorts: [UInt16] = {
    let text = (try? String(contentsOfFile: "/proc/sys/net/ipv4/ip_local_port_range", encoding: .utf8)) ?? ""
    let limits = text.split(whereSeparator: \.isWhitespace).compactMap { UInt16($0) }
    let given = limits.count == 2 && limits[0] <= limits[1] ? limits[0]...limits[1] : 32768...60999
    return (10_000...UInt16.max).filter { !given.contains($0) }
  }()

  /// Binds a new socket to an abstract name; `nil` if another socket has it.
  private static func claimedName(_ name: String) -> Int32? {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0[1...].copyBytes(from: name.utf8) }
    let length = MemoryLayout<sockaddr_un>.offset(of: \.sun_path).map { $0 + 1 + name.utf8.count } ?? 0
    let isBound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(length)) == 0 }
    }
    if isBound { return descriptor }
    close(descriptor)
    return nil
  }

  private static func isFree(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    return withLoopback(port) { bind(descriptor, $0, $1) == 0 }
  }

  /// Calls `body` with the address 127.0.0.1 with `port`, valid until `body` returns.
  static func withLoopback<R>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
