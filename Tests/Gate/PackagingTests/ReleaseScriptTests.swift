import Foundation
import TestSupport
import Testing

/// A clone with scripts/release alone, and a Swift that makes small programs of C.
private struct SmallRelease {
  let folder: String
  /// Has a blank, a quotation mark and a sign that bash replaces.
  var clone: String { folder + "/it's a & clone" }
  var made: String { folder + "/made programs" }

  static func with(_ body: (SmallRelease) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let release = SmallRelease(folder: folder)
      for file in ["scripts/release", "scripts/releasing/names.c"] {
        let url = URL(fileURLWithPath: release.clone + "/" + file)
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: ProjectFile.path(file), toPath: url.path)
      }
      try FileManager.default.createDirectory(atPath: folder + "/bin", withIntermediateDirectories: false)
      try write(swift, to: folder + "/bin/swift")
      try write(compiler, to: folder + "/bin/swiftc")
      try write(data, to: release.clone + "/scripts/releasing/icu_data.py")
      try await body(release)
    }
  }

  private static func write(_ script: String, to path: String) throws {
    try Data(script.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
  }

  /// Runs scripts/release in a folder of temporary files whose path has a blank.
  ///
  /// - Parameter path: What follows the small Swift in PATH.
  func run(
    _ programs: String..., environment: [String: String] = [:],
    path: String = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    let temporary = folder + "/temporary files"
    try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: true)
    var variables: [String: String?] = ["PATH": "\(folder)/bin:\(path)", "TMPDIR": temporary]
    for (name, value) in environment { variables[name] = value }
    return try await ChildProcess.run(
      "/bin/bash", [clone + "/scripts/release", made] + programs, environment: variables)
  }

  func version(of program: String) async throws -> [String] {
    try await ChildProcess.run(made + "/" + program, ["--version"]).output
  }

  /// Makes the objects of a program. Two programs have a function of the same name, as those of Swift have.
  private static let swift = #"""
    #!/bin/bash
    set -e
    compiler=$(command -v clang || command -v cc)
    built=$PWD/.build-static/release
    case "$*" in *--show-bin-path) printf '%s\n' "$built"; exit ;; esac
    program=${!#}
    mkdir -p "$built/$program.build" "$built/$program.product"
    cd "$built/$program.build"
    cat >main.c <<END
    #include <stdio.h>
    void async_MainTu(void) { printf("$program ${VERSION:-1.0}\n"); }
    int ${program}_main(int count, char **arguments) { async_MainTu(); return 0; }
    END
    "$compiler" -c -fPIC main.c
    echo 'int shared;' >../shared.c
    "$compiler" -c -fPIC -o ../shared.o ../shared.c
    "$compiler" "-Wl,--defsym=main=${program}_main" -o "../$program" main.o
    quote="'\\''"
    for file in "$built/$program.build/main.o" "$built/shared.o"; do
      printf "'%s'\n" "${file//\'/"$quote"}"
    done >"../$program.product/Objects.LinkFileList"
    """#

  private static let compiler = #"""
    #!/bin/bash
    [[ -z ${FAILS:-} || "$*" != *"main=${FAILS}_main"* ]] || exit 1
    arguments=()
    for argument; do
      case "$argument" in -static-stdlib | -emit-executable) ;; *) arguments+=("$argument") ;; esac
    done
    exec "$(command -v clang || command -v cc)" "${arguments[@]}"
    """#

  private static let data = #"""
    #!/bin/bash
    exec "$(command -v clang || command -v cc)" -c -x c -o "$1" /dev/null
    """#
}

@Suite("scripts/release", .timeLimit(.minutes(5)))
struct ReleaseScriptTests {
  @Test("Programs are linked in a folder whose path has blanks and quotation marks, two of them as one file")
  func path() async throws {
    try await SmallRelease.with { release in
      let (exit, output, errors) = try await release.run("sallyport", "bearer", "attest")
      try #require(exit == .code(0), "\(output) \(errors)")
      for program in ["sallyport", "attest", "bearer"] {
        #expect(try await release.version(of: program) == ["\(program) 1.0"])
      }
      let link = try FileManager.default.destinationOfSymbolicLink(atPath: release.made + "/attest")
      #expect(link == "sallyport")
      #expect(try FileManager.default.contentsOfDirectory(atPath: release.folder + "/temporary files") == [])
    }
  }

  @Test("A link that fails leaves the programs of an earlier run as they were")
  func failedLink() async throws {
    try await SmallRelease.with { release in
      let first = try await release.run("sallyport", "attest")
      try #require(first.exit == .code(0), "\(first)")
      let failed = try await release.run(
        "sallyport", "attest", "bearer", environment: ["VERSION": "2.0", "FAILS": "bearer"])
      #expect(failed.exit != .code(0))
      #expect(try FileManager.default.contentsOfDirectory(atPath: release.made).sorted() == ["attest", "sallyport"])
      #expect(try await release.version(of: "attest") == ["attest 1.0"])
    }
  }

  @Test("Missing tools are named with their packages before anything is built")
  func missingTools() async throws {
    try await SmallRelease.with { release in
      let few = release.folder + "/few"
      try FileManager.default.createDirectory(atPath: few, withIntermediateDirectories: false)
      try FileManager.default.createSymbolicLink(
        atPath: few + "/dirname", withDestinationPath: Places.tool("dirname"))
      let (exit, _, errors) = try await release.run("bearer", path: few)
      #expect(exit == .code(69))
      #expect(errors == ["error: missing: gcc python3 binutils", "hint: apt-get install gcc python3 binutils"])
      #expect(!FileManager.default.fileExists(atPath: release.clone + "/.build-static"))
    }
  }

  @Test(
    "A Swift without the library of ICU's data is reported in the words of the tool that failed",
    arguments: [
      (#"{"paths": {"runtimeResourcePath": "/nonexistent"}}"#, "/nonexistent/linux/lib_FoundationICU.a"),
      (#"{"target": {}}"#, "paths"),
    ])
  func missingLibrary(target: String, words: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let compiler = folder + "/swiftc"
      try Data("#!/bin/sh\necho '\(target)'\n".utf8).write(to: URL(fileURLWithPath: compiler))
      try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: compiler)
      let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
      let (exit, _, errors) = try await ChildProcess.run(
        ProjectFile.path("scripts/releasing/icu_data.py"), [folder + "/icu.o"],
        environment: ["PATH": folder + ":" + path])
      #expect(exit == .code(65))
      #expect(errors.count == 2 && errors.first?.hasPrefix("error: no part of ICU's data: ") == true, "\(errors)")
      #expect(errors.first?.contains(words) == true && errors.first?.contains("exit status") == false, "\(errors)")
    }
  }
}
