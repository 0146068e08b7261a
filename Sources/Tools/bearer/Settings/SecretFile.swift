internal import ConfigurationEngine

/// Why a file with a secret is not used.
struct SecretFileError: Error {
  /// A sentence with the path.
  let reason: String
}

/// A file with a secret or a private key.
enum SecretFile {
  /// The text of the file at `path`, which only its owner may read and change.
  static func text(_ path: String) throws(SecretFileError) -> String {
    let file: (bytes: [UInt8], permissions: UInt32, owner: UInt32)
    do throws(FileContentError) { file = try FileContent.readWithStatus(path) } catch {
      throw SecretFileError(reason: "cannot read \(path): \(error.reason)")
    }
    guard file.permissions & 0o066 == 0 else {
      throw SecretFileError(
        reason: "group or others can read or change \(path); run chmod 600, and replace what they may know")
    }
    guard let text = String(validating: file.bytes, as: UTF8.self) else {
      throw SecretFileError(reason: "\(path) is not valid UTF-8")
    }
    return text
  }
}
