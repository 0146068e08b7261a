import AppAttest
import AttestGate
import ByteCoding
import Cryptography
import Foundation
import sallyport
import PostgresServers
import SQLiteStore
import TestSupport
import Testing

@Suite("Exports and imports of keys", .serialized, .timeLimit(.minutes(5)))
struct TransferTests {
  /// More than one batch, and not a multiple of one.
  static let count = 1203

  private static func entries() throws -> [KeyEntry] {
    try (0..<count).map { try Fixture.entry($0, revoked: $0 % 5 == 0) }
  }

  /// The same number of keys, every third one of an Android device.
  private static func mixedEntries() throws -> [KeyEntry] {
    try (0..<count).map { number in
      number % 3 == 1 ? try Fixture.androidEntry(number) : try Fixture.entry(number, revoked: number % 5 == 0)
    }
  }

  /// Returns the lines of the keys in an export, without header and trailer.
  private static func keys(in path: String) throws -> [Substring] {
    Array(try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").dropFirst().dropLast())
  }

  @Test("From SQLite to PostgreSQL through a pipe and back, every key stays the same")
  func migration() async throws {
    let url = try await PostgresServer.shared().newURL()
    try await StoreBench.with(Self.mixedEntries()) { bench in
      let exported = try await sallyport(["keys", "export", bench.folder + "/a", "--store", bench.url])
      #expect(exported.errors == ["\(Self.count) keys exported"])
      #expect(try FileManager.default.attributesOfItem(atPath: bench.folder + "/a")[.posixPermissions] as? Int == 0o600)
      let (exit, output, _) = try await ChildProcess.run(
        "/bin/sh",
        [
          "-c", #"set -e; "$0" keys export - --store "$1" | "$0" keys import - --store "$2" --json"#,
          Places.product("sallyport"), bench.url, url,
        ])
      #expect(exit == .code(0))
      #expect(output == [#"{"new":\#(Self.count),"unchanged":0,"updated":0}"#])
      #expect(try await sallyport(["keys", "export", bench.folder + "/b", "--store", url]).status == 0)
      #expect(try Self.keys(in: bench.folder + "/a").count == Self.count)
      #expect(try Self.keys(in: bench.folder + "/a") == Self.keys(in: bench.folder + "/b"))
      let header = try String(contentsOfFile: bench.folder + "/b", encoding: .utf8).split(separator: "\n")[0]
      let record = try #require(try await bench.record(1))
      #expect(record.key.androidEvidence == (try Fixture.androidEntry(1).record.key.androidEvidence))
      #expect(header.contains(#""count":\#(Self.count),"#) && header.contains(#""format":"sallyport-keys""#))
    }
  }

  @Test("An export to a device or a named pipe writes to it, and one to a link with --force to its target")
  func otherFiles() async throws {
    try await StoreBench.with(Self.entries()) { bench in
      let (exit, output, _) = try await ChildProcess.run(
        "/bin/sh",
        [
          "-c", #"set -e; cd "$2"; mkfifo pipe; wc -l <pipe & "$0" keys export pipe --store "$1"; wait; test -p pipe"#,
          Places.product("sallyport"), bench.url, bench.folder,
        ])
      #expect(exit == .code(0))
      #expect(output.first?.trimmingCharacters(in: .whitespaces) == "\(Self.count + 2)")

      let manager = FileManager.default
      try manager.createDirectory(atPath: bench.folder + "/elsewhere", withIntermediateDirectories: false)
      try Data().write(to: URL(fileURLWithPath: bench.folder + "/elsewhere/keys"))
      try manager.createSymbolicLink(
        atPath: bench.folder + "/link", withDestinationPath: bench.folder + "/elsewhere/keys")
      let export = ["keys", "export", bench.folder + "/link", "--store", bench.url]
      let refused = try await sallyport(export)
      #expect(refused.status == 73)
      #expect(
        refused.errors == [
          "error: \(bench.folder)/link exists", "hint: name another file, or replace this one with --force",
        ])
      #expect(try Data(contentsOf: URL(fileURLWithPath: bench.folder + "/elsewhere/keys")).isEmpty)
      #expect(try await sallyport(export + ["--force"]).status == 0)
      #expect(try Self.keys(in: bench.folder + "/elsewhere/keys").count == Self.count)
      #expect(
        try manager.attributesOfItem(atPath: bench.folder + "/link")[.type] as? FileAttributeType == .typeSymbolicLink)
    }
  }

  @Test("An import from a named pipe reads it once, and adds every key")
  func namedPipe() async throws {
    try await StoreBench.with(Self.entries()) { bench in
      #expect(try await sallyport(["keys", "export", bench.folder + "/keys", "--store", bench.url]).status == 0)
      let (exit, output, errors) = try await ChildProcess.run(
        "/bin/sh",
        [
          "-c", #"set -e; cd "$2"; mkfifo pipe; cat keys >pipe & "$0" keys import pipe --store "$1"; wait"#,
          Places.product("sallyport"), "sqlite://\(bench.folder)/target.db", bench.folder,
        ])
      #expect(exit == .code(0), "\(errors)")
      #expect(output == ["\(Self.count) keys added, 0 updated, 0 unchanged"], "\(errors)")
    }
  }

  @Test("An output that cannot be written is an error; an output that is not read to its end is not")
  func lostOutput() async throws {
    try await StoreBench.with(Self.entries()) { bench in
      let full = try await ChildProcess.run(
        "/bin/sh",
        ["-c", #""$0" keys list --store "$1" >/dev/full"#, Places.product("sallyport"), bench.url])
      #expect(full.exit == .code(74))
      #expect(full.errors.first == "error: standard output: No space left on device")
      let export = try await ChildProcess.run(
        "/bin/sh",
        ["-c", #""$0" keys export - --store "$1" >/dev/full"#, Places.product("sallyport"), bench.url])
      #expect(export.exit == .code(74))
      #expect(export.errors.first == "error: standard output: No space left on device")
    }
  }

  @Test("An interrupted import can be started again, and a repeated import changes nothing")
  func resumed() async throws {
    try await StoreBench.with(Self.entries()) { bench in
      let file = bench.folder + "/keys"
      #expect(try await sallyport(["keys", "export", file, "--store", bench.url]).status == 0)
      let target = "sqlite://\(bench.folder)/target.db"
      // A pipe that ends inside a line, after two batches.
      let whole = Array(try Data(contentsOf: URL(fileURLWithPath: file)))
      let cut = try await sallyport(
        ["keys", "import", "-", "--store", target], input: Array(whole.prefix(whole.count * 9 / 10)))
      #expect(cut.status == 65)
      #expect(cut.errors.first == "1000 keys added, 0 updated, 0 unchanged")
      #expect(cut.isFailure)
      let resumed = try await sallyport(["keys", "import", file, "--store", target])
      #expect(resumed.output == ["203 keys added, 0 updated, 1000 unchanged"])
      let again = try await sallyport(["keys", "import", file, "--store", target])
      #expect(again.output == ["0 keys added, 0 updated, \(Self.count) unchanged"])
      #expect(try await sallyport(["keys", "export", bench.folder + "/b", "--store", target]).status == 0)
      #expect(try Self.keys(in: file) == Self.keys(in: bench.folder + "/b"))
    }
  }

  @Test("Keys of the store that are not in the export stay, and keys in both are found")
  func interleaved() async throws {
    try await StoreBench.with(Self.entries()) { bench in
      let file = bench.folder + "/keys"
      #expect(try await sallyport(["keys", "export", file, "--store", bench.url]).status == 0)
      let others = try (0..<900).filter { $0 % 3 > 0 }.map { try Fixture.entry($0, revoked: $0 % 5 == 0) }
      let additional = try (5000..<7500).map { try Fixture.entry($0) }
      try await StoreBench.with(others + additional) { target in
        let merged = try await sallyport(["keys", "import", file, "--store", target.url])
        #expect(merged.output == ["\(Self.count - 600) keys added, 0 updated, 600 unchanged"])
        #expect(try await target.use { try await $0.count() } == Self.count + 2500)
      }
    }
  }

  @Test("A counter never decreases and a revocation is never undone, whichever store is ahead")
  func strictness() async throws {
    try await StoreBench.with([
      try Fixture.entry(1, counter: 5), try Fixture.entry(2, counter: 9), try Fixture.entry(3, revoked: true),
    ]) { bench in
      let file = bench.folder + "/keys"
      #expect(try await sallyport(["keys", "export", file, "--store", bench.url]).status == 0)
      try await StoreBench.with([
        try Fixture.entry(1, counter: 8, revoked: true), try Fixture.entry(2, counter: 3), try Fixture.entry(3),
      ]) { target in
        let merged = try await sallyport(["keys", "import", file, "--store", target.url])
        #expect(merged.output == ["0 keys added, 2 updated, 1 unchanged"])
        #expect(try await target.record(1)?.counter.value == 8)
        #expect(try await target.record(1)?.revokedAt != nil)
        #expect(try await target.record(2)?.counter.value == 9)
        #expect(try await target.record(3)?.revokedAt != nil)
      }
    }
  }

  @Test("A receipt that the store has lost comes back with an import, and a receipt that it has stays")
  func lostReceipt() async throws {
    let (first, second) = (try Fixture.entry(1), try Fixture.entry(2))
    try await StoreBench.with([first, second]) { bench in
      let file = bench.folder + "/keys"
      #expect(try await sallyport(["keys", "export", file, "--store", bench.url]).status == 0)
      let lost = KeyEntry(record: first.record, usedCounters: first.usedCounters, receipt: [])
      try await StoreBench.with([lost, second]) { target in
        let merged = try await sallyport(["keys", "import", file, "--store", target.url])
        #expect(merged.output == ["0 keys added, 1 updated, 1 unchanged"])
        let entries = try await target.use { try await $0.entries(after: nil, limit: 9) }
        #expect(Set(entries) == [first, second])
        let again = try await sallyport(["keys", "import", file, "--store", target.url])
        #expect(again.output == ["0 keys added, 0 updated, 2 unchanged"])
      }
      // An export that lacks the receipt takes it from no store.
      try await StoreBench.with([lost]) { other in
        let poorer = other.folder + "/keys"
        #expect(try await sallyport(["keys", "export", poorer, "--store", other.url]).status == 0)
        let merged = try await sallyport(["keys", "import", poorer, "--store", bench.url])
        #expect(merged.output == ["0 keys added, 0 updated, 1 unchanged"])
      }
    }
  }

  /// A change of an export that an import must detect.
  enum Damage: String, CaseIterable, Sendable {
    case lastLineGone, endOfLineGone, keyGone, keyTwice, keyChanged, trailingLine, otherVersion, empty, notJSON,
      otherKeyID

    func done(to lines: [String]) -> String {
      var lines = lines
      switch self {
      case .lastLineGone: lines.removeLast()
      case .endOfLineGone: return lines.joined(separator: "\n")
      case .keyGone: lines.remove(at: 2)
      case .keyTwice: lines.insert(lines[2], at: 2)
      case .keyChanged: lines[2] = lines[2].replacingOccurrences(of: #""counter":"#, with: #""counter":1"#)
      case .trailingLine: lines.append(lines[1])
      case .otherVersion: lines[0] = lines[0].replacingOccurrences(of: #""version":1"#, with: #""version":2"#)
      case .empty: return ""
      case .notJSON: lines[1] = "{"
      case .otherKeyID: lines[1] = lines[1].replacingOccurrences(of: #""public_key":"B"#, with: #""public_key":"C"#)
      }
      return lines.joined(separator: "\n") + "\n"
    }
  }

  @Test("A truncated or altered export is refused before the first key is stored", arguments: Damage.allCases)
  func damaged(_ damage: Damage) async throws {
    try await StoreBench.with(try (0..<9).map { try Fixture.entry($0) }) { bench in
      let file = bench.folder + "/keys"
      #expect(try await sallyport(["keys", "export", file, "--store", bench.url]).status == 0)
      let text = try String(contentsOfFile: file, encoding: .utf8)
      let damaged = damage.done(to: text.split(separator: "\n").map(String.init))
      #expect(damaged != text)
      try Data(damaged.utf8).write(to: URL(fileURLWithPath: file))
      let target = bench.folder + "/target.db"
      let refused = try await sallyport(["keys", "import", file, "--store", "sqlite://\(target)"])
      #expect(refused.status == 65)
      #expect(refused.isFailure)
      #expect(!FileManager.default.fileExists(atPath: target))
      // Through a pipe the error is detected at the end: earlier keys may be stored, and the status is the same.
      let piped = try await sallyport(
        ["keys", "import", "-", "--store", "sqlite://\(target)"], input: Array(damaged.utf8))
      #expect(piped.status == 65)
    }
  }

  @Test("A key line that cannot be read is found before the first key is stored, although the trailer is right")
  func malformedLine() async throws {
    // More than one batch: the first would be stored before the line is reached.
    try await StoreBench.with(try (0..<600).map { try Fixture.entry($0) }) { bench in
      let file = bench.folder + "/keys"
      #expect(try await sallyport(["keys", "export", file, "--store", bench.url]).status == 0)
      var lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").map(String.init)
      try #require(lines.count == 602)
      lines[589] = lines[589].replacingOccurrences(of: #""counter":"#, with: #""counter":null,"other":"#)
      let body = lines.dropLast().map { $0 + "\n" }.joined()
      let trailer = #"{"count":600,"sha256":"\#(Hex.encode(SHA256.hash(Array(body.utf8))))"}"#
      #expect(trailer.utf8.count == lines.last?.utf8.count && trailer != lines.last)
      try Data((body + trailer + "\n").utf8).write(to: URL(fileURLWithPath: file))
      let target = bench.folder + "/target.db"
      let refused = try await sallyport(["keys", "import", file, "--store", "sqlite://\(target)"])
      #expect(refused.status == 65)
      #expect(refused.errors.first?.hasPrefix("error: \(file): line 590 ") == true, "\(refused)")
      #expect(!FileManager.default.fileExists(atPath: target))
    }
  }

  @Test("A key that the store has for another app is an error that names the line")
  func conflict() async throws {
    try await StoreBench.with(try (0..<9).map { try Fixture.entry($0) }) { bench in
      let file = bench.folder + "/keys"
      #expect(try await sallyport(["keys", "export", file, "--store", bench.url]).status == 0)
      let line =
        try #require(
          try Self.keys(in: file).firstIndex { $0.contains("\"\(try Fixture.key(4).keyID.base64)\"") }) + 2
      try await StoreBench.with([try Fixture.entry(4, app: "AAABBBCCC1.com.example.other")]) { target in
        let refused = try await sallyport(["keys", "import", file, "--store", target.url])
        #expect(refused.status == 65)
        #expect(refused.errors.contains { $0.hasPrefix("error: \(file): line \(line): the store has the key ") })
        #expect(try await target.record(4)?.key.app.text == "AAABBBCCC1.com.example.other")
      }
    }
  }
}
