import Foundation
import TestSupport
import Testing

@Suite("The packages of scripts/setup")
struct SetupTests {
  /// What it would install if none of the programs in PATH were there.
  private func missing(_ options: String...) async throws -> Set<String> {
    let (exit, output, errors) = try await ChildProcess.run(
      "/bin/bash", [ProjectFile.path("scripts/setup"), "--list"] + options, environment: ["PATH": "/nonexistent"])
    try #require(exit == .code(0), "\(errors)")
    return Set(output)
  }

  @Test func `a build needs headers, and no server`() async throws {
    let gate: Set = ["pkg-config", "libssl-dev", "libcbor-dev", "libsqlite3-dev", "libpq-dev", "libqrencode-dev"]
    #expect(try await missing("--gate") == gate)
    let all = try await missing()
    #expect(all.isStrictSuperset(of: gate))
    #expect(all.allSatisfy { $0 == "pkg-config" || $0.hasSuffix("-dev") }, "\(all)")
  }

  @Test func `the tests need more, and further packages can be named`() async throws {
    let tests = try await missing("--tests", "testssl.sh")
    #expect(tests.isStrictSuperset(of: try await missing()))
    #expect(tests.contains("testssl.sh") && tests.contains("oathtool"))
  }

  @Test func `an unknown option is refused, with a hint`() async throws {
    let (exit, _, errors) = try await ChildProcess.run("/bin/bash", [ProjectFile.path("scripts/setup"), "--test"])
    #expect(exit == .code(64) && errors.first == "error: unknown argument --test")
    #expect(errors.last?.hasPrefix("hint: ") == true)
  }

  @Test func `a Swift that does not start is reported, with its own message`() async throws {
    try await Places.withTemporaryFolder { folder in
      // A toolchain on a machine without the libraries that it needs.
      let swift = folder + "/swift"
      try Data("#!/bin/sh\necho 'swift: cannot open libncurses.so.6' >&2\nexit 127\n".utf8)
        .write(to: URL(fileURLWithPath: swift))
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: swift)
      let (exit, _, errors) = try await ChildProcess.run(
        "/bin/bash", [ProjectFile.path("scripts/setup"), "--gate"], environment: ["PATH": folder + ":/usr/bin:/bin"])
      #expect(exit == .code(1))
      #expect(errors.first == "error: 'swift --version' fails: swift: cannot open libncurses.so.6", "\(errors)")
      #expect(errors.last?.contains("https://www.swift.org/install/linux/") == true)
    }
  }
}

@Suite("The help of the scripts")
struct ScriptHelpTests {
  @Test(arguments: ["demo", "demo-signin", "format", "fuzz", "generate", "lab", "package", "release", "test"])
  func `a script prints its help in every folder`(_ name: String) async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      "/bin/bash", ["../scripts/\(name)", "--help"], in: ProjectFile.path("config"))
    #expect(exit == .code(0), "\(errors)")
    #expect(output.first?.hasPrefix("scripts/\(name)") == true, "\(output)")
  }
}
