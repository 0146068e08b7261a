import AsyncHTTPClient
public import Foundation
public import Logging
public import MFADomain
public import MFAService
internal import MFAStore
import NIOCore
import NIOHTTP1

/// A backend with a running server, a gate that it trusts, and a clock that a test advances.
public struct TestBackend: Sendable {
  public let gate: TestGate
  public let clock: ManualClock
  public let outbox: CapturedOutbox
  public let pushes: CapturedPushes
  public let context: DomainContext
  public let port: Int
  public let operations: [MFAService.Operation]

  /// Calls `body` with a backend, and stops the backend when `body` returns.
  public static func with<R: Sendable>(
    store: (any Store)? = nil, rateLimits: RateLimits = .unlimited, limits: SocketLimits = SocketLimits(),
    bodyTime: Duration = .seconds(10), patience: Duration = .seconds(60), policy: Policy = Policy(),
    spent: SpentIdentities = SpentIdentities(), gate: TestGate? = nil, clock: ManualClock = ManualClock(),
    keys: KeyEncryptionKeys = .ephemeral(.system), entropy: Entropy = .system,
    provider: TestProvider? = nil, verifier identityTokens: (any IdentityTokenVerifier)? = nil,
    logger: Logger = Logger(label: "mfa") { _ in SwiftLogNoOpLogHandler() },
    _ body: (TestBackend) async throws -> R
  ) async throws -> R {
    let gate = try gate ?? TestGate(clock: clock.wall)
    let (outbox, pushes) = (CapturedOutbox(), CapturedPushes())
    let store = try store ?? SQLiteMFAStore.ephemeral()
    let vault = try await Vault.open(in: store, with: keys, entropy: .system)
    let tokens = try await AccessTokens(vault: vault, issuer: "mfa-backend", audience: "mfa")
    let context = DomainContext(
      store: store, vault: vault, outbox: outbox, tokens: tokens, clock: clock.wall, entropy: entropy, policy: policy,
      provider: identityTokens ?? provider?.tokens, pushOutbox: pushes)
    let verifier = GateIdentityVerifier(
      source: .file(gate.keysFile), issuer: TestGate.issuer, audience: TestGate.audience, store: store, spent: spent,
      clock: clock.wall, logger: logger)
    let registry = OperationRegistry(context, logger: logger, rateLimits: rateLimits, patience: patience)
    let (ports, portFound) = AsyncStream<Int>.makeStream()
    let callers = CallerReader(
      gate: verifier, tokens: tokens, clock: clock.wall, entropy: .system, patience: patience, logger: logger)
    let server = MFAServer(
      LiveService(ServiceGeneration(context: context, registry: registry, callers: callers, tokens: tokens)),
      address: .tcp(host: "127.0.0.1", port: 0), limits: limits, bodyTime: bodyTime, logger: logger,
      didBind: { portFound.yield($0 ?? 0) })
    let running = Task {
      defer { portFound.finish() }
      try await server.run()
    }
    var iterator = ports.makeAsyncIterator()
    guard let port = await iterator.next() else {
      try await running.value
      throw NotStarted()
    }
    let backend = TestBackend(
      gate: gate, clock: clock, outbox: outbox, pushes: pushes, context: context, port: port,
      operations: registry.operations)
    let result: Result<R, any Error>
    do { result = .success(try await body(backend)) } catch { result = .failure(error) }
    running.cancel()
    _ = try? await running.value
    return try result.get()
  }

  struct NotStarted: Error {}

  /// The history, with the keys that verify it.
  public var trail: AuditTrail { AuditTrail(context.store, context.vault.historyKeys) }
}

extension RateLimits {
  /// The limits for tests of other features.
  public static let unlimited: RateLimits = {
    var limits = RateLimits()
    limits.standard = .init(size: 1e9, perSecond: 1e9)
    limits.sensitive = .init(size: 1e9, perSecond: 1e9)
    limits.sensitiveOfAddress = nil
    return limits
  }()
}

/// The backend's answer to a request.
public struct Answer: Sendable, Hashable {
  public let status: Int
  public let headers: [String: String]
  public let body: Data

  /// The body as JSON; `nil` if it is not JSON.
  public var json: JSONValue? { try? JSONValue(body) }
  public subscript(_ key: String) -> JSONValue? { json?[key] }
}

extension TestBackend {
  /// Sends one request as the gate forwards it for `app`. `nil` sends no identity.
  public func send(
    _ method: String, _ path: String, _ body: JSONValue? = nil, as app: AppInstance?, token: String? = nil,
    headers: [(String, String)] = []
  ) async throws -> Answer {
    try await send(
      method, path, text: body?.encoded,
      assertion: try await app.asyncMap { try await gate.assertion(for: $0, of: (method, path)) }, token: token,
      headers: headers)
  }

  /// Sends a body of any text with the identity `assertion`.
  public func send(
    _ method: String, _ path: String, text: String?, assertion: String?, token: String? = nil,
    headers: [(String, String)] = []
  ) async throws -> Answer {
    try await Answer(to: method, path, text: text, assertion: assertion, token: token, headers: headers, at: port)
  }

  public func post(
    _ path: String, _ body: JSONValue, as app: AppInstance?, token: String? = nil
  ) async throws -> Answer {
    try await send("POST", "/api/v1" + path, body, as: app, token: token)
  }

  public func get(_ path: String, as app: AppInstance?, token: String? = nil) async throws -> Answer {
    try await send("GET", "/api/v1" + path, as: app, token: token)
  }
}

extension Answer {
  /// Sends a request to the backend at `port` of this machine, and waits for the answer.
  ///
  /// - Parameter content: A body that is sent without a field for its type.
  public init(
    to method: String, _ path: String, text: String?, assertion: String?, token: String? = nil,
    headers: [(String, String)] = [], body content: String? = nil, at port: Int
  ) async throws {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
    request.method = HTTPMethod(rawValue: method)
    if let assertion { request.headers.add(name: "X-Attest-Assertion", value: assertion) }
    if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
    if let text {
      request.headers.add(name: "Content-Type", value: "application/json")
      request.body = .bytes(ByteBuffer(string: text))
    }
    if let content { request.body = .bytes(ByteBuffer(string: content)) }
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(240))
    let body = try await response.body.collect(upTo: 1 << 20)
    self.init(
      status: Int(response.status.code),
      headers: Dictionary(
        response.headers.map { ($0.name.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first }),
      body: Data(body.readableBytesView))
  }
}

extension Optional where Wrapped: Sendable {
  fileprivate func asyncMap<R>(_ body: (Wrapped) async throws -> R) async rethrows -> R? {
    if let self { try await body(self) } else { nil }
  }
}
