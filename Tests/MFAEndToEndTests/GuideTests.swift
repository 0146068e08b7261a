import Foundation
import GateProcesses
import SimulatedDevice
import TestSupport
import Testing

@Suite("The guide's commands", .serialized, .timeLimit(.minutes(5)))
struct GuideTests {
  /// The blocks of shell commands in a section of the guide.
  private static func blocks(of title: String) throws -> [String] {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 1...3 { root.deleteLastPathComponent() }
    let guide = try String(
      contentsOf: root.appendingPathComponent("Sources/MFAService/MFAService.docc/Guide.md"), encoding: .utf8)
    let section = try #require(guide.components(separatedBy: "\n## \(title)\n").dropFirst().first)
    let own = section.components(separatedBy: "\n## ")[0]
    return own.components(separatedBy: "```sh\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
  }

  @Test("every command of the guide by curl works through a real gate, as it stands there")
  func curl() async throws {
    let blocks = try Self.blocks(of: "By curl")
    #expect(blocks.count == 7)
    try await Household.serving { household in
      try await Places.withTemporaryFolder { folder in
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        let run = try await ChildProcess.run(
          Places.tool("bash"), ["-euo", "pipefail", "-c", blocks.joined(separator: "\n")],
          environment: [
            "GATE": household.socketURL, "AUTHORITY": household.gate.folder.path, "XDG_DATA_HOME": folder + "/data",
            "PATH": Places.products + ":" + path, "SALLYPORT_AUTHORITY": nil,
          ], in: folder)
        let output = run.output.joined(separator: "\n")
        #expect(run.exit == .code(0), "\(output)\n\(run.errors.joined(separator: "\n"))")
        let texts = [
          "Device enrolled successfully", "\"enrolled\":true", "\"devices\":[", "MFA verification successful",
          "Trusted device revoked successfully", "OTP sent to +1234567890", "linkCode", "Token refreshed",
          "Downgraded to SMS OTP", "Session revoked", "\"result\":{",
        ]
        for text in texts { #expect(output.contains(text), "\(text)") }
      }
    }
  }
}
