import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Transport

/// An app that follows the guide, on a simulated phone. Each step starts the app.
///
/// On Linux, URLSession trusts only the system's authorities. The app therefore runs in its own mount namespace, in
/// which the file of these authorities also contains the gate's authority.
struct GuideApp: Sendable {
  let gate: GateProcess
  /// The folder of the phone's keys and keychain.
  let folder: String
  var appID = "\(GatePlan.teamID).\(GatePlan.bundleID)"
  var attestationTime = Duration.zero
  var trustsTheGate = true

  init(of gate: GateProcess) throws {
    self.gate = gate
    folder = gate.folder.path + "/phone-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  /// Calls `registerIfNeeded` and returns the key ID that the app has saved.
  func register() async throws -> String { try await run("register").joined(separator: "\n") }

  /// Calls `assertionHeaders` and returns the headers.
  func headers() async throws -> HeaderFields {
    var fields = HeaderFields()
    for line in try await run("headers") {
      guard let colon = line.range(of: ": ") else { throw Unexpected("not a header: \(line)") }
      fields.append(String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
    }
    return fields
  }

  /// The description of an error that the app's code has thrown.
  struct Thrown: Error, Hashable {
    let error: String
  }

  private func run(_ step: String) async throws -> [String] {
    let milliseconds = attestationTime / .milliseconds(1)
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("unshare"),
      Self.unsharing + [
        "/bin/sh", "-c", trustsTheGate ? Self.trusting : #"shift 2; exec "$@""#, "sh", gate.folder.tlsAuthorityPath,
        folder + "/authorities.pem", "/usr/bin/timeout", "-s", "KILL", "20", Places.product("guide-client"), step,
        gate.baseURL,
      ],
      environment: [
        "GUIDE_AUTHORITY": gate.folder.path, "GUIDE_DEVICE": folder, "GUIDE_APP_ID": appID,
        "GUIDE_ATTESTATION_MS": "\(Int(milliseconds))",
      ], within: .seconds(30))
    switch exit {
    case .code(0): return output
    case .code(1): throw Thrown(error: output.joined(separator: "\n"))
    default: throw Unexpected("the guide's client: \(exit) \(output) \(errors)")
    }
  }

  private static let bundle = "/etc/ssl/certs/ca-certificates.crt"

  /// A script that expects the file of the gate's authority, the path for the extended bundle, and a command, which it
  /// executes at the end.
  private static let trusting =
    #"cat \#(bundle) "$1" > "$2" && mount --bind "$2" \#(bundle) || exit 70; shift 2; exec "$@""#

  /// The options of `unshare`. A user other than root needs a user namespace to mount a file.
  private static let unsharing = getuid() == 0 ? ["-m"] : ["-rm"]

  /// Whether the system allows the tests to mount a file. Many containers do not.
  static let isPossible: @Sendable () async -> Bool = {
    guard let unshare = try? Places.tool("unshare"), FileManager.default.isReadableFile(atPath: bundle) else {
      return false
    }
    let probe = unsharing + ["/bin/sh", "-c", "mount --bind \(bundle) \(bundle)"]
    return (try? await ChildProcess.run(unshare, probe, within: .seconds(10)).exit) == .code(0)
  }
}
