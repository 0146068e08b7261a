internal import Cryptography
internal import Settings

/// What a file holds, to be compared and not to be known.
enum FileDigest {
  /// The SHA-256 of the file; `nil` if it cannot be read.
  static func of(_ path: String) -> [UInt8]? {
    (try? FileContent.read(path)).map { SHA256.hash($0) }
  }
}

/// The files with secrets that a gate reads when it starts and never again, as they are at a moment.
struct SecretFiles: Sendable {
  private var digests: [(key: String, digest: [UInt8]?)] = []

  init(of settings: GateSettings) {
    if case .postgres(_, let file?) = settings.store { digests.append(("store.password_file", FileDigest.of(file))) }
    if let file = settings.admin?.tokenFile { digests.append(("admin.token_file", FileDigest.of(file))) }
  }

  /// The keys whose files hold something else in `other`, which is of the same settings.
  func keys(differingFrom other: SecretFiles) -> [String] {
    zip(digests, other.digests).compactMap { $0.digest == $1.digest ? nil : $0.key }
  }
}
