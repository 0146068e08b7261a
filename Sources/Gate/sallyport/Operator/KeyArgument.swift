internal import ArgumentParser
internal import GateService

/// Identifies a key by its hash, a prefix of the hash, or the device's key id in base64.
enum KeyArgument {
  static let help: ArgumentHelp =
    "A key's hash, its first 6 or more characters, or the device's key id in base64. Write -- before a leading dash."

  /// Returns the hash or hash prefix that `text` names.
  static func name(_ text: String) throws(ValidationError) -> KeyName {
    guard let name = KeyName(any: text) else {
      throw ValidationError(
        "name a key by 6 or more characters of its hash, or by its key id: base64 of 32 bytes")
    }
    return name
  }
}
