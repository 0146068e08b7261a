import bearer
import Foundation
import OIDCClient
import TestSupport
import Testing

/// The files that a test has in place of a disk, by path.
struct NamedFiles: Sendable {
  var contents: [String: SettingsFile] = [:]

  /// A file with `text`, by default with mode 0600.
  func with(_ path: String, _ text: String, isPrivate: Bool = true) -> NamedFiles {
    var files = self
    files.contents[path] = SettingsFile(bytes: Array(text.utf8), isPrivate: isPrivate)
    return files
  }

  func read(_ yaml: String) throws(BearerSettingsErrors) -> BearerSettings {
    try BearerSettings(yaml: yaml, file: "bearer.yaml", folder: "/etc/b") { path throws(SettingsFileError) in
      guard let file = contents[path] else { throw .unreadable("No such file or directory") }
      return file
    }
  }

  /// The faults of `yaml`, without the name of the file.
  func faults(_ yaml: String) -> [String] {
    do throws(BearerSettingsErrors) {
      _ = try read(yaml)
      return []
    } catch {
      return error.faults.map { String($0.description.dropFirst("bearer.yaml:".count)) }
    }
  }

  /// The faults of a provider `work` with `lines`, without the prefix of its keys.
  func faults(provider lines: String) -> [String] {
    let indented = lines.split(separator: "\n").map { "    \($0)" }.joined(separator: "\n")
    return faults("providers:\n  work:\n\(indented)\n")
      .map { $0.replacing("providers.work.", with: "") }
  }
}

/// Commands of OpenSSL whose output is PEM.
enum OpenSSL {
  static func privateKey() async throws -> String {
    try await run(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
  }

  static func certificate() async throws -> String {
    try await run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null", "-subj",
      "/CN=root",
    ])
  }

  /// A certificate and its key.
  static func pair() async throws -> (certificate: String, key: String) {
    let text = try await run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/stdout",
      "-subj", "/CN=machine",
    ])
    let start = try #require(text.range(of: "-----BEGIN CERTIFICATE")).lowerBound
    return (String(text[start...]), String(text[..<start]))
  }

  private static func run(_ arguments: [String]) async throws -> String {
    try await ChildProcess.run(try Places.tool("openssl"), arguments).output.joined(separator: "\n") + "\n"
  }
}
