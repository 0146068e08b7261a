internal import AndroidKeyAttestation
internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import JSONLog
internal import Logging
internal import Preflight

/// Reads the list of revoked Android attestation certificates again and again, and revokes keys that are in it.
///
/// A list that cannot be read does not replace the last one. That one is judged by its age: see `RevokedCertificates`.
struct StatusListKeeper: Sendable {
  let source: StatusListSource
  let refreshInterval: Duration
  let revoked: RevokedCertificates
  let store: any GateStore
  /// Keeps a downloaded list across restarts; `nil` for a list that is a file already, and for a store that cannot.
  let cache: StatusListCache?
  let metrics: AndroidMetrics
  let logger: Logger

  /// The longest pause after a failure.
  private static let retry = Duration.seconds(60)

  /// Runs until the task is cancelled.
  func run() async {
    var wasFailing = false
    while !Task.isCancelled {
      var isFailing = false
      do throws(StatusListFailure) {
        try await refresh()
      } catch {
        isFailing = true
        metrics.statusListFailed()
        if !wasFailing {
          logger.error(
            "status list not read: the last one stays in use, and reading will be retried",
            metadata: ["place": "\(source.text)", "reason": "\(error.reason)"])
        }
      }
      if wasFailing, !isFailing { logger.notice("status list read again") }
      wasFailing = isFailing
      await revokeListed()
      await Rest.about(isFailing ? min(refreshInterval, Self.retry) : refreshInterval * 0.8)
    }
  }

  /// Takes over what can be had without the network: the file, or the list of an earlier process.
  func prepare() async {
    do throws(StatusListFailure) {
      if source.isFile {
        try await refresh()
      } else if let list = try await cache?.read() {
        take(list)
      }
    } catch {
      logger.error("status list not read", metadata: ["place": "\(source.text)", "reason": "\(error.reason)"])
    }
  }

  private func refresh() async throws(StatusListFailure) {
    let (list, download) = try await source.read()
    take(list)
    if let download { await keep(download, of: list.currentAt) }
  }

  private func take(_ list: RevokedCertificates.Dated) {
    let count = revoked.current?.list.count
    revoked.replace(by: list)
    guard count != list.list.count else { return }
    logger.info(
      "status list read", metadata: ["entries": .number(list.list.count), "current_at": "\(list.currentAt)"])
  }

  private func keep(_ content: [UInt8], of instant: Timestamp) async {
    do throws(StatusListFailure) {
      try await cache?.write(content, of: instant)
    } catch {
      logger.warning("status list not kept for the next start", metadata: ["reason": "\(error.reason)"])
    }
  }

  // MARK: Revoking

  /// Revokes every registered key whose chain has a certificate of the list. Other gates of the store, and this one's
  /// sessions, learn of it as of any revocation.
  private func revokeListed() async {
    guard let list = revoked.current?.list else { return }
    do throws(StoreError) {
      var cursor: KeyID?
      repeat {
        let page = try await store.keys(
          KeySelection(platform: .android, isRevoked: false), after: cursor, limit: 500)
        for record in page.records {
          guard case .android(let key) = record.key.attestation, let entry = key.revocation(in: list) else { continue }
          guard try await store.revoke(record.key.keyID, at: .now()) else { continue }
          metrics.revokedKey()
          logger.notice(
            "key revoked by status list",
            metadata: [
              "key": "\(KeyHash(of: record.key.keyID).short)", "app": "\(record.key.app.text)",
              "serial": "\(entry.serial)", "reason": "\(entry.reason)",
            ])
        }
        cursor = page.next
      } while cursor != nil && !Task.isCancelled
    } catch {
      logger.error("keys not compared with status list: it will be retried", metadata: ["step": "\(error.step)"])
    }
  }
}
