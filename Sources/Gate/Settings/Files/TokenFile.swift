internal import ConfigurationEngine

/// A file with the admin server's token on its first line: at least 16 visible ASCII characters (RFC 6750 section
/// 2.1).
package enum TokenFile {
  package static let leastLength = 16
  package static let hint = "create a token with openssl rand -hex 32, in a file of mode 0600"

  package struct ReadError: Error {
    package let reason: String
  }

  /// Returns the token in the file at `path`.
  package static func token(in path: String) throws(ReadError) -> String {
    let bytes: [UInt8]
    do throws(FileContentError) {
      bytes = try FileContent.read(path)
    } catch {
      throw ReadError(reason: "cannot read \(path): \(error.reason)")
    }
    guard let token = token(in: bytes) else { throw ReadError(reason: reason(path)) }
    return token
  }

  static func token(in bytes: [UInt8]) -> String? {
    guard let line = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first,
      line.utf8.count >= leastLength, line.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { return nil }
    return String(line)
  }

  static func reason(_ path: String) -> String {
    "the first line of \(path) is not a token of \(leastLength) characters or more"
  }
}
