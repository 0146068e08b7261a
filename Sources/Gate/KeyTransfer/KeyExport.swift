internal import AppAttest
public import AttestGate
public import ByteCoding
internal import Cryptography

/// Every key of a store as lines of JSON, a page at a time, however many there are.
///
/// It is no snapshot: keys that are registered or used meanwhile are in it as they were when their page was read.
/// Import it again afterwards and nothing that is stricter is lost.
public struct KeyExport: Sendable {
  /// Keys that are read in one call of the store.
  static let page = 500

  private let store: any GateStore
  private let clock: WallClock

  public init(of store: any GateStore, clock: WallClock = .system) {
    self.store = store
    self.clock = clock
  }

  /// Gives the lines to `sink`, some at a time, and says how many keys they hold.
  ///
  /// - Parameter progress: told how many keys are written, of about how many.
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
