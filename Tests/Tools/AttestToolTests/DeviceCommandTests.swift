import AndroidKeyAttestation
import AttestClient
import ByteCoding
import Commands
import Foundation
import Wire
import SimulatedDevice
import Testing

@testable import attest

@Suite("attest device")
struct DeviceCommandTests {
  private func authority(in place: Workplace) throws -> String {
    let path = place.folder + "/authority"
    _ = try AuthorityFolder(path: path).loadOrMake(appID: "AAABBBCCC1.com.example.app", at: .now())
    return path
  }

  @Test("The command creates, lists, shows and removes devices")
  func lifecycle() async throws {
    let place = try Workplace()
    let authority = try authority(in: place)
    #expect(try await place.run(["device", "list"]) == Outcome(status: 0, output: "", errors: ""))
    for name in ["phone", "a"] {
      let made = try await place.run(["device", "new", name, "--authority", authority])
      #expect(made == Outcome(status: 0, output: "\(name)  AAABBBCCC1.com.example.app\n", errors: ""))
    }
    let list = try await place.run(["device", "list"])
    #expect(list.output.split(separator: "\n").map { $0.prefix(7) } == ["a      ", "phone  "])
    let shown = try await place.run(["device", "show", "phone"])
    #expect(shown.output.hasPrefix("name     phone\napp      AAABBBCCC1.com.example.app\n"))
    #expect(try await place.run(["device", "rm", "phone"]) == Outcome(status: 0, output: "", errors: ""))
    #expect(try await place.run(["device", "show", "phone"]).status == 66)
    #expect(try await place.run(["device", "list"]).output.hasPrefix("a  "))
  }

  @Test("The command prints JSON on request")
  func json() async throws {
    let place = try Workplace()
    let environment = ["SALLYPORT_AUTHORITY": try authority(in: place)]
    let made = try await place.run(["device", "new", "old", "--category", "0", "--json"], environment: environment)
    let device = try JSONDecoder().decode(Device.self, from: Data(made.output.utf8))
    #expect(device.model == .ios(SimulatedApp(appID: "AAABBBCCC1.com.example.app")))
    let list = try await place.run(["device", "list", "--json"])
    #expect(try JSONDecoder().decode([Device].self, from: Data(list.output.utf8)) == [device])
    #expect(try await place.run(["device", "rm", "old", "--json"]).output == "{\"removed\":\"old\"}\n")
  }

  @Test("Only their owner can access folders and files")
  func modes() async throws {
    let place = try Workplace()
    _ = try await place.run(["device", "new", "phone", "--authority", authority(in: place)])
    let data = place.folder + "/data"
    for path in try FileManager.default.subpathsOfDirectory(atPath: data) {
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(data)/\(path)")
      let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
      #expect(attributes[.posixPermissions] as? Int == (isFolder ? 0o700 : 0o600), "\(path)")
    }
  }

  @Test(
    "An error is reported with a hint",
    arguments: [
      (["new", "phone"], 64, "a simulated device needs an authority"),
      (["new", "phone", "--authority", "/nowhere"], 66, "no authority in /nowhere"),
      (["new", "../phone", "--authority", "AUTHORITY"], 64, "not a name for a device"),
      (["new", ".hidden", "--authority", "AUTHORITY"], 64, "not a name for a device"),
      (["new", "twice", "--authority", "AUTHORITY"], 73, "there is a device twice already"),
      (["show", "nobody"], 66, "there is no device nobody"),
      (["rm", "nobody"], 66, "there is no device nobody"),
      (["rm", "../.."], 64, "not a name for a device"),
      (["paint"], 64, "unknown command paint"),
    ])
  func mistakes(arguments: [String], status: Int32, message: String) async throws {
    let place = try Workplace()
    let authority = try authority(in: place)
    _ = try await place.run(["device", "new", "twice", "--authority", authority])
    let outcome = try await place.run(
      ["device"] + arguments.map { $0 == "AUTHORITY" ? authority : $0 })
    #expect(outcome.status == status)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errorLines.first?.hasPrefix("error: ") == true)
    #expect(outcome.errorLines.first?.contains(message) == true, "\(outcome.errors)")
    #expect(outcome.errorLines.count <= 2)
    #expect(try await place.run(["device", "list"]).output.hasPrefix("twice  "))
  }

  @Test("The hint for a missing device has a command that makes it")
  func missingDevice() async throws {
    let place = try Workplace()
    let outcome = try await place.run(["device", "show", "phone"])
    let hint = outcome.errorLines.last
    #expect(hint?.contains("`attest device new phone --authority DIR` makes it") == true, "\(outcome.errors)")
    let made = try await place.run(["device", "new", "phone", "--authority", authority(in: place)])
    #expect(made.status == 0, "\(made.errors)")
  }

  @Test("A device that is in use is not removed")
  func inUse() async throws {
    let place = try Workplace()
    _ = try await place.run(["device", "new", "phone", "--authority", authority(in: place)])
    let store = try DeviceStore(environment: place.environment)
    let lock = try await store.lock("phone")
    let refused = try await place.run(["device", "rm", "phone"])
    #expect(refused.status == 75)
    #expect(store.exists("phone"))
    lock.release()
    #expect(try await place.run(["device", "rm", "phone"]).status == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: store.path).isEmpty)
  }

  @Test("A damaged device is reported by name")
  func damaged() async throws {
    let place = try Workplace()
    _ = try await place.run(["device", "new", "phone", "--authority", authority(in: place)])
    let store = try DeviceStore(environment: place.environment)
    try Data("{".utf8).write(to: URL(fileURLWithPath: store.folder("phone") + "/device.json"))
    let outcome = try await place.run(["device", "show", "phone"])
    #expect(outcome.status == 65)
    #expect(
      outcome.errorLines == [
        "error: the description of device phone is damaged", "hint: `attest device rm phone` removes it",
      ])
    // Other devices are still listed.
    _ = try await place.run(["device", "new", "tablet", "--authority", authority(in: place)])
    let list = try await place.run(["device", "list"])
    #expect(list.status == 65)
    #expect(list.output.hasPrefix("tablet  ") && list.errorLines == outcome.errorLines)
    #expect(try await place.run(["device", "rm", "phone"]).status == 0)
  }
}

@Suite("attest device with Android")
struct AndroidDeviceCommandTests {
  private static let appID = "AAABBBCCC1.com.example.app"

  private func authority(in place: Workplace) throws -> String {
    let path = place.folder + "/authority"
    _ = try AuthorityFolder(path: path).loadOrMake(appID: Self.appID, at: .now())
    return path
  }

  @Test("The command creates, lists, shows and removes devices of both platforms")
  func lifecycle() async throws {
    let place = try Workplace()
    let authority = try authority(in: place)
    _ = try await place.run(["device", "new", "phone", "--authority", authority])
    let made = try await place.run(["device", "new", "pixel", "--platform", "android", "--authority", authority])
    #expect(made == Outcome(status: 0, output: "pixel  com.example.app\n", errors: ""))
    let list = try await place.run(["device", "list"]).output.split(separator: "\n")
    #expect(list.count == 2 && list[0].hasPrefix("phone  AAAB") && !list[0].contains("android"))
    #expect(list[1].hasPrefix("pixel  com.example.app  ") && list[1].hasSuffix("  android"))
    let shown = try await place.run(["device", "show", "pixel"]).output
    let signer = Hex.encode(AndroidApp(appID: Self.appID).signer)
    #expect(shown.hasPrefix("name     pixel\napp      com.example.app\nsigner   \(signer)\n"))
    #expect(shown.contains("\nandroid  tee, key factory, boot verified, patches 2026-05\n"))
    #expect(try await place.run(["device", "rm", "pixel"]).status == 0)
    #expect(try await place.run(["device", "show", "pixel"]).status == 66)
  }

  @Test("Each property of a device is kept in its file")
  func properties() async throws {
    let place = try Workplace()
    let environment = ["SALLYPORT_AUTHORITY": try authority(in: place)]
    let signer = (0..<32).map { String(format: "%02X", $0) }.joined(separator: ":")
    let made = try await place.run(
      [
        "device", "new", "pixel", "--platform", "android", "--package", "org.example.other", "--signer", signer,
        "--security-level", "strongbox", "--provisioning", "rkp", "--boot", "self-signed", "--patch-level", "2025-12",
        "--json",
      ], environment: environment)
    let device = try JSONDecoder().decode(Device.self, from: Data(made.output.utf8))
    var profile = AndroidProfile(app: AndroidApp(package: "org.example.other", signer: Array(0..<32)))
    (profile.securityLevel, profile.provisioning, profile.boot) = (.strongBox, .remote, .selfSigned)
    profile.patchLevel = PatchLevel("2025-12")
    #expect(device.model == .android(profile))
    #expect(try DeviceStore(environment: place.environment).load("pixel") == device)
    let shown = try await place.run(["device", "show", "pixel"]).output
    #expect(shown.contains("\nboot key \(Hex.encode(profile.bootKey))\n"))
    let unknown = try await place.run(
      ["device", "new", "old", "--platform", "android", "--patch-level", "none", "--json"], environment: environment)
    #expect(!unknown.output.contains("patchLevel") && unknown.status == 0)
  }

  @Test("A file of an earlier version is an iOS device, and such a version refuses that of an Android device")
  func compatibility() throws {
    let old =
      #"{"appId":"A.b","bundleVersion":"2","createdAt":"2026-01-01T00:00:00Z","name":"p","validationCategory":4}"#
    let device = try JSONDecoder().decode(Device.self, from: Data(old.utf8))
    let claims = AppClaims(validationCategory: 4, bundleVersion: "2")
    #expect(device.model == .ios(SimulatedApp(appID: "A.b", claims: claims)))
    /// The description of a device as earlier versions read it.
    struct Old: Decodable { let name, appId, createdAt: String }
    let (ios, android) = (
      JSONOutput.line(device),
      JSONOutput.line(
        Device(name: "p", model: .android(AndroidProfile(app: AndroidApp(appID: Self.appID))), createdAt: .now()))
    )
    #expect(throws: Never.self) { try JSONDecoder().decode(Old.self, from: Data(ios.utf8)) }
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(Old.self, from: Data(android.utf8)) }
    for (part, change) in [
      (#""platform":"android""#, #""platform":"windows""#), (#""boot":"verified""#, #""boot":"maybe""#),
      (#""patchLevel":"2026-05""#, #""patchLevel":"2026-13""#), (#""signer":""#, #""signer":"00"#),
    ] {
      let damaged = android.replacing(part, with: change)
      #expect(damaged != android)
      #expect(throws: DecodingError.self) { try JSONDecoder().decode(Device.self, from: Data(damaged.utf8)) }
    }
  }

  @Test(
    "An error is reported with a hint",
    arguments: [
      (["--platform", "windows"], "The value 'windows' is invalid"),
      (["--security-level", "tee"], "--security-level is for Android devices: add --platform android"),
      (["--platform", "android", "--category", "4"], "--category and --bundle-version are for iOS devices"),
      (["--category", "0", "--bundle-version", "2"], "a device before iOS 27 (--category 0) reports no"),
      (["--platform", "android", "--package", "app"], "--package takes the name of a package"),
      (["--platform", "android", "--signer", "00"], "--signer takes a SHA-256 in hex"),
      (["--platform", "android", "--patch-level", "2026-13"], "--patch-level takes a month"),
      (
        ["--platform", "android", "--provisioning", "leaked", "--security-level", "strongbox"],
        "--provisioning leaked is a key of the trusted environment"
      ),
    ])
  func mistakes(arguments: [String], message: String) async throws {
    let place = try Workplace()
    let outcome = try await place.run(
      ["device", "new", "pixel", "--authority", authority(in: place)] + arguments)
    #expect(outcome.status == 64)
    #expect(outcome.errorLines.count == 2 && outcome.errorLines[0].contains(message), "\(outcome.errors)")
    #expect(try await place.run(["device", "list"]).output.isEmpty)
  }

  @Test("An authority of an earlier version vouches for no Android device, and the hint says what adds that")
  func oldAuthority() async throws {
    let place = try Workplace()
    let authority = try authority(in: place)
    for name in ["root.pem", "authority.json", "status.json"] {
      try FileManager.default.removeItem(atPath: "\(authority)/android-\(name)")
    }
    let outcome = try await place.run(["device", "new", "pixel", "--platform", "android", "--authority", authority])
    #expect(outcome.status == 65)
    #expect(outcome.errorLines.first?.contains("vouches for iOS devices alone") == true)
    #expect(outcome.errorLines.last?.hasPrefix("hint: start `sallyport dev` with this folder again") == true)
    #expect(try await place.run(["device", "new", "phone", "--authority", authority]).status == 0)
  }

  @Test("A device without an attested key of Android cannot be revoked")
  func revokeNothing() async throws {
    let place = try Workplace()
    let authority = try authority(in: place)
    for platform in ["ios", "android"] {
      _ = try await place.run(["device", "new", platform, "--platform", platform, "--authority", authority])
      let outcome = try await place.run(["device", "revoke", platform, "--authority", authority])
      #expect(outcome.status == 66)
      #expect(outcome.errorLines.first == "error: the device \(platform) has no attested key of Android")
    }
  }

  @Test("The hint of a refused registration says that the gate may serve iOS alone")
  func olderGate() {
    let refusal = GateRefusal(status: 400, code: .malformedJSON, text: "keyId is missing")
    let failure = Failure(.registrationFailed(refusal), of: .android)
    #expect(failure.message.contains("400 malformed_json") && failure.status == .refused)
    #expect(failure.hint?.hasPrefix("does the gate serve Android devices?") == true)
    #expect(Failure(.registrationFailed(refusal), of: .ios) == Failure(.registrationFailed(refusal)))
    let other = AttestError.registrationFailed(GateRefusal(status: 429, code: .rateLimited))
    #expect(Failure(other, of: .android) == Failure(other))
  }
}

@Suite("attest")
struct CommandLineTests {
  @Test(
    "Every command shows its version and its help with an example",
    arguments: [
      [], ["device"], ["device", "new"], ["device", "list"], ["device", "show"], ["device", "rm"],
      ["device", "revoke"], ["register"],
      ["headers"], ["token"], ["connect"], ["echo"], ["attestation"], ["assertion"], ["inspect"], ["load"], ["probe"],
    ])
  func help(command: [String]) async throws {
    let place = try Workplace()
    let help = try await place.run(command + ["--help"])
    #expect(help.status == 0)
    #expect(help.errors.isEmpty)
    #expect(help.output.contains("Example:"))
    #expect(help.output.contains("attest " + command.joined(separator: " ")))
    let version = try await place.run(command + ["--version"])
    #expect(version.status == 0)
    #expect(version.output.hasPrefix("attest 0.1.0 (commit ") && version.output.contains(", OpenSSL 3."))
  }

  @Test(
    "Invalid arguments exit with code 64",
    arguments: [
      ["paint"], ["connect"], ["connect", "wss://localhost/", "--paint"], ["connect", "ws://localhost/"],
      ["connect", "localhost:6200"], ["connect", "wss://u@localhost/"], ["connect", "wss://localhost:0/"],
      ["connect", "wss://localhost/", "--cert", "x"], ["echo", "--listen", "localhost:80"],
      ["echo", "--listen", "8080"],
      ["headers", "https://localhost/", "--ca"], ["connect", "wss://localhost/", "--once", "x", "--stay"],
      ["connect", "wss://localhost/", "--linger", "-1"], ["load"], ["load", "ws://localhost/", "--open"],
      ["load", "wss://localhost/"], ["load", "wss://localhost/", "--open", "-c", "0"],
      ["load", "wss://localhost/", "--open", "-d", "soon"], ["load", "wss://localhost/", "--open", "--register"],
      ["load", "wss://localhost/", "--open", "--idle", "--rate", "5"],
      ["load", "wss://localhost/", "--open", "--verify", "--rate", "5"],
    ])
  func usage(arguments: [String]) async throws {
    let outcome = try await Workplace().run(arguments)
    #expect(outcome.status == 64)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errorLines.count == 2)
    #expect(outcome.errorLines.first?.hasPrefix("error: ") == true)
    #expect(outcome.errorLines.last?.hasPrefix("hint: ") == true)
  }
}
