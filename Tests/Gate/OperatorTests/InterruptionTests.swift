import AttestGate
import Foundation
import TestSupport
import Testing

@Suite("Files of interrupted commands", .serialized, .timeLimit(.minutes(5)))
struct InterruptionTests {
  private static func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
  }

  /// Enough keys that at least one of three signals arrives before the command finishes.
  @Test("Temporary files are removed if a signal stops the command")
  func signals() async throws {
    let entries = try (0..<20_000).map { try Fixture.entry($0) }
    try await StoreBench.with(entries) { bench in
      let backup = bench.folder + "/whole.backup"
      let made = try await sallyport(["store", "backup", backup, "--store", bench.url])
      #expect(made.status == 0, "\(made.errors)")
      let target = bench.folder + "/target.db"
      for (arguments, mark) in [
        (["store", "backup", bench.folder + "/cut", "--store", bench.url], "cut.new-"),
        (["store", "restore", backup, "--store", "sqlite://" + target], "target.db.new-"),
        (["keys", "export", bench.folder + "/cut", "--store", bench.url], "cut.new-"),
      ] {
        var ended = 0
        for signal in [SIGINT, SIGTERM, SIGHUP] {
          let exit = try await Self.exit(of: arguments, endedBy: signal, once: mark, isIn: bench.folder)
          let left = try Self.names(in: bench.folder)
          #expect(left.allSatisfy { !$0.hasPrefix(mark) }, "\(arguments): \(left)")
          if exit.code == nil { ended += 1 }
          for done in [bench.folder + "/cut", target] { try? FileManager.default.removeItem(atPath: done) }
        }
        #expect(ended > 0, "\(arguments): the command finished before each signal")
      }
    }
  }

  /// Returns how a command ended that got a signal once the folder contained a file whose name begins with `mark`.
  private static func exit(
    of arguments: [String], endedBy signal: Int32, once mark: String, isIn folder: String
  ) async throws -> ChildProcess.Exit {
    let process = try ChildProcess(Places.product("sallyport"), arguments)
    defer { process.kill() }
    while !process.hasEnded, try !names(in: folder).contains(where: { $0.hasPrefix(mark) }), !Task.isCancelled {
      await Task.yield()
    }
    process.send(signal)
    return try await process.exit()
  }

  @Test("A signal that is ignored at start, as under nohup, remains ignored")
  func ignored() async throws {
    try await StoreBench.with([Fixture.entry(1)]) { bench in
      let script = "trap '' HUP; \"$0\" store backup \(bench.folder)/b --store \(bench.url) & kill -HUP $!; wait $!"
      let (exit, _, errors) = try await ChildProcess.run("/bin/sh", ["-c", script, Places.product("sallyport")])
      #expect(exit == .code(0), "\(errors)")
    }
  }

  @Test("The next command for the same path removes leftover temporary files, unless they are in use")
  func abandoned() async throws {
    try await StoreBench.with([Fixture.entry(1)]) { bench in
      let drafts = ["b.new-4194301", "b.new-4194302", "b.new-x"].map { bench.folder + "/" + $0 }
      for draft in drafts { try Data("a draft".utf8).write(to: URL(fileURLWithPath: draft)) }
      let claim = open(drafts[1], O_RDWR | O_CLOEXEC)
      defer { close(claim) }
      #expect(flock(claim, LOCK_EX | LOCK_NB) == 0)
      let made = try await sallyport(["store", "backup", bench.folder + "/b", "--store", bench.url])
      #expect(made.status == 0, "\(made.errors)")
      #expect(try Self.names(in: bench.folder).filter { $0.contains(".new-") } == ["b.new-4194302", "b.new-x"])
    }
  }

  @Test("Of concurrent exports to one new file, one writes it; with --force each writes a complete file")
  func exportsAtOnce() async throws {
    try await StoreBench.with((0..<2000).map { try Fixture.entry($0) }) { bench in
      let file = bench.folder + "/keys.jsonl"
      for options in [[], ["--force"]] {
        let statuses = try await withThrowingTaskGroup(of: Transcript.self) { group in
          for _ in 0..<6 {
            group.addTask { try await sallyport(["keys", "export", file, "--store", bench.url] + options) }
          }
          return try await group.reduce(into: [Int32?]()) { $0.append($1.status) }
        }
        #expect(statuses.count { $0 == 0 } == (options.isEmpty ? 1 : 6), "\(statuses)")
        #expect(statuses.allSatisfy { $0 == 0 || $0 == 73 }, "\(statuses)")
      }
      let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
      #expect(
        lines.count(where: { $0.contains("public_key") || $0.contains("publicKey") }) == 2000, "\(lines.prefix(2))")
      #expect(try Self.names(in: bench.folder).filter { $0.contains(".new-") } == [])
    }
  }

  @Test("A backup that cannot be written exits 73 and prints why")
  func nowhere() async throws {
    try await StoreBench.with([Fixture.entry(1)]) { bench in
      let refused = try await sallyport(["store", "backup", bench.folder + "/none/b", "--store", bench.url])
      #expect(refused.status == 73 && refused.isFailure, "\(refused.errors)")
      #expect(refused.errors.first?.contains("none/b: cannot be created: ") == true, "\(refused.errors)")
      #expect(refused.errors.first?.contains("No such file or directory") == true, "\(refused.errors)")
    }
  }

  @Test("A restore of a store onto itself is refused before any change, also through a link")
  func ontoItself() async throws {
    try await StoreBench.with([Fixture.entry(1)]) { bench in
      let backup = bench.folder + "/backup.db"
      #expect(try await sallyport(["store", "backup", backup, "--store", bench.url]).status == 0)
      let link = bench.folder + "/link.db"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: backup)
      let before = try (Self.names(in: bench.folder), Data(contentsOf: URL(fileURLWithPath: backup)))
      for file in [backup, link] {
        let refused = try await sallyport(["store", "restore", file, "--store", "sqlite://\(backup)"])
        #expect(refused.status == 64 && refused.isFailure, "\(refused.errors)")
        #expect(refused.errors.first?.contains("this is the store itself") == true, "\(refused.errors)")
      }
      #expect(try Self.names(in: bench.folder) == before.0)
      #expect(try Data(contentsOf: URL(fileURLWithPath: backup)) == before.1)
    }
  }
}
