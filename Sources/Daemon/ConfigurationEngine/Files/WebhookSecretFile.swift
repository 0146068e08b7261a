internal import ByteCoding

/// A file with the secrets that a receiver of webhooks shares with a program: one on each line, in the form of the
/// Standard Webhooks specification. Empty lines and lines that begin with `#` are skipped.
public enum WebhookSecretFile {
  /// For the hint of an error.
  public static let hint =
    "write one secret on each line, whsec_ and the base64 of 24 to 64 bytes: echo whsec_$(openssl rand -base64 32)"
  private static let prefix = "whsec_"
  private static let most = 8

  /// Returns the secrets of the file at `path`; `nil` also if it cannot be read.
  public static func secrets(ofFile path: String) -> [[UInt8]]? { (try? FileContent.read(path)).flatMap(secrets) }

  /// Returns the secrets, 24 to 64 bytes each; `nil` without one, with more than eight, and with a line that is none.
  public static func secrets(in bytes: [UInt8]) -> [[UInt8]]? {
    var secrets: [[UInt8]] = []
    for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
      let text = line.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
      guard !text.isEmpty, !text.hasPrefix("#") else { continue }
      guard text.hasPrefix(prefix), let secret = Base64.decode(text.dropFirst(prefix.count)),
        (24...64).contains(secret.count), secrets.count < most
      else { return nil }
      secrets.append(secret)
    }
    return secrets.isEmpty ? nil : secrets
  }
}
