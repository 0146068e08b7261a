import Foundation
import Glibc

/// What programs that tests start see of this machine: their own standard places, home and temporary folder, and few
/// variables.
///
/// A gate or a backend that runs on this machine is at the standard places, which `SALLYPORT_ROOT` moves for programs
/// under test. They reach no session bus, desktop or service manager, and no variable configures them.
public enum OwnPlaces {
  /// The environment of a program. Tests add what it needs.
  public static let environment: [String: String] = {
    let inherited = ProcessInfo.processInfo.environment.filter { isInherited($0.key) }
    return inherited.merging(["HOME": root + "/home", "TMPDIR": root + "/tmp", "SALLYPORT_ROOT": root]) { $1 }
  }()

  /// Whether a program inherits the variable `name` from the tests: what finds programs and libraries, a language, the
  /// way to package registries, the options of sanitizers, and those of the tests themselves.
  public static func isInherited(_ name: String) -> Bool {
    let prefixes = ["LC_", "ASAN_", "TSAN_", "SWIFT", "PIP_", "SALLYPORT_TEST_"]
    let names = ["PATH", "LANG", "TERM", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH"]
    return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
  }

  /// The variables that choose the proxies of this machine: for clients of package registries only, because programs
  /// under test obey them.
  static let proxies: [String: String?] = ProcessInfo.processInfo.environment.filter {
    $0.key.lowercased().hasSuffix("_proxy")
  }.mapValues { $0 }

  /// The folder of this process with these places, which it removes at its end. Other users may pass through: tests start
  /// PostgreSQL as one.
  static let root: String = {
    let path = Places.temporary + "sallyport-" + UUID().uuidString.prefix(8)
    do {
      for (folder, mode) in [("", 0o711), ("/home", 0o700), ("/tmp", 0o1777)] {
        try FileManager.default.createDirectory(atPath: path + folder, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path + folder)
      }
    } catch {
      fatalError("no folder for the programs under test: \(error)")
    }
    atexit { try? FileManager.default.removeItem(atPath: OwnPlaces.root) }
    return path
  }()
}
