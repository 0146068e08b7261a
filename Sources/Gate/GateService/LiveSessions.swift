public import AppAttest
public import AttestGate
public import ByteCoding
internal import Locking
public import Transport

/// The admitted sessions that are not over. Lists them, and closes them when the right to them ends.
///
/// A session is listed from its admission on, before its upstream has answered. If its key is revoked in between, or is
/// found to have a damaged record (`.internalError`), the session does not open. Any other close takes effect as soon
/// as the session opens, and replaces neither of these two.
public final class LiveSessions: Sendable {
  /// A position in the sequence of recorded changes.
  public struct RevocationEpoch: Sendable, Hashable {
    fileprivate let change: UInt64
  }

  /// The limit of the sessions of one key.
  struct KeyLimit: Sendable, Hashable {
    /// At least 1.
    let sessions: Int
    /// Whether a socket above the number replaces the key's oldest one.
    let closesOldest: Bool
  }

  private struct State {
    var places: [UInt64: SessionPlace] = [:]
    var byKey: [KeyID: Set<UInt64>] = [:]
    var lastPlace: UInt64 = 0
    var lastChange: UInt64 = 0
    /// The last change of each key and the time when it was recorded. Kept as long as an admission can take.
    var changed: [KeyID: (change: UInt64, at: ContinuousClock.Instant)] = [:]
    var nextCleaning = ContinuousClock.now
    /// The last change that may have affected any key.
    var allChanged: UInt64 = 0
    /// Which client certificates the configuration accepts, and when it last changed; `nil` before the first reload.
    var certificates: (change: UInt64, isAccepted: @Sendable (VerifiedCertificate) -> Bool)?

    /// The places of the client certificates that `selects` chooses.
    func numbers(where selects: (VerifiedCertificate) -> Bool) -> [UInt64] {
      places.filter { _, place in
        // Almost every session has a key, and is passed over without a copy of its principal.
        guard place.keyHash == nil, case .certificate(let certificate) = place.record.principal else { return false }
        return selects(certificate)
      }.map(\.key)
    }

    /// Whether `principal` is a certificate that a reload after `epoch` no longer accepts.
    func hasLostRight(_ principal: Principal, since epoch: RevocationEpoch) -> Bool {
      guard case .certificate(let certificate) = principal, let certificates, certificates.change > epoch.change
      else { return false }
      return !certificates.isAccepted(certificate)
    }

    mutating func clean(at now: ContinuousClock.Instant) {
      guard now >= nextCleaning else { return }
      nextCleaning = now + LiveSessions.memory
      changed = changed.filter { now - $0.value.at < LiveSessions.memory }
    }
  }

  /// Longer than any admission takes, store calls included.
  fileprivate static let memory = Duration.seconds(60)

  private let state = LockedValue(State())
  private let keysToRecheck: AsyncStream<KeyID>.Continuation
  /// The keys that changed while one of their sessions was being admitted. Their state must be looked up again.
  let recheck: AsyncStream<KeyID>

  public init() { (recheck, keysToRecheck) = AsyncStream.makeStream() }

  // MARK: Adding and removing

  /// What `add` did under the lock.
  private struct Entry {
    let values: (number: UInt64, needsRecheck: Bool, replaced: SessionControl?)

    init(_ number: UInt64, _ replaced: SessionControl?, needsRecheck: Bool = false) {
      values = (number, needsRecheck, replaced)
    }
  }

  /// Returns the current position. Must be called before the registry is asked to admit.
  public func revocationEpoch() -> RevocationEpoch { state.withLock { RevocationEpoch(change: $0.lastChange) } }

  /// The number of sessions, including those that are not open yet.
  public var count: Int { state.withLock { $0.places.count } }

  /// Adds a session. It is removed when the returned value is released or ended.
  ///
  /// If its key changed after `revocationEpoch`, the key is sent to `recheck`. Check and entry are one step: of several
  /// callers at once, no more are added than the limits allow.
  ///
  /// - Parameters:
  ///   - revocationEpoch: The position before the client was admitted.
  ///   - limit: The maximum number of all sessions.
  ///   - keyLimit: The limit of the session's key; `nil` for none. Sessions without a key are not limited by it.
  ///   - isSocket: Whether the session is a socket. An ordinary request never replaces one and is never replaced.
  /// - Throws: `.tooManySessions`, `.tooManySessionsOfKey`.
  func add(
    _ record: SessionRecord, since revocationEpoch: RevocationEpoch, atMost limit: Int,
    ofKey keyLimit: KeyLimit? = nil, isSocket: Bool = true
  ) throws(RequestRefusal) -> LiveSession {
    let place = SessionPlace(record: record, isSocket: isSocket)
    let entry = state.withLock { state -> Result<Entry, RequestRefusal> in
      guard state.places.count < limit else { return .failure(.tooManySessions(limit: limit)) }
      var replaced: SessionControl?
      if let keyLimit, let keyID = record.keyID, let numbers = state.byKey[keyID], numbers.count >= keyLimit.sessions {
        // Those that are replaced and not closed yet are bounded, too: a client need not answer a Close frame.
        guard numbers.count < 2 * keyLimit.sessions else {
          return .failure(.tooManySessionsOfKey(limit: keyLimit.sessions))
        }
        let others = numbers.filter { state.places[$0]?.isReplaced == false }
        if others.count >= keyLimit.sessions {
          let oldest = others.filter { state.places[$0]?.isSocket == true }.min()
          guard keyLimit.closesOldest, isSocket, let oldest = oldest.flatMap({ state.places[$0] }) else {
            return .failure(.tooManySessionsOfKey(limit: keyLimit.sessions))
          }
          replaced = oldest.replace()
        }
      }
      if state.hasLostRight(record.principal, since: revocationEpoch) {
        place.pendingClose = SessionPlace.lostCertificate
      }
      state.lastPlace += 1
      state.places[state.lastPlace] = place
      guard let keyID = record.keyID else { return .success(Entry(state.lastPlace, replaced)) }
      state.byKey[keyID, default: []].insert(state.lastPlace)
      let lastChange = max(state.allChanged, state.changed[keyID]?.change ?? 0)
      return .success(Entry(state.lastPlace, replaced, needsRecheck: lastChange > revocationEpoch.change))
    }
    let (number, needsRecheck, replaced) = try entry.get().values
    replaced?.close(.policyViolation, reason: SessionPlace.replacement)
    if needsRecheck, let keyID = record.keyID { keysToRecheck.yield(keyID) }
    return LiveSession(place, number: number, in: self)
  }

  fileprivate func open(_ place: SessionPlace, _ control: SessionControl) {
    let pendingClose = state.withLock { _ in
      place.control = control
      return place.pendingClose
    }
    if let pendingClose { control.close(pendingClose.code, reason: pendingClose.reason) }
  }

  fileprivate func pendingClose(of place: SessionPlace) -> CloseCode? {
    state.withLock { _ in place.pendingClose?.code }
  }

  fileprivate func remove(_ number: UInt64) {
    state.withLock { state in
      guard let place = state.places.removeValue(forKey: number), let keyID = place.record.keyID,
        let index = state.byKey.index(forKey: keyID)
      else { return }
      state.byKey.values[index].remove(number)
      if state.byKey.values[index].isEmpty { state.byKey.remove(at: index) }
    }
  }

  // MARK: Listing and closing

  /// All sessions, the oldest first.
  public var records: [SessionRecord] {
    page(limit: .max).records
  }

  /// Records that any key may have changed, and returns the keys that have a session.
  func noteChangeOfEverything() -> [KeyID] {
    state.withLock { state in
      state.lastChange += 1
      state.allChanged = state.lastChange
      return Array(state.byKey.keys)
    }
  }

  /// Requests a recheck of every key that has a session.
  func recheckEveryKey() { for keyID in noteChangeOfEverything() { keysToRecheck.yield(keyID) } }

  /// Records a change of `keyID`, so that admissions in progress detect it. Returns `true` if the key has a session.
  func noteChange(of keyID: KeyID) -> Bool {
    let now = ContinuousClock.now
    return state.withLock { state in
      state.clean(at: now)
      state.lastChange += 1
      state.changed[keyID] = (state.lastChange, now)
      return state.byKey[keyID] != nil
    }
  }

  /// Returns the sessions after `cursor` whose keys `selects` accepts (`nil`: all sessions), the oldest first unless
  /// `order` says otherwise, at most `limit`.
  ///
  /// One pass that keeps no more than the page, outside the lock, which the event loops need too. In the order of opening
  /// it ends with the page. Every session that is open during the whole list is on exactly one page, also where values are
  /// equal or sessions end meanwhile.
  ///
  /// - Parameter cursor: The `next` of the page before in the same order; `nil` for the first page.
  public func page(
    where selects: (@Sendable (KeyHash) -> Bool)? = nil, in order: SessionOrder = SessionOrder(.opened),
    after cursor: SessionCursor? = nil, limit: Int
  ) -> (records: [SessionRecord], next: SessionCursor?) {
    var selection = SessionSelection(order, after: cursor, limit: limit)
    visit(selection.candidates(numbers())) { number, place in
      if let selects, place.keyHash.map(selects) != true { return true }
      selection.add(place, number: number)
      return order.column != .opened || !selection.isFull
    }
    return selection.page()
  }

  /// The numbers of all sessions, in no order.
  private func numbers() -> [UInt64] { state.withLock { Array($0.places.keys) } }

  /// Calls `body` with those of the sessions that are still there, in the order of `numbers`, outside the lock, which the
  /// event loops need too. Ends when `body` returns `false`.
  private func visit(_ numbers: [UInt64], _ body: (_ number: UInt64, _ place: SessionPlace) -> Bool) {
    var places: [(number: UInt64, place: SessionPlace)] = []
    places.reserveCapacity(min(numbers.count, Self.portion))
    for start in stride(from: 0, to: numbers.count, by: Self.portion) {
      places.removeAll(keepingCapacity: true)
      state.withLock { state in
        for number in numbers[start..<min(start + Self.portion, numbers.count)] {
          if let place = state.places[number] { places.append((number, place)) }
        }
      }
      for (number, place) in places where !body(number, place) { return }
    }
  }

  /// The number of places that are copied at once under the lock.
  private static let portion = 4096

  /// Returns the newest sessions first, at most `limit`.
  public func newest(_ limit: Int) -> [SessionRecord] {
    let numbers = numbers().sorted(by: >).prefix(limit)
    return state.withLock { state in numbers.compactMap { state.places[$0]?.record } }
  }

  /// The number of sessions of `keyID`.
  public func count(of keyID: KeyID) -> Int { state.withLock { $0.byKey[keyID]?.count ?? 0 } }

  /// Closes the sessions of `keyID` and returns their number.
  @discardableResult
  public func close(key keyID: KeyID, _ code: CloseCode, reason: String) -> Int {
    close(state.withLock { Array($0.byKey[keyID] ?? []) }, code, reason)
  }

  /// Closes the sessions of client certificates that `isAccepted` refuses, and returns their number. Sessions that an
  /// earlier configuration admits at the same time are closed when they open.
  ///
  /// Must be called when new requests are already decided by the configuration of `isAccepted`.
  @discardableResult
  public func closeCertificates(unless isAccepted: @escaping @Sendable (VerifiedCertificate) -> Bool) -> Int {
    let refused = state.withLock { state in
      state.lastChange += 1
      state.certificates = (state.lastChange, isAccepted)
      return state.numbers { !isAccepted($0) }
    }
    return close(refused, SessionPlace.lostCertificate.code, SessionPlace.lostCertificate.reason)
  }

  /// Closes the sessions of all client certificates, and returns their number.
  @discardableResult
  public func closeCertificates(_ code: CloseCode, reason: String) -> Int {
    close(state.withLock { $0.numbers { _ in true } }, code, reason)
  }

  /// Returns the ids that begin with `text`, at most `limit`, the oldest session first.
  public func ids(beginning text: String, limit: Int) -> [String] {
    var found: [String] = []
    visit(numbers().sorted()) { _, place in
      if place.record.id.utf8.starts(with: text.utf8) { found.append(place.record.id) }
      return found.count < limit
    }
    return found
  }

  /// Closes the session with the request id `id`. Returns `false` if there is none.
  public func close(id: String, _ code: CloseCode, reason: String) -> Bool {
    var found: [UInt64] = []
    visit(numbers()) { number, place in
      if place.record.id == id { found.append(number) }
      return true
    }
    return close(found, code, reason) > 0
  }

  private func close(_ numbers: [UInt64], _ code: CloseCode, _ reason: String) -> Int {
    let open = state.withLock { state in numbers.compactMap { state.places[$0]?.close(code, reason: reason) } }
    for (control, close) in open { control.close(close.code, reason: close.reason) }
    return numbers.count
  }
}

/// The description of a session for operators.
public struct SessionRecord: Sendable, Hashable {
  /// The id of the request that opened the session, as in the log.
  public let id: String
  public let principal: Principal
  public let admittedAt: Timestamp
  /// The address of the client.
  public let address: SocketAddress
  /// The path of the route.
  public let route: String

  public init(id: String, admission: Admission, address: SocketAddress, route: String) {
    self.id = id
    principal = admission.principal
    admittedAt = admission.at
    self.address = address
    self.route = route
  }

  /// The key that opened the session; `nil` for a certificate or an anonymous client.
  public var keyID: KeyID? {
    if case .device(let device) = principal { device.keyID } else { nil }
  }
}

/// A session's entry in `LiveSessions`. The entry is removed when this object is released.
final class LiveSession: Sendable {
  private let place: SessionPlace
  private let number: UInt64
  private let sessions: LiveSessions

  fileprivate init(_ place: SessionPlace, number: UInt64, in sessions: LiveSessions) {
    self.place = place
    self.number = number
    self.sessions = sessions
  }

  // A session that never opened is not ended otherwise.
  deinit { end() }

  /// Why the session may no longer open: after the admission the key was revoked or removed, its record was found to be
  /// damaged, or a reload refused the certificate. `nil` if it may open.
  var denial: Denial? {
    guard let code = sessions.pendingClose(of: place) else { return nil }
    switch record.principal {
    case .device(let device) where code == .revoked: return .keyRevoked(device.app)
    case .device where code == .internalError:
      return .storeUnavailable(.corrupt(reason: "the record of the key is damaged"))
    case .certificate(let certificate) where code == .revoked: return .certificateRefused(subject: certificate.subject)
    case .device, .certificate, .anyone: return nil
    }
  }
  var record: SessionRecord { place.record }

  func opened(_ control: SessionControl) { sessions.open(place, control) }
  func end() { sessions.remove(number) }
}
