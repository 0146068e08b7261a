import Foundation
import TestSupport
import Testing

/// Compares sentences of the documents with the files that they describe.
@Suite("The documents' statements about the tree")
struct DocumentedFactsTests {
  /// Returns the cells of the table rows between the line `heading` and the next heading.
  private static func rows(of path: String, under heading: String) throws -> [[String]] {
    let lines = try ProjectFile.text(path).split(separator: "\n", omittingEmptySubsequences: false)
    let start = try #require(lines.firstIndex { $0 == heading }, "\(path): \(heading)")
    return lines[(start + 1)...].prefix { !$0.hasPrefix("#") }.filter { $0.hasPrefix("| ") }.map { line in
      line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }

  /// Returns the names of the folders in `path`.
  private static func folders(in path: String) throws -> Set<String> {
    let names = try FileManager.default.contentsOfDirectory(atPath: ProjectFile.path(path)).filter { name in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: ProjectFile.path("\(path)/\(name)"), isDirectory: &isFolder)
        && isFolder.boolValue
    }
    return Set(names)
  }

  /// Returns the numbers in `text`, without separators of thousands.
  private static func numbers(in text: String) -> [Double] {
    text.matches(of: /\d[\d,]*(\.\d+)?/).compactMap { Double($0.output.0.replacing(",", with: "")) }
  }

  @Test("The costs in README are those of the present version in Speed.md")
  func costs() throws {
    let speed = try Self.rows(
      of: "Sources/Gate/TransportEngine/TransportEngine.docc/Speed.md", under: "## Figures of `scripts/bench`")
    let readme = try Self.rows(of: "README.md", under: "## Cost").dropFirst().map { $0[0] }
    // The figures of README follow the name of the row, and this version's are in the third column of Speed.md.
    for (name, row) in [
      ("a 64-byte message, 32 connections:", "64 B messages, 32 connections"),
      ("an idle connection:", "an idle connection"),
      ("a connection with a verified assertion:", "the same with a verified assertion and a durable counter"),
    ] {
      let text = try #require(readme.first { $0.hasPrefix(name) }, "\(name)")
      let cells = try #require(speed.first { $0[0].hasPrefix(row) }, "\(row)")
      let (stated, measured) = (Self.numbers(in: String(text.dropFirst(name.count))), Self.numbers(in: cells[2]))
      #expect(Set(stated) == Set(measured), "README: \(text); Speed.md: \(cells[2])")
    }
    #expect(readme.count == 3)
  }

  @Test("The guide of the MFA backend takes each id from an answer")
  func ids() throws {
    let guide = try ProjectFile.text("Sources/Backend/MFAService/MFAService.docc/Guide.md")
    let fixed = guide.matches(of: /call [A-Z]+ "?[\w\/-]*\/\d+\b/).map { String($0.output) }
    #expect(fixed == [])
    #expect(guide.contains("call DELETE "))
  }

  @Test("README's table of rooms has each folder of Sources")
  func rooms() throws {
    let names = try Self.rows(of: "README.md", under: "## Contributing").dropFirst().map {
      $0[0].trimmingCharacters(in: ["`"])
    }
    #expect(names.count == Set(names).count)
    #expect(Set(names) == (try Self.folders(in: "Sources")))
  }

  @Test("The article about the engine has each of its folders")
  func engine() throws {
    let article = "Sources/Gate/TransportEngine/TransportEngine.docc/TransportEngine.md"
    let names = try Self.rows(of: article, under: "### Where to look").dropFirst().map {
      $0[0].trimmingCharacters(in: ["`"])
    }
    let folders = try Self.folders(in: "Sources/Gate/TransportEngine").filter { !$0.hasSuffix(".docc") }
    #expect(Set(names) == folders)
  }

  @Test("The article about the admin server has each operation with its parameters")
  func admin() throws {
    let article = "Sources/Gate/GateService/GateService.docc/Admin.md"
    var documented: [String: Set<String>] = [:]
    for row in try Self.rows(of: article, under: "## Endpoints").dropFirst() {
      let parameters = Set(row[1].matches(of: /`(\w+)`/).map { String($0.output.1) })
      var last = ""
      for match in row[0].matches(of: /`(?:([A-Z]+) )?([^`]+)`/) {
        // `POST /v1/keys/{key}/revoke`, `…/restore`: the second one differs in its last part.
        let target = String(match.output.2)
        let path =
          target.hasPrefix("…")
          ? last.prefix(upTo: last.lastIndex(of: "/") ?? last.endIndex) + target.dropFirst() : target[...]
        let method = match.output.1.map(String.init) ?? String(last.prefix { $0 != " " })
        last = target.hasPrefix("…") ? String(path) : "\(method) \(path)"
        documented[last] = parameters
      }
    }
    var operations: [String: Set<String>] = ["GET /v1/openapi.json": []]
    let folder = ProjectFile.path("Sources/Gate/GateService")
    for file in try FileManager.default.subpathsOfDirectory(atPath: folder) where file.hasSuffix("Resource.swift") {
      let text = try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
      let pattern =
        /AdminOperation\(\s*"([A-Z]+)", "([^"]+)",\s*"[^"]*"(?:,\s*parameters: \[([\s\S]*?)\],\s*answers:)?/
      for match in text.matches(of: pattern) {
        // A parameter is a constant such as `.limit`, or made with its name as the first argument.
        let parameters = (match.output.3 ?? "").matches(of: /\.(after|limit)\b|(?:Parameter|choice|keyName)\("(\w+)"/)
          .compactMap { ($0.output.1 ?? $0.output.2).map(String.init) }
        operations["\(match.output.1) \(match.output.2)"] = Set(parameters)
      }
    }
    #expect(operations.count > 12)
    #expect(documented == operations)
  }
}
