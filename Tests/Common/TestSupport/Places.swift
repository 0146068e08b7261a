import Foundation
import Glibc

/// Where things are, and where they can be put.
public enum Places {
  /// The folder that has the programs under test: the one that `SALLYPORT_TEST_PROGRAMS` names, such as that of a
  /// release build, or the one that the build has put this test's own executable in.
  public static let products: String = {
    if let folder = ProcessInfo.processInfo.environment["SALLYPORT_TEST_PROGRAMS"], !folder.isEmpty { return folder }
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "."
    return (own as NSString).deletingLastPathComponent
  }()

  /// An executable of this package.
  public static func product(_ name: String) throws -> String {
    let path = products + "/" + name
    guard FileManager.default.isExecutableFile(atPath: path) else { throw NotThere(what: path) }
    return path
  }

  /// A program of the system, such as `curl`.
  public static func tool(_ name: String) throws -> String {
    for folder in ["/usr/bin", "/bin", "/usr/local/bin"] {
      let path = folder + "/" + name
      if FileManager.default.isExecutableFile(atPath: path) { return path }
    }
    throw NotThere(what: name)
  }

  /// Calls `body` with a new folder, and removes the folder and what is in it.
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

  public var description: String { "\(what) is not there: scripts/test builds and installs what the tests need" }
}

extension Places {
  /// A port of 127.0.0.1 that nobody listens at. Another process may take it before its user does; ask a program for
  /// port 0 where it can tell which one it got.
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
