import ByteCoding
import Foundation
public import SimulatedDevice
public import TestSupport

/// What a gate of a test is told, beyond what every one is: its own authority, loopback, any free port.
public struct GatePlan: Sendable {
  public static let teamID = "SALLYPORT1"
  public static let bundleID = "com.example.app"

  /// Path and upstream of each route. Nobody listens at port 1.
  public var routes: [(path: String, upstream: String)] = [("/", "ws://127.0.0.1:1")]
  /// Whether ordinary requests are handed on too.
  public var forwardsAll = false
  public var hasApp = true
  /// Whether the app is one of the App Store's, for which nobody but Apple is trusted.
  public var isProduction = false
  public var isEnforcing = true
  public var challengeTTL = "300s"
  /// `nil` for an SQLite file in the gate's folder.
  public var storeURL: String?
  /// The value of `admin`, in YAML; `DIR` stands for the gate's folder. `nil` for no admin server.
  public var admin: String?
  /// Further sections, in YAML; `DIR` stands for the gate's folder.
  public var further = ""

  public init() {}

  fileprivate func yaml(in folder: AuthorityFolder) -> String {
    let app =
      "{ team_id: \(Self.teamID), bundle_id: \(Self.bundleID), environments: [\(isProduction ? "production" : "development")] }"
    let trust =
      "trust: { attestation_root_file: \"\(folder.attestationRootPath)\", receipt_root_file: \"\(folder.receiptRootPath)\" }"
    let routes = routes.map {
      "{ path: \"\($0.path)\", upstream: \"\($0.upstream)\", forward: \(forwardsAll ? "all" : "upgrades") }"
    }
    .joined(separator: ", ")
    return """
      version: 1
      listen: { address: "127.0.0.1", port: 0, loops: 2 }
      tls: { cert_file: "\(folder.serverCertificatePath)", key_file: "\(folder.serverKeyPath)" }
      app_attest:
        enforcement: \(isEnforcing ? "enforce" : "off")
        challenge_ttl: \(challengeTTL)
        apps: [\(hasApp ? app : "")]
        \(isProduction ? "# Apple's." : trust)
      routes: [\(routes)]
      store: { url: "\(storeURL ?? "sqlite://\(folder.path)/state.db")" }
      \(admin.map { "admin: " + $0.replacingOccurrences(of: "DIR", with: folder.path) } ?? "# No admin server.")
      \(further.replacingOccurrences(of: "DIR", with: folder.path))

      """
  }
}

/// The built gate as a process, serving on loopback.
public struct GateProcess: Sendable {
  public let process: ChildProcess
  /// Its authority, configuration and state.
  public let folder: AuthorityFolder
  public let authority: TestAuthority
  public let port: UInt16

  /// As the guide writes it, with `https`.
  public var baseURL: String { "https://localhost:\(port)" }

  /// Starts a gate in the folder at `path`. A gate that starts there again has the memory of the first.
  ///
  /// - Parameter program: another path to the built gate, such as a link.
  public init(_ plan: GatePlan, in path: String, program: String? = nil) async throws {
    folder = AuthorityFolder(path: path)
    authority = try folder.loadOrMake(appID: "\(GatePlan.teamID).\(GatePlan.bundleID)", at: .now())
    let file = path + "/gate.yaml"
    try plan.yaml(in: folder).write(toFile: file, atomically: true, encoding: .utf8)
    process = try ChildProcess(
      program ?? Places.product("sallyport"), ["run", "-c", file], environment: Self.withoutSettings, in: path)
    let line = try await process.errors.first("the gate's port") { $0.contains(#""message":"listening""#) }
    port = try Self.lastNumber(in: line, after: #""address":""#)
  }

  /// Calls `body` with a gate in a folder of its own, and ends the gate and the folder.
  public static func serving<R>(_ plan: GatePlan, _ body: (GateProcess) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { path in
      let gate = try await GateProcess(plan, in: path + "/gate")
      defer { gate.process.kill() }
      return try await body(gate)
    }
  }

  /// Ends the gate as a power cut would, and waits until it is gone.
  public func crash() async throws {
    process.send(SIGKILL)
    _ = try await process.exit(within: .seconds(10))
  }

  /// Variables that would configure a gate, should somebody run the tests with them, are not passed on.
  private static var withoutSettings: [String: String?] {
    let names = ProcessInfo.processInfo.environment.keys.filter { name in
      ["SALLYPORT_", "APPATTEST_", "REQUIRE_APP_AUTH", "MTLS_CLIENT_CA_PATH"].contains { name.hasPrefix($0) }
    }
    return Dictionary(uniqueKeysWithValues: names.map { ($0, nil) })
  }

  /// The port in `line`, an address that begins behind `mark`.
  public static func lastNumber(in line: String, after mark: String) throws -> UInt16 {
    let rest = line.range(of: mark).map { line[$0.upperBound...].prefix { $0 != "\"" && $0 != "/" } }
    guard let digits = rest?.split(separator: ":").last, let port = UInt16(digits) else {
      throw Unexpected("no port in \(line)")
    }
    return port
  }
}

/// `attest echo` as a process, for a backend.
public struct EchoProcess: Sendable {
  public let process: ChildProcess
  /// What a route calls it.
  public let upstream: String

  public init() async throws {
    process = try ChildProcess(Places.product("attest"), ["echo", "--listen", "127.0.0.1:0"])
    let line = try await process.output.first("the echo server's port") { $0.hasPrefix("ws://") }
    upstream = "ws://127.0.0.1:\(try GateProcess.lastNumber(in: line, after: "ws://"))"
  }

  /// Calls `body` with an echo server's upstream, and ends the server.
  public static func serving<R>(_ body: (String) async throws -> R) async throws -> R {
    let echo = try await EchoProcess()
    defer { echo.process.kill() }
    return try await body(echo.upstream)
  }
}

/// What a test cannot go on with.
public struct Unexpected: Error, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}
