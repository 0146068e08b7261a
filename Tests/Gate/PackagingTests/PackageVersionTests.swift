import Foundation
import TestSupport
import Testing

/// A clone with scripts/package and the number of the release alone.
private struct SmallClone {
  let folder: String
  private static let number = "Sources/Daemon/Commands/ProjectVersion.swift"

  static func with(_ body: (SmallClone) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let clone = SmallClone(folder: folder + "/clone")
      for file in ["scripts/package", number] {
        let url = URL(fileURLWithPath: clone.folder + "/" + file)
        try FileManager.default.createDirectory(
          at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: ProjectFile.path(file), toPath: url.path)
      }
      try await clone.git("init", "--quiet")
      try await body(clone)
    }
  }

  @discardableResult
  func git(_ arguments: String..., time: Int = 1_800_000_000) async throws -> [String] {
    let identity = ["-c", "user.name=Packages", "-c", "user.email=packages@example.com", "-c", "commit.gpgsign=false"]
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("git"), identity + arguments, environment: ["GIT_COMMITTER_DATE": "@\(time) +0000"], in: folder)
    try #require(exit == .code(0), "\(errors)")
    return output
  }

  func setNumber(_ number: String) throws {
    let file = URL(fileURLWithPath: folder + "/" + Self.number)
    let text = try String(decoding: Data(contentsOf: file), as: UTF8.self)
    try Data(text.replacing(/number = "[^"]+"/, with: "number = \"\(number)\"").utf8).write(to: file)
  }

  func commit(at time: Int) async throws {
    try await git("add", ".")
    try await git("commit", "--quiet", "--allow-empty", "--message", "A change", time: time)
  }

  func package(_ arguments: String...) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run("/bin/bash", [folder + "/scripts/package"] + arguments, in: folder)
  }

  func version(_ suite: String) async throws -> String {
    let (exit, output, errors) = try await package("--version", "--suite", suite)
    try #require(exit == .code(0), "\(errors)")
    return try #require(output.first)
  }
}

@Suite("The versions of the packages", .timeLimit(.minutes(2)))
struct PackageVersionTests {
  /// Requires that dpkg takes the second version for the newer one.
  private func expectNewer(_ old: String, _ new: String) async throws {
    let result = try await ChildProcess.run(Places.tool("dpkg"), ["--compare-versions", old, "lt", new])
    #expect(result.exit == .code(0), "\(new) is not newer than \(old)")
  }

  @Test func `each of ten commits is newer than the one before, and Debian 13's package newer than Debian 12's`()
    async throws
  {
    try await SmallClone.with { clone in
      // Commits of a rebase have the same second; a clock may be slow. A number changes before its tag is set.
      let history: [(seconds: Int, number: String, tag: String?)] = [
        (0, "0.9.0", nil), (0, "0.9.0", nil), (9, "0.9.0", "v0.9.0"), (9, "0.9.0", nil), (9, "0.9.0", nil),
        (4, "0.9.0", nil), (20, "0.10.0", nil), (20, "0.10.0", "v0.10.0"), (15, "0.10.0", nil), (30, "0.10.0", nil),
      ]
      var previous: String?
      for (seconds, number, tag) in history {
        try clone.setNumber(number)
        try await clone.commit(at: 1_800_000_000 + seconds)
        // The same commit, before it is a release.
        let untagged = try await clone.version("12")
        if let previous { try await expectNewer(previous, untagged) }
        if let tag { try await clone.git("tag", tag) }
        let (old, new) = (try await clone.version("12"), try await clone.version("13"))
        if tag != nil {
          #expect(old == number + "~deb12")
          try await expectNewer(untagged, old)
        }
        try await expectNewer(old, new)
        previous = old
      }
    }
  }

  @Test func `changed files change the version, and a clone without its history has none`() async throws {
    try await SmallClone.with { clone in
      for time in 1...2 { try await clone.commit(at: 1_800_000_000 + time) }
      let clean = try await clone.version("12")
      try clone.setNumber("7.0.0")
      #expect(try await clone.version("12").hasSuffix("+dirty~deb12"))
      try await clone.git("checkout", "--quiet", ".")
      #expect(try await clone.version("12") == clean)
      try await clone.git("clone", "--quiet", "--depth", "1", "file://\(clone.folder)", clone.folder + "/shallow")
      let result = try await SmallClone(folder: clone.folder + "/shallow").package("--version")
      #expect(result.exit == .code(66))
      #expect(result.errors.last == "hint: git fetch --unshallow --tags")
    }
  }
}
