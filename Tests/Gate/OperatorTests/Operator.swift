import AndroidKeyAttestation
import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import Foundation
import GateProcesses
import GateService
import SQLiteStore
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

/// The result of a command.
struct Transcript {
  let status: Int32?
  let output: [String]
  let errors: [String]

  /// Whether the last two lines of the errors are one `error: ` and one `hint: `, as for every failing command.
  var isFailure: Bool {
    errors.count >= 2 && errors.suffix(2)[errors.count - 2].hasPrefix("error: ")
      && errors[errors.count - 1].hasPrefix("hint: ")
  }

  /// Returns the first output line as JSON.
  func json<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try JSONDecoder().decode(type, from: Data(try #require(output.first).utf8))
  }
}

/// Runs `sallyport` with `arguments`, without a terminal.
func sallyport(
  _ arguments: [String], input: [UInt8] = [], environment: [String: String?] = [:], in folder: String? = nil
) async throws -> Transcript {
  let (exit, output, errors) = try await ChildProcess.run(
    Places.product("sallyport"), arguments, input: input, environment: environment, in: folder)
  return Transcript(status: exit.code, output: output, errors: errors)
}

/// Keys of a store, numbered; the same number is the same key.
enum Fixture {
  /// Keys whose hashes begin with the same six characters.
  static let alike = [203_025, 364_522]
  /// A key whose hash begins with a dash.
  static let dashed = 2
  static let now = Timestamp(seconds: 1_800_000_000)

  static func key(_ number: Int, app: String = "AAABBBCCC1.com.example.app") throws -> DeviceKey {
    let digest = SHA256.hash(Array("\(number)".utf8))
    let publicKey = [4] + digest + digest
    return DeviceKey(
      AttestedKey(
        keyID: KeyID(ofPublicKey: publicKey), publicKey: publicKey, appID: try #require(AppID(app)),
        environment: .production, validationCategory: number % 2 == 0 ? .appStore : nil,
        bundleVersion: number % 2 == 0 ? "1.\(number)" : nil))
  }

  /// The key of an Android device.
  static func androidEntry(_ number: Int) throws -> KeyEntry {
    let bytes = SHA256.hash(Array("android \(number)".utf8))
    let key = AttestedAndroidKey(
      publicKey: try key(number).publicKey, package: "com.example.app", signers: [bytes],
      securityLevel: number % 2 == 0 ? .strongBox : .trustedEnvironment,
      bootState: number % 4 == 0 ? .selfSigned : .verified, bootKey: bytes,
      patchLevel: number % 5 == 0 ? nil : PatchLevel(year: 2026, month: 1 + number % 12), provisioning: .remote,
      serialNumbers: [[1], bytes])
    let record = KeyRecord(
      key: DeviceKey(key, environment: .production),
      request: RegistrationRequest(
        nonce: try #require(Nonce(bytes: bytes)), attestationDigest: AttestationDigest(of: bytes)),
      registeredAt: now.advanced(by: .milliseconds(number)), counter: .zero,
      lastUsedAt: number % 7 == 0 ? nil : now.advanced(by: .seconds(number)), revokedAt: nil)
    return KeyEntry(record: record, usedCounters: .max, receipt: [])
  }

  static func hash(_ number: Int) throws -> String { KeyHash(of: try key(number).keyID).text }

  static func entry(
    _ number: Int, app: String = "AAABBBCCC1.com.example.app", counter: UInt32? = nil, revoked: Bool = false
  ) throws -> KeyEntry {
    let bytes = SHA256.hash(Array("nonce \(number)".utf8))
    let record = KeyRecord(
      key: try key(number, app: app),
      request: RegistrationRequest(
        nonce: try #require(Nonce(bytes: bytes)), attestationDigest: AttestationDigest(of: bytes)),
      registeredAt: now.advanced(by: .milliseconds(number)), counter: SignCount(counter ?? UInt32(number % 7)),
      lastUsedAt: number % 7 == 0 ? nil : now.advanced(by: .seconds(number)),
      revokedAt: revoked ? now.advanced(by: .seconds(9)) : nil)
    return KeyEntry(record: record, usedCounters: UInt64(number) << 40, receipt: bytes + bytes)
  }
}

/// An SQLite store with keys in a temporary folder.
struct StoreBench {
  let folder: String
  var path: String { folder + "/state.db" }
  var url: String { "sqlite://\(path)" }

  static func with<R>(_ entries: [KeyEntry], _ body: (StoreBench) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      let bench = StoreBench(folder: folder)
      try await bench.use { _ = try await $0.merge(entries) }
      return try await body(bench)
    }
  }

  func use<R>(_ body: (SQLiteStore) async throws -> R) async throws -> R {
    let store = SQLiteStore(path: path)
    try await store.open()
    let result = try await body(store)
    await store.close()
    return result
  }

  func record(_ number: Int) async throws -> KeyRecord? {
    let keyID = try Fixture.key(number).keyID
    return try await use { try await $0.record(of: keyID) }
  }
}

/// A gate with an admin socket and an echo server as its upstream, and a visitor.
struct AdminBench {
  let gate: GateProcess
  let visitor: Visitor
  var socket: String { gate.folder.path + "/admin.sock" }
  var config: [String] { ["-c", gate.folder.path + "/gate.yaml"] }

  static func serving<R>(
    admin: String = #"{ listen: "unix:DIR/admin.sock" }"#, isProduction: Bool = false, further: String = "",
    risk: String? = nil,
    _ body: (AdminBench) async throws -> R
  ) async throws -> R {
    try await EchoProcess.serving { upstream in
      var plan = GatePlan()
      plan.routes = [("/", upstream)]
      plan.admin = admin
      (plan.isProduction, plan.further, plan.risk) = (isProduction, further, risk)
      return try await GateProcess.serving(plan) { gate in
        try await body(AdminBench(gate: gate, visitor: try Visitor(to: gate)))
      }
    }
  }

  /// Returns a phone with a registered key. The key's hash has no dash at the start, so commands accept it without
  /// escaping.
  func registeredPhone() async throws -> (phone: Phone, hash: String) {
    while true {
      let phone = try Phone(of: gate.authority)
      let hash = KeyHash(of: try #require(KeyID(base64: phone.keyID))).text
      if hash.hasPrefix("-") { continue }
      try await visitor.register(phone)
      return (phone, hash)
    }
  }

  /// Returns an answer of the admin socket.
  func ask(_ method: String, _ target: String, accept: String = "*/*") async throws -> Response {
    let connection = try await ClientEngine().connect(socket: socket)
    return try await connection.send(
      method, target,
      headers: HeaderFields([.init(name: "Host", value: "localhost"), .init(name: "Accept", value: accept)]))
  }
}

extension ClientWebSocket {
  /// Returns the code with which the gate closes the socket, and the time since `start`.
  func ending(since start: ContinuousClock.Instant) async throws -> (code: UInt16?, after: Duration) {
    while true {
      if case .ended(let ending) = try await receive() { return (ending.code, .now - start) }
    }
  }
}

extension Response {
  var text: String { String(decoding: body, as: UTF8.self) }
}
