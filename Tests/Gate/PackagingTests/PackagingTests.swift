import Foundation
import TestSupport
import Testing

private func run(
  _ tool: String, _ arguments: String..., environment: [String: String?] = [:]
) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
  try await ChildProcess.run(tool, arguments, environment: environment, within: .seconds(120))
}

@Suite("The programs", .timeLimit(.minutes(3)))
struct ProgramTests {
  @Test(
    "Every command has a version and a help text with an example, without colors",
    arguments: ["sallyport", "attest"]
  )
  func help(_ program: String) async throws {
    let commands = try await ProgramHelp.commands(of: program)
    #expect(commands.count > 5)
    for words in commands {
      let name = ([program] + words).joined(separator: " ")
      let version = try await ChildProcess.run(Places.product(program), words + ["--version"])
      #expect(version.exit == .code(0) && version.output.count == 1, "\(name): \(version)")
      let help = try await ChildProcess.run(Places.product(program), words + ["--help"], environment: ["TERM": "xterm"])
      #expect(help.exit == .code(0), "\(name)")
      #expect(help.output.contains { $0.contains("Example") }, "\(name) shows no example")
      #expect(!help.output.joined().contains("\u{1B}"), "\(name)")
    }
  }

  @Test("Errors are printed without colors, on a terminal or not, with NO_COLOR or without")
  func mistakes() async throws {
    for environment in [[:], ["NO_COLOR": "1"], ["TERM": "xterm-256color"]] as [[String: String?]] {
      // script(1) gives the program a terminal.
      let program = try Places.product("sallyport")
      for (tool, arguments) in [
        (program, ["check", "--colour"]),
        (try Places.tool("script"), ["-qec", "\(program) check --colour", "/dev/null"]),
      ] {
        let (exit, output, errors) = try await ChildProcess.run(tool, arguments, environment: environment)
        let text = (output + errors).joined(separator: "\n")
        #expect(exit == .code(64) && text.contains("error: ") && text.contains("hint: "), "\(text)")
        #expect(!text.contains("\u{1B}"))
      }
    }
  }
}

@Suite("Files shipped with the programs", .timeLimit(.minutes(3)))
struct PackagingTests {
  /// Calls `body` with a folder into which scripts/manuals has written.
  private func withManuals<R>(_ body: (String) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      let (exit, _, errors) = try await run(
        Places.tool("python3"), ProjectFile.root + "/scripts/manuals", folder, "--build", Places.products)
      try #require(exit == .code(0), "\(errors)")
      return try await body(folder)
    }
  }

  @Test("Manual pages exist for each program and command, and groff reports no errors")
  func manuals() async throws {
    try await withManuals { folder in
      let pages = try FileManager.default.contentsOfDirectory(atPath: folder + "/man/man1").sorted()
      for program in ["sallyport", "attest"] {
        let commands = try await ProgramHelp.commands(of: program).filter { $0.count < 2 }
        for words in commands { #expect(pages.contains(([program] + words).joined(separator: "-") + ".1")) }
      }
      for page in pages {
        let path = folder + "/man/man1/" + page
        let (exit, _, errors) = try await run(Places.tool("groff"), "-man", "-ww", "-z", "-Tutf8", path)
        #expect(exit == .code(0) && errors.isEmpty, "\(page): \(errors)")
      }
      let (_, text, _) = try await run(
        Places.tool("groff"), "-man", "-Tascii", "-P-c", "-P-b", "-P-u", folder + "/man/man1/sallyport-check.1")
      for words in ["--effective", "sallyport check -c /etc/sallyport/sallyport.yaml", "the configuration is invalid"] {
        #expect(text.contains { $0.contains(words) }, "\(text)")
      }
    }
  }

  @Test("The shell completes commands and options")
  func completions() async throws {
    try await withManuals { folder in
      let program = """
        set -e
        source "$1"
        COMP_WORDS=(sallyport che); COMP_CWORD=1; COMP_LINE="sallyport che"; COMP_POINT=13; COMP_TYPE=9
        _sallyport sallyport che sallyport 2>/dev/null || true
        printf '%s\\n' "${COMPREPLY[@]}"
        """
      let (_, output, errors) = try await run(
        Places.tool("bash"), "-c", program, "bash", folder + "/bash/sallyport.bash")
      #expect(output.contains("check"), "\(output) \(errors)")
      for shell in ["zsh", "fish"] {
        guard let path = try? Places.tool(shell) else { continue }
        for file in try FileManager.default.contentsOfDirectory(atPath: folder + "/" + shell) {
          let (exit, _, errors) = try await run(path, "-n", folder + "/" + shell + "/" + file)
          #expect(exit == .code(0), "\(file): \(errors)")
        }
      }
    }
  }
}

@Suite("The articles' commands", .timeLimit(.minutes(3)))
struct ReadmeTests {
  /// Returns the lines of the first fenced block of the article at `path` that begins with `start`.
  private func block(of path: String, startingWith start: String) throws -> String {
    let article = try ProjectFile.text(path)
    let opening = try #require(article.range(of: "```sh\n" + start), "no block begins with \(start)")
    let rest = article[opening.lowerBound...].dropFirst("```sh\n".count)
    return String(rest[..<(try #require(rest.range(of: "```"))).lowerBound])
  }

  /// Runs `script` in `folder` as a person would, up to the first command that fails.
  private func shell(
    _ script: String, in folder: String
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(
      Places.tool("bash"), ["-e", "-c", "PATH=\(Places.products):$PATH\n\(script)"],
      environment: ["SALLYPORT_TLS__CERT_FILE": "cert.pem", "SALLYPORT_TLS__KEY_FILE": "key.pem"], in: folder)
  }

  @Test("The commands that create certificates for debug builds work as printed")
  func clientCertificates() async throws {
    let script = try block(
      of: "Sources/Device/AttestClient/AttestClient.docc/DebugBuilds.md", startingWith: "sallyport ca init")
    try await Places.withTemporaryFolder { folder in
      let (exit, output, errors) = try await shell(script, in: folder)
      #expect(exit == .code(0), "\(errors)")
      #expect(output.last == "config/client-ca/client.p12")
      let (opened, _, openErrors) = try await run(
        Places.tool("openssl"), "pkcs12", "-in", folder + "/config/client-ca/client.p12", "-noout", "-passin", "pass:")
      #expect(opened == .code(0), "\(openErrors)")
    }
  }

  @Test("The commands that check a configuration work as printed")
  func check() async throws {
    let lines = try block(
      of: "Sources/Gate/Settings/Settings.docc/Configuring.md", startingWith: "sallyport check"
    ).split(separator: "\n").map(String.init)
    try await Places.withTemporaryFolder { folder in
      let (made, _, errors) = try await run(
        Places.tool("openssl"), "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-x509",
        "-keyout",
        folder + "/key.pem", "-out", folder + "/cert.pem", "-subj", "/CN=localhost")
      try #require(made == .code(0), "\(errors)")
      try """
      store: { url: "sqlite://\(folder)/state.db" }
      listen: { address: 127.0.0.1, port: 0 }
      routes: [{ upstream: "ws://127.0.0.1:1" }]
      """.write(toFile: folder + "/gate.yaml", atomically: true, encoding: .utf8)
      #expect(lines.count == 4)
      for line in lines {
        let (exit, output, errors) = try await shell(line, in: folder)
        // No process listens at port 1, so the probes fail.
        #expect(exit == .code(line.contains("--offline") ? 0 : 1), "\(line): \(errors)")
        #expect(!output.isEmpty, "\(line)")
      }
    }
  }
}

@Suite("The code for Apple's platforms", .timeLimit(.minutes(5)))
struct AppleSourcesTests {
  @Test("scripts/typecheck-apple accepts the sources, and rejects a copy in which an adapter and a sample are broken")
  func typecheck() async throws {
    async let genuine = ChildProcess.run(ProjectFile.root + "/scripts/typecheck-apple", [], within: .seconds(240))
    try await Places.withTemporaryFolder { folder in
      let parts = [
        "Sources/Common", "Sources/Device", "Sources/MFA/MFAWire", "Sources/SignIn", "Tests/Device/AppleStubs",
        "scripts",
      ]
      for part in parts {
        let copy = URL(fileURLWithPath: folder + "/" + part)
        try FileManager.default.createDirectory(at: copy.deletingLastPathComponent(), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: ProjectFile.path(part), toPath: copy.path)
      }
      let files = [
        // A parameter that Apple's function does not have.
        ("MFAClient/LocalAuthenticationService.swift", "error: nil)", "failure: nil)"),
        ("AttestClient/AttestClient.docc/DebugBuilds.md", "items: CFArray?", "items: CFData?"),
      ]
      for (name, part, replacement) in files {
        let path = folder + "/Sources/Device/" + name
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try #require(text.contains(part))
        try text.replacing(part, with: replacement).write(toFile: path, atomically: true, encoding: .utf8)
      }
      let (exit, output, errors) = try await ChildProcess.run(
        folder + "/scripts/typecheck-apple", [], within: .seconds(240))
      #expect(exit == .code(1), "\(output)")
      for line in ["AttestClient (Sources/Device/AttestClient): ok", "MFAClient (Sources/Device/MFAClient): FAILED"] {
        #expect(output.contains(line), "\(output)")
      }
      #expect(output.contains { $0.hasSuffix("DebugBuilds.md: FAILED") }, "\(output)")
      #expect(errors.contains { $0.contains("LocalAuthenticationService.swift:") && $0.contains("error: ") })
    }
    let (exit, output, errors) = try await genuine
    #expect(exit == .code(0), "\(output) \(errors)")
    #expect(output.last?.hasPrefix("scripts/typecheck-apple: no errors") == true, "\(output)")
  }
}
