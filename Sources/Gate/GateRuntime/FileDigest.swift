internal import ConfigurationEngine
internal import Cryptography
internal import Settings

/// Detects changed files without keeping their contents.
enum FileDigest {
  /// The SHA-256 of the file; `nil` if it cannot be read.
  static func of(_ path: String) -> [UInt8]? { of(path, limit: FileContent.limit) }

  /// - Parameter limit: The maximum size that the loader of the file accepts: a larger one would never change here.
  static func of(_ path: String, limit: Int) -> [UInt8]? {
    (try? FileContent.read(path, limit: limit)).map { SHA256.hash($0) }
  }
}

/// Digests of the secret files that a gate reads only at start.
struct SecretFiles: Sendable {
  private var digests: [(key: String, digest: [UInt8]?)] = []

  init(of settings: GateSettings) {
    if let file = settings.telemetry?.headersFile {
      digests.append(("telemetry.headers_file", FileDigest.of(file)))
    }
    if let file = settings.admin?.tokenFile { digests.append(("admin.token_file", FileDigest.of(file))) }
  }

  /// The keys whose files differ in `other`. Both values must come from settings with the same files.
  func keys(differingFrom other: SecretFiles) -> [String] {
    zip(digests, other.digests).compactMap { $0.digest == $1.digest ? nil : $0.key }
  }
}

/// Digests of the files of `tls.acme`, so that a reload sees new contents under an old name.
struct ACMEFiles: Sendable, Hashable {
  private let authority: [UInt8]?
  private let bindingKey: [UInt8]?

  init(of settings: GateSettings) {
    authority = settings.tls.acme?.caFile.flatMap(FileDigest.of)
    bindingKey = (settings.tls.acme?.binding?.keyFile).flatMap(FileDigest.of)
  }
}
