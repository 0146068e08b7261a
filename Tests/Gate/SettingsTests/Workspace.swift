@testable import ConfigurationEngine
import Foundation

@testable import Settings

/// A folder with a certificate and a key, in which a gate can be started.
struct Workspace: ~Copyable {
  let folder: String

  static let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
  static let key = "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"

  /// The required keys of `tls`, from the environment, so that the tested file need not contain them.
  static let tls = ["SALLYPORT_TLS__CERT_FILE": "cert.pem", "SALLYPORT_TLS__KEY_FILE": "key.pem"]

  init() throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("settings-\(UUID().uuidString)")
    folder = url.path
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    try write(Self.certificate, to: "cert.pem")
    try write(Self.key, to: "key.pem", permissions: 0o600)
    try write(String(repeating: "0123456789abcdef", count: 4) + "\n", to: "good.token", permissions: 0o600)
    try write("", to: "empty.pem")
    try write("not a certificate\n", to: "prose.pem")
    try write(Self.key.replacingOccurrences(of: "PRIVATE", with: "ENCRYPTED PRIVATE"), to: "locked.pem")
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func write(_ text: String, to name: String, permissions: Int = 0o644) throws {
    let path = "\(folder)/\(name)"
    try FileManager.default.createDirectory(
      atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
  }

  func load(
    yaml: String? = nil, dotenv: String? = nil, environment: [String: String] = tls, flags: [FlagSetting] = []
  ) throws -> GateSettings {
    if let yaml { try write(yaml, to: "gate.yaml") }
    if let dotenv { try write(dotenv, to: ".env") }
    return try SettingsLoader(
      file: yaml == nil ? nil : "gate.yaml", flags: flags, environment: environment, workingDirectory: folder
    ).load()
  }

  /// Returns the errors as lines, without their hints; empty if the configuration is valid.
  func faults(
    yaml: String? = nil, dotenv: String? = nil, environment: [String: String] = tls, flags: [FlagSetting] = []
  ) throws -> [String] {
    do {
      _ = try load(yaml: yaml, dotenv: dotenv, environment: environment, flags: flags)
      return []
    } catch let error as ConfigurationErrors {
      return error.faults.map { $0.description.replacingOccurrences(of: folder, with: "DIR") }
    }
  }
}
