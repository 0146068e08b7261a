internal import AttestGate
internal import ByteCoding
internal import ConfigurationEngine
internal import Glibc
internal import ProcessSignals
internal import Settings

/// Keeps the last downloaded status list across restarts: in a shared store, or in a file next to the SQLite file.
///
/// The first line has the time at which the list was current, in RFC 3339, and its URL; the list follows as it was
/// downloaded.
struct StatusListCache: Sendable {
  enum Place: Sendable {
    case file(path: String)
    case documents(any SharedDocuments)
  }

  let place: Place
  /// The URL of the list. A list of another one is not used.
  let url: String

  private static let document = "android/status-list"
  private static let longestLine = 4096

  init(place: Place, url: String) { (self.place, self.url) = (place, url) }

  /// Returns `nil` for a store that keeps nothing but keys.
  init?(_ settings: GateSettings, _ store: any GateStore, url: String) {
    self.url = url
    switch settings.store {
    case .sqlite(let path):
      let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
      place = .file(path: "\(folder)/android-status-list")
    case .postgres:
      guard let documents = store as? any SharedDocuments else { return nil }
      place = .documents(documents)
    }
  }

  /// Returns `nil` if nothing was kept.
  func read() async throws(StatusListFailure) -> RevokedCertificates.Dated? {
    guard let content = try await content() else { return nil }
    guard let end = content.prefix(Self.longestLine).firstIndex(of: UInt8(ascii: "\n")) else { throw Self.damaged }
    let words = String(decoding: content[..<end], as: UTF8.self).split(separator: " ", maxSplits: 1)
    guard words.count == 2, let instant = Timestamp(rfc3339: String(words[0])) else { throw Self.damaged }
    guard words[1] == url else { return nil }
    // The clock may have been ahead when the list was stored.
    return RevokedCertificates.Dated(
      try StatusListSource.parsed(Array(content[(end + 1)...])), currentAt: min(instant, .now()))
  }

  private static let damaged = StatusListFailure(
    reason: "the stored list is damaged: no time and URL on its first line")

  func write(_ list: [UInt8], of instant: Timestamp) async throws(StatusListFailure) {
    let content = Array("\(instant) \(url)\n".utf8) + list
    switch place {
    case .documents(let documents):
      do throws(StoreError) { try await documents.setDocument(Self.document, to: content) } catch {
        throw StatusListFailure(reason: "\(error)")
      }
    case .file(let path):
      do {
        let file = try TemporaryFile(for: path)
        try file.write(content)
        try file.place()
      } catch {
        let number = (error as? TemporaryFile.WriteError)?.number ?? EIO
        throw StatusListFailure(reason: "\(path): \(String(cString: strerror(number)))")
      }
    }
  }

  private func content() async throws(StatusListFailure) -> [UInt8]? {
    switch place {
    case .documents(let documents):
      do throws(StoreError) { return try await documents.document(Self.document) } catch {
        throw StatusListFailure(reason: "\(error)")
      }
    case .file(let path):
      guard access(path, F_OK) == 0 else { return nil }
      do throws(FileContentError) { return try FileContent.read(path, limit: 9 << 20) } catch {
        throw StatusListFailure(reason: "\(path): \(error.reason)")
      }
    }
  }
}
