public import ByteCoding
internal import Locking

/// The number of an identity of the gate (`jti`), and how long it must be remembered as used.
public struct IdentityNumber: Sendable, Hashable {
  public let id: String
  /// When no clock within the permitted difference accepts the identity any more.
  public let end: Timestamp

  public init(id: String, end: Timestamp) {
    self.id = id
    self.end = end
  }
}

/// The identity was used before: by an earlier request, at this backend or another one on the database.
public struct IdentityUsedBefore: Error, Sendable, Hashable {
  public init() {}
}

/// The identity of a request that may have effects. The first write of the request records its number.
///
/// The record is a part of that write's transaction, and not of the write's own changes: it is kept if the write
/// refuses, and if its changes are rolled back. So whatever a request has done, it has done once, and a request that
/// was refused cannot be sent again.
///
/// A request whose operation writes nothing, because it was refused before, calls `settle(in:)` before it answers.
public final class UnspentIdentity: Sendable {
  /// The identity of the request that this task serves. A store takes it with the task's first write.
  @TaskLocal public static var current: UnspentIdentity?

  private enum State {
    case unspent
    /// A write is recording it.
    case taken
    case spent
    case usedBefore
    /// The write that was to record it has failed. It may have been committed all the same.
    case uncertain
  }

  private let number: IdentityNumber
  private let state = LockedValue(State.unspent)

  public init(_ number: IdentityNumber) { self.number = number }

  /// Takes the number for a write that begins; `nil` if an earlier write has recorded it.
  ///
  /// - Throws: `IdentityUsedBefore` if an earlier write has found that it was used; `MFAStoreError` while another write
  ///   of the request records it, since that write could still find that it was used.
  public func take() throws -> IdentityNumber? {
    try state.withLock { state in
      switch state {
      case .unspent, .uncertain:
        state = .taken
        return number
      case .spent: return nil
      case .usedBefore: throw IdentityUsedBefore()
      case .taken: throw MFAStoreError(reason: "a request began two writes at once")
      }
    }
  }

  /// The end of a write that has taken the number.
  public enum Outcome: Sendable {
    /// The number is recorded.
    case recorded
    /// The number was recorded by an earlier request.
    case usedBefore
    /// The write failed, or it is unknown whether it was committed.
    case failed
  }

  /// Ends a write that has taken the number.
  public func end(_ outcome: Outcome) {
    state.withLock { state in
      switch outcome {
      case .recorded: state = .spent
      case .usedBefore: state = .usedBefore
      case .failed: state = .uncertain
      }
    }
  }

  /// Records the number unless a write of the request has. Call it before the request is answered, whatever the answer.
  ///
  /// - Throws: `IdentityUsedBefore`; `MFAStoreError` if the number cannot be recorded.
  public func settle(in store: any Store) async throws {
    let before = state.withLock { $0 }
    switch before {
    case .spent: return
    case .usedBefore: throw IdentityUsedBefore()
    case .taken: throw MFAStoreError(reason: "a request ended before its write")
    case .unspent: try await Self.$current.withValue(self) { try await store.write(excluding: .rows) { _ in } }
    // The request has failed already. If its write was committed, the number is found to be recorded.
    case .uncertain: try? await Self.$current.withValue(self) { try await store.write(excluding: .rows) { _ in } }
    }
  }
}
