internal import AppAttest
internal import ArgumentParser
internal import AttestGate
internal import GateService

/// What an operator calls a key: its hash, the beginning of it, or the base64 by which the device knows it.
struct KeyArgument: ExpressibleByArgument {
  static let help: ArgumentHelp =
    "The hash of a key, its first 6 characters or more, or the device's key id in base64. Behind -- if it begins with a dash."

  /// A hash or the beginning of one.
  let name: KeyName

  init?(argument: String) {
    guard let name = KeyID(base64: argument).flatMap({ KeyName(KeyHash(of: $0).text) }) ?? KeyName(argument) else {
      return nil
    }
    self.name = name
  }
}
