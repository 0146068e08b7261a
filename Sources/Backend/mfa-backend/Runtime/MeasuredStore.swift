internal import Locking
internal import MFADomain
internal import Metrics

/// A store that counts and times its calls.
struct MeasuredStore: Store {
  private let base: any Store
  private let active = LockedValue((reads: 0, writes: 0))
  private let hasWriteFault = LockedValue(false)
  private let readTimer = Self.timer("read")
  private let writeTimer = Self.timer("write")

  init(_ base: any Store) { self.base = base }

  /// The calls in progress, which include those that wait for a connection or for the writer.
  var callsInProgress: (reads: Int, writes: Int) { active.withLock { $0 } }

  /// Whether the last write that ended failed by a fault of the database, for example because its disk is full.
  var lastWriteFailed: Bool { hasWriteFault.withLock { $0 } }

  func read<Value: Sendable>(_ body: @escaping @Sendable (any Records) throws -> Value) async throws -> Value {
    active.withLock { $0.reads += 1 }
    defer { active.withLock { $0.reads -= 1 } }
    return try await measured("read", readTimer) { try await base.read(body) }
  }

  func write<Value: Sendable>(
    excluding others: WriteExclusion, _ body: @escaping @Sendable (any Records) throws -> Value
  ) async throws -> Value {
    active.withLock { $0.writes += 1 }
    defer { active.withLock { $0.writes -= 1 } }
    do {
      let value = try await measured("write", writeTimer) { try await base.write(excluding: others, body) }
      hasWriteFault.withLock { $0 = false }
      return value
    } catch let fault as MFAStoreError where !fault.isOverload {
      hasWriteFault.withLock { $0 = true }
      throw fault
    }
  }

  func authenticateHistory(with keys: HistoryKeys) { base.authenticateHistory(with: keys) }

  private static func timer(_ kind: String) -> Metrics.Timer {
    Metrics.Timer(label: "mfa_store_duration_seconds", dimensions: [("kind", kind)])
  }

  private func measured<Value>(
    _ kind: String, _ timer: Metrics.Timer, _ body: () async throws -> Value
  ) async throws -> Value {
    let start = ContinuousClock.now
    defer { timer.record(duration: ContinuousClock.now - start) }
    do {
      return try await body()
    } catch let fault as MFAStoreError {
      // A refusal of the domain is not a failure of the database.
      Counter(label: "mfa_store_failures_total", dimensions: [("kind", kind)]).increment()
      throw fault
    }
  }
}
