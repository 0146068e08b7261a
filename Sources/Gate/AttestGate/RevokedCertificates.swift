public import AndroidKeyAttestation
public import ByteCoding
internal import Locking

/// The revoked attestation certificates of Android devices, as the gate knows them now. It is refreshed while it is
/// used.
public final class RevokedCertificates: Sendable {
  /// A status list and the time at which it was current.
  public struct Dated: Sendable {
    public let list: AndroidStatusList
    public let currentAt: Timestamp

    public init(_ list: AndroidStatusList, currentAt: Timestamp) {
      self.list = list
      self.currentAt = currentAt
    }
  }

  private struct State {
    /// How old a list may be; `nil` if no list is configured.
    var maximumAge: Duration?
    var current: Dated?
  }

  private let state: LockedValue<State>

  /// Certificates whose revocation is not checked.
  public static let notChecked = RevokedCertificates(maximumAge: nil)

  /// - Parameter maximumAge: How old a list may be before no chain can be judged by it; `nil` to check none.
  public init(maximumAge: Duration?) { state = LockedValue(State(maximumAge: maximumAge)) }

  /// Begins to check, or ends it.
  public func configure(maximumAge: Duration?) {
    state.withLock { state in
      state.maximumAge = maximumAge
      if maximumAge == nil { state.current = nil }
    }
  }

  /// Takes over a newer list. An older one than the present one is ignored.
  public func replace(by list: Dated) {
    state.withLock { state in
      if let current = state.current, current.currentAt > list.currentAt { return }
      state.current = list
    }
  }

  /// The present list, however old it is.
  public var current: Dated? { state.withLock(\.current) }

  /// The list to judge a new chain by; `nil` if none is configured.
  ///
  /// - Throws: `.statusListUnavailable` if a list is configured, and none is there that is new enough.
  func list(at now: Timestamp) throws(Denial) -> AndroidStatusList? {
    let (maximumAge, current) = state.withLock { ($0.maximumAge, $0.current) }
    guard let maximumAge else { return nil }
    guard let current else { throw .statusListUnavailable(age: nil) }
    let age = now.since(current.currentAt)
    guard age <= maximumAge else { throw .statusListUnavailable(age: age) }
    return current.list
  }
}
