import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateFixtures
import GateService
import Locking
import Logging
import Observability
import SQLiteStore
import SimulatedDevice
import Testing
import Transport

/// The gate's service under test: accepts requests and provides answers and log lines.
struct ServiceBench: Sendable {
  let bench: GateBench
  let responder: GateResponder
  let log: LogFile
  let sessions = LiveSessions()
  let identities: IdentityIssuer
  let metrics = GateMetrics()

  init(
    _ bench: GateBench, stripHeaders: Set<String> = [], keepHeaders: Set<String> = [],
    logLevel: Logger.Level = .info, limiter: RequestLimiter = RequestLimiter(),
    trustedProxies: [AddressRange] = [], forwardedClients: ForwardedClients? = nil, issuesTokens: Bool = true,
    tokenURL: String? = nil, tokenChallenges: Challenges? = nil, tracer: Tracer? = nil
  ) throws {
    self.bench = bench
    log = try LogFile(path: bench.folder.file("log"))
    let all = try #require(Route(path: "/", upstream: .webSocket(host: "127.0.0.1", port: 8080)))
    let game = try #require(Route(path: "/game", upstream: .unix(path: "/run/game.sock"), audience: "game"))
    let api = try #require(
      Route(path: "/api", upstream: .webSocket(host: "127.0.0.1", port: 8081), forwarding: .all))
    let web = try #require(
      Route(
        path: "/web", upstream: .unix(path: "/run/web.sock"),
        origins: AllowedOrigins(["capacitor://localhost", "https://localhost", "null"])))
    let any = try #require(
      Route(path: "/any", upstream: .unix(path: "/run/any.sock"), origins: AllowedOrigins(anyWithAssertion: true)))
    let page = try #require(
      Route(path: "/page", upstream: .unix(path: "/run/page.sock"), carriers: [.subprotocol, .query]))
    let small = try #require(
      Route(path: "/small", upstreams: [.unix(path: "/run/small.sock")], forwarding: .all, maxHead: 1024))
    let routes = try #require(RouteTable([all, game, api, web, any, page, small]))
    identities = IdentityIssuer(issuer: "gate", audience: "upstream", keys: bench.identityKeys)
    let issuer = TokenIssuer(
      issuer: "gate", audiences: Self.tokenAudiences, life: .seconds(300), keys: bench.identityKeys)
    let attester = ClientAttester(
      issuer: "gate",
      clients: [
        .init(id: "wallet", apps: [GateBench.appID], life: .seconds(3600), claims: ["wallet_name": "Example \"W\""]),
        .init(id: "other", apps: ["AAAABBBBCC.com.example.other"], life: .seconds(90_000)),
      ], keys: bench.identityKeys)
    let tokens = try #require(
      TokenEndpoint(
        gate: bench.gate, issuer: issuer, attester: attester, challenges: tokenChallenges ?? bench.challenges,
        url: tokenURL,
        limiter: limiter, trustedProxies: trustedProxies,
        clock: bench.clock.wallClock))
    var logger = log.logger
    logger.logLevel = logLevel
    responder = GateResponder(
      gate: bench.gate, registrar: bench.registrar, challenges: bench.challenges, identities: identities,
      tokens: issuesTokens ? tokens : nil, routes: routes,
      sessions: sessions, limiter: limiter, trustedProxies: trustedProxies, forwardedClients: forwardedClients,
      stripHeaders: stripHeaders,
      keepHeaders: keepHeaders,
      logger: logger, metrics: metrics, tracer: tracer,
      clock: bench.clock.wallClock)
  }

  static let tokenAudiences: Set<String> = ["https://api.example", "ledger"]
  static let peer = Peer(address: .ipv4([192, 0, 2, 7], port: 40000))

  /// Asks in the same order as the engine.
  func disposition(of request: Request, from peer: Peer = ServiceBench.peer) async -> Disposition {
    if let disposition = responder.respondAtOnce(to: request, from: peer) { return disposition }
    return await responder.respond(to: request, from: peer)
  }

  /// Returns the disposition of `request` if it is available without waiting; otherwise `nil`.
  func immediateDisposition(of request: Request, by responder: GateResponder? = nil) -> Disposition? {
    let responder = responder ?? self.responder
    let disposition = LockedValue<Disposition?>(nil)
    Task.immediate {
      let answer = await responder.respond(to: request, from: Self.peer)
      disposition.withLock { $0 = answer }
    }
    return disposition.withLock { $0 }
  }

  func answer(to request: Request, from peer: Peer = ServiceBench.peer) async throws -> Response {
    guard case .respond(let response) = await disposition(of: request, from: peer) else {
      throw Unexpected.relayed
    }
    return response
  }

  func order(for request: Request, from peer: Peer = ServiceBench.peer) async throws -> any RelayPlan {
    try await relay(for: request, from: peer).order
  }

  func relay(
    for request: Request, from peer: Peer = ServiceBench.peer
  ) async throws -> (order: any RelayPlan, head: [UInt8]) {
    switch await disposition(of: request, from: peer) {
    case .relay(let order, let head): return (order, head)
    case .respond(let response): throw Unexpected.refused(String(decoding: response.body, as: UTF8.self))
    case .forward: throw Unexpected.forwarded
    case .converse: throw Unexpected.conversed
    }
  }

  enum Unexpected: Error { case relayed, forwarded, refused(String), conversed }
}

extension Request {
  static let id = "0123456789abcdef0123456789abcdef"

  /// Returns an ordinary request.
  static func plain(
    _ method: String, _ path: String, _ headers: [(String, String)] = [], body: String = ""
  ) -> Request {
    Request(
      id: id, method: method, target: path, path: path,
      headers: HeaderFields([("Host", "gate.example:6200")] + headers),
      body: Array(body.utf8))
  }

  /// Returns an opening handshake.
  static func upgrade(
    _ headers: [(String, String)] = [], path: String = "/", query: String = ""
  ) -> Request {
    let handshake = [
      ("Host", "gate.example:6200"), ("Connection", "Upgrade"), ("Upgrade", "websocket"),
      ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Version", "13"),
    ]
    return Request(
      id: id, method: "GET", target: path + query, path: path, headers: HeaderFields(handshake + headers),
      upgrade: UpgradeIntent(key: "dGhlIHNhbXBsZSBub25jZQ=="))
  }

  /// Returns the request that registers a key.
  static func registration(_ claim: RegistrationClaim, _ headers: [(String, String)] = []) throws -> Request {
    let members = ["keyId": claim.keyID, "attestation": claim.attestation, "nonce": claim.nonce]
    // JSONSerialization writes a backslash before each slash, like the client in the guide.
    let body = try JSONSerialization.data(withJSONObject: members)
    return .plain("POST", "/attest/register", headers, body: String(decoding: body, as: UTF8.self))
  }

  func adding(_ headers: [(String, String)]) -> Request {
    var all = self.headers
    for (name, value) in headers { all.append(name, value) }
    return Request(
      id: Self.id, method: method, target: target, path: path, headers: all, body: body, upgrade: upgrade)
  }
}

extension HeaderFields {
  init(_ pairs: [(String, String)]) { self.init(pairs.map { Field(name: $0.0, value: $0.1) }) }
}

extension MintedDevice {
  /// Returns the assertion headers as a client sends them.
  func fields(over nonce: Nonce, count: UInt32) throws -> [(String, String)] {
    try headers(over: nonce, count: count).map { ($0.key.rawValue, $0.value) }
  }
}

/// A log file written by the real handler.
final class LogFile: Sendable {
  private let path: String
  private let handle: FileHandle
  private let sink: LineSink

  init(path: String) throws {
    self.path = path
    try Data().write(to: URL(fileURLWithPath: path))
    handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    sink = LineSink(descriptor: handle.fileDescriptor)
  }

  // After the file is closed, its descriptor may belong to another file.
  deinit { sink.flush() }

  var logger: Logger { Logger(label: "test") { [sink] in JSONLineHandler(label: $0, sink: sink) } }

  var text: String {
    get throws {
      sink.flush()
      return try String(contentsOfFile: path, encoding: .utf8)
    }
  }

  /// The lines logged so far; each is one JSON object.
  var lines: [[String: String]] {
    get throws {
      try text.split(separator: "\n").map { line in
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
        return try #require(object as? [String: Any]).mapValues { "\($0)" }
      }
    }
  }
}
