import AttestClient
import ByteCoding
import Foundation
import SimulatedDevice
import Testing

@testable import AttestTool

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
    #expect(device.app.claims == nil)
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

@Suite("attest")
struct CommandLineTests {
  @Test(
    "Every command shows its version and its help with an example",
    arguments: [
      [], ["device"], ["device", "new"], ["device", "list"], ["device", "show"], ["device", "rm"], ["register"],
      ["headers"], ["connect"], ["echo"], ["load"], ["probe"],
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
