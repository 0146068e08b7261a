internal import ByteCoding

/// Records in the history that a caller used what is bound to another app instance, or asked for an operation that it
/// has no right to. Such a refusal is an error of a unit of work, which rolls back whatever was written until then.
///
/// Other refusals are recorded where they are decided, or are not recorded.
public struct RefusedAccess: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// Records `refusal` if it is one of these.
  ///
  /// - Throws: `MFAStoreError` if it cannot be written.
  public func note(_ refusal: MFARefusal, of operation: String, by caller: Caller) async throws {
    let event: AuditEvent
    let bound: String?
    switch refusal {
    case .boundElsewhere(let account): (event, bound) = (.bindingRefused, account)
    case .forbidden: (event, bound) = (.accessRefused, nil)
    default: return
    }
    try await context.write(by: caller) { work in
      let account = try bound ?? caller.session.flatMap { try work.records.user($0.userID)?.username.key }
      try work.note(event, account: account, ["operation=\(operation)"])
    }
  }
}
