internal import AppAttest
public import AttestGate
public import ByteCoding
internal import Cryptography

/// Exports every key of a store as JSON Lines, page by page, however many there are.
///
/// The export is not a snapshot: each key has the state at the time when its page was read. A later export and import
/// adds the stricter values that were missed.
public struct KeyExport: Sendable {
  /// The number of keys that one store call reads.
  static let page = 500

  private let store: any GateStore
  private let clock: WallClock

  public init(of store: any GateStore, clock: WallClock = .system) {
    self.store = store
    self.clock = clock
  }

  /// Passes the lines to `sink` in chunks, and returns the number of exported keys.
  ///
  /// - Parameter progress: Called with the number of written keys and the approximate total.
  public func run(
    progress: (_ count: Int, _ total: Int) -> Void = { _, _ in }, to sink: ([UInt8]) throws -> Void
  ) async throws -> Int {
    let digest = RunningSHA256()
    func write(_ bytes: [UInt8]) throws {
      digest.update(bytes)
      try sink(bytes)
    }
    let total = try await store.count()
    try write(
      LineJSON.bytes(
        of: HeaderLine(
          format: ExportFormat.name, version: ExportFormat.version, store: store.place,
          exportedAt: clock.now().description, count: total)))
    var count = 0
    var cursor: KeyID?
    while true {
      let entries = try await store.entries(after: cursor, limit: Self.page)
      guard let last = entries.last else { break }
      try write(entries.flatMap { LineJSON.bytes(of: KeyLine($0)) })
      cursor = last.record.key.keyID
      count += entries.count
      progress(count, max(total, count))
    }
    try sink(LineJSON.bytes(of: TrailerLine(count: count, sha256: Hex.encode(digest.finish()))))
    return count
  }
}
