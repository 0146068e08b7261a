internal import ConfigurationEngine

/// Finds the blocks in a PEM file (RFC 7468) without decoding them.
enum PEM {
  /// Returns the labels of complete blocks, in order.
  static func labels(in bytes: [UInt8]) -> [String] {
    var labels: [String] = []
    var open: String?
    for line in bytes.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
      let line = line.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      // The lines of a large list are not decoded.
      guard line.starts(with: "-----".utf8) else { continue }
      let text = String(decoding: line, as: UTF8.self)
      if let label = label(of: text[...], after: "-----BEGIN ") {
        open = label
      } else if let label = label(of: text[...], after: "-----END "), label == open {
        labels.append(label)
        open = nil
      }
    }
    return labels
  }

  private static func label(of line: Substring, after prefix: String) -> String? {
    guard line.hasPrefix(prefix), let end = line.dropFirst(prefix.count).firstRange(of: "-----") else { return nil }
    return String(line.dropFirst(prefix.count)[..<end.lowerBound])
  }
}

/// The required content of a file that the configuration names.
enum FileContentRule: Sendable {
  case certificates
  /// Lists of revoked certificates (RFC 5280 section 5), which may be larger than other files.
  case revocationLists
  case privateKey
  /// See `DeveloperKeyFile`.
  case developerKey
  /// See `TokenFile`.
  case token
  /// See `HeaderLines`.
  case headerLines
  /// See `WebhookSecretFile`.
  case webhookSecrets
  /// A key in base64url on the first line, for external account binding.
  case base64URLKey
  /// A key for transactions with a DNS server (TSIG), as `tsig-keygen` prints it.
  case transactionKey
  /// A list of revoked certificates, which may be larger than other files.
  case statusList
  case anything

  /// Returns a description of the violation, or `nil` if the file is readable and has the required content.
  func violation(at path: String) -> String? {
    do throws(FileContentError) {
      let bytes = try FileContent.read(path, limit: limit)
      return bytes.isEmpty ? "\(path) is empty" : violation(in: bytes, of: path)
    } catch {
      return "cannot read \(path): \(error.reason)"
    }
  }

  /// The maximum size in bytes: that which the gate itself reads.
  private var limit: Int {
    switch self {
    case .statusList: 8 << 20
    case .revocationLists: 64 << 20
    default: FileContent.limit
    }
  }

  private func violation(in bytes: [UInt8], of path: String) -> String? {
    let labels = PEM.labels(in: bytes)
    switch self {
    case .anything, .statusList:
      return nil
    case .headerLines:
      return HeaderLines.fields(in: bytes) == nil ? "\(path) has no header fields, or a line that is not one" : nil
    case .webhookSecrets:
      return WebhookSecretFile.secrets(in: bytes) == nil ? "\(path) has no secrets, or a line that is not one" : nil
    case .token:
      return TokenFile.token(in: bytes) == nil ? TokenFile.reason(path) : nil
    case .base64URLKey:
      return BindingKeyFile.key(in: bytes) == nil ? "\(path) contains no key in base64url" : nil
    case .transactionKey:
      let text = String(decoding: bytes, as: UTF8.self)
      return text.contains(/key\s+"?[^"{\s]+"?\s*\{/) && text.contains(/secret\s+"?[A-Za-z0-9+\/=]+/)
        ? nil : "\(path) contains no key as tsig-keygen prints it: key \"NAME\" { algorithm …; secret …; };"
    case .certificates:
      return labels.contains("CERTIFICATE") ? nil : "\(path) contains no certificate: no PEM block CERTIFICATE"
    case .revocationLists:
      return labels.contains("X509 CRL")
        ? nil : "\(path) contains no list of revoked certificates: no PEM block X509 CRL (openssl crl -in FILE)"
    case .developerKey: return DeveloperKeyFile.violation(in: bytes, of: path)
    case .privateKey:
      if labels.contains("ENCRYPTED PRIVATE KEY")
        || String(decoding: bytes, as: UTF8.self).contains("Proc-Type: 4,ENCRYPTED")
      {
        return "the private key in \(path) is encrypted; the gate cannot ask for its passphrase"
      }
      let accepted = ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"]
      return labels.contains(where: accepted.contains)
        ? nil : "\(path) contains no private key: no PEM block PRIVATE KEY"
    }
  }
}
