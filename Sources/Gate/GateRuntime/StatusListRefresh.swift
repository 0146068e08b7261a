internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import GateService
internal import Locking
internal import Logging
internal import Observability

/// Reads the list of revoked Android attestation certificates at an interval, and revokes the keys whose chains have one
/// of them.
///
/// A list that cannot be read does not replace the last one. That one is judged by its age: see `RevokedCertificates`.
struct StatusListRefresh: Sendable {
  let source: StatusListSource
  let refreshInterval: Duration
  let revoked: RevokedCertificates
  let store: any GateStore
  /// Keeps a downloaded list across restarts; `nil` if the list is a file, or if the store keeps nothing but keys.
  let cache: StatusListCache?
  let metrics: AndroidMetrics
  let announce: EventAnnouncer
  let logger: Logger

  /// When the stored copy was current, as far as this process knows.
  private let storedAt = LockedValue<Timestamp?>(nil)

  /// The longest pause after a failure.
  private static let retry = Duration.seconds(60)
  private static let copyInterval = Duration.seconds(6 * 3600)

  init(
    source: StatusListSource, refreshInterval: Duration, revoked: RevokedCertificates, store: any GateStore,
    cache: StatusListCache?, metrics: AndroidMetrics, announce: EventAnnouncer = .silent, logger: Logger
  ) {
    self.announce = announce
    self.source = source
    self.refreshInterval = refreshInterval
    self.revoked = revoked
    self.store = store
    self.cache = cache
    self.metrics = metrics
    self.logger = logger
  }

  /// Runs until the task is cancelled.
  func run() async {
    var last: StatusListFailure?
    // A failure of earlier settings says nothing about these.
    metrics.statusListRead(nil)
    while !Task.isCancelled {
      var failure: StatusListFailure?
      do throws(StatusListFailure) { try await refresh() } catch { failure = error }
      do throws(StatusListFailure) { try await revokeListed() } catch { failure = failure ?? error }
      if Task.isCancelled { break }
      report(failure, after: last)
      last = failure
      await Rest.about(failure == nil ? refreshInterval * 0.8 : min(refreshInterval, Self.retry))
    }
  }

  /// Counts each failure, and logs where one begins and ends.
  private func report(_ failure: StatusListFailure?, after last: StatusListFailure?) {
    metrics.statusListRead(failure)
    if let failure, last == nil {
      logger.error(
        "status list not read or not compared: the last one stays in use, and this will be retried",
        metadata: ["place": "\(source.text)", "reason": "\(failure.reason)"])
    } else if failure == nil, last != nil {
      logger.notice("status list read and compared again", metadata: ["place": "\(source.text)"])
    }
  }

  /// Reads what needs no network: the file, or the list of an earlier process.
  func prepare() async {
    do throws(StatusListFailure) {
      if source.isFile {
        try await refresh()
      } else if let list = try await cache?.read() {
        revoked.standIn(list)
      }
    } catch {
      logger.error("status list not read", metadata: ["place": "\(source.text)", "reason": "\(error.reason)"])
    }
  }

  private func refresh() async throws(StatusListFailure) {
    let (list, download) = try await source.read()
    let isNew = revoked.current?.list != list.list
    take(list)
    let isOld = Self.isOld(copyOf: storedAt.withLock { $0 }, at: list.currentAt)
    if let download, isNew || isOld { await writeCopy(download, of: list.currentAt) }
  }

  /// Whether the copy for the next start, which judges it by its date, should be written again: also after the clock was
  /// set back. Writing it at each refresh would wake every gate of the store.
  ///
  /// - Parameter instant: When the copy was current; `nil` if this process has written none.
  static func isOld(copyOf instant: Timestamp?, at now: Timestamp) -> Bool {
    instant.map { !(.zero..<copyInterval).contains(now.since($0)) } ?? true
  }

  private func take(_ list: RevokedCertificates.Dated) {
    let last = revoked.current?.list
    revoked.replace(by: list)
    guard last != list.list else { return }
    logger.info(
      "status list read", metadata: ["entries": .number(list.list.count), "current_at": "\(list.currentAt)"])
  }

  private func writeCopy(_ content: [UInt8], of instant: Timestamp) async {
    do throws(StatusListFailure) {
      try await cache?.write(content, of: instant)
      storedAt.withLock { $0 = instant }
    } catch {
      logger.warning("status list not stored for the next start", metadata: ["reason": "\(error.reason)"])
    }
  }

  // MARK: Revoking

  /// Revokes every registered key whose chain has a certificate of the list. Other gates of the store, and this one's
  /// sessions, learn of it as of any revocation.
  ///
  /// A key whose row is damaged cannot be compared. It is logged once and counted, and the other keys are compared. A
  /// gate that reads its row refuses its proofs.
  private func revokeListed() async throws(StatusListFailure) {
    guard let list = revoked.current?.list else { return }
    do throws(StoreError) {
      var unreadable: Set<KeyID> = []
      var cursor: KeyID?
      repeat {
        let page = try await store.keys(
          KeySelection(platform: .android, isRevoked: false), after: cursor, limit: 500)
        for key in page.unreadable where unreadable.insert(key.keyID).inserted { report(key) }
        for record in page.records {
          guard let revocation = AndroidVerification.Revocation(of: record.key, by: list),
            try await store.revoke(record.key.keyID, at: .now())
          else { continue }
          Self.report(revocation, metrics, announce, logger)
        }
        cursor = page.next
      } while cursor != nil && !Task.isCancelled
      if !Task.isCancelled { metrics.unreadableKeys = unreadable }
    } catch {
      throw StatusListFailure(reason: "the keys cannot be compared with the list: \(error.step): \(error)")
    }
  }

  /// Reports a revocation by the list, in the metrics, to webhooks and in the log.
  static func report(
    _ revocation: AndroidVerification.Revocation, _ metrics: AndroidMetrics, _ announce: EventAnnouncer,
    _ logger: Logger
  ) {
    metrics.revokedKey()
    announce(.revoked(key: revocation.key.text, by: .statusList))
    logger.notice(
      "key revoked by status list",
      metadata: [
        "key": "\(revocation.key.short)", "app": "\(revocation.app.text)", "serial": "\(revocation.serial)",
        "reason": "\(revocation.reason)",
      ])
  }

  /// Logs a key that cannot be compared with the list, unless an earlier comparison has found it.
  private func report(_ key: UnreadableKey) {
    guard metrics.unreadableKeys.insert(key.keyID).inserted else { return }
    logger.error(
      "key not compared with the status list: its row is damaged",
      metadata: [
        "key": "\(KeyHash(of: key.keyID).short)", "reason": "\(key.reason)",
        "advice": "run sallyport store check; a backup may have the row intact",
      ])
  }
}
