internal import ByteCoding

extension Administration {
  /// The open recoveries with their accounts, by the stored keys of the names, after `cursor`.
  ///
  /// - Parameters:
  ///   - cursor: The `cursor(after:)` of the last account of the page before.
  ///   - count: How many to return; at most 200.
  /// - Throws: `InvalidValue` for a cursor that is no name and no stored key.
  public func recoveries(
    after cursor: String?, atMost count: Int, by actor: Actor
  ) async throws -> [(user: User, recovery: Recovery)] {
    try await context.read(by: actor) { work in
      try work.admit()
      return try work.records.openRecoveries(
        after: try work.position(after: cursor), at: work.now, atMost: max(1, min(count, 200))
      ).map { (user: $0, recovery: $1) }
    }
  }

  /// Stops the recovery of an account.
  ///
  /// - Returns: The account.
  /// - Throws: `.notFound` if none is open.
  @discardableResult
  public func cancelRecovery(_ username: Username, by actor: Actor) async throws -> User {
    try await context.write(by: actor) { work in
      try work.admit()
      guard let user = try work.records.user(named: username), try work.cancelRecovery(of: user, .operator) else {
        throw MFARefusal.notFound
      }
      return user
    }
  }
}
