import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice
import TestSupport

/// A gate process that serves on loopback until it is killed.
struct RunningGate: Sendable {
  /// Signs the attestation certificates of all simulated devices in these tests, and the gates' certificates.
  static let authority = Result { try TestAuthority(appID: GateConfiguration.appID, at: .now()) }

  let process: ChildProcess
  let folder: String
  let port: UInt16

  var url: String { "wss://localhost:\(port)/" }
  var certificateAuthority: String { folder + "/tls-ca.pem" }
  var log: GateLog { GateLog(lines: process.errors) }

  /// Wraps a gate that a test has started itself.
  init(process: ChildProcess, folder: String, port: UInt16) {
    (self.process, self.folder, self.port) = (process, folder, port)
  }

  /// Writes the files that a gate in `folder` needs to start.
  static func prepare(_ folder: String, _ configuration: GateConfiguration = GateConfiguration()) throws {
    try AuthorityFolder(path: folder).save(authority.get())
    try configuration.android?.write(in: folder)
    if configuration.risk != nil {
      let file = "\(folder)/\(GateConfiguration.developerKey)"
      try P256PrivateKey().pkcs8PEM.write(toFile: file, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    }
    try configuration.yaml(in: folder).write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
  }

  /// Starts a gate in `folder`, which contains its state: a gate that starts there again has the state of the first.
  init(_ configuration: GateConfiguration = GateConfiguration(), in folder: String) async throws {
    try Self.prepare(folder, configuration)
    if let keys = configuration.challengeKeys {
      try keys.write(toFile: folder + "/challenge.keys", atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder + "/challenge.keys")
    }
    let process = try ChildProcess(
      Places.product("sallyport"), ["run", "-c", folder + "/gate.yaml"], environment: .gateless, in: folder)
    self.folder = folder
    self.process = process
    port = try await GateLog(lines: process.errors).listeningPort()
  }

  /// Calls `body` with a gate in a temporary folder; then kills the gate and removes the folder.
  static func serving<R>(
    _ configuration: GateConfiguration = GateConfiguration(), _ body: (RunningGate) async throws -> R
  ) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      let gate = try await RunningGate(configuration, in: folder)
      defer { gate.process.kill() }
      return try await body(gate)
    }
  }
}

extension [String: String?] {
  /// Removes the variables that would configure a gate or a device, if the tests run with them.
  static var gateless: [String: String?] {
    let names = ProcessInfo.processInfo.environment.keys.filter {
      $0.hasPrefix("SALLYPORT_") || $0.hasPrefix("APPATTEST_")
        || ["REQUIRE_APP_AUTH", "MTLS_CLIENT_CA_PATH"].contains($0)
    }
    return Dictionary(uniqueKeysWithValues: names.map { ($0, String?.none) })
  }
}
