import Foundation
import TestSupport
import Testing

/// Checks the imports between the folders of `Sources` ("rooms"), as read from the source files.
@Suite("The rooms")
struct RoomTests {
  /// The rooms and single targets from which each room may import, in addition to itself. The backend verifies ID tokens
  /// by the rules of a client of their provider, which stand in `OIDCClient`, and its console is served by the gate's engine.
  private static let allowed: [String: Set<String>] = [
    "Common": [], "Daemon": ["Common"], "Attestation": ["Common"], "Gate": ["Common", "Daemon", "Attestation"],
    "Backend": ["Common", "Daemon", "OIDCClient", "ConsoleServing"], "App": ["Common"],
    "Simulation": ["Common", "Attestation", "App"],
    "Tools": ["Common", "Daemon", "Attestation", "App", "Simulation"],
  ]

  /// Additional imports of single targets: `sallyport dev` uses a simulated device, and the client tool uses the
  /// engine's client.
  private static let exceptions: [String: Set<String>] = [
    "sallyport": ["SimulatedDevice"], "attest": ["Transport", "TransportEngine"],
  ]

  private struct Target {
    let name: String
    let room: String

    /// Returns the modules that the target's Swift files import.
    func imports() throws -> Set<String> {
      let folder = ProjectFile.path("Sources/\(room)/\(name)")
      var modules: Set<String> = []
      for file in try FileManager.default.subpathsOfDirectory(atPath: folder) where file.hasSuffix(".swift") {
        let text = try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
        for match in text.matches(of: /(?m)^ *(?:@\w+ )?(?:public |package |internal )?import (?:\w+ )?(\w+)/) {
          modules.insert(String(match.output.1))
        }
      }
      return modules
    }
  }

  private static func targets() throws -> [Target] {
    try folders(in: "Sources").flatMap { room in
      try folders(in: "Sources/" + room).map { Target(name: $0, room: room) }
    }
  }

  private static func folders(in path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: ProjectFile.path(path)).sorted()
  }

  @Test("A room imports only from the rooms below it")
  func arrows() throws {
    let targets = try Self.targets()
    #expect(Set(targets.map(\.room)) == Set(Self.allowed.keys))
    let rooms = Dictionary(uniqueKeysWithValues: targets.map { ($0.name, $0.room) })
    for target in targets {
      let allowed = try #require(Self.allowed[target.room])
      let imports = try target.imports().subtracting(Self.exceptions[target.name] ?? []).subtracting(allowed)
      let rooms = Set(imports.compactMap { rooms[$0] }).subtracting([target.room])
      #expect(rooms.isSubset(of: allowed), "\(target.name) imports from \(rooms.subtracting(allowed))")
    }
  }

  @Test("The house has at most 60 targets, and Package.swift says of each what it is for")
  func purposes() throws {
    let targets = try Self.targets()
    #expect(targets.count <= 60)
    let lines = try ProjectFile.text("Package.swift").components(separatedBy: "\n")
    #expect(lines.count <= 450)
    for target in targets {
      let line = try #require(
        lines.firstIndex { $0.contains("\"\(target.name)\": [") || $0.contains("(\"\(target.name)\"") },
        "\(target.name)")
      let isSaid = lines[line].contains("  // ") || lines[line - 1].trimmingPrefix { $0 == " " }.hasPrefix("// ")
      #expect(isSaid, "\(target.name)")
    }
  }

  @Test("Import declarations are read correctly")
  func twin() throws {
    let engine = try Target(name: "TransportEngine", room: "Gate").imports()
    #expect(engine.isSuperset(of: ["Transport", "ByteCoding", "COpenSSL"]))
  }

  @Test("The folders of Tests have the names of the rooms; World has inputs of peers")
  func tests() throws {
    #expect(Set(try Self.folders(in: "Tests")).subtracting(["World"]).isSubset(of: Self.allowed.keys))
  }
}
