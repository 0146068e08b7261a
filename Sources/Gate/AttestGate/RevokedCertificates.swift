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
    var source: String?
    var current: Dated?
  }

  private let state: LockedValue<State>

  /// Certificates whose revocation is not checked.
  public static let notChecked = RevokedCertificates(maximumAge: nil)

  /// - Parameter maximumAge: How old a list may be before no chain can be judged by it; `nil` to check none.
  public init(maximumAge: Duration?) { state = LockedValue(State(maximumAge: maximumAge)) }

  /// Starts or stops to check. Lists of another source are forgotten: they would be judged by other dates.
  ///
  /// - Parameter source: A text that is the same for the same source.
  public func configure(maximumAge: Duration?, source: String?) {
    state.withLock { state in
      if state.source != source { state.current = nil }
      (state.maximumAge, state.source) = (maximumAge, source)
    }
  }

  /// Replaces the list by one that was just read from the source. Every such list counts, whatever its date: the
  /// operator may have corrected the last one.
  public func replace(by list: Dated) { state.withLock { $0.current = list } }

  /// Uses a list of an earlier process until the first one is read.
  public func standIn(_ list: Dated) {
    state.withLock { state in
      if state.current == nil { state.current = list }
    }
  }

  /// The present list, however old it is.
  public var current: Dated? { state.withLock(\.current) }

  /// Where the list comes from, how old it may be and the present list; `nil` if none is configured.
  public var configured: (source: String?, maximumAge: Duration, current: Dated?)? {
    state.withLock { state in state.maximumAge.map { (state.source, $0, state.current) } }
  }

  /// The list to judge a new chain by; `nil` if none is configured.
  ///
  /// - Throws: `.statusListUnavailable` if a list is configured, and none is there that is new enough.
  func list(at now: Timestamp) throws(Denial) -> AndroidStatusList? {
    let (maximumAge, current) = state.withLock { state -> (Duration?, Dated?) in
      // A list from a clock that was ahead would not become too old. Its age counts from now on.
      if let current = state.current, now < current.currentAt { state.current = Dated(current.list, currentAt: now) }
      return (state.maximumAge, state.current)
    }
    guard let maximumAge else { return nil }
    guard let current else { throw .statusListUnavailable(age: nil) }
    let age = now.since(current.currentAt)
    guard age <= maximumAge else { throw .statusListUnavailable(age: age) }
    return current.list
  }
}
