internal import ACME
internal import AppAttest
internal import ByteCoding
internal import Commands
internal import Wire
internal import Settings
internal import Transport
internal import TransportEngine

/// Sends receipts to Apple's data service, each on a connection of its own, by the gate's HTTP client for servers.
struct DataServiceClient: ExchangeTransport {
  /// For one exchange, from connecting to the end of the answer.
  static let patience = Duration.seconds(15)

  private struct Place: Hashable {
    let app: AppID
    let environment: AttestEnvironment
  }

  private let clients: [Place: ServerClient]
  private let patience: Duration

  /// - Parameter apps: The environments of each app, and the server instead of Apple's, with its path; `nil` for Apple's.
  /// - Throws: `Failure` if a server cannot be asked, or the system has no thread left.
  init(
    _ apps: [(app: AppID, environments: Set<AttestEnvironment>, endpoint: ServerAddress?)],
    patience: Duration = Self.patience, proxies: ProxyVariables = .ofProcess
  ) throws(Failure) {
    self.patience = patience
    var servers: [ServerAddress: ServerClient] = [:]
    var clients: [Place: ServerClient] = [:]
    for (app, environments, endpoint) in apps {
      for environment in environments {
        let address =
          endpoint
          ?? ServerAddress(
            isSecure: true, host: DataService.host(for: environment), port: 443, path: DataService.path)
        let client: ServerClient
        if let known = servers[address] {
          client = known
        } else {
          client = try ServerClient(to: address, caFile: nil, section: "app_attest.apps.risk", proxies: proxies)
        }
        servers[address] = client
        clients[Place(app: app, environment: environment)] = client
      }
    }
    self.clients = clients
  }

  func send(_ request: ExchangeRequest) async throws(ExchangeTransportError) -> ExchangeAnswer {
    guard let client = clients[Place(app: request.app, environment: request.environment)] else {
      throw .noAnswer(reason: "the app has no keys of the environment \(request.environment.rawValue)")
    }
    let fields = HeaderFields([
      .init(name: "Host", value: client.address.authority),
      .init(name: "Authorization", value: request.authorization),
      .init(name: "User-Agent", value: "sallyport/\(Version.text)"), .init(name: "Connection", value: "close"),
    ])
    do throws(ClientError) {
      let answer = try await client.post(
        request.body, to: client.address.path, fields: fields, longest: DataService.longestAnswer,
        until: .now + patience)
      let now = Timestamp.now()
      return ExchangeAnswer(
        status: answer.status, body: answer.body,
        retryAfter: RetryAfter.instant(in: answer, at: now).map { $0.since(now) },
        date: answer.headers.first("Date").flatMap(HTTPDate.instant))
    } catch {
      switch error {
      case .tooLong: throw .answerTooLong
      case .malformed(let reason): throw .malformedAnswer(reason: reason)
      case .unreachable, .untrusted, .timedOut, .lost, .refused, .misused: throw .noAnswer(reason: "\(error)")
      }
    }
  }
}
