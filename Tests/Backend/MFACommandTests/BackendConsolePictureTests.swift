import Foundation
import MFAFixtures
import TestSupport
import Testing

/// The console in a browser. `SALLYPORT_CONSOLE_SCREENSHOTS=FOLDER scripts/test --lab` writes a picture of each page.
@Suite("The console of a backend in a browser", .serialized, .timeLimit(.minutes(5)))
struct BackendConsolePictureTests {
  @Test(
    "A person signs in and unlocks an account by keyboard; pages fit, and axe-core finds nothing",
    .enabled("scripts/test --lab runs it") { ProcessInfo.processInfo.environment["SALLYPORT_TEST_LAB"] != nil })
  func pictures() async throws {
    try await BackendInstallation.make { place in
      try place.configure("sms: { sink: log }")
      try await place.serving { backend in
        let phone = TestPhone(username: "Änne Müller-Lüdenscheidt", deviceID: "1F2E3D4C-5B6A-4978-8695-A4B3C2D1E0F0")
        let account = try await place.fullAccount(phone, trusting: "Küche <tablet>", at: backend)
        for name in ["ada", "bob", "grace.hopper@example.com"] {
          _ = try await place.enrolled(TestPhone(username: name), at: backend)
        }
        #expect(try await place.operate("admin", "grant", "ada").exit == .code(0))
        #expect(try await place.operate("admin", "lock", phone.username).exit == .code(0))
        let console = try await ConsoleProcess(place, ["--role", "admin"])
        defer { console.process.kill() }
        let pictures = ProcessInfo.processInfo.environment["SALLYPORT_CONSOLE_SCREENSHOTS"] ?? place.folder
        let run = try await ChildProcess.run(
          "/usr/bin/python3",
          [ProjectFile.path("Tests/Backend/Programs/mfa_console_page.py"), console.address, account.id, pictures],
          within: .seconds(240))
        #expect(run.exit == .code(0), "\(run.output.joined(separator: "\n")) \(run.errors.suffix(8))")
        #expect(run.output.last == "all is well")
      }
    }
  }
}
