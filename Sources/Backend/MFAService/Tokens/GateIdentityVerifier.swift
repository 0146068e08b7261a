public import ByteCoding
internal import Crypto
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
  /// How long an accepted identity shows that the clocks agree.
  private static let agreement = Duration.seconds(300)
  /// The minimum interval between fetches of the key set because of unknown keys.
  private static let refetchInterval = Duration.seconds(5)

  private let source: GateKeySource
  private let fetchTime: Duration
  private let issuer: String
  private let audience: String
  private let store: any Store
  private let spent: SpentIdentities
  private let clock: WallClock
  private let logger: Logger
  /// Read without a turn on the actor.
  private let known = LockedValue(KnownKeys())
  /// The time of the last accepted identity. Read without a turn on the actor.
  private let acceptedAt = LockedValue<Timestamp?>(nil)
  private var fetchedAt: Timestamp?
  /// The time of the last successful fetch.
  private var obtainedAt: Timestamp?
  /// The running fetch. Requests with an unknown key wait for it.
  private var fetching: Task<Void, Never>?
  /// The reason why the last fetch failed; `nil` if it succeeded.
  private var fault: GateKeySource.FetchError?

  /// Creates the verifier.
  ///
  /// - Parameters:
  ///   - store: remembers the used identities of requests with effects, for all backends that share it.
  ///   - spent: remembers all used identities, for all verifiers of this process.
  ///   - fetchTime: the time for a fetch of the gate's keys, up to the last byte. All requests that wait for it then
  ///     fail, and a later one fetches again.
  public init(
    source: GateKeySource, issuer: String, audience: String, store: any Store,
    spent: SpentIdentities = SpentIdentities(), fetchTime: Duration = GateKeySource.fetchTime,
    clock: WallClock = .system, logger: Logger
  ) {
    self.source = source
    self.fetchTime = fetchTime
    self.issuer = issuer
    self.audience = audience
    self.store = store
    self.spent = spent
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
    let count = known.withLock { $0.byID.count }
    guard count > 0, let obtainedAt else { return .missing(fault) }
    return .present(count: count, since: obtainedAt, fault: fault)
  }

  /// Whether this machine's clock agreed with the gate's within the last minutes: an identity was accepted. It does not
  /// any more if it was set back since.
  public nonisolated var agreesWithGate: Bool {
    guard let last = acceptedAt.withLock({ $0 }) else { return false }
    return (.zero...Self.agreement).contains(clock.now().since(last))
  }

  /// What a request can change, and so where its identity must be remembered.
  public enum Effect: Sendable, Hashable {
    /// Nothing. A copy of the identity at another backend could only read once more, so this process remembers it.
    case none
    /// It may write. Its first write records the identity in the database.
    case write
    /// It gives access: a socket, and so any number of requests with effects, or tokens. The identity is recorded
    /// before.
    case access
  }

  /// An accepted identity.
  public struct Accepted: Sendable {
    public let identity: GateIdentity
    /// The identity as the first write of the request records it; `nil` if it needs no record, or has one.
    public let unspent: UnspentIdentity?
  }

  /// Verifies the identity in `text`, which came with `request`. It must be signed by the gate, for this audience and
  /// this request, unexpired and unused. A successful verification uses it up: of two callers with the same identity,
  /// one succeeds.
  ///
  /// An identity that does not name its request, of an older gate, is recorded in the database whatever the effect:
  /// a copy could be sent with any request. So is one that finds no room in memory.
  ///
  /// - Parameter patience: the maximum time to wait for the store, if the request itself has no effect; `nil` for no
  ///   limit.
  /// - Throws: `Rejection`; `MFAStoreError` if the store or the gate's keys are unavailable, so that the identity
  ///   cannot be checked.
  public nonisolated func identity(
    in text: String, of request: RequestLine, effect: Effect, patience: Duration? = nil
  ) async throws -> Accepted {
    let claims = try await claims(in: text, at: clock.now())
    // Fetching the gate's keys may have taken seconds.
    let now = clock.now()
    try check(claims, at: now)
    let isBound = try Self.isBound(claims, to: request)
    guard let environment = GateIdentity.Environment(rawValue: claims.environment) else {
      throw Rejection(reason: "env is \(claims.environment)")
    }
    guard let subject = claims.subject, (1...256).contains(subject.utf8.count) else {
      throw Rejection(reason: "neither a key (sub) nor a certificate (cnf)")
    }
    let identity = GateIdentity(
      subject: subject, environment: environment, app: claims.app, sessionID: claims.sid,
      clientAddress: claims.clientAddress, issuedAt: Self.instant(claims.iat), platform: claims.platform)
    let number = IdentityNumber(id: claims.jti, end: Self.instant(claims.exp).advanced(by: Self.leeway))
    let use = spent.spend(number, at: now)
    guard use != .usedBefore else { throw Self.usedBefore }
    acceptedAt.withLock { $0 = now }
    switch effect {
    case .write: return Accepted(identity: identity, unspent: UnspentIdentity(number))
    case .none where isBound && use == .first: return Accepted(identity: identity, unspent: nil)
    case .none, .access:
      try await record(number, patience)
      return Accepted(identity: identity, unspent: nil)
    }
  }

  private static let usedBefore = Rejection(reason: "jti was used before")

  /// Verifies the signature of `text`, by the key that its header names.
  private nonisolated func claims(in text: String, at now: Timestamp) async throws -> Claims {
    guard let token = ES256Token(text) else { throw Self.noToken }
    let key: P256.Signing.PublicKey
    if let cached = known.withLock({ $0.key(ofHeader: token.header, at: now) }) {
      key = cached
    } else {
      guard let id = token.keyID(ofType: "jwt") else { throw Self.noToken }
      key = try await self.key(named: id, at: now)
    }
    guard let payload = token.claims(signedBy: key) else { throw Rejection(reason: "the signature is wrong") }
    known.withLock { $0.remember(key, ofHeader: token.header) }
    guard let claims = Claims(payload) else { throw Rejection(reason: "a claim is missing or malformed") }
    return claims
  }

  private static let noToken = Rejection(reason: "not a JWT by its typ, with a kid, in base64url without padding")

  private nonisolated func check(_ claims: Claims, at now: Timestamp) throws(Rejection) {
    guard claims.iss == issuer else { throw Rejection(reason: "iss is \(claims.iss)") }
    guard claims.aud == audience else { throw Rejection(reason: "aud is \(claims.aud)") }
    let (issued, ends) = (Self.instant(claims.iat), Self.instant(claims.exp))
    guard ends.since(issued) <= Self.longestLife else { throw Rejection(reason: "lifetime over 60 s") }
    guard now < ends.advanced(by: Self.leeway) else { throw Rejection(reason: "expired") }
    guard issued <= now.advanced(by: Self.leeway) else { throw Rejection(reason: "issued in the future") }
    // The gate's are base64url. A database cannot store every character.
    guard (1...256).contains(claims.jti.utf8.count), claims.jti.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw Rejection(reason: "jti is empty, too long or not visible ASCII")
    }
  }

  /// Whether the identity names the request that it is for.
  ///
  /// - Throws: if it names another one.
  private nonisolated static func isBound(_ claims: Claims, to request: RequestLine) throws(Rejection) -> Bool {
    switch (claims.httpMethod, claims.target) {
    case (nil, nil): return false
    case (request.method?, request.targetHash?): return true
    default: throw Rejection(reason: "htm or target names another request")
    }
  }

  /// Records the identity as used, in a transaction of its own.
  private nonisolated func record(_ number: IdentityNumber, _ patience: Duration?) async throws {
    let record = { @Sendable [store] in
      try await store.write(excluding: .rows) { try $0.spend(identity: number.id, until: number.end) }
    }
    let isFirst = if let patience { try await StoreDeadline.within(patience, record) } else { try await record() }
    guard isFirst else { throw Self.usedBefore }
  }

  private func key(named id: String, at now: Timestamp) async throws -> P256.Signing.PublicKey {
    // After the clock was set back, the age is unknown and the keys are fetched again.
    let age = fetchedAt.map { now.since($0) }.flatMap { $0 < .zero ? nil : $0 }
    let isKnown = known.withLock { $0.byID[id] } != nil
    if !isKnown, let fetching {
      await fetching.value
    } else if (age ?? KnownKeys.refreshInterval) >= (isKnown ? KnownKeys.refreshInterval : Self.refetchInterval) {
      await fetchForAll()
      if let fault { logger.error("gate keys not fetched", metadata: ["reason": "\(fault)"]) }
    }
    if let key = known.withLock({ $0.byID[id] }) { return key }
    if let fault { throw MFAStoreError(reason: "gate keys not fetched: \(fault)") }
    throw Rejection(reason: "the gate publishes no key \(id)")
  }

  /// Fetches the keys for all waiting requests, or waits for the running fetch. Sets `fault`.
  private func fetchForAll() async {
    let now = clock.now()
    fetchedAt = now
    known.withLock { $0.fetchedAt = now }
    let task = fetching ?? Task { await self.fetch() }
    fetching = task
    await task.value
  }

  private func fetch() async {
    defer { fetching = nil }
    do throws(GateKeySource.FetchError) {
      let set = try await source.keySet(within: fetchTime)
      known.withLock { $0.replace(with: set.keys) }
      obtainedAt = clock.now()
      fault = nil
    } catch {
      fault = error
    }
  }

  private nonisolated static func instant(_ seconds: Double) -> Timestamp {
    Timestamp(milliseconds: Int64(max(-1e15, min(1e15, seconds * 1000))))
  }
}

/// The first line of a request, as the gate has signed it.
public struct RequestLine: Sendable, Hashable {
  public let method: String
  /// Path and query as sent.
  public let target: String

  public init(method: String, target: String) {
    self.method = method
    self.target = target
  }

  /// The claim `target`.
  var targetHash: String { Base64URL.encode(Array(SHA256.hash(data: Array(target.utf8)))) }
}

/// The keys that the gate published last.
private struct KnownKeys: Sendable {
  static let refreshInterval = Duration.seconds(300)
  /// A gate has two keys at most times, and one header for each.
  private static let mostHeaders = 16

  private(set) var byID: [String: P256.Signing.PublicKey] = [:]
  /// The keys by the encoded headers of tokens that they have signed, so that a header is decoded once.
  private var byHeader: [Substring: P256.Signing.PublicKey] = [:]
  var fetchedAt: Timestamp?

  /// The key of an earlier token with this header; `nil` if there was none, or if the keys must be fetched again.
  func key(ofHeader header: Substring, at now: Timestamp) -> P256.Signing.PublicKey? {
    guard let fetchedAt, (.zero..<Self.refreshInterval).contains(now.since(fetchedAt)) else { return nil }
    return byHeader[header]
  }

  /// Remembers the key of a token whose signature was right, so only the gate chooses what is remembered.
  mutating func remember(_ key: P256.Signing.PublicKey, ofHeader header: Substring) {
    guard byHeader[header] == nil, byHeader.count < Self.mostHeaders else { return }
    // The gate may have withdrawn the key since it was looked up.
    guard byID.values.contains(where: { $0.rawRepresentation == key.rawRepresentation }) else { return }
    // A substring would keep its token in memory.
    byHeader[Substring(String(header))] = key
  }

  mutating func replace(with keys: [(id: String, key: P256.Signing.PublicKey)]) {
    byID = Dictionary(keys, uniquingKeysWith: { _, last in last })
    byHeader = [:]
  }
}

/// The claims of an identity.
private struct Claims {
  private(set) var (iss, aud, jti) = ("", "", "")
  private(set) var (iat, exp) = (0.0, 0.0)
  private(set) var (app, sid, clientAddress) = ("", "", "")
  private(set) var httpMethod: String?
  private(set) var target: String?
  private var sub: String?
  private var env: String?
  private var method: String?
  /// The thumbprint of a client certificate (RFC 8705, section 3.1).
  private var certificate: String?

  /// Reads the claims; `nil` if one is malformed, is there twice, or if a required one is missing.
  init?(_ payload: [UInt8]) {
    guard var reader = ClaimReader(payload) else { return nil }
    var missing: Set = ["iss", "aud", "jti", "iat", "exp"]
    do {
      while let name = try reader.next() {
        missing.remove(name)
        switch name {
        case "iss": iss = try reader.text()
        case "aud": aud = try reader.onlyText()
        case "sub": sub = try reader.text()
        case "jti": jti = try reader.text()
        case "iat": iat = try reader.number()
        case "exp": exp = try reader.number()
        case "app": app = try reader.text()
        case "env": env = try reader.text()
        case "method": method = try reader.text()
        case "htm": httpMethod = try reader.text()
        case "target": target = try reader.text()
        case "sid": sid = try reader.text()
        case "client_ip": clientAddress = try reader.text()
        case "cnf":
          var confirmation = try reader.object()
          while let name = try confirmation.next() {
            if name == "x5t#S256" { certificate = try confirmation.text() } else { try confirmation.skip() }
          }
        default: try reader.skip()
        }
      }
    } catch {
      return nil
    }
    guard missing.isEmpty else { return nil }
  }

  /// The attested key of a device. Debug builds share one certificate, so they share one identity.
  var subject: String? { method == "mtls" ? certificate : sub }

  var platform: GateIdentity.Platform? {
    switch method {
    case "app-attest": .apple
    case "android-key": .android
    default: nil
    }
  }

  /// A debug build has no environment of a device. A request that monitor mode admitted has no identity.
  var environment: String {
    switch method {
    case "app-attest", "android-key": env == "debug" ? "" : env ?? ""
    case "mtls": "debug"
    default: ""
    }
  }
}
