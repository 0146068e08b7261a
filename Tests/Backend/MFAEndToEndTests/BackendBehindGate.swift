import Crypto
import Foundation
import GateProcesses
import MFAFixtures
import SimulatedDevice
import TestSupport

/// A real gate with the real backend behind it, on a Unix socket that only the gate uses.
struct BackendBehindGate: Sendable {
  let gate: GateProcess
  let backend: BackendProcess
  let socket: String
  /// The folder with the data of the simulated devices.
  let data: String
  /// The log of the backend, which has the codes.
  let log: String

  /// Calls `body` with a gate and a backend, and stops both afterwards.
  ///
  /// - Parameters:
  ///   - further: additional sections of the gate's configuration.
  ///   - options: additional options of the backend.
  static func serving<R>(
    _ further: String = "", options: [String] = [], _ body: (BackendBehindGate) async throws -> R
  ) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      let socket = folder + "/mfa.sock"
      var plan = GatePlan()
      plan.routes = [("/", "unix:" + socket)]
      plan.forwardsAll = true
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      plan.further = "identity: { issuer: \"https://gate.test\", audience: mfa }\n" + further
      let gate = try await GateProcess(plan, in: folder + "/gate")
      defer { gate.process.kill() }
      let log = folder + "/backend.log"
      let backend = try await BackendProcess(
        [
          "--ephemeral", "--sms-sink", "log", "--webauthn-rp-id", "localhost", "--listen", "unix:" + socket,
          "--gate-jwks", gate.baseURL + "/.well-known/sallyport/jwks.json", "--gate-ca", gate.folder.tlsAuthorityPath,
          "--gate-issuer", "https://gate.test", "--audience", "mfa",
        ] + options, log: log)
      defer { backend.process.kill() }
      return try await body(
        BackendBehindGate(gate: gate, backend: backend, socket: socket, data: folder + "/data", log: log))
    }
  }

  /// Creates a simulated device and registers it with the gate.
  func device(_ name: String) async throws -> RegisteredDevice {
    let device = RegisteredDevice(servers: self, name: name, phone: TestPhone(deviceID: name))
    try await device.make()
    _ = try await device.attest(["register"])
    return device
  }

  var socketURL: String { "wss://localhost:\(gate.port)/" }
}

/// An app on a simulated device, with the data that `attest` keeps and its own key for signing in.
struct RegisteredDevice: Sendable {
  let servers: BackendBehindGate
  let name: String
  let phone: TestPhone

  private var place: [String] {
    [servers.socketURL, "--authority", servers.gate.folder.path, "--device", name]
  }
  private var environment: [String: String?] { ["XDG_DATA_HOME": servers.data, "SALLYPORT_AUTHORITY": nil] }

  /// Creates the device without registering it.
  fileprivate func make() async throws {
    let run = try await ChildProcess.run(
      Places.product("attest"), ["device", "new", name, "--authority", servers.gate.folder.path],
      environment: environment)
    guard run.exit == .code(0) else { throw Unexpected(run.errors.joined(separator: "\n")) }
  }

  /// Runs `attest` with `command`, and returns its output.
  func attest(_ command: [String]) async throws -> [String] {
    let run = try await ChildProcess.run(Places.product("attest"), command + place, environment: environment)
    guard run.exit == .code(0) else { throw Unexpected(run.errors.joined(separator: "\n")) }
    return run.output
  }

  /// Calls the backend through the gate, with a new assertion.
  func call(
    _ method: String, _ path: String, _ body: JSONValue? = nil, token: String? = nil, _ options: [String] = []
  ) async throws -> CurlAnswer {
    let fields = try await attest(["headers"]).flatMap { ["-H", $0] }
    return try await curl(
      method, servers.gate.baseURL + path, body, token: token,
      ["--cacert", servers.gate.folder.tlsAuthorityPath] + fields + options)
  }

  /// Enrols and signs in. Returns the access token.
  func signIn() async throws -> String {
    _ = try await call("POST", "/api/v1/mfa/enroll", phone.enrolment())
    let challenge = try await call("POST", "/api/v1/auth/initiate", phone.naming)
    let answer = try await call("POST", "/api/v1/auth/verify-signature", proof(of: challenge.body))
    guard let token = answer["token"]?.text else { throw Unexpected("no token: \(answer.text)") }
    return token
  }

  /// Returns the body that answers `challenge`.
  func proof(of challenge: JSONValue) throws -> JSONValue {
    [
      "username": .string(phone.username), "deviceId": .string(phone.deviceID),
      "challengeId": challenge["challengeId"] ?? nil,
      "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
    ]
  }

  /// Opens a socket through the gate. The socket stays open until the gate or the process closes it.
  func connect() throws -> DeviceSocket {
    DeviceSocket(
      process: try ChildProcess(
        Places.product("attest"), ["connect", "--stay"] + place, environment: environment))
  }
}

/// A socket through the gate. Each line of input becomes one message.
struct DeviceSocket: Sendable {
  let process: ChildProcess

  /// Calls a method of the backend. `id` must be unique on this socket.
  func call(_ id: Int, _ method: String, _ parameters: JSONValue = [:]) async throws -> JSONValue {
    let message: JSONValue = [
      "jsonrpc": "2.0", "id": .number(Double(id)), "method": .string(method), "params": parameters,
    ]
    process.write(message.encoded + "\n")
    let line = try await process.output.first("the answer to \(method)") { $0.contains("\"id\":\(id),") }
    return try JSONValue(Data(line.utf8))
  }
}
