internal import AppAttest
internal import ArgumentParser
internal import AttestGate
internal import GateService

/// What an operator calls a key: its hash, the beginning of it, or the base64 by which the device knows it.
enum KeyArgument {
  static let help: ArgumentHelp =
    "The hash of a key, its first 6 characters or more, or the device's key id in base64. Behind -- if it begins with a dash."

  /// The hash or the beginning of one that `text` stands for.
  static func name(_ text: String) throws(ValidationError) -> KeyName {
    guard let name = KeyID(base64: text).flatMap({ KeyName(KeyHash(of: $0).text) }) ?? KeyName(text) else {
      throw ValidationError(
        "a key is named by 6 or more characters of its hash, or by its key id, the base64 of 32 bytes")
    }
    return name
  }
}
