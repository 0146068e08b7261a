internal import ByteCoding
internal import Foundation

/// The notices of a user, for the user's devices: while they are connected, and again after they were away.
public struct Notices: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The maximum number of notices in one page.
  public static let most = 100

  /// New notices and the state of the session that reads them.
  public struct NoticePage: Sendable {
    public let notices: [Notice]
    /// The number of the last notice of the page; of the user's last notice if earlier ones are to be skipped.
    public let upTo: Int64
    public let isSessionLive: Bool
    /// The pushes that the session may answer; empty until the session has given its own second factor.
    public let pushes: [PushChallenge]
  }

  /// Checks that the caller's session is live and belongs to the caller.
  ///
  /// - Throws: what `UnitOfWork.session` throws.
  public func admit(_ caller: Caller) async throws {
    try await context.read(by: caller) { _ = try $0.session(scope: .pending) }
  }

  /// The notices after `sequence`; `nil` for those from now on.
  ///
  /// A session that is not full only learns whether it is live, and gets what it missed once it is full. A session of
  /// another app instance is treated as ended.
  public func news(
    for proof: SessionProof, boundTo binding: Binding, after sequence: Int64?
  ) async throws -> NoticePage {
    try await context.read(by: NamedActor.backend) { work in
      let records = work.records
      let sequence = try records.knownNotice(sequence, of: proof.userID)
      let session = try records.session(proof.sessionID)
      let isLive = session?.isLive(at: work.now) == true && session?.binding == binding
      let isFull = isLive && session?.scope == .full
      let pushes = isFull ? try work.pendingPushes(for: proof) : []
      guard let sequence, isFull else {
        if let sequence { return NoticePage(notices: [], upTo: sequence, isSessionLive: isLive, pushes: []) }
        return NoticePage(
          notices: [], upTo: try records.lastNotice(of: proof.userID), isSessionLive: isLive, pushes: pushes)
      }
      let notices = try records.notices(of: proof.userID, after: sequence, atMost: Self.most)
      return NoticePage(
        notices: notices, upTo: notices.last?.sequence ?? sequence, isSessionLive: isLive, pushes: pushes)
    }
  }

  /// The notices after `sequence`, for the bearer of a full session.
  public func list(after sequence: Int64, for caller: Caller) async throws -> [Notice] {
    try await context.read(by: caller) { work in
      let user = try work.session().user.id
      let known = try work.records.knownNotice(sequence, of: user) ?? 0
      return try work.records.notices(of: user, after: known, atMost: Self.most)
    }
  }
}

extension NoticeRecords {
  /// The number of the last notice that a client knows, as far as it is one of this store: after a restore the client may
  /// know later ones, whose numbers are given again. Then it gets all.
  fileprivate func knownNotice(_ sequence: Int64?, of user: UUID) throws -> Int64? {
    guard let sequence else { return nil }
    return try sequence > lastNotice(of: user) ? 0 : sequence
  }
}
