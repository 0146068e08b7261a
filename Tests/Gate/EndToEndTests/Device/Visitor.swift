import ByteCoding
import Cryptography
import Foundation
import Locking
import Transport
import TransportEngine

/// A client of a gate that sends well-formed requests over verified TLS, each on a new connection.
struct Visitor: Sendable {
  let gate: RunningGate
  /// The value of `Accept`; `nil` sends none.
  var accept: String?
  private let engine: ClientEngine
  private let tls: ClientTLS
  private let secrets = SecretBag()

  init(_ gate: RunningGate, accept: String? = nil, certificate: String? = nil, key: String? = nil) throws {
    self.gate = gate
    self.accept = accept
    engine = try ClientEngine()
    tls = try ClientTLS(authorityFile: gate.certificateAuthority, certificateFile: certificate, keyFile: key)
  }

  /// The sent values that no log line may contain: nonces, key ids, attestations and assertions.
  var sentSecrets: [String] { secrets.all }

  /// Adds `secret` to `sentSecrets`.
  func remember(_ secret: String) { secrets.add(secret) }

  func send(_ method: String, _ target: String, _ headers: HeaderFields = .init(), body: [UInt8] = []) async throws
    -> Response
  {
    try await connection().send(method, target, headers: common.appending(headers), body: body)
  }

  /// Requests a new nonce.
  func challenge() async throws -> String {
    let response = try await send("GET", "/attest/challenge")
    let answer = try JSONDecoder().decode([String: String].self, from: Data(response.body))
    guard let nonce = answer["nonce"] else { throw Unexpected(response: response) }
    remember(nonce)
    return nonce
  }

  func register(json: String) async throws -> Response {
    try await send(
      "POST", "/attest/register", HeaderFields([.init(name: "Content-Type", value: "application/json")]),
      body: Array(json.utf8))
  }

  func register(keyID: String, attestation: String, nonce: String) async throws -> Response {
    for secret in [keyID, attestation, nonce] where secret.utf8.count >= 32 { remember(secret) }
    return try await register(
      json: JSONText.object(["keyId": keyID, "attestation": attestation, "nonce": nonce]))
  }

  func register(_ device: TestDevice, attestation: [UInt8], nonce: String) async throws -> Response {
    try await register(keyID: device.keyID, attestation: Base64.encode(attestation), nonce: nonce)
  }

  /// Registers a device's key with the gate and returns the device.
  func registeredDevice(_ device: TestDevice? = nil) async throws -> TestDevice {
    let device = try device ?? TestDevice()
    let nonce = try await challenge()
    let response = try await register(device, attestation: device.attestation(over: nonce), nonce: nonce)
    guard response.status == 200 else { throw Unexpected(response: response) }
    return device
  }

  /// Opens a socket; an answer other than 101 is thrown as `ClientError.refused`.
  func open(_ credentials: HeaderFields = .init(), target: String = "/") async throws -> ClientWebSocket {
    for field in credentials.fields where field.name.lowercased().hasPrefix("x-app-") && field.value.utf8.count >= 32 {
      remember(field.value)
    }
    return try await connection().upgrade(target, host: host, headers: accepted.appending(credentials))
  }

  /// Returns the answer to an upgrade that must be refused.
  func refusal(of credentials: HeaderFields = .init(), target: String = "/") async throws -> Response {
    do {
      _ = try await open(credentials, target: target)
    } catch ClientError.refused(let response) {
      return response
    }
    throw NotRefused()
  }

  /// Opens a new connection and completes the TLS handshake.
  func connection() async throws -> ClientConnection {
    try await engine.connect(host: "127.0.0.1", port: gate.port, tls: tls)
  }

  private var host: String { "localhost:\(gate.port)" }
  private var accepted: HeaderFields {
    HeaderFields([accept].compactMap { $0 }.map { HeaderFields.Field(name: "Accept", value: $0) })
  }
  private var common: HeaderFields { HeaderFields([.init(name: "Host", value: host)]).appending(accepted) }
}

extension HeaderFields {
  func appending(_ other: HeaderFields) -> HeaderFields { HeaderFields(fields + other.fields) }
}

/// The gate admitted a client that it had to refuse.
struct NotRefused: Error {}

/// An answer with which the test cannot continue.
struct Unexpected: Error, CustomStringConvertible {
  let response: Response

  var description: String { "status \(response.status): \(String(decoding: response.body, as: UTF8.self))" }
}

private final class SecretBag: Sendable {
  private let content = LockedValue<[String]>([])

  var all: [String] { content.withLock { $0 } }
  func add(_ secret: String) { content.withLock { $0.append(secret) } }
}
