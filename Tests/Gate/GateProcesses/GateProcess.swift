import ByteCoding
import Cryptography
import Foundation
public import SimulatedDevice
public import TestSupport

/// The configuration of a test's gate, in addition to the fixed part: its authority, loopback, any free port.
public struct GatePlan: Sendable {
  public static let teamID = "SALLYPORT1"
  public static let bundleID = "com.example.app"

  /// Path and upstream of each route. No process listens at port 1.
  public var routes: [(path: String, upstream: String)] = [("/", "ws://127.0.0.1:1")]
  /// Whether ordinary requests are forwarded too.
  public var forwardsAll = false
  /// The value of `listen.loops`.
  public var loops = "2"
  public var hasApp = true
  /// Whether the app is in production, for which only Apple's root is trusted.
  public var isProduction = false
  /// The members of the iOS app's `risk`; `developer.p8` is its key file, and `DIR` stands for the gate's folder. `nil`
  /// for none.
  public var risk: String?
  /// Whether the gate serves the app's Android edition, too, with the status list of its authority.
  public var servesAndroid = false
  /// The members of the Android app's `risk`; `nil` for none.
  public var androidRisk: String?
  public var isEnforcing = true
  public var challengeTTL = "300s"
  /// `nil` for an SQLite file in the gate's folder.
  public var storeURL: String?
  /// The value of `store.password_file`; `nil` for none.
  public var storePasswordFile: String?
  /// The value of `admin`, in YAML; `DIR` stands for the gate's folder. `nil` for no admin server.
  public var admin: String?
  /// The port to listen on; 0 for any free port.
  public var port: UInt16 = 0
  /// The value of `tls`, in YAML; `nil` for a certificate of the gate's authority.
  public var tls: String?
  /// Additional sections, in YAML; `DIR` stands for the gate's folder.
  public var further = ""

  public init() {}

  private func riskText(in folder: AuthorityFolder) -> String {
    risk.map { ", risk: { \($0.replacingOccurrences(of: "DIR", with: folder.path)) }" } ?? ""
  }

  fileprivate func yaml(in folder: AuthorityFolder, _ authority: TestAuthority) -> String {
    let android = authority.androidApp
    let androidApp =
      servesAndroid
      ? ", { platform: android, package: \(android.package), signers: [\(Hex.encode(android.signer))]"
        + (androidRisk.map { ", risk: { \($0) }" } ?? "") + " }" : ""
    let app =
      "{ team_id: \(Self.teamID), bundle_id: \(Self.bundleID), "
      + "environments: [\(isProduction ? "production" : "development")]\(riskText(in: folder)) }"
    let trust =
      "trust: { attestation_root_file: \"\(folder.attestationRootPath)\", receipt_root_file: "
      + "\"\(folder.receiptRootPath)\""
      + (servesAndroid ? ", android_root_file: \"\(folder.androidRootPath)\" }" : " }")
    let list =
      servesAndroid ? "android: { status_list: \"\(folder.androidStatusListPath)\", refresh: 1s }" : "# No Android."
    let files = "{ cert_file: \"\(folder.serverCertificatePath)\", key_file: \"\(folder.serverKeyPath)\" }"
    let password = storePasswordFile.map { ", password_file: \"\($0)\"" } ?? ""
    let routes = routes.map {
      "{ path: \"\($0.path)\", upstream: \"\($0.upstream)\", forward: \(forwardsAll ? "all" : "upgrades") }"
    }
    .joined(separator: ", ")
    return """
      version: 1
      listen: { address: "127.0.0.1", port: \(port), loops: \(loops) }
      tls: \(tls ?? files)
      app_attest:
        enforcement: \(isEnforcing ? "enforce" : "off")
        challenge_ttl: \(challengeTTL)
        apps: [\(hasApp ? app : "")\(androidApp)]
        \(list)
        \(isProduction ? "# Apple's." : trust)
      routes: [\(routes)]
      store: { url: "\(storeURL ?? "sqlite://\(folder.path)/state.db")"\(password) }
      \(further.contains("limits:") ? "# Its own limits." : "limits: { per_key: { sessions: off } }")
      \(admin.map { "admin: " + $0.replacingOccurrences(of: "DIR", with: folder.path) } ?? "# No admin server.")
      \(further.replacingOccurrences(of: "DIR", with: folder.path))

      """
  }
}

/// A gate process that serves on loopback.
public struct GateProcess: Sendable {
  public let process: ChildProcess
  /// The folder of its authority, configuration and state.
  public let folder: AuthorityFolder
  public let authority: TestAuthority
  public let port: UInt16

  /// The URL with `https`, as the guide writes it.
  public var baseURL: String { "https://localhost:\(port)" }

  /// Starts a gate in the folder at `path`. A gate that starts there again has the state of the first.
  ///
  /// - Parameters:
  ///   - program: Another path to the program, such as a link.
  ///   - launcher: A program and its arguments, in front of those of the gate, which it becomes.
  public init(
    _ plan: GatePlan, in path: String, program: String? = nil, launcher: [String] = []
  ) async throws {
    folder = AuthorityFolder(path: path)
    authority = try folder.loadOrMake(appID: "\(GatePlan.teamID).\(GatePlan.bundleID)", at: .now())
    if plan.risk != nil {
      try P256PrivateKey().pkcs8PEM.write(toFile: path + "/developer.p8", atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path + "/developer.p8")
    }
    let file = path + "/gate.yaml"
    try plan.yaml(in: folder, authority).write(toFile: file, atomically: true, encoding: .utf8)
    let command = launcher + [try program ?? Places.product("sallyport"), "run", "-c", file]
    process = try ChildProcess(command[0], Array(command[1...]), in: path)
    let line = try await process.errors.first("the gate's port") { $0.contains(#""message":"listening""#) }
    port = try Self.lastNumber(in: line, after: #""address":""#)
  }

  /// Calls `body` with a gate in a temporary folder; then kills the gate and removes the folder.
  public static func serving<R>(_ plan: GatePlan, _ body: (GateProcess) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { path in
      let gate = try await GateProcess(plan, in: path + "/gate")
      defer { gate.process.kill() }
      return try await body(gate)
    }
  }

  /// Kills the gate as a power failure would, and waits until it has exited.
  public func crash() async throws {
    process.send(SIGKILL)
    _ = try await process.exit(within: .seconds(10))
  }

  /// Returns the port in `line`, at the end of the address after `mark`.
  public static func lastNumber(in line: String, after mark: String) throws -> UInt16 {
    let rest = line.range(of: mark).map { line[$0.upperBound...].prefix { $0 != "\"" && $0 != "/" } }
    guard let digits = rest?.split(separator: ":").last, let port = UInt16(digits) else {
      throw Unexpected("no port in \(line)")
    }
    return port
  }
}

/// An `attest echo` process as a backend.
public struct EchoProcess: Sendable {
  public let process: ChildProcess
  /// The value of `upstream` in a route.
  public let upstream: String

  public init() async throws {
    process = try ChildProcess(Places.product("attest"), ["echo", "--listen", "127.0.0.1:0"])
    let line = try await process.output.first("the echo server's port") { $0.hasPrefix("ws://") }
    upstream = "ws://127.0.0.1:\(try GateProcess.lastNumber(in: line, after: "ws://"))"
  }

  /// Calls `body` with an echo server's upstream, and kills the server afterwards.
  public static func serving<R>(_ body: (String) async throws -> R) async throws -> R {
    let echo = try await EchoProcess()
    defer { echo.process.kill() }
    return try await body(echo.upstream)
  }
}

/// A result with which the test cannot continue.
public struct Unexpected: Error, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}
