import bearer
import ConfigurationEngine
import Foundation
import OIDCClient
import TestSupport
import Testing

/// The files of a test next to its `bearer.yaml`. Faults name their folder as `/etc/b`.
struct NamedFiles: Sendable {
  private var files: [String: (bytes: [UInt8], mode: Int)] = [:]

  /// A file with `text`, by default with mode 0600.
  func with(_ name: String, _ text: String, isPrivate: Bool = true) -> NamedFiles {
    with(name, bytes: Array(text.utf8), mode: isPrivate ? 0o600 : 0o644)
  }

  func with(_ name: String, bytes: [UInt8], mode: Int = 0o600) -> NamedFiles {
    var others = self
    others.files[name] = (bytes, mode)
    return others
  }

  /// Reads `yaml` in `folder`, which gets the files.
  private func read(_ yaml: String, in folder: URL) throws -> BearerSettings {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    for (name, file) in files {
      let place = folder.appending(path: name)
      try Data(file.bytes).write(to: place)
      try FileManager.default.setAttributes([.posixPermissions: file.mode], ofItemAtPath: place.path)
    }
    try Data(yaml.utf8).write(to: folder.appending(path: "bearer.yaml"))
    return try BearerSettings(file: folder.path + "/bearer.yaml")
  }

  private func withFolder<Value>(_ body: (URL) throws -> Value) throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appending(path: "bearer-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
  }

  func read(_ yaml: String) throws -> BearerSettings { try withFolder { try read(yaml, in: $0) } }

  /// The faults of `yaml`, without the name of the file.
  func faults(_ yaml: String) throws -> [String] {
    try withFolder { folder in
      do {
        _ = try read(yaml, in: folder)
        return []
      } catch let errors as ConfigurationErrors {
        return errors.faults.map {
          "\($0)".replacing("\(folder.path)/bearer.yaml:", with: "").replacing(folder.path, with: "/etc/b")
        }
      }
    }
  }

  /// The faults of a provider `work` with `lines`, without the prefix of its keys.
  func faults(provider lines: String) throws -> [String] {
    let indented = lines.split(separator: "\n").map { "    \($0)" }.joined(separator: "\n")
    return try faults("providers:\n  work:\n\(indented)\n")
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
