import Foundation
import Glibc
import MFAFixtures
import TestSupport
import Testing

@Suite("attest lab --all", .serialized, .timeLimit(.minutes(5)))
struct LabAllTests {
  /// The names of the processes whose command line has `text`.
  private static func processes(with text: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { id in
      guard Int(id) != nil, let line = FileManager.default.contents(atPath: "/proc/\(id)/cmdline") else { return nil }
      let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
      guard words.contains(where: { $0.contains(text) }) else { return nil }
      return words.first.map { String($0.split(separator: "/").last ?? "") }
    }
  }

  private static func start(_ options: [String], in folder: String) throws -> ChildProcess {
    try ChildProcess(
      Places.product("attest"), ["lab", "--all"] + options,
      environment: [
        "TMPDIR": folder, "XDG_DATA_HOME": folder + "/data", "SALLYPORT_AUTHORITY": nil,
        "MFA_BACKEND_LISTEN": "127.0.0.1:1",
      ])
  }

  @Test(
    "Gate, backend and lab start from the installed programs, and one signal ends all", arguments: [SIGINT, SIGTERM])
  func all(_ signal: Int32) async throws {
    try await Places.withTemporaryFolder { folder in
      let lab = try Self.start([], in: folder)
      defer { lab.send(SIGTERM) }
      let url = try await lab.output.first("the page") { $0.hasPrefix("http://127.0.0.1:") }
      let page = try await ChildProcess.run(Places.tool("curl"), ["-s", String(url.prefix { $0 != "#" })])
      #expect(page.exit == .code(0) && page.output.joined().contains("<html"))
      let names = try Self.processes(with: folder + "/sallyport-lab.")
      #expect(Set(names) == ["sallyport", "mfa-backend"], "\(names)")
      lab.send(signal)
      #expect(try await lab.exit() == .code(0))
      #expect(try Self.processes(with: folder + "/sallyport-lab.") == [])
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }
  }

  @Test("B-050 B-077 scripts/lab --walk goes from an enrolment to a remembered device and back, by REST and by socket")
  func walk() async throws {
    try await Places.withTemporaryFolder { folder in
      let programs = URL(fileURLWithPath: try Places.product("attest")).deletingLastPathComponent().path
      let run = try await ChildProcess.run(
        "/usr/bin/env", ["bash", ProjectFile.path("scripts/lab"), "--walk", "--build", programs],
        environment: ["TMPDIR": folder], within: .seconds(200))
      #expect(run.exit == .code(0), "\(run.output.suffix(12)) \(run.errors)")
      #expect(run.output.last == "All steps did what they had to.")
      #expect(run.output.count { $0.contains("the second factor is missing") } == 4)
      #expect(run.output.count { $0.contains("this device is trusted: yes") } == 2)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }
  }

  @Test("A folder of the user's stays, and its authority and log serve other commands")
  func folder() async throws {
    try await Places.withTemporaryFolder { folder in
      let lab = try Self.start(["--folder", folder + "/lab", "--json"], in: folder)
      defer { lab.send(SIGTERM) }
      _ = try await lab.output.first("the page") { $0.hasPrefix("{") }
      let summary = try JSONValue(Data(contentsOf: URL(fileURLWithPath: folder + "/lab/gate.json")))
      let url = try #require(summary["url"]?.text)
      let run = try await ChildProcess.run(
        Places.product("attest"),
        [
          "lab", "run", "A-S01", "--by", "rest", url, "--authority", folder + "/lab/authority", "--messages",
          folder + "/lab/backend.log",
        ], environment: ["XDG_DATA_HOME": folder + "/data"])
      #expect(run.exit == .code(0), "\(run)")
      lab.send(SIGTERM)
      #expect(try await lab.exit() == .code(0))
      #expect(FileManager.default.fileExists(atPath: folder + "/lab/backend.log"))
    }
  }

  @Test("When a program ends, the lab ends with its name, and the other program too")
  func programEnds() async throws {
    try await Places.withTemporaryFolder { folder in
      let lab = try Self.start(["--folder", folder + "/lab"], in: folder)
      defer { lab.send(SIGTERM) }
      _ = try await lab.output.first("the page") { $0.hasPrefix("http:") }
      let drained = try await ChildProcess.run(
        Places.product("sallyport"), ["drain", "-c", folder + "/lab/authority/sallyport.yaml"])
      #expect(drained.exit == .code(0), "\(drained)")
      #expect(try await lab.exit() == .code(69))
      #expect(lab.errors.lines.first?.hasPrefix("error: sallyport has exited") == true, "\(lab.errors.lines)")
      #expect(lab.errors.lines.last == "hint: its log is \(folder)/lab/gate.log", "\(lab.errors.lines)")
      #expect(try Self.processes(with: folder + "/lab/") == [])
    }
  }

  @Test(
    "Options that do not fit are refused",
    arguments: [
      ["--all", "wss://localhost:1/"], ["--all", "--messages", "x"], ["--all", "--authority", "x"], ["--folder", "x"],
      [],
    ])
  func misused(_ options: [String]) async throws {
    let run = try await ChildProcess.run(Places.product("attest"), ["lab"] + options)
    #expect(run.exit == .code(64), "\(run)")
  }

  @Test("A program that does not start is named, with what keeps its log if the folder is removed")
  func temporaryLog() async throws {
    try await Places.withTemporaryFolder { folder in
      try FileManager.default.createDirectory(atPath: folder + "/bin", withIntermediateDirectories: false)
      let alone = folder + "/bin/attest"
      try FileManager.default.copyItem(atPath: Places.product("attest"), toPath: alone)
      try FileManager.default.createSymbolicLink(
        atPath: folder + "/bin/sallyport", withDestinationPath: Places.tool("false"))
      try FileManager.default.createDirectory(atPath: folder + "/tmp", withIntermediateDirectories: false)
      let run = try await ChildProcess.run(alone, ["lab", "--all"], environment: ["TMPDIR": folder + "/tmp"])
      #expect(run.exit == .code(69), "\(run)")
      #expect(run.errors.first == "error: sallyport has exited", "\(run)")
      let hint = "hint: its log is removed with the temporary folder; --folder DIR keeps it"
      #expect(run.errors.last == hint, "\(run)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/tmp") == [])
    }
  }

  @Test("A program that is not installed is named")
  func missing() async throws {
    try await Places.withTemporaryFolder { folder in
      let alone = folder + "/attest"
      try FileManager.default.copyItem(atPath: Places.product("attest"), toPath: alone)
      let run = try await ChildProcess.run(
        alone, ["lab", "--all"], environment: ["TMPDIR": folder, "PATH": "/nonexistent"])
      #expect(run.exit == .code(69), "\(run)")
      #expect(run.errors.first == "error: sallyport is neither next to attest nor in PATH", "\(run)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["attest"])
    }
  }
}
