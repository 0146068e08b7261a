public import ByteCoding
public import struct Foundation.URL
internal import Wire
internal import Locking

/// One installation's standing with one gate: registers its key once, and opens connections with assertions of it.
///
/// Everything that uses the key happens one after another, in the order of the calls, so that counters arrive at the
/// gate in the order in which they were made; a waiting call can be cancelled.
public actor AttestSession {
  /// The least time between two keys that replace refused ones.
  public static let renewalInterval = Duration.seconds(3600)

  package nonisolated let gate: GateAddress
  let keys: any DeviceKeyService
  let store: any KeyIDStore
  let http: any HTTPTransport
  let now: @Sendable () -> Timestamp
  let mutex = AsyncMutex()

  /// The state of an unfinished registration. It survives a failed call, so that the next call continues with the
  /// same key instead of making another one.
  var unfinished: UnfinishedRegistration?

  /// A session with the gate at `url` (`https://host:port`, or the `wss://` URL of a socket, whose path is left out).
  ///
  /// Throws `.unusableAddress` for anything else. `now` is the wall clock.
  public init(
    gate url: URL, keys: any AppAttestKeyService, store: any KeyIDStore,
    http: any HTTPTransport, now: @escaping @Sendable () -> Timestamp = { .now() }
  ) throws(AttestError) {
    try self.init(gate: url, deviceKeys: AppAttestKeys(keys), store: store, http: http, now: now)
  }

  /// The same with the keys of another platform.
  package init(
    gate url: URL, deviceKeys keys: any DeviceKeyService, store: any KeyIDStore, http: any HTTPTransport,
    now: @escaping @Sendable () -> Timestamp = { .now() }
  ) throws(AttestError) {
    guard let gate = GateAddress(url) else { throw .unusableAddress(url.absoluteString) }
    self.gate = gate
    self.keys = keys
    self.store = store
    self.http = http
    self.now = now
  }

  /// Registers a key unless one is registered, and returns its identifier.
  ///
  /// The identifier is saved after the gate's 200 and not before. A registration whose answer was lost is sent again as
  /// it was, now and by the next call: the gate answers the same registration with 200 again.
  @discardableResult
  public func registerIfNeeded() async throws(AttestError) -> String {
    try await inTurn { () async throws(AttestError) in try await self.registeredKeyID() }
  }

  /// The three headers for one upgrade request, to be sent soon: the nonce lives for a minute.
  ///
  /// Throws `.serviceUnavailable` if no key is registered. A key that the device has lost is renewed first. Prefer
  /// `open`, which also acts on the gate's answer.
  public func assertionHeaders() async throws(AttestError) -> AssertionHeaders {
    try await inTurn { () async throws(AttestError) in
      guard try self.record().keyID != nil else { throw .serviceUnavailable }
      var allowance = RetryAllowance()
      return try await self.headers(&allowance)
    }
  }

  /// A fresh nonce of the gate.
  public func fetchChallenge() async throws(AttestError) -> Challenge {
    let response = try await answer(to: HTTPRequest(url: gate.challenge))
    guard response.status == 200 else { throw .challengeFailed(GateRefusal(response)) }
    guard let challenge = Challenge(body: response.body) else { throw .missingNonce }
    return challenge
  }

  /// Opens a connection: registers if needed, and hands `attempt` the headers for its upgrade request.
  ///
  /// `attempt` is called again at most once for a nonce or a counter that the gate did not take, with a fresh
  /// challenge, and at most once for a refused key, after a new one was registered, which happens at most once an
  /// hour. The next call's assertion is made when `attempt` has returned, so it should return as soon as the gate has
  /// answered, and bound its own time.
  public func open<Socket: Sendable>(
    _ attempt: @Sendable (AssertionHeaders) async throws(UpgradeError) -> Socket
  ) async throws(AttestError) -> Socket {
    try await inTurn { () async throws(AttestError) in
      try await self.registeredKeyID()
      var allowance = RetryAllowance()
      while true {
        let headers = try await self.headers(&allowance)
        do throws(UpgradeError) {
          return try await attempt(headers)
        } catch {
          try await self.prepareRetry(after: error, &allowance)
        }
      }
    }
  }

  /// Returns if the connection is worth another attempt, and throws otherwise.
  private func prepareRetry(after error: UpgradeError, _ allowance: inout RetryAllowance) async throws(AttestError) {
    switch error {
    case .transport(let error): throw .transport(error)
    case .refused(let refusal) where refusal.code == .keyRevoked: throw .keyRevoked(refusal)
    case .refused(let refusal)
    where [.keyRefused, .riskOutdated].contains(refusal.code) && allowance.takeRenewal(): try await renewKey()
    case .refused(let refusal) where refusal.code?.definition.advice == .freshChallenge && allowance.takeChallenge():
      return
    case .refused(let refusal): throw .assertionFailed(refusal)
    }
  }

  private func headers(_ allowance: inout RetryAllowance) async throws(AttestError) -> AssertionHeaders {
    while true {
      guard let keyID = try record().keyID else { throw .serviceUnavailable }
      let challenge = try await fetchChallenge()
      do throws(KeyServiceError) {
        let assertion = try await keys.proof(by: keyID, over: challenge)
        return AssertionHeaders(keyID: keyID, assertion: assertion, challenge: challenge)
      } catch {
        guard error == .invalidKey, allowance.takeRenewal() else { throw .keyService(error) }
        try await renewKey()
      }
    }
  }

  /// Runs `body` after all earlier calls have finished.
  private func inTurn<Value: Sendable>(
    _ body: () async throws(AttestError) -> Value
  ) async throws(AttestError) -> Value {
    guard await mutex.enter() else { throw .cancelled }
    let result: Result<Value, AttestError>
    do throws(AttestError) {
      result = .success(try await body())
    } catch {
      result = .failure(Task.isCancelled ? .cancelled : error)
    }
    await mutex.leave()
    return try result.get()
  }

  func record() throws(AttestError) -> KeyRecord {
    do throws(KeyStoreError) { return try store.load() } catch { throw .store(error) }
  }

  func save(_ record: KeyRecord) throws(AttestError) {
    do throws(KeyStoreError) { try store.save(record) } catch { throw .store(error) }
  }

  func answer(to request: HTTPRequest) async throws(AttestError) -> HTTPResponse {
    do throws(TransportError) { return try await http.send(request) } catch { throw .transport(error) }
  }
}

/// The retries that one call may still make.
struct RetryAllowance {
  private var challenge = true
  private var renewal = true

  /// Whether a fresh challenge was still allowed; it no longer is.
  mutating func takeChallenge() -> Bool {
    defer { challenge = false }
    return challenge
  }

  /// Whether a new key was still allowed; it no longer is.
  mutating func takeRenewal() -> Bool {
    defer { renewal = false }
    return renewal
  }
}
