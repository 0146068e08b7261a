internal import AndroidKeyAttestation
internal import AppAttest
public import AttestGate
public import ByteCoding
public import Logging
internal import Transport

/// `/v1/keys`: the operations on registered keys.
public struct KeyResource: AdminResource {
  private let store: any KeyRegistry & KeyCatalog
  private let sessions: LiveSessions?
  private let announce: EventAnnouncer
  private let logger: Logger
  private let clock: WallClock

  /// - Parameters:
  ///   - sessions: The sessions of this gate; `nil` if the resource works on a store alone.
  ///   - announce: Hears of each change that the store confirmed.
  ///   - logger: Gets a line for each change, for each change that the store did not confirm, and for each request
  ///     that the store could not answer.
  public init(
    store: any KeyRegistry & KeyCatalog, sessions: LiveSessions?, announce: EventAnnouncer = .silent, logger: Logger,
    clock: WallClock = .system
  ) {
    self.store = store
    self.sessions = sessions
    self.announce = announce
    self.logger = logger
    self.clock = clock
  }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/keys", "Lists keys, in the order of their ids or hashes.",
        parameters: [
          .after, .limit, .choice("platform", of: ["ios", "android"]), AdminParameter("app"),
          .choice("state", of: ["active", "revoked"]),
          AdminParameter("unused_since", schema: ["type": "string", "format": "date-time"]), .keyName("prefix"),
          .choice("sort", of: KeyOrder.allCases.map(\.rawValue)),
          AdminParameter("risk", schema: ["type": "string", "pattern": "^(unknown|[0-9]{1,9}([+]|-[0-9]{1,9})?)$"]),
        ],
        answers: AdminAnswers(200, schema: .keyListing, refusals: [503])
      ) { request throws(AdminError) in .json(try await list(request)) },
      AdminOperation("GET", "/v1/keys/{key}", "Returns all details of a key.", answers: Self.ofOne(.key)) {
        request throws(AdminError) in
        .json(description(of: try await record(named: request.value("key"))))
      },
      AdminOperation(
        "POST", "/v1/keys/{key}/revoke", "Revokes a key and closes its sessions.", answers: Self.ofOne(.key)
      ) {
        request throws(AdminError) in .json(try await revoke(request))
      },
      AdminOperation("POST", "/v1/keys/{key}/restore", "Restores a revoked key.", answers: Self.ofOne(.key)) {
        request throws(AdminError) in .json(try await restore(request))
      },
      AdminOperation(
        "DELETE", "/v1/keys/{key}", "Removes a key: its device has to attest a new one.",
        answers: Self.ofOne(.keyRemoval)
      ) {
        request throws(AdminError) in .json(try await remove(request))
      },
    ]
  }

  /// The possible answers of an operation on a key named by the beginning of its hash.
  private static func ofOne(_ schema: AnswerSchema) -> AdminAnswers {
    AdminAnswers(200, schema: schema, refusals: [404, 409, 503])
  }

  // MARK: Reading

  private func list(_ request: AdminRequest) async throws(AdminError) -> KeyListing {
    let limit = try request.limit()
    let (selection, order) = (try Self.selection(request), try Self.order(request))
    guard let prefix = request.parameter("prefix") else {
      let cursor = try Self.cursor(request)
      let page = try await asking { () throws(StoreError) in
        try await store.keys(selection, in: order, after: cursor, limit: limit)
      }
      return KeyListing(
        keys: page.records.map(KeyDescription.init), unreadable: page.unreadable,
        next: page.next.map { Base64URL.encode($0.bytes) })
    }
    guard let name = KeyName(prefix) else {
      throw .malformedParameter("prefix", rule: "must have 6 to 43 characters of base64url")
    }
    guard request.parameter("after") == nil else {
      throw .malformedParameter("after", rule: "cannot be combined with prefix, which returns one page")
    }
    // The limit is for the keys that the other filters select, in their order.
    let page = try await asking { () throws(StoreError) in
      try await store.keys(hashPrefix: name.text, limit: KeyPage.reach)
    }
    let picked: [KeyRecord] = page.records.filter(selection.picks)
    let sorted: [KeyRecord] = order == .hashDescending ? picked.reversed() : picked
    return KeyListing(
      keys: sorted.prefix(limit).map(KeyDescription.init), unreadable: page.unreadable, next: nil)
  }

  private static func selection(_ request: AdminRequest) throws(AdminError) -> KeySelection {
    var selection = KeySelection()
    if let text = request.parameter("platform") {
      guard let platform = Platform(rawValue: text) else {
        throw .malformedParameter("platform", rule: "must be ios or android")
      }
      selection.platform = platform
    }
    if let text = request.parameter("app") {
      guard AppID(text) != nil || AndroidAppPolicy.isPackageName(text) else {
        throw .malformedParameter("app", rule: "must be TEAMID.bundle.id, or the package of an Android app")
      }
      selection.app = text
    }
    switch request.parameter("state") {
    case nil: break
    case "active": selection.isRevoked = false
    case "revoked": selection.isRevoked = true
    default: throw .malformedParameter("state", rule: "must be active or revoked")
    }
    if let text = request.parameter("unused_since") {
      guard let instant = Timestamp(rfc3339: text) else {
        throw .malformedParameter("unused_since", rule: "must be an instant, such as 2026-10-01T00:00:00Z")
      }
      selection.unusedSince = instant
    }
    if let text = request.parameter("risk") {
      guard let risk = RiskSelection(text) else {
        throw .malformedParameter("risk", rule: "must be \(RiskSelection.form)")
      }
      selection.risk = risk
    }
    return selection
  }

  private static func order(_ request: AdminRequest) throws(AdminError) -> KeyOrder {
    guard let text = request.parameter("sort") else { return .id }
    guard let order = KeyOrder.allCases.first(where: { $0.rawValue.hasSameBytes(as: text) }) else {
      throw .malformedParameter(
        "sort", rule: "must be " + KeyOrder.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return order
  }

  private static func cursor(_ request: AdminRequest) throws(AdminError) -> KeyID? {
    guard let text = request.parameter("after") else { return nil }
    guard let cursor = Base64URL.decode(text).flatMap(KeyID.init(bytes:)) else {
      throw .malformedParameter("after", rule: "must be the next value of the previous page")
    }
    return cursor
  }

  private func description(of record: KeyRecord) -> KeyDescription {
    KeyDescription(whole: record, sessions: sessions?.count(of: record.key.keyID))
  }

  /// Returns the one key that `text` names; throws as `KeyLookup` does.
  private func record(named text: String) async throws(AdminError) -> KeyRecord {
    try await KeyLookup(catalog: store).record(named: text)
  }

  // MARK: Changing

  private func revoke(_ request: AdminRequest) async throws(AdminError) -> KeyDescription {
    let now = clock.now()
    return try await change(
      request, "key revoked by operator",
      as: { $0.revokedAt == nil ? .revoked(key: $1, by: .operator) : nil }
    ) { keyID throws(StoreError) in
      try await store.revoke(keyID, at: now)
    }
  }

  private func restore(_ request: AdminRequest) async throws(AdminError) -> KeyDescription {
    try await change(
      request, "key restored by operator", as: { $0.revokedAt == nil ? nil : .restored(key: $1) }
    ) { keyID throws(StoreError) in
      try await store.restore(keyID)
    }
  }

  private func change(
    _ request: AdminRequest, _ line: Logger.Message, as event: (_ before: KeyRecord, _ key: String) -> GateEvent?,
    _ body: (KeyID) async throws(StoreError) -> Bool
  ) async throws(AdminError) -> KeyDescription {
    let before = try await record(named: request.value("key"))
    let keyID = before.key.keyID
    // Another process may have removed the key meanwhile.
    guard try await changing(keyID, request, { () throws(StoreError) in try await body(keyID) }) else {
      throw .unknownKey
    }
    // The change is logged even if the read after it fails.
    log(line, keyID, request)
    if let event = event(before, KeyHash(of: keyID).text) { announce(event) }
    guard let record = try await asking({ () throws(StoreError) in try await store.record(of: keyID) }) else {
      throw .unknownKey
    }
    return description(of: record)
  }

  private func remove(_ request: AdminRequest) async throws(AdminError) -> KeyRemoval {
    let keyID = try await KeyLookup(catalog: store).keyID(named: request.value("key"))
    let count = try await changing(keyID, request) { () throws(StoreError) in
      try await store.remove([keyID], unusedSince: nil)
    }
    guard count == 1 else { throw .unknownKey }
    log("key removed by operator", keyID, request)
    announce(.removed(key: KeyHash(of: keyID).text))
    return KeyRemoval(key: KeyHash(of: keyID).text, removed: true)
  }

  private func log(_ event: Logger.Message, _ keyID: KeyID, _ request: AdminRequest) {
    var fields = OperatorIdentity.fields(of: request)
    fields["key"] = "\(KeyHash(of: keyID).short)"
    logger.notice(event, metadata: fields)
  }

  /// Runs a change of the key like `asking`. Logs a change that the store did not confirm.
  private func changing<Value>(
    _ keyID: KeyID, _ request: AdminRequest, _ body: () async throws(StoreError) -> Value
  ) async throws(AdminError) -> Value {
    try await asking { () throws(StoreError) in
      do throws(StoreError) { return try await body() } catch {
        if case .inDoubt = error { log("key change by operator not confirmed by store", keyID, request) }
        throw error
      }
    }
  }

  private func asking<Value>(_ body: () async throws(StoreError) -> Value) async throws(AdminError) -> Value {
    do throws(StoreError) { return try await body() } catch {
      // A fault of one record is no fault of the store, of which another service logs the state.
      logger.error(
        "request of operator failed",
        metadata: ["step": "\(error.step)", "reason": "\(error)", "advice": "\(error.advice)"])
      throw .storeUnavailable(error)
    }
  }
}

extension KeySelection {
  /// Returns `true` if `record` matches the selection's platform, app, revocation state, risk and time without use.
  fileprivate func picks(_ record: KeyRecord) -> Bool {
    (platform == nil || platform == record.key.platform) && (app == nil || app == record.key.app.text)
      && (isRevoked == nil || isRevoked == (record.revokedAt != nil))
      && (risk?.picks(record.risk) ?? true)
      && (unusedSince.map { max(record.registeredAt, record.lastUsedAt ?? record.registeredAt) < $0 } ?? true)
  }
}
