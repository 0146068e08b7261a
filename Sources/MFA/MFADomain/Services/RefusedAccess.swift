internal import ByteCoding

/// Keeps in the history who used what belongs to another app instance, or asked for what they have no right to. Such a
/// refusal is thrown from the middle of whatever was asked, and takes back all that was written until then.
///
/// Other refusals stand in the history where they are decided, or are a matter of course.
public struct RefusedAccess: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// - Throws: `StoreFault` if it cannot be kept.
  public func note(_ refusal: MFARefusal, of operation: String, by caller: Caller) async throws {
    let event: AuditEvent
    let bound: String?
    switch refusal {
    case .boundElsewhere(let account): (event, bound) = (.bindingRefused, account)
    case .forbidden: (event, bound) = (.accessRefused, nil)
    default: return
    }
    let now = context.clock.now()
    try await context.store.write { records in
      let account = try bound ?? caller.session.flatMap { try records.user($0.userID)?.username.key }
      try records.note(event, by: caller, account: account, ["operation=\(operation)"], at: now)
    }
  }
}
