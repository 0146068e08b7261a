public import ByteCoding
internal import Foundation
internal import JWTKit
internal import Locking
public import Logging
public import MFADomain

/// Verifies the identity that the gate adds to each request. No other source is accepted.
public actor GateIdentityVerifier {
  /// The reason why an identity was rejected.
  public struct Rejection: Error, Sendable, Hashable {
    /// The reason, for the log.
    public let reason: String
  }

  /// The maximum lifetime of an identity.
  private static let longestLife = Duration.seconds(60)
  /// The maximum difference between the clocks of gate and backend.
  private static let leeway = Duration.seconds(5)
  /// The minimum interval between fetches of the key set because of unknown keys.
  private static let refetchInterval = Duration.seconds(5)
  private static let refreshInterval = Duration.seconds(300)

  private let source: GateKeySource
  private let issuer: String
  private let audience: String
  private let store: any Store
  private let clock: WallClock
  private let logger: Logger
  private var keys: (collection: JWTKeyCollection, ids: Set<String>)?
  private var fetchedAt: Timestamp?
  /// The time of the last successful fetch.
  private var obtainedAt: Timestamp?
  /// The running fetch. Requests with an unknown key wait for it.
  private var fetching: Task<Void, Never>?
  /// The reason why the last fetch failed; `nil` if it succeeded.
  private var fault: GateKeySource.FetchError?

  /// Creates the verifier.
  ///
  /// - Parameter store: remembers the used identities. Backends that share a store also refuse identities used at
  ///   another backend.
  public init(
    source: GateKeySource, issuer: String, audience: String, store: any Store, clock: WallClock = .system,
    logger: Logger
  ) {
    self.source = source
    self.issuer = issuer
    self.audience = audience
    self.store = store
    self.clock = clock
    self.logger = logger
  }

  /// Fetches the gate's keys, without a request that needs them. Requests with an unknown key wait for it.
  ///
  /// - Throws: `GateKeySource.FetchError`, so that a fault is found before the first request.
  public func prepare() async throws(GateKeySource.FetchError) {
    await fetchForAll()
    if let fault { throw fault }
  }

  /// The state of the gate's keys.
  public enum KeyState: Sendable, Hashable {
    /// No keys were fetched yet, so no identity can be verified. The error is that of the last attempt.
    case missing(GateKeySource.FetchError?)
    /// The keys of the last successful fetch. `fault` is set if a later fetch failed.
    case present(count: Int, since: Timestamp, fault: GateKeySource.FetchError?)
  }

  /// The state of the gate's keys. Fetches nothing.
  public var keyState: KeyState {
    guard let keys, let obtainedAt else { return .missing(fault) }
    return .present(count: keys.ids.count, since: obtainedAt, fault: fault)
  }

  /// Verifies `token` and returns its identity. The token must be signed by the gate, for this audience, unexpired
  /// and unused. A successful verification uses the token up: of two callers with the same token, one succeeds.
  ///
  /// - Parameter patience: the maximum time to wait for the store; `nil` for no limit.
  /// - Throws: `Rejection`; `MFAStoreError` if the store or the gate's keys are unavailable, so that the token cannot
  ///   be checked.
  public func identity(in token: String, patience: Duration? = nil) async throws -> GateIdentity {
    guard token.utf8.count <= 4096, CompactToken.isCanonical(token), let id = Self.keyID(of: token) else {
      throw Rejection(reason: "not a JWT with a kid, in base64url without padding")
    }
    let now = clock.now()
    let collection = try await collection(holding: id, at: now)
    let claims: Claims
    do {
      claims = try await collection.verify(token, as: Claims.self)
    } catch {
      throw Rejection(reason: "signature or claims: \(error)")
    }
    try check(claims, at: now)
    guard let environment = GateIdentity.Environment(rawValue: claims.environment) else {
      throw Rejection(reason: "env is \(claims.environment)")
    }
    guard let subject = claims.subject, (1...256).contains(subject.utf8.count) else {
      throw Rejection(reason: "neither a key (sub) nor a certificate (cnf)")
    }
    try await spend(claims.jti, until: Self.instant(claims.exp).advanced(by: Self.leeway), patience)
    return GateIdentity(
      subject: subject, environment: environment, app: claims.app ?? "", sessionID: claims.sid ?? "",
      clientAddress: claims.client_ip ?? "", issuedAt: Self.instant(claims.iat))
  }

  private func check(_ claims: Claims, at now: Timestamp) throws(Rejection) {
    guard claims.iss == issuer else { throw Rejection(reason: "iss is \(claims.iss)") }
    guard claims.aud.values == [audience] else { throw Rejection(reason: "aud is \(claims.aud.values)") }
    let (issued, ends) = (Self.instant(claims.iat), Self.instant(claims.exp))
    guard ends.since(issued) <= Self.longestLife else { throw Rejection(reason: "lifetime over 60 s") }
    guard now < ends.advanced(by: Self.leeway) else { throw Rejection(reason: "expired") }
    guard issued <= now.advanced(by: Self.leeway) else { throw Rejection(reason: "issued in the future") }
    guard (1...256).contains(claims.jti.utf8.count) else { throw Rejection(reason: "jti is empty or too long") }
  }

  /// Records the identity as used: each identity is valid for one request.
  private func spend(_ id: String, until end: Timestamp, _ patience: Duration?) async throws {
    let spend = { @Sendable [store] in try await store.write { try $0.spend(identity: id, until: end) } }
    let isFirst = if let patience { try await StoreDeadline.within(patience, spend) } else { try await spend() }
    guard isFirst else { throw Rejection(reason: "jti was used before") }
  }

  private func collection(holding id: String, at now: Timestamp) async throws -> JWTKeyCollection {
    // After the clock was set back, the age is unknown and the keys are fetched again.
    let age = fetchedAt.map { now.since($0) }.flatMap { $0 < .zero ? nil : $0 }
    let isKnown = keys?.ids.contains(id) ?? false
    if !isKnown, let fetching {
      await fetching.value
    } else if (age ?? Self.refreshInterval) >= (isKnown ? Self.refreshInterval : Self.refetchInterval) {
      await fetchForAll()
      if let fault { logger.error("gate keys not fetched", metadata: ["reason": "\(fault)"]) }
    }
    if let keys, keys.ids.contains(id) { return keys.collection }
    if let fault { throw MFAStoreError(reason: "gate keys not fetched: \(fault)") }
    throw Rejection(reason: "the gate publishes no key \(id)")
  }

  /// Fetches the keys for all waiting requests, or waits for the running fetch. Sets `fault`.
  private func fetchForAll() async {
    fetchedAt = clock.now()
    let task = fetching ?? Task { await self.fetch() }
    fetching = task
    await task.value
  }

  private func fetch() async {
    defer { fetching = nil }
    do throws(GateKeySource.FetchError) {
      let set = try await source.keySet()
      let collection = JWTKeyCollection()
      for (id, key) in set.keys { await collection.add(ecdsa: key, kid: JWKIdentifier(string: id)) }
      keys = (collection, Set(set.keys.map(\.id)))
      obtainedAt = clock.now()
      fault = nil
    } catch {
      fault = error
    }
  }

  private static func keyID(of token: String) -> String? {
    struct Header: Decodable { let alg: String, kid: String }
    guard let part = token.split(separator: ".", maxSplits: 1).first, let bytes = Base64URL.decode(part),
      let header = try? JSONDecoder().decode(Header.self, from: Data(bytes)), header.alg == "ES256"
    else { return nil }
    return header.kid
  }

  private static func instant(_ seconds: Double) -> Timestamp {
    Timestamp(milliseconds: Int64(max(-1e15, min(1e15, seconds * 1000))))
  }
}

private struct Claims: JWTPayload {
  let iss: String
  let aud: AudienceClaim.Values
  let sub: String?
  let cnf: Confirmation?
  let jti: String
  let iat: Double
  let exp: Double
  let app: String?
  let env: String?
  let method: String?
  let sid: String?
  let client_ip: String?

  /// The thumbprint of a client certificate (RFC 8705, section 3.1).
  struct Confirmation: Codable {
    let x5t: String?

    enum CodingKeys: String, CodingKey { case x5t = "x5t#S256" }
  }

  /// The attested key of a device. Debug builds share one certificate, so they share one identity.
  var subject: String? { method == "mtls" ? cnf?.x5t : sub }

  /// A debug build has none of Apple's environments. A request that monitor mode admitted has no identity.
  var environment: String {
    switch method {
    case "app-attest": env == "debug" ? "" : env ?? ""
    case "mtls": "debug"
    default: ""
    }
  }

  // The verifier checks the claims against its own clock and configuration.
  func verify(using algorithm: some JWTAlgorithm) async throws {}
}

private enum AudienceClaim {
  /// One audience or an array of audiences (RFC 7519, section 4.1.3).
  struct Values: Codable, Sendable {
    let values: [String]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      values = try (try? [container.decode(String.self)]) ?? container.decode([String].self)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(values)
    }
  }
}
