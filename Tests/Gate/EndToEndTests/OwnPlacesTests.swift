import Foundation
import TestSupport
import Testing

/// Tests that programs under test do not see the servers, the desktop and the settings of this machine.
@Suite("The places of programs under test")
struct OwnPlacesTests {
  @Test("A program inherits no variable that leads to this machine or configures it")
  func variables() async throws {
    let lines = try await ChildProcess.run("/usr/bin/env").output
    let names = Set(lines.compactMap { $0.split(separator: "=").first.map(String.init) })
    let others = names.subtracting(["HOME", "TMPDIR", "SALLYPORT_ROOT"])
    #expect(others.allSatisfy(OwnPlaces.isInherited), "\(others)")
    for name in [
      "SALLYPORT_CONFIG", "SALLYPORT_ADMIN__LISTEN", "SALLYPORT_ROOT", "SALLYPORT_AUTHORITY", "MFA_BACKEND_CONFIG",
      "BEARER_STORE", "AUTHENTICATOR_VAULT", "APPATTEST_APPS", "HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
      "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "NOTIFY_SOCKET", "LISTEN_FDS",
      "WATCHDOG_USEC", "CREDENTIALS_DIRECTORY", "STATE_DIRECTORY", "PGHOST", "PGPASSFILE", "https_proxy", "NO_PROXY",
    ] { #expect(!OwnPlaces.isInherited(name), "\(name)") }
  }

  @Test("Home, temporary folder and standard places are in a folder of these tests", arguments: ["HOME", "TMPDIR"])
  func folders(_ name: String) async throws {
    let script = "cd \"$\(name)\" && pwd && echo \"$SALLYPORT_ROOT\" && echo made >file && cat file && rm file"
    let run = try await ChildProcess.run("/bin/sh", ["-c", script])
    #expect(run.output.last == "made", "\(run)")
    #expect(run.output[0].hasPrefix(run.output[1] + "/") && run.output[1].hasPrefix(Places.temporary), "\(run)")
  }
}
