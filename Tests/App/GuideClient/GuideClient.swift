import Foundation
import GuideShim
import SimulatedDevice

/// An app that follows the guide, as a command: `guide-client register|headers URL`.
///
/// The environment describes its device:
///
/// - `GUIDE_AUTHORITY`: The folder of the authority that attests the device's keys.
/// - `GUIDE_DEVICE`: The folder of its keys and its keychain.
/// - `GUIDE_APP_ID`: The app ID.
/// - `GUIDE_ATTESTATION_MS`: The duration of an attestation in milliseconds.
@main
struct GuideClient {
  static func main() async {
    do {
      let arguments = CommandLine.arguments
      guard arguments.count == 3, let url = URL(string: arguments[2]) else { throw Misuse() }
      try startDevice()
      let manager = AppAttestManager()
      switch arguments[1] {
      case "register":
        try await manager.registerIfNeeded(proxyBaseURL: url)
        print(await manager.loadKeyId() ?? "no key")
      case "headers":
        for (name, value) in try await manager.assertionHeaders(proxyBaseURL: url) { print("\(name): \(value)") }
      default:
        throw Misuse()
      }
    } catch {
      print("\(error)")
      exit(1)
    }
  }

  private static func startDevice() throws {
    let environment = ProcessInfo.processInfo.environment
    guard let authority = environment["GUIDE_AUTHORITY"], let folder = environment["GUIDE_DEVICE"],
      let appID = environment["GUIDE_APP_ID"]
    else { throw Misuse() }
    let keys = SimulatedKeyService(
      authority: try AuthorityFolder(path: authority).load(), app: SimulatedApp(appID: appID),
      keys: FolderKeyStore(folder: folder))
    let delay = environment["GUIDE_ATTESTATION_MS"].flatMap(Int.init) ?? 0
    DCAppAttestService.shared.simulate(keys, attestationDelay: .milliseconds(delay))
    Keychain.open(at: folder + "/keychain.json")
  }
}

struct Misuse: Error {}
