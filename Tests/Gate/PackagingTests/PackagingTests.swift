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

  @Test("Help fits 80 columns, and its examples can be pasted", arguments: ["sallyport", "attest"])
  func width(_ program: String) async throws {
    #expect(try await ProgramHelp.faults(of: program) == [])
  }

  @Test("An example that a program does not accept is found")
  func wrongExamples() throws {
    let json = """
      {"commandName": "p", "subcommands": [{"commandName": "sub", "arguments": [
        {"kind": "positional", "isOptional": false, "isRepeating": false},
        {"kind": "option", "isOptional": true, "isRepeating": false, "names": [{"kind": "long", "name": "form"}],
         "allValues": ["a"]},
        {"kind": "flag", "isOptional": true, "isRepeating": false, "names": [{"kind": "short", "name": "v"}]}]}]}
      """
    let command = try JSONDecoder().decode(CommandDescription.self, from: Data(json.utf8))
    func fault(_ text: String) -> String? {
      ShellText.commands(in: text).first { $0.first == "p" }.flatMap { command.fault(in: $0.dropFirst()) }
    }
    #expect(fault("p sub x --form a -v   # a comment") == nil)
    #expect(fault("curl -d \"$(p sub x \\\n  --form=a)\" | cat") == nil)
    #expect(fault("p sub --form a") == "an argument is missing")
    #expect(fault("p sub x y") == "there are more arguments than it takes")
    #expect(fault("p sub x --forms a") == "--forms is not an option")
    #expect(fault("p sub x --form b") == "--form has no value b")
    #expect(fault("p sub x --form") == "--form has no value")
    #expect(fault("p sbu") == "there are more arguments than it takes")
  }

  @Test("The words error and hint have colors on a terminal that shows them, unless NO_COLOR is set")
  func colors() async throws {
    // script(1) gives the program a terminal.
    let program = try Places.product("sallyport")
    let script = try Places.tool("script")
    let cases: [(onTerminal: Bool, type: String, noColor: String?, isColored: Bool)] = [
      (false, "xterm-256color", nil, false), (true, "xterm-256color", nil, true), (true, "dumb", nil, false),
      (true, "xterm-256color", "1", false), (true, "xterm-256color", "", true),
    ]
    for (onTerminal, type, noColor, isColored) in cases {
      let (exit, output, errors) = try await ChildProcess.run(
        onTerminal ? script : program,
        onTerminal ? ["-qec", "\(program) check --colour", "/dev/null"] : ["check", "--colour"],
        environment: ["TERM": type, "NO_COLOR": noColor])
      let text = (output + errors).joined(separator: "\n")
      #expect(exit == .code(64))
      #expect(
        text.contains(isColored ? "\u{1B}[1;31merror:\u{1B}[0m Unknown option" : "error: Unknown option"), "\(text)")
      #expect(text.contains(isColored ? "\u{1B}[36mhint:\u{1B}[0m " : "hint: "))
      #expect(isColored || !text.contains("\u{1B}"), "\(text)")
    }
  }

  @Test(
    "A command that does not exist is refused, with the one that was probably meant",
    arguments: [
      ("sallyport", "chekc", "did you mean `sallyport check`? `sallyport --help` lists the commands"),
      ("sallyport", "keys lsit", "did you mean `sallyport keys list`? `sallyport keys --help` lists the commands"),
      ("sallyport", "frobnicate", "`sallyport --help` lists the commands"),
      ("attest", "conect", "did you mean `attest connect`? `attest --help` lists the commands"),
    ])
  func unknownCommand(program: String, words: String, hint: String) async throws {
    let arguments = words.split(separator: " ").map(String.init)
    // With an option after the word, the parser complains of the option alone.
    for options in [[], ["-c", "gate.yaml"], ["--json"]] {
      let run = try await ChildProcess.run(Places.product(program), arguments + options)
      #expect(run.exit == .code(64) && run.output == [])
      #expect(run.errors == ["error: unknown command \(arguments.last ?? "")", "hint: \(hint)"], "\(options)")
    }
  }

  @Test("The version names program, release, commit and OpenSSL", arguments: ["sallyport", "attest"])
  func version(_ program: String) async throws {
    let version = try await ChildProcess.run(Places.product(program), ["--version"])
    let line = try #require(version.output.first)
    let (_, openSSL, _) = try await ChildProcess.run(Places.tool("openssl"), ["version"])
    let number = try #require(openSSL.first?.split(separator: " ").dropFirst().first)
    #expect(
      line.wholeMatch(of: /(\w+) \d+\.\d+\.\d+ \(commit ([0-9a-f]{12}\+?|unknown), OpenSSL (\S+)\)/)?.output.3
        == number,
      "\(line)")
    #expect(line.hasPrefix(program + " "))
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
      for words in ["--effective", "sallyport check -c gate.yaml", "the configuration is invalid"] {
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
      of: "Sources/App/AttestClient/AttestClient.docc/DebugBuilds.md", startingWith: "sallyport ca init")
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

@Suite("The code for Apple's platforms", .timeLimit(.minutes(20)))
struct AppleSourcesTests {
  @Test("scripts/typecheck-apple accepts the sources, and rejects a copy in which adapters and a sample are broken")
  func typecheck() async throws {
    try await Places.withTemporaryFolder { folder in
      let keep = ["--keep", folder]
      // A toolchain may be installed in the user's home.
      let home = ["HOME": ProcessInfo.processInfo.environment["HOME"]]
      let genuine = try await ChildProcess.run(
        ProjectFile.root + "/scripts/typecheck-apple", keep, environment: home, within: .seconds(600))
      #expect(genuine.exit == .code(0), "\(genuine.output) \(genuine.errors)")
      #expect(genuine.output.last?.hasPrefix("scripts/typecheck-apple: no errors") == true, "\(genuine.output)")
      let parts = [
        "Sources/App", "Sources/Common", "Sources/Tools", "Tests/App/AppleStubs", "scripts",
      ]
      for part in parts {
        let copy = URL(fileURLWithPath: folder + "/" + part)
        try FileManager.default.createDirectory(at: copy.deletingLastPathComponent(), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: ProjectFile.path(part), toPath: copy.path)
      }
      let files = [
        // Each has something that Apple's declaration does not have.
        ("App/MFAClient/LocalAuthenticationService.swift", "error: nil)", "failure: nil)"),
        ("App/AttestClient/AttestClient.docc/DebugBuilds.md", "items: CFArray?", "items: CFData?"),
        ("Tools/AuthenticatorVault/Sync/AppleUbiquitousStore.swift", "store.synchronize()", "store.synchronise()"),
        ("Tools/QRCodes/AVQRCamera.swift", "for: .video", "of: .video"),
        ("App/OIDCClient/Managers/BiometricCheck.swift", "localizedReason: reason", "reason: reason"),
      ]
      for (name, part, replacement) in files {
        let path = folder + "/Sources/" + name
        let text = try String(contentsOfFile: path, encoding: .utf8)
        try #require(text.contains(part))
        try text.replacing(part, with: replacement).write(toFile: path, atomically: true, encoding: .utf8)
      }
      // The other samples take their time, and were checked above.
      for article in ["AttestClient/AttestClient.docc/AttestClient", "MFAClient/MFAClient.docc/OnADevice"] {
        try FileManager.default.removeItem(atPath: folder + "/Sources/App/" + article + ".md")
      }
      let (exit, output, errors) = try await ChildProcess.run(
        folder + "/scripts/typecheck-apple", keep, environment: home, within: .seconds(600))
      #expect(exit == .code(1), "\(output)")
      let expected = [
        "AttestClient (Sources/App/AttestClient): ok", "MFAClient (Sources/App/MFAClient): FAILED",
        "OneTimePasswords (Sources/Common/OneTimePasswords): ok",
        "AuthenticatorVault (Sources/Tools/AuthenticatorVault): FAILED", "OIDCClient (Sources/App/OIDCClient): FAILED",
        "QRCodes (Sources/Tools/QRCodes, the camera): FAILED",
      ]
      for line in expected {
        #expect(output.contains(line), "\(output)")
      }
      #expect(output.contains { $0.hasSuffix("DebugBuilds.md: FAILED") }, "\(output)")
      for (name, _, _) in files where name.hasSuffix(".swift") {
        #expect(errors.contains { $0.contains(name + ":") && $0.contains("error: ") }, "\(name): \(errors)")
      }
    }
  }
}
