import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Transport

/// An app made by the guide, on a simulated phone: each step is a start of the app.
///
/// URLSession trusts the system's authorities and no others on Linux, so the app runs where the file of these
/// authorities has the gate's own behind it: a mount namespace of the app's own, seen by nobody else.
struct GuideApp: Sendable {
  let gate: GateProcess
  /// The phone's keys and keychain.
  let folder: String
  var appID = "\(GatePlan.teamID).\(GatePlan.bundleID)"
  var attestationTime = Duration.zero
  var trustsTheGate = true

  init(of gate: GateProcess) throws {
    self.gate = gate
    folder = gate.folder.path + "/phone-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  /// `registerIfNeeded`: the key id that the app remembers then.
  func register() async throws -> String { try await run("register").joined(separator: "\n") }

  /// `assertionHeaders`.
  func headers() async throws -> HeaderFields {
    var fields = HeaderFields()
    for line in try await run("headers") {
      guard let colon = line.range(of: ": ") else { throw Unexpected("not a header: \(line)") }
      fields.append(String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
    }
    return fields
  }

  /// What the app's code threw, as Swift writes it.
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

  /// Takes the gate's authority and a place for the longer bundle, and then becomes the command behind them.
  private static let trusting =
    #"cat \#(bundle) "$1" > "$2" && mount --bind "$2" \#(bundle) || exit 70; shift 2; exec "$@""#

  /// An ordinary user needs a user namespace to mount in.
  private static let unsharing = getuid() == 0 ? ["-m"] : ["-rm"]

  /// Whether the system lets the tests mount at all; many containers do not.
  static let isPossible: @Sendable () async -> Bool = {
    guard let unshare = try? Places.tool("unshare"), FileManager.default.isReadableFile(atPath: bundle) else {
      return false
    }
    let probe = unsharing + ["/bin/sh", "-c", "mount --bind \(bundle) \(bundle)"]
    return (try? await ChildProcess.run(unshare, probe, within: .seconds(10)).exit) == .code(0)
  }
}
