internal import ByteCoding
internal import Foundation

/// What a user's devices are told, and told again after they were away.
public struct Notices: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// How many are told at once.
  public static let most = 100

  public struct NoticePage: Sendable {
    public let notices: [Notice]
    /// The number of the last of them, or of the last one that there is if all before were to be passed over.
    public let upTo: Int64
    public let isSessionLive: Bool
    /// The sign-ins that wait for this session's approval; none while it lacks its own second factor.
    public let pushes: [PushChallenge]
  }

  /// - Throws: unless the caller's session lives and is the caller's own.
  public func admit(_ caller: Caller) async throws {
    let now = context.clock.now()
    try await context.store.read { _ = try $0.session(of: caller, scope: .pending, at: now) }
  }

  /// What is new after `sequence`; `nil` for what comes from now on. A session that is not full is told nothing but
  /// whether it lives, and what it missed once it is full. Another app instance's session is as one that has ended.
  public func news(
    for proof: SessionProof, boundTo binding: Binding, after sequence: Int64?
  ) async throws -> NoticePage {
    let now = context.clock.now()
    return try await context.store.read { records in
      let session = try records.session(proof.sessionID)
      let isLive = session?.isLive(at: now) == true && session?.binding == binding
      let isFull = isLive && session?.scope == .full
      let pushes = isFull ? try records.pendingPushes(for: proof, at: now) : []
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
    let now = context.clock.now()
    return try await context.store.read { records in
      let (_, user) = try records.session(of: caller, at: now)
      return try records.notices(of: user.id, after: sequence, atMost: Self.most)
    }
  }
}
