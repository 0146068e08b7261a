internal import AsyncHTTPClient
internal import ByteCoding
internal import Commands
internal import Foundation
internal import HTTPClientTransport
internal import Wire
internal import MFAService
internal import NIOCore
internal import NIOHTTP1

/// Sends operators' requests to the socket of a running backend.
struct AdminClient {
  private let socket: BackendSettings.AdminSocket

  init(_ socket: BackendSettings.AdminSocket) { self.socket = socket }

  /// The path of the socket.
  var path: String { socket.path }

  /// The time for requests that wait for nothing: the backend answers them with what it knows.
  static let patienceForState = Duration.seconds(10)

  /// Sends a request and decodes the answer.
  ///
  /// - Parameter patience: A reload may wait for the database and the gate.
  /// - Throws: `Failure`, for a refusal with its error and hint.
  func send<Value: Decodable>(
    _ method: String, _ target: String, _ type: Value.Type, patience: Duration = .seconds(60)
  ) async throws(Failure) -> Value {
    let (status, body) = try await ask(method, target, within: patience)
    guard (200..<300).contains(status) else { throw Self.refusal(status, body) }
    guard let value = try? JSONDecoder().decode(type, from: body) else {
      throw Failure(
        .internalError, "the backend's answer has an unknown format",
        hint: "use the mfa-backend version that the backend runs")
    }
    return value
  }

  /// Sends a request and returns the answer, also a refusal.
  ///
  /// - Parameter person: The person at a console over TLS, for the history.
  /// - Throws: `Failure` if the backend does not answer.
  func ask(
    _ method: String, _ target: String, within patience: Duration, for person: String? = nil
  ) async throws(Failure) -> (status: UInt, body: Data) {
    guard FileManager.default.fileExists(atPath: socket.path) else {
      throw Self.unavailable(
        socket, "no backend runs here",
        "start it: mfa-backend run; if admin.listen was changed since its start, name the old socket with --admin")
    }
    guard let url = URL(httpURLWithSocketPath: socket.path, uri: target) else {
      throw Self.unavailable(socket, "the path is not valid", "correct admin.listen")
    }
    var request = HTTPClientRequest(url: url.absoluteString)
    request.method = HTTPMethod(rawValue: method)
    request.headers.add(name: "Accept", value: "application/json")
    if let caller = OperatorName.caller(in: ProcessInfo.processInfo.environment) {
      request.headers.add(name: OperatorName.field, value: "\(caller)")
    }
    if let person {
      request.headers.add(name: ConsolePersonField.name, value: ConsolePersonField.encode(person))
    }
    let message = request
    let socket = socket
    let late = Self.unavailable(
      socket, "no complete answer within \(patience.components.seconds) s",
      "see the backend's log for what it waits for")
    return try await ExchangeDeadline.within(patience, expired: late, cancelled: late) {
      () async throws(Failure) in
      do {
        // The limit of the library is longer, so that the reason is always the same.
        return try await Self.exchange(message, within: patience + .seconds(5))
      } catch {
        throw Self.unavailable(
          socket, ConnectionFault.reason(of: error),
          "run the command as the backend's user, and see whether the backend runs")
      }
    }
  }

  private static func exchange(
    _ message: HTTPClientRequest, within patience: Duration
  ) async throws -> (UInt, Data) {
    var configuration = HTTPClient.Configuration.strict
    // A socket of a backend that has ended refuses; waiting does not help.
    configuration.connectionPool.retryConnectionEstablishment = false
    return try await HTTPClient.withHTTPClient(configuration: configuration) { client in
      let answer = try await client.execute(message, timeout: TimeAmount(patience))
      return (answer.status.code, Data(try await answer.body.collect(upTo: 1 << 20).readableBytesView))
    }
  }

  private static func unavailable(
    _ socket: BackendSettings.AdminSocket, _ reason: String, _ hint: String
  ) -> Failure {
    Failure(.unavailable, "the backend's socket \(socket.path) cannot be reached: \(reason)", hint: hint)
  }

  private static func refusal(_ status: UInt, _ body: Data) -> Failure {
    guard let refusal = try? JSONDecoder().decode(AdminErrorBody.self, from: body) else {
      return Failure(
        .internalError, "the backend answered with status \(status)", hint: "see the backend's log for the reason")
    }
    return Failure(
      refusal.code == "configuration_refused" ? .configuration : .internalError,
      refusal.error.split(whereSeparator: \.isNewline).map { .error(String($0)) }
        + [refusal.hint.map(Message.hint)].compactMap(\.self))
  }
}
