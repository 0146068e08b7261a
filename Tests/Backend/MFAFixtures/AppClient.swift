import MFAService
public import Testing
import MFAWire

/// The transport between an app and the backend.
public enum Wire: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case rest = "REST"
  case socket

  public var testDescription: String { rawValue }
}

/// An app that calls operations by their names over any transport.
public struct AppClient: Sendable {
  let backend: TestBackend
  let app: AppInstance
  /// `nil` for REST.
  let socket: TestSocket?

  /// Calls `body` with a client of `app` over `wire`.
  public static func with<R: Sendable>(
    _ backend: TestBackend, _ wire: Wire, as app: AppInstance, _ body: (AppClient) async throws -> R
  ) async throws -> R {
    switch wire {
    case .rest: try await body(AppClient(backend: backend, app: app, socket: nil))
    case .socket:
      try await TestSocket.with(backend, as: app) { socket in
        try await body(AppClient(backend: backend, app: app, socket: socket))
      }
    }
  }

  /// Calls an operation. Returns its result, or the body of its refusal.
  public func call(_ name: String, _ parameters: JSONValue = [:], token: String? = nil) async throws -> JSONValue {
    if let socket {
      if let token { _ = try await socket.call("session.attach", ["token": .string(token)]) }
      let answer = try await socket.call(name, parameters)
      return answer["result"] ?? answer["error"]?["data"] ?? .null
    }
    guard let operation = backend.operations.first(where: { $0.name == name }) else {
      throw NoSuchOperation(name: name)
    }
    var path = "/api/v1" + operation.path
    if case .object(let members) = parameters {
      for (field, value) in members { path = path.replacing("{\(field)}", with: value.text ?? "") }
    }
    let body = operation.method == .post ? parameters : nil
    return try await backend.send(operation.method.rawValue, path, body, as: app, token: token).json ?? .null
  }

  struct NoSuchOperation: Error { let name: String }
}

extension AppClient {
  /// Signs in with the phone's key, and returns the answer.
  public func signIn(_ phone: TestPhone) async throws -> JSONValue {
    let challenge = try await call("auth.initiate", phone.naming)
    return try await call(
      "auth.verify-signature",
      [
        "username": .string(phone.username), "deviceId": .string(phone.deviceID),
        "challengeId": challenge["challengeId"] ?? nil,
        "signature": .string(try phone.sign(challenge["challenge"]?.text ?? "")),
      ])
  }

  /// Signs in with the code that was sent last.
  public func signInWithCode(_ phone: TestPhone) async throws -> JSONValue {
    try await call(
      "auth.verify-otp", ["username": .string(phone.username), "otp": .string(backend.outbox.lastCode ?? "")])
  }

  public func status(_ phone: TestPhone) async throws -> JSONValue {
    try await call("device.status", ["deviceId": .string(phone.deviceID)])
  }
}
