import AndroidKeyAttestation
import AttestClient
import ByteCoding
import Foundation
import Wire
import SimulatedDevice
import TestSupport
import Testing

@testable import attest

@Suite("attest and a gate, with Android", .serialized)
struct AndroidGateTests {
  @Test("A message is echoed, and the device is created and registered automatically")
  func once() async throws {
    let setup = try await GateSetup()
    let outcome = try await setup.attest("connect", setup.url, "--platform", "android", "--once", "hello")
    #expect(outcome == Outcome(status: 0, output: "hello\n", errors: ""))
    let shown = try await setup.attest("device", "show", "android")
    #expect(shown.output.contains("  attested, attestation key ") && !shown.output.contains("counter"))
    #expect(!shown.output.contains("PRIVATE"))
    // The device by default is another one.
    #expect(try await setup.attest("connect", setup.url, "--once", "ios").output == "ios\n")
    let json = try await setup.attest("device", "show", "android", "--json").output
    #expect(!json.contains("signCount") && json.contains("\"platform\":\"android\""))
  }

  @Test(
    "Each kind of device is registered once, and its headers open one connection",
    arguments: [("tee", "factory"), ("tee", "rkp"), ("strongbox", "factory"), ("strongbox", "rkp")])
  func kinds(level: String, provisioning: String) async throws {
    let setup = try await GateSetup()
    _ = try await setup.attest(
      "device", "new", "pixel", "--platform", "android", "--security-level", level, "--provisioning", provisioning)
    let first = try await setup.attest("register", setup.url, "--device", "pixel")
    #expect(first.status == 0, "\(first.errors)")
    #expect(try await setup.attest("register", setup.url, "--device", "pixel") == first)
    let headers = try await setup.attest("headers", setup.url, "--device", "pixel", "--json")
    let fields = try JSONDecoder().decode([String: String].self, from: Data(headers.output.utf8))
    let keyID = try #require(fields["X-App-Assert-KeyId"])
    #expect(fields.count == 3 && first.output.contains(keyID))
    #expect(try await setup.attest("connect", setup.url, "--device", "pixel", "--once", "x").output == "x\n")
  }

  @Test(
    "The gate's policy refuses a device by name, and attest says why",
    arguments: [
      (["--boot", "unlocked"], "device_refused", "the app's policy in `app_attest.apps` refuses"),
      (["--boot", "self-signed"], "device_refused", "the app's policy in `app_attest.apps` refuses"),
      (["--package", "com.example.other"], "app_refused", "compare package and signer"),
      (["--signer", String(repeating: "ab", count: 32)], "app_refused", "compare package and signer"),
      (["--provisioning", "leaked"], "attestation_revoked", "the status list has the device's attestation key"),
    ])
  func refused(options: [String], code: String, hint: String) async throws {
    let setup = try await GateSetup()
    _ = try await setup.place.run(
      ["device", "new", "pixel", "--platform", "android", "--authority", setup.authority] + options)
    let outcome = try await setup.attest("connect", setup.url, "--device", "pixel", "--once", "x")
    #expect(outcome.status == 77, "\(outcome.errors)")
    #expect(outcome.errorLines.first?.hasPrefix("error: registration refused: 403 \(code): ") == true)
    #expect(outcome.errorLines.last?.hasPrefix("hint: \(hint)") == true, "\(outcome.errors)")
  }

  @Test("A key that enters the status list loses its socket, and its registrations are refused")
  func revoked() async throws {
    let setup = try await GateSetup()
    for (name, provisioning) in [("pixel", "rkp"), ("other", "rkp")] {
      _ = try await setup.attest("device", "new", name, "--platform", "android", "--provisioning", provisioning)
      #expect(try await setup.attest("register", setup.url, "--device", name).status == 0)
    }
    let environment = setup.place.environment.mapValues { Optional($0) }
    let arguments = ["connect", setup.url, "--device", "pixel", "--stay", "--authority", setup.authority]
    let socket = try ChildProcess(Program.attest.path, arguments, environment: environment, in: setup.place.folder)
    defer { socket.kill() }
    socket.write("hello\n")
    _ = try await socket.output.first("the echo") { $0 == "hello" }
    let revocation = try await setup.attest("device", "revoke", "pixel")
    #expect(revocation.status == 0 && revocation.output.split(separator: "\n").count == 1, "\(revocation.errors)")
    let exit = try await socket.exit(within: .seconds(30))
    #expect(exit.code == 77)
    #expect(try await socket.errors.text().contains("revoked"))
    let refused = try await setup.attest("connect", setup.url, "--device", "pixel", "--once", "x")
    #expect(refused.status == 77, "\(refused.errors)")
    #expect(try await setup.attest("connect", setup.url, "--device", "other", "--once", "x").output == "x\n")
  }

  @Test("A gate that serves iOS alone is named as the reason of a refused registration")
  func iosAlone() async throws {
    let setup = try await GateSetup()
    let (gate, url) = try await setup.furtherGate(enforcement: "enforce")
    defer { gate.kill() }
    let outcome = try await setup.attest("register", url, "--platform", "android")
    #expect(outcome.status == 77, "\(outcome.errors)")
    #expect(
      outcome.errorLines.last?.hasPrefix("hint: does the gate serve Android devices?") == true, "\(outcome.errors)")
  }

  @Test("A device of another platform than the one that was asked for is not used")
  func otherPlatform() async throws {
    let setup = try await GateSetup()
    _ = try await setup.attest("device", "new", "phone")
    let outcome = try await setup.attest("register", setup.url, "--device", "phone", "--platform", "android")
    #expect(outcome.status == 64)
    #expect(outcome.errorLines.first == "error: the device phone is of the platform ios, not android")
  }

  @Test("Load with Android devices loses nothing")
  func load() async throws {
    let setup = try await GateSetup()
    for arguments in [["--messages", "20"], ["--connect", "-d", "300ms"], ["--register", "-d", "300ms"]] {
      let outcome = try await setup.place.run(
        ["load", setup.url, "--platform", "android", "-c", "2", "--authority", setup.authority, "--json"]
          + arguments)
      #expect(outcome.status == 0, "\(outcome.errors)")
    }
  }

  @Test("A gate refuses every attack with Android as expected")
  func probe() async throws {
    struct Report: Decodable {
      struct Row: Decodable { let attack, seen, verdict: String }
      let findings: [Row]
    }
    let setup = try await GateSetup()
    let outcome = try await setup.attest("probe", setup.url, "--platform", "android", "--json")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let report = try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
    #expect(report.findings.filter { $0.verdict != "held" }.map { "\($0.attack): \($0.seen)" } == [])
    #expect(report.findings.count == Attack.all(on: .android).count)
  }
}
