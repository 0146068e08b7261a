import Foundation
import SecretService

/// Calls `DesktopKeyring` once: the session bus is named by the environment, so a test needs a process for each bus.
///
///     keyring-probe check|lookup|remove|store [NAME=VALUE …]
///
/// `lookup` prints the secret in base64, `store` reads it from standard input, `remove` prints whether there was one. A
/// failure is printed as the case of the error, and the status is 1. The variable `LIMIT` sets the time limit, in
/// seconds.
@main
struct KeyringProbe {
  static func main() {
    let arguments = CommandLine.arguments.dropFirst()
    var attributes: [String: String] = [:]
    for argument in arguments.dropFirst() {
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      attributes[parts[0]] = parts.count == 2 ? parts[1] : ""
    }
    let limit = ProcessInfo.processInfo.environment["LIMIT"].flatMap(Int.init)
    let keyring = DesktopKeyring(limit: limit.map { .seconds($0) })
    do throws(SecretServiceError) {
      switch arguments.first {
      case "check":
        try keyring.checkAvailability()
        print("available")
      case "lookup": print(try keyring.secret(for: attributes).map { Data($0).base64EncodedString() } ?? "none")
      case "remove": print(try keyring.remove(for: attributes) ? "removed" : "none")
      case "store":
        let secret = [UInt8](FileHandle.standardInput.readDataToEndOfFile())
        try keyring.store(secret, label: "Test of sallyport", for: attributes)
        print("stored")
      default: exit(64)
      }
    } catch {
      print(name(of: error))
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(1)
    }
  }

  private static func name(of error: SecretServiceError) -> String {
    switch error {
    case .unavailable: "unavailable"
    case .locked: "locked"
    case .dismissed: "dismissed"
    case .timedOut: "timed out"
    case .invalid: "invalid"
    case .failed: "failed"
    }
  }
}
