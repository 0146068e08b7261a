internal import ACME
internal import AttestGate

/// Keeps certificates in a store that gates share.
struct StoreDocuments: CertificateStorage {
  let documents: any SharedDocuments
  let feed: any ChangeFeed

  var isShared: Bool { true }

  func content(of document: CertificateDocument) async throws(ACMEError) -> [UInt8]? {
    try await Self.storing { () throws(StoreError) in try await documents.document(Self.name(of: document)) }
  }

  func write(_ content: [UInt8]?, to document: CertificateDocument) async throws(ACMEError) {
    try await Self.storing { () throws(StoreError) in
      try await documents.setDocument(Self.name(of: document), to: content)
    }
  }

  func lock(_ scope: String) async throws(ACMEError) -> Bool {
    try await Self.storing { () throws(StoreError) in try await documents.lockDocuments("acme/\(scope)") }
  }

  func unlock(_ scope: String) async { try? await documents.unlockDocuments("acme/\(scope)") }

  func notices() -> AsyncStream<Void> { feed.notices() }

  private static func name(of document: CertificateDocument) -> String { "acme/\(document.name)" }

  private static func storing<Value>(
    _ body: () async throws(StoreError) -> Value
  ) async throws(ACMEError) -> Value {
    do throws(StoreError) { return try await body() } catch { throw .storage(reason: "\(error.step): \(error)") }
  }
}

/// The storage of a store that cannot keep certificates: every access fails.
struct NoDocuments: CertificateStorage {
  let place: String

  var isShared: Bool { true }
  private var failure: ACMEError { .storage(reason: "the store at \(place) keeps no certificates") }

  func content(of document: CertificateDocument) async throws(ACMEError) -> [UInt8]? { throw failure }
  func write(_ content: [UInt8]?, to document: CertificateDocument) async throws(ACMEError) { throw failure }
  func lock(_ scope: String) async throws(ACMEError) -> Bool { throw failure }
  func unlock(_ scope: String) async {}
  func notices() -> AsyncStream<Void> { AsyncStream { _ in } }
}
