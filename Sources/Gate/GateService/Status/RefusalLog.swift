internal import AttestGate
public import ByteCoding
internal import Wire
internal import Locking
internal import Transport

/// One refusal, with what the log line about it has.
public struct RefusalRecord: Sendable {
  /// Increases with each refusal, also over restarts of the gate.
  public internal(set) var number: UInt64
  public let at: Timestamp
  /// The id of the request, as in the log and in the client's `X-Request-Id`.
  public let requestID: String
  public let code: String
  /// The status of the answer; `nil` if monitor mode admitted the client.
  public let status: Int?
  public let step: String
  public let detail: String?
  /// The text for the client.
  public let text: String
  /// What the client can do next; `nil` if the upstream refused.
  public let advice: String?
  /// The hash of the key that the client claimed. It may not be registered.
  public let key: String?
  public let app: String?
  /// The client's address without its port.
  public let address: String
  public let endpoint: String?
  /// The path without the query.
  public let path: String?
}

/// The last refusals, in the gate's memory.
///
/// Clients choose how many there are and what their paths contain, so numbers and lengths are bounded: at most
/// `capacity` records of a few hundred bytes each, and when the log is full, an address that has a quarter of it
/// replaces its own records instead of those of others.
public final class RefusalLog: Sendable {
  /// The maximum number of records.
  public static let capacity = 1000
  /// The number of records of one address from which on a full log replaces its own ones.
  static let share = capacity / 4
  /// The maximum bytes of a path, a detail or a text.
  static let mostBytes = 256

  private struct State {
    var records = RefusalRing(capacity: RefusalLog.capacity, share: RefusalLog.share)
    var last: UInt64
  }

  private let state: LockedValue<State>
  private let clock: WallClock

  public init(clock: WallClock = .system) {
    self.clock = clock
    // A gate refuses less than a million requests a millisecond, so a new process begins above all earlier numbers.
    state = LockedValue(State(last: UInt64(clamping: clock.now().milliseconds) &* 1000))
  }

  /// Returns the records, the newest first.
  public var records: [RefusalRecord] {
    state.withLock(\.records.newestFirst).map { number, entry in
      var record = entry.record
      record.number = number
      return record
    }
  }

  /// The number of the newest record, or the number before the first one.
  public var lastNumber: UInt64 { state.withLock(\.last) }

  /// The client and the request of a refusal.
  struct Subject {
    let requestID: String
    let address: SocketAddress
    let endpoint: String?
    let path: String?
    var app: AppName?
    var key: KeyHash?
  }

  /// Records that `subject` was refused, or would have been if `status` is `nil`.
  @discardableResult
  func note(_ report: RefusalReport, status: Int?, _ subject: Subject) -> RefusalRing.Entry {
    note(
      code: report.code.rawValue, status: status, step: report.step, detail: report.detail, text: report.text,
      advice: report.code.definition.advice.rawValue, subject)
  }

  /// Records that an upstream refused the opening handshake of `subject`, which the gate had admitted.
  func noteUpstreamRefusal(status: Int, step: String, _ subject: Subject) -> RefusalRing.Entry {
    note(
      code: "upstream_refused", status: status, step: step, detail: nil,
      text: "The server of the app refused the opening handshake", advice: nil, subject)
  }

  private func note(
    code: String, status: Int?, step: String, detail: String?, text: String, advice: String?, _ subject: Subject
  ) -> RefusalRing.Entry {
    let at = clock.now()
    let (path, detail, text) = (
      subject.path.map(Self.bounded), detail.map(Self.bounded), Self.bounded(text)
    )
    let block = AddressBlock(subject.address)
    // Made before the lock, which refusals of all event loops share. The number is given within it.
    let entry = RefusalRing.Entry(
      RefusalRecord(
        number: 0, at: at, requestID: subject.requestID, code: code, status: status, step: step, detail: detail,
        text: text, advice: advice, key: subject.key?.text, app: subject.app?.text, address: subject.address.host,
        endpoint: subject.endpoint, path: path))
    // The replaced entry is released after the lock.
    _ = state.withLock { state in
      state.last &+= 1
      return state.records.append(entry, numbered: state.last, of: block)
    }
    return entry
  }

  /// Returns the beginning of `text`, with an ellipsis if something is missing.
  private static func bounded(_ text: String) -> String {
    guard text.utf8.count > mostBytes else { return text }
    return String(decoding: text.utf8.prefix(mostBytes), as: UTF8.self) + "…"
  }
}
