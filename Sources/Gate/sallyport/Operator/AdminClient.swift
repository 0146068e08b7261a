internal import AttestGate
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import GateService
internal import Logging
internal import Settings
internal import Transport
internal import TransportEngine

/// Sends operators' requests to the admin server of a running gate, or to an in-process admin router over the store.
/// Both provide the same operations, so a command behaves the same whether or not a gate runs.
struct AdminClient {
  typealias Ask = @Sendable (_ method: String, _ target: String) async throws(Failure) -> Response

  /// Sends a request, and returns any answer.
  let ask: Ask

  // MARK: Where

  /// Connects to the gate at `admin`. Returns `nil` if no gate listens there.
  static func gate(at admin: GateSettings.Admin?) async throws(Failure) -> AdminClient? {
    guard let admin else { return nil }
    if case .unix(let path) = admin.address {
      switch UnixSocketFile.state(at: path) {
      case .absent, .abandoned: return nil
      case .live: break
      case .occupied: throw unavailable(admin, "the file is not a socket")
      case .unknown(let reason): throw unavailable(admin, reason)
      }
    }
    let headers = try headers(for: admin)
    guard try await connect(to: admin) != nil else { return nil }
    return AdminClient { method, target throws(Failure) in try await ask(admin, method, target, headers) }
  }

  /// Asks the gate at `admin` for a person at a console, and returns any answer.
  ///
  /// - Parameter person: For the log of the gate; `nil` for the user of this process.
  static func ask(
    _ admin: GateSettings.Admin, _ method: String, _ target: String, for person: String?
  ) async throws(Failure) -> Response {
    var headers = try headers(for: admin)
    if let person { headers.append(ConsolePersonField.name, ConsolePersonField.encode(person)) }
    return try await ask(admin, method, target, headers)
  }

  private static func headers(for admin: GateSettings.Admin) throws(Failure) -> HeaderFields {
    var headers = HeaderFields([.init(name: "Host", value: "localhost")])
    if let file = admin.tokenFile { headers.append("Authorization", try AdminServer.token(in: file).field) }
    return headers
  }

  /// Makes a new connection for each request: the gate closes idle ones while a command waits for the operator's answer.
  private static func ask(
    _ admin: GateSettings.Admin, _ method: String, _ target: String, _ headers: HeaderFields
  ) async throws(Failure) -> Response {
    guard let connection = try await connect(to: admin) else {
      throw unavailable(admin, "the gate does not listen")
    }
    do throws(ClientError) {
      return try await connection.send(method, target, headers: headers)
    } catch {
      throw unavailable(admin, error.description)
    }
  }

  private static func connect(to admin: GateSettings.Admin) async throws(Failure) -> ClientConnection? {
    do throws(ClientError) {
      let engine = try ClientEngine()
      switch admin.address {
      case .unix(let path): return try await engine.connect(socket: path)
      case .loopback(let host, let port): return try await engine.connect(host: host, port: port, tls: nil)
      }
    } catch {
      // On loopback, connection refused means the gate is not running. The file of a Unix socket was there a moment
      // ago.
      if case .loopback = admin.address, case .unreachable = error { return nil }
      throw unavailable(admin, error.description)
    }
  }

  private static func unavailable(_ admin: GateSettings.Admin, _ reason: String) -> Failure {
    Failure(
      .unavailable, "the gate's admin server at \(admin.address.text) cannot be reached: \(reason)",
      hint: "run the command as the gate's user; keys commands can use --store URL instead", cause: reason)
  }

  /// Works on the store without a gate. Running gates notice changes within 2 s.
  static func over(_ store: any GateStore) -> AdminClient {
    let silent = Logger(label: "sallyport") { _ in SwiftLogNoOpLogHandler() }
    let router = AdminRouter(
      [KeyResource(store: store, sessions: nil, logger: silent), DecisionResource(store: store)], access: .anyone)
    return AdminClient { method, target throws(Failure) in
      await router.response(
        to: Request(
          id: "command", method: method, target: target, path: String(target.prefix { $0 != "?" }),
          headers: HeaderFields()))
    }
  }

  // MARK: Asking

  private init(_ ask: @escaping Ask) { self.ask = ask }

  /// Sends a request and decodes the answer.
  /// - Throws: The error and hint of a refusal.
  func send<Value: Decodable>(
    _ method: String, _ target: String, _ type: Value.Type
  ) async throws(Failure) -> Value {
    try Self.value(type, in: try await ask(method, target))
  }

  /// Returns the key of this name, or `nil` if its row cannot be read.
  /// - Throws: The error and hint of a refusal.
  func key(named name: String) async throws(Failure) -> KeyDescription? {
    let response = try await ask("GET", "/v1/keys/\(name)")
    if AdminJSON.value(AdminErrorBody.self, in: response.body)?.code == "key_unreadable" { return nil }
    return try Self.value(KeyDescription.self, in: response)
  }

  private static func value<Value: Decodable>(_ type: Value.Type, in response: Response) throws(Failure) -> Value {
    guard (200..<300).contains(response.status) else { throw failure(response) }
    guard let value = AdminJSON.value(type, in: response.body) else {
      throw Failure(
        .internalError, "the gate's answer has an unknown format",
        hint: "use the sallyport version that the gate runs")
    }
    return value
  }

  private struct AdminErrorBody: Decodable {
    let error: String
    let code: String?
    let hint: String?
  }

  private static func failure(_ response: Response) -> Failure {
    let refusal = AdminJSON.value(AdminErrorBody.self, in: response.body)
    let status: Status =
      switch response.status {
      case 401, 403: .refused
      case 404: .noInput
      case 409 where refusal?.code == "configuration_refused": .configuration
      case 409 where refusal?.code == "upgrade_refused": .unavailable
      case 400, 409: .usage
      case 503: .unavailable
      default: .internalError
      }
    let reasons = refusal?.error ?? "the gate answered with status \(response.status)"
    return Failure(
      status,
      reasons.split(whereSeparator: \.isNewline).map { .error(String($0)) }
        + [.hint(refusal?.hint ?? "see the --help of the command")])
  }
}
