internal import ByteCoding
internal import Foundation
internal import Locking
public import Logging
internal import MFADomain

/// What the admin socket answers about accounts and their history.
///
/// Clients of the socket need no keys and no access to the database: the backend has both. Every change is an entry of
/// the history with the user of the client.
public struct AccountResource: Sendable {
  private let live: LiveService
  private let logger: Logger
  /// A check of the history reads all of it: one at a time.
  private let isChecking = LockedValue(false)

  /// - Parameter logger: Gets a line for each request that failed here, such as for a row that cannot be read.
  public init(_ live: LiveService, logger: Logger) { (self.live, self.logger) = (live, logger) }

  /// The time for the answer to a request that changes nothing.
  private static let patience = Duration.seconds(20)
  /// The time for a check of the history, less than clients wait.
  private static let patienceForCheck = Duration.seconds(45)

  /// The paths and their methods.
  static let methods: [String: String] = [
    "/v1/accounts": "GET", "/v1/account": "GET", "/v1/recoveries": "GET", "/v1/history": "GET",
    "/v1/history/check": "GET",
  ].merging(changes.map { ("/v1/account/\($0)", "POST") }) { first, _ in first }

  private static let changes = [
    "lock", "unlock", "end-sessions", "remove-device", "unassign-token", "cancel-recovery", "grant", "revoke",
  ]

  /// Answers a request to one of `methods`.
  func answer(_ path: String, _ query: Substring, from peer: AdminPeer?) async -> AdminAnswer {
    guard let peer else { return .refusal(403, "forbidden", "the kernel does not name the client's user") }
    do {
      let query = try AdminQuery(query)
      let context = live.context
      let accounts = Accounts(
        administration: Administration(context), actor: .command(name: peer.name), query: query)
      switch path {
      case "/v1/accounts": return try await reading { .json(try await accounts.list()) }
      case "/v1/account": return try await reading { .json(try await accounts.details()) }
      case "/v1/recoveries": return try await reading { .json(try await accounts.recoveries(at: context.clock.now())) }
      case "/v1/history": return try await reading { .json(try await Self.history(query, in: context)) }
      case "/v1/history/check": return try await check(context)
      default: return .json(try await accounts.change(String(path.dropFirst("/v1/account/".count))))
      }
    } catch {
      let answer = Self.refusal(error)
      if answer.status >= 500 {
        let reason = (error as? MFAStoreError)?.reason ?? "\(error)"
        logger.error(
          "request of operator failed",
          metadata: ["path": "\(path)", "operator": "\(peer.name)", "reason": "\(reason)"])
      }
      return answer
    }
  }

  private func reading(_ body: () async throws -> AdminAnswer) async throws -> AdminAnswer {
    try await StoreDeadline.within(Self.patience, body)
  }

  private static func history(_ query: AdminQuery, in context: DomainContext) async throws -> HistoryListing {
    var filter = AuditFilter()
    if query["id"] == nil {
      filter.account = try query["account"].map { try Username($0) }
    } else {
      filter.accountID = try query.accountID()
    }
    (filter.event, filter.actor, filter.text) = (query["event"], query["actor"], query["search"])
    filter.requestID = query["request"]
    if let since = query["since"] {
      guard let time = Timestamp(rfc3339: since) else {
        throw InvalidValue(field: "since", rule: "is a time of RFC 3339, such as 2026-11-21T00:00:00Z")
      }
      filter.since = time
    }
    let before = try query["before"].map { text in
      guard let number = Int64(text), number > 0 else { throw InvalidValue(field: "before", rule: "is a number") }
      return number
    }
    // The history is stored unencrypted: reading needs no keys.
    let found = try await AuditTrail(context.store, nil).search(filter, before: before, atMost: query.limit)
    return HistoryListing(found)
  }

  private func check(_ context: DomainContext) async throws -> AdminAnswer {
    let begins = isChecking.withLock { isChecking in
      defer { isChecking = true }
      return !isChecking
    }
    guard begins else {
      return .refusal(409, "busy", "the history is being checked already", hint: "try again in a minute")
    }
    defer { isChecking.withLock { $0 = false } }
    do {
      let trail = AuditTrail(context.store, context.vault.historyKeys)
      let verdict = try await StoreDeadline.within(Self.patienceForCheck) { try await trail.verify() }
      return .json(
        HistoryVerdict(
          isIntact: verdict.fault == nil, entries: verdict.entries, hash: Hex.encode(verdict.lastHash),
          unkeyed: verdict.unkeyed, fault: verdict.fault?.text))
    } catch let fault as MFAStoreError where fault == .late {
      logger.warning(
        "check of history not finished", metadata: ["limit_s": "\(Self.patienceForCheck.components.seconds)"])
      return .refusal(
        503, "unavailable", "the check was not finished within \(Self.patienceForCheck.components.seconds) s",
        hint: "mfa-backend audit verify has no such limit")
    }
  }

  private static func refusal(_ error: any Error) -> AdminAnswer {
    switch error {
    case let error as AdminQueryError: .refusal(400, "invalid_request", error.reason)
    case let value as InvalidValue: .refusal(400, "invalid_request", "\(value.field) \(value.rule)")
    case MFARefusal.notFound, Administration.TokenError.unknownToken:
      .refusal(404, "not_found", "no such account, device, token or recovery")
    case Administration.TokenError.isOfUser:
      .refusal(
        409, "of_user", "the user has added this authenticator app",
        hint: "mfa-backend admin tokens remove removes it with its secret")
    case is Administration.LockHasChanged:
      .refusal(
        409, "changed", "the lock of the account has changed meanwhile", hint: "look at the account again")
    case let fault as MFAStoreError:
      .refusal(503, "unavailable", "the database: \(fault.reason)", hint: "see the backend's log, and try again")
    default: .refusal(500, "internal_error", "the backend has failed", hint: "see its log")
    }
  }
}

extension AdminQuery {
  /// The field `id`.
  ///
  /// - Throws: `InvalidValue` if it is absent or no id.
  fileprivate func accountID() throws(InvalidValue) -> UUID {
    guard let id = self["id"].flatMap({ UUID(text: $0) }) else {
      throw InvalidValue(field: "id", rule: "is the id of an account")
    }
    return id
  }
}

/// One request about accounts.
private struct Accounts {
  let administration: Administration
  let actor: Administration.Actor
  let query: AdminQuery

  func list() async throws -> AccountListing {
    let state = try query["state"].map { text in
      guard let state = AccountFilter.State.allCases.first(where: { $0.rawValue.utf8.elementsEqual(text.utf8) }) else {
        throw InvalidValue(field: "state", rule: "is locked or admin")
      }
      return state
    }
    let found = try await administration.search(
      AccountFilter(text: query["search"], state: state), after: query["after"], atMost: query.limit, by: actor)
    return AccountListing(
      accounts: found.accounts.map(AccountListing.Entry.init), examined: found.examined, next: found.next)
  }

  func details() async throws -> AccountDescription {
    let account: Administration.AccountReference =
      if query["id"] == nil, let name = query["name"] { .name(try Username(name)) } else { .id(try query.accountID()) }
    return AccountDescription(try await administration.details(of: account, by: actor))
  }

  func recoveries(at now: Timestamp) async throws -> RecoveryListing {
    let found = try await administration.recoveries(
      after: query["after"], atMost: query.limit, by: actor)
    return RecoveryListing(
      recoveries: found.map { RecoveryListing.Entry($0.recovery, of: $0.user, at: now) },
      next: found.count < query.limit ? nil : found.last.map { Administration.cursor(after: $0.user) })
  }

  /// Changes the account with the id of the query.
  func change(_ operation: String) async throws -> AccountChange {
    let id = try query.accountID()
    let name = try await administration.name(of: id, by: actor)
    switch operation {
    case "lock": return changed(try await administration.lock(name, by: actor)) { $0.lockedAt == nil }
    case "unlock":
      let seen = query["seen"]
      let user = try await administration.unlock(name, by: actor) { user in
        seen.map { $0 == user.lockedAt?.wire ?? "none" } ?? true
      }
      return changed(user) { $0.lockedAt != nil }
    case "grant": return changed(try await administration.setAdmin(true, name, by: actor)) { !$0.isAdmin }
    case "revoke": return changed(try await administration.setAdmin(false, name, by: actor)) { $0.isAdmin }
    case "end-sessions":
      let ended = try await administration.endSessions(of: name, by: actor)
      return changed(ended.user) { _ in ended.count > 0 }
    case "remove-device":
      let device = try DeviceID(query["device"] ?? "")
      return changed(try await administration.removeDevice(device, of: name, by: actor)) { _ in true }
    case "unassign-token":
      let serial = try TokenSerial(query["serial"] ?? "")
      _ = try await administration.unassignToken(serial, of: id, by: actor)
      return AccountChange(username: name.text, changed: true)
    case "cancel-recovery": return changed(try await administration.cancelRecovery(name, by: actor)) { _ in true }
    default: throw MFARefusal.notFound
    }
  }

  private func changed(_ user: User, _ isChanged: (User) -> Bool) -> AccountChange {
    AccountChange(username: user.username.text, changed: isChanged(user))
  }
}
