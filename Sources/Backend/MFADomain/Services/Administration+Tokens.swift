internal import ByteCoding
public import Foundation

/// The operations of operators on imported tokens, and on authenticators whose clock is wrong.
extension Administration {
  /// Why an import changed nothing: each fault with its place in the file.
  public struct ImportFaults: Error, Sendable, Hashable {
    /// At least one, and at most `most`.
    public let reasons: [String]
    /// How many there are in all.
    public let count: Int
    /// How many faults are named.
    public static let most = 20
  }

  /// Why an operation on a token was not possible. Nothing was changed.
  public enum TokenError: Error, Sendable, Hashable {
    case unknownToken
    case unknownAccount
    /// The token belongs to an account.
    case isAssigned
    /// The user of the account has added the app, so only its removal takes it from the account.
    case isOfUser
    /// The account has the most tokens and added apps.
    case tooMany
    /// The account has an authenticator with the secret of this token.
    case sameSecret
    /// The account has no authenticator app.
    case noAuthenticator
    /// The codes are not two in a row within reach, or were spent.
    case codesNotFound
    /// A code was spent that is more steps ahead of this clock than are compared.
    case spentAhead
  }

  /// The result of an import.
  public struct ImportResult: Sendable, Hashable {
    public let tokens: Int
    /// How many of them belong to an account.
    public let assigned: Int

    public init(tokens: Int, assigned: Int) {
      self.tokens = tokens
      self.assigned = assigned
    }
  }

  /// The greatest number of tokens of one import: it is one transaction.
  public static let mostImported = 10_000

  /// Imports all tokens, or none.
  ///
  /// - Parameter changes: whether anything is written; otherwise the import is only tried.
  /// - Throws: `ImportFaults` for serial numbers that are there already or twice in the file, unknown accounts, and
  ///   accounts with too many tokens or with one secret twice.
  public func importTokens(
    _ tokens: [ImportedToken], from source: String, changes: Bool, by actor: Actor
  ) async throws -> ImportResult {
    guard changes else {
      return try await context.read(by: actor) { work in
        try work.admit()
        return try work.check(tokens).result
      }
    }
    let ids = tokens.map { _ in context.entropy.uuid() }
    return try await context.write(by: actor) { work in
      try work.admit()
      let (result, owners) = try work.check(tokens)
      var withoutFactor: Set<UUID> = []
      for owner in owners.values {
        if try work.records.secondFactorSince(of: owner.id) == nil { withoutFactor.insert(owner.id) }
      }
      for (id, token) in zip(ids, tokens) {
        let owner = token.username.flatMap { owners[$0.text] }
        guard
          let record = OATHToken(
            id: id, serial: token.serial, maker: token.maker, userID: owner?.id, kind: token.kind,
            secret: try work.vault.seal(token.secret, for: OATHToken.place(id)), algorithm: token.algorithm,
            digits: token.digits, period: token.period, next: token.counter, drift: token.drift, createdAt: work.now,
            assignedAt: owner == nil ? nil : work.now)
        else { throw InvalidValue(field: "digits", rule: "is 6, 7 or 8") }
        try work.records.insert(record)
      }
      try work.note(.tokensImported, account: nil, ["count=\(tokens.count)", "source=\(source)"])
      for token in tokens {
        guard let owner = token.username.flatMap({ owners[$0.text] }) else { continue }
        try work.announce(token.serial, to: owner, isFirst: withoutFactor.remove(owner.id) != nil)
      }
      return result
    }
  }

  /// A token and the name of its owner.
  public struct ListedToken: Sendable, Hashable {
    public let token: OATHToken
    /// `nil` if it is not assigned.
    public let owner: Username?
  }

  /// Tokens by serial number, after `serial`; at most 200.
  public func tokens(after serial: TokenSerial?, atMost count: Int, by actor: Actor) async throws -> [ListedToken] {
    try await context.read(by: actor) { work in
      try work.admit()
      return try work.records.tokens(after: serial?.text ?? "", atMost: max(1, min(count, 200))).map { token in
        ListedToken(token: token, owner: try token.userID.flatMap { try work.records.user($0)?.username })
      }
    }
  }

  /// Assigns a token that has no owner.
  ///
  /// - Throws: `TokenError`
  public func assignToken(_ serial: TokenSerial, to username: Username, by actor: Actor) async throws -> User {
    try await context.write(by: actor) { work in
      try work.admit()
      guard var token = try work.records.token(serial) else { throw TokenError.unknownToken }
      guard let user = try work.records.user(named: username) else { throw TokenError.unknownAccount }
      guard token.userID == nil else { throw TokenError.isAssigned }
      guard try work.records.tokens(of: user.id).count < OATHToken.mostOfAccount else { throw TokenError.tooMany }
      let secret = try work.vault.open(token.secret, for: OATHToken.place(token.id))
      guard try !work.secrets(of: user).contains(secret) else { throw TokenError.sameSecret }
      let isFirst = try work.records.secondFactorSince(of: user.id) == nil
      token.userID = user.id
      token.assignedAt = work.now
      try work.records.update(token)
      try work.announce(serial, to: user, isFirst: isFirst)
      return user
    }
  }

  /// Takes a token from its account; it stays known with its counter. With the last second factor all trust ends.
  ///
  /// - Parameter account: The id of the account that must have the token, judged in the transaction of the change;
  ///   `nil` for any.
  /// - Returns: Its owner until now; `nil` if it had none.
  /// - Throws: `TokenError.unknownToken`; `TokenError.isOfUser`; `.notFound` if another account has the token, or none.
  public func unassignToken(_ serial: TokenSerial, of account: UUID? = nil, by actor: Actor) async throws -> User? {
    try await context.write(by: actor) { work in
      try work.admit()
      guard let token = try work.records.token(serial) else { throw TokenError.unknownToken }
      // A form of one account must not change another one.
      guard account == nil || token.userID == account else { throw MFARefusal.notFound }
      guard token.name == nil else { throw TokenError.isOfUser }
      return try work.unassign(token)
    }
  }

  /// Removes a token with its secret.
  ///
  /// - Returns: Its owner until now; `nil` if it had none.
  /// - Throws: `TokenError.unknownToken`
  public func removeToken(_ serial: TokenSerial, by actor: Actor) async throws -> User? {
    try await context.write(by: actor) { work in
      try work.admit()
      guard let token = try work.records.token(serial) else { throw TokenError.unknownToken }
      let owner = try work.unassign(token)
      try work.records.removeToken(token.id)
      try work.note(.tokenRemoved, account: owner?.username.key, ["serial=\(serial.text)"])
      return owner
    }
  }

  /// Finds the counter or the clock of a token again by two of its codes in a row, which are spent.
  ///
  /// - Returns: The drift in steps for TOTP, the next counter for HOTP.
  /// - Throws: `TokenError.unknownToken`; `TokenError.codesNotFound`; `TokenError.spentAhead`.
  public func resynchroniseToken(
    _ serial: TokenSerial, by first: CodeGuess, and second: CodeGuess, actor: Actor
  ) async throws -> Int64 {
    try await context.write(by: actor) { work in
      try work.admit()
      guard var token = try work.records.token(serial) else { throw TokenError.unknownToken }
      let secret = try work.vault.open(token.secret, for: OATHToken.place(token.id))
      guard let counter = token.resynchronisation(first.text, second.text, secret, at: work.now) else {
        throw token.isSpentAhead(at: work.now) ? TokenError.spentAhead : .codesNotFound
      }
      token.resynchronise(to: counter, at: work.now)
      try work.records.update(token)
      let owner = try token.userID.flatMap { try work.records.user($0) }
      let result = token.kind == .totp ? token.drift : token.next
      let found = token.kind == .totp ? "drift" : "counter"
      try work.note(
        .tokenResynchronised, account: owner?.username.key, ["serial=\(serial.text)", "\(found)=\(result)"])
      return result
    }
  }

  /// The same for the authenticator app of an account, whose clock may be wrong.
  ///
  /// - Returns: The drift in steps.
  /// - Throws: `TokenError`
  public func resynchroniseAuthenticator(
    of username: Username, by first: CodeGuess, and second: CodeGuess, actor: Actor
  ) async throws -> Int64 {
    try await context.write(by: actor) { work in
      try work.admit()
      guard let user = try work.records.user(named: username) else { throw TokenError.unknownAccount }
      guard var factor = try work.records.totp(of: user.id), factor.confirmedAt != nil else {
        throw TokenError.noAuthenticator
      }
      let secret = try work.vault.open(factor.secret, for: Authenticator.place(user.id))
      guard let step = factor.resynchronisation(first.text, second.text, secret, at: work.now) else {
        throw factor.isSpentAhead(at: work.now) ? TokenError.spentAhead : .codesNotFound
      }
      factor.accept(step, at: work.now)
      try work.records.save(factor)
      try work.note(.tokenResynchronised, of: user, ["factor=totp", "drift=\(factor.drift)"])
      return factor.drift
    }
  }
}

extension OATHToken {
  /// The detail of an entry in the history about this token.
  var detail: String { "serial=\(serial.text)" }

  /// The vault's place for the secret of a token.
  static func place(_ id: UUID) -> String { "token:\(id.text)" }
}

extension UnitOfWork {
  /// Takes a token from its owner. An app that the owner has added is removed: no other account may get its secret.
  ///
  /// - Parameter notifies: whether the owner's devices are notified if it was the last second factor.
  func unassign(_ token: OATHToken, notifies: Bool = true) throws -> User? {
    guard let user = try token.userID.flatMap({ try records.user($0) }) else { return nil }
    if token.name != nil {
      try records.removeToken(token.id)
      try note(.appRemoved, of: user, [token.detail])
    } else {
      var free = token
      free.userID = nil
      free.assignedAt = nil
      try records.update(free)
      try note(.tokenUnassigned, of: user, [token.detail])
    }
    if notifies, try records.secondFactorSince(of: user.id) == nil {
      try records.removeTrustedDevices(of: user.id, boundTo: nil)
      try notify(user.id, of: .mfaDisabled)
    }
    wakeSockets(of: user.id)
    return user
  }

  /// Records that `user` has got a token, and notifies the user's devices.
  ///
  /// - Parameter isFirst: whether it is the first second factor of the account. All sessions then wait for it.
  fileprivate func announce(_ serial: TokenSerial, to user: User, isFirst: Bool) throws {
    try notify(user.id, of: .mfaEnabled)
    try note(
      .tokenAssigned, of: user, ["serial=\(serial.text)"] + (isFirst ? beginSecondFactor(of: user, in: nil) : []))
  }

  /// The secrets of the user's first app, also of one that is only offered, of the added apps and of the tokens.
  ///
  /// No account gets one of them twice: each authenticator has its own counter and drift, so a code that is spent in one
  /// of them could be accepted from the other later.
  func secrets(of user: User) throws -> [[UInt8]] {
    let ofApp = try records.totp(of: user.id).map { try vault.open($0.secret, for: Authenticator.place(user.id)) }
    let ofTokens = try records.tokens(of: user.id).map { try vault.open($0.secret, for: OATHToken.place($0.id)) }
    return (ofApp.map { [$0] } ?? []) + ofTokens
  }

  /// Checks that all tokens can be imported, and returns the accounts that they name, by the names as written: two
  /// names with one key mean two accounts if one of these kept its former key.
  fileprivate func check(
    _ tokens: [ImportedToken]
  ) throws -> (result: Administration.ImportResult, owners: [String: User]) {
    var (reasons, count): ([String], Int) = ([], 0)
    var serials: Set<TokenSerial> = []
    var owners: [String: User] = [:]
    var numbers: [UUID: Int] = [:]
    var known: [UUID: Set<[UInt8]>] = [:]
    func refuse(_ token: ImportedToken, _ reason: String) {
      count += 1
      if reasons.count < Administration.ImportFaults.most { reasons.append("\(token.place): \(reason)") }
    }
    for token in tokens {
      if !serials.insert(token.serial).inserted {
        refuse(token, "serial: \(token.serial.text) is in the file twice")
      } else if try records.token(token.serial) != nil {
        refuse(token, "serial: \(token.serial.text) was imported before")
      }
      guard let username = token.username else { continue }
      if owners[username.text] == nil { owners[username.text] = try records.user(named: username) }
      guard let owner = owners[username.text] else {
        refuse(token, "user: there is no account of this name")
        continue
      }
      let number = try (numbers[owner.id] ?? records.tokens(of: owner.id).count) + 1
      numbers[owner.id] = number
      if number > OATHToken.mostOfAccount {
        refuse(token, "user: an account has at most \(OATHToken.mostOfAccount) tokens and added apps")
      }
      var secrets = try known[owner.id] ?? Set(self.secrets(of: owner))
      if !secrets.insert(token.secret).inserted {
        refuse(token, "secret: the account has an authenticator with the same secret")
      }
      known[owner.id] = secrets
    }
    guard count == 0 else { throw Administration.ImportFaults(reasons: reasons, count: count) }
    return (.init(tokens: tokens.count, assigned: tokens.count { $0.username != nil }), owners)
  }
}
