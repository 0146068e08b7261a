internal import ByteCoding
internal import Foundation

/// A search among accounts.
public struct AccountFilter: Sendable, Hashable {
  public enum State: String, Sendable, Hashable, CaseIterable { case locked, admin }

  /// The maximum bytes of a text.
  public static let mostBytes = 512

  /// A part of the name, in any case.
  public var text: String?
  public var state: State?

  /// Creates a filter that matches every account.
  public init(text: String? = nil, state: State? = nil) { (self.text, self.state) = (text, state) }

  /// The parts of which a stored key must have one; empty if every key matches.
  ///
  /// Keys are folded, and so is a part of one: by the rule of today, and by the one of older versions. A text that
  /// cannot be a name, and the stored key of an even older account, are compared as they are.
  var parts: [[UInt8]] {
    guard let text else { return [] }
    let name = try? Username(text)
    return [text, name?.key, name?.formerKey].compactMap { $0.map { Array($0.utf8) } }
  }

  func matches(_ user: User, _ parts: [[UInt8]]) -> Bool {
    switch state {
    case .locked where user.lockedAt == nil: return false
    case .admin where !user.isAdmin: return false
    default:
      let key = Array(user.username.key.utf8)
      return parts.isEmpty || parts.contains { key.hasPart($0) }
    }
  }
}

extension Administration {
  /// The accounts that a search has found.
  public struct Findings: Sendable, Hashable {
    public let accounts: [Account]
    /// The number of accounts that were read.
    public let examined: Int
    /// The stored key after which the search continues; `nil` at the end.
    public let next: String?
  }

  /// The maximum number of accounts that one search reads.
  public static let mostExamined = 10_000

  /// Searches the accounts by the keys of their names, after the stored key `key`.
  ///
  /// Reads at most `mostExamined` accounts, each batch in a transaction of its own. Without enough matches among them,
  /// the search can be continued at `next`.
  ///
  /// - Parameter count: how many to return; at most 200.
  /// - Throws: `InvalidValue`
  public func search(
    _ filter: AccountFilter, after key: String?, atMost count: Int, by actor: Actor
  ) async throws -> Findings {
    // PostgreSQL stores no text with a NUL, and refuses one in a statement.
    guard key?.utf8.contains(0) != true else { throw InvalidValue(field: "after", rule: "has no NUL") }
    guard filter.text?.utf8.count ?? 0 <= AccountFilter.mostBytes else {
      throw InvalidValue(field: "search", rule: "has at most \(AccountFilter.mostBytes) bytes")
    }
    let parts = filter.parts
    let count = max(1, min(count, 200))
    var (found, examined, position) = ([Account](), 0, key ?? "")
    // The account of exactly this name is on the first page, however many are before it, and on no other one.
    let exact: Account? =
      if count > 1, let text = filter.text {
        try await context.read(by: actor) { work in
          try work.admit()
          guard let user = try work.user(withNameOrKey: text), filter.matches(user, parts) else { return nil }
          return try Self.account(of: user, in: work)
        }
      } else {
        nil
      }
    if key == nil, let exact { found.append(exact) }
    while examined < Self.mostExamined, found.count < count {
      let (after, room) = (position, count - found.count)
      let page = try await context.read(by: actor) { work in
        try work.admit()
        return try Self.batch(filter, parts, besides: exact?.user.id, after: after, atMost: room, in: work)
      }
      found += page.accounts
      examined += page.examined
      guard let next = page.next else { return Findings(accounts: found, examined: examined, next: nil) }
      position = next
      await Task.yield()
    }
    return Findings(accounts: found, examined: examined, next: position)
  }

  /// The number of accounts of one transaction.
  private static let batchSize = 200

  private static func batch(
    _ filter: AccountFilter, _ parts: [[UInt8]], besides exact: UUID?, after key: String, atMost count: Int,
    in work: UnitOfWork<Actor>
  ) throws -> Findings {
    let users = try work.records.users(after: key, atMost: batchSize)
    var accounts: [Account] = []
    for (index, (key, user)) in users.enumerated() where user.id != exact && filter.matches(user, parts) {
      accounts.append(try account(of: user, in: work))
      if accounts.count == count {
        let isLast = index == users.count - 1 && users.count < batchSize
        return Findings(accounts: accounts, examined: index + 1, next: isLast ? nil : key)
      }
    }
    return Findings(
      accounts: accounts, examined: users.count, next: users.count < batchSize ? nil : users.last?.key)
  }
}

extension UnitOfWork {
  /// The account that a person means by `text`: its name, or its key as it is stored.
  fileprivate func user(withNameOrKey text: String) throws -> User? {
    if let name = try? Username(text), let user = try records.user(named: name) { return user }
    // No database has a text with a NUL.
    return text.utf8.contains(0) ? nil : try records.user(named: text)
  }
}
