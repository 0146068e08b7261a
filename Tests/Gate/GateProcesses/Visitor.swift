import Foundation
import SimulatedDevice
public import Transport
public import TransportEngine

/// A client of a gate over verified TLS, with a new connection for each request.
public struct Visitor: Sendable {
  private let gate: GateProcess
  private let engine: ClientEngine
  private let tls: ClientTLS

  public init(to gate: GateProcess) throws {
    self.gate = gate
    engine = try ClientEngine()
    tls = try ClientTLS(authorityFile: gate.folder.tlsAuthorityPath)
  }

  private var host: String { "localhost:\(gate.port)" }

  public func connection() async throws(ClientError) -> ClientConnection {
    try await engine.connect(
      host: "127.0.0.1", port: gate.port, tls: tls, verifying: "localhost", timeout: .seconds(30))
  }

  /// Requests a new nonce.
  public func challenge() async throws -> String {
    let answer = try await connection().send(
      "GET", "/attest/challenge", headers: HeaderFields([.init(name: "Host", value: host)]))
    guard let nonce = try JSONDecoder().decode([String: String].self, from: Data(answer.body))["nonce"] else {
      throw Unexpected("no nonce in an answer with status \(answer.status)")
    }
    return nonce
  }

  /// Registers `phone` with a new nonce; throws unless the answer is 200.
  public func register(_ phone: Phone) async throws {
    try await register(try await phone.registration(over: challenge()))
  }

  /// Registers `phone` with a new nonce; throws unless the answer is 200.
  public func register(_ phone: AndroidPhone) async throws {
    try await register(try await phone.registration(over: challenge()))
  }

  private func register(_ body: [UInt8]) async throws {
    let headers = HeaderFields([
      .init(name: "Host", value: host), .init(name: "Content-Type", value: "application/json"),
    ])
    let answer = try await connection().send("POST", "/attest/register", headers: headers, body: body)
    guard answer.status == 200 else {
      let code = answer.headers.first("X-Attest-Error") ?? ""
      throw Unexpected("registration: \(answer.status) \(code) \(String(decoding: answer.body, as: UTF8.self))")
    }
  }

  /// Opens a socket; an answer other than 101 is thrown as `ClientError.refused`.
  public func open(
    _ target: String = "/", _ credentials: HeaderFields = HeaderFields()
  ) async throws(ClientError) -> ClientWebSocket {
    try await connection().upgrade(target, host: host, headers: credentials)
  }

  /// Opens a socket with a new nonce.
  public func open(as phone: Phone, counter: UInt32) async throws -> ClientWebSocket {
    try await open("/", phone.credentials(over: challenge(), counter: counter))
  }

  /// Sends an ordinary request.
  public func ask(_ method: String, _ target: String, body: [UInt8] = []) async throws -> Response {
    try await connection().send(
      method, target, headers: HeaderFields([.init(name: "Host", value: host)]), body: body)
  }

  /// Returns the code with which the gate refuses `credentials`; `nil` if it admits them.
  public func refusal(of credentials: HeaderFields, at target: String = "/") async throws -> String? {
    do throws(ClientError) {
      try await open(target, credentials).close()
      return nil
    } catch {
      guard case .refused(let answer) = error else { throw error }
      return answer.headers.first("X-Attest-Error") ?? "status \(answer.status)"
    }
  }
}

extension ClientWebSocket {
  /// Sends `message` and returns the next message.
  public func exchange(_ message: WebSocketMessage) async throws -> WebSocketMessage {
    try await send(message)
    return try await next()
  }

  /// Returns the next message; throws at the end of the connection.
  public func next() async throws -> WebSocketMessage {
    switch try await receive() {
    case .message(let message): return message
    case .ended(let ending): throw Unexpected("the socket ended: \(ending.code ?? 0) \(ending.reason)")
    }
  }
}
