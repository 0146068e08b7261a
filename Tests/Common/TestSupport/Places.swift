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

  /// Calls `body` with a new folder, and removes the folder and its contents afterwards.
  public static func withTemporaryFolder<R>(_ body: (String) async throws -> R) async throws -> R {
    let path = NSTemporaryDirectory() + "sallyport-" + UUID().uuidString
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try await body(path)
  }
}

public struct NotThere: Error, CustomStringConvertible {
  let what: String

  public var description: String {
    "\(what) is missing: scripts/test builds and installs everything that the tests need"
  }
}

extension Places {
  /// Returns a port of 127.0.0.1 on which no process listens. Another process may bind it before the test does. If a
  /// program can report its port, let it listen on port 0 instead.
  public static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isBound else { throw NotThere(what: "a free port") }
    return UInt16(bigEndian: address.sin_port)
  }
}
