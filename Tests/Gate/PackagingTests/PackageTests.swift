import Foundation
import TestSupport
import Testing

/// The folder of the packages, and of the programs in them; `nil` if they are not made.
private let made = ProcessInfo.processInfo.environment["SALLYPORT_TEST_PACKAGES"]

/// Tests the Debian packages and the container image that `scripts/test --packages` has made.
@Suite(
  "The Debian packages and the container image", .serialized,
  .enabled(if: made != nil, "they are not made: run scripts/test --packages"),
  .timeLimit(.minutes(15)))
struct PackageTests {
  private static func files(in folder: String, ending: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(ending) }.sorted()
  }

  private func only(_ ending: String) throws -> String {
    let folder = try #require(made)
    let files = try Self.files(in: folder, ending: ending)
    try #require(files.count == 1, "\(files)")
    return folder + "/" + files[0]
  }

  @Test("lintian reports no error and no warning")
  func lintian() async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("lintian"), ["--fail-on", "error,warning", "--tag-display-limit", "0", only(".changes")],
      within: .seconds(600))
    #expect(exit == .code(0), "\(output) \(errors)")
  }

  @Test("The same commit gives the same packages, byte by byte")
  func reproducible() async throws {
    let folder = try #require(made)
    try await Places.withTemporaryFolder { second in
      let (exit, _, errors) = try await ChildProcess.run(
        ProjectFile.path("scripts/package"), [second, "--build", folder + "/programs"], within: .seconds(600))
      try #require(exit == .code(0), "\(errors)")
      let packages = try Self.files(in: folder, ending: ".deb")
      #expect(packages.count == 4)
      #expect(try Self.files(in: second, ending: ".deb") == packages)
      for package in packages {
        #expect(
          FileManager.default.contentsEqual(atPath: folder + "/" + package, andPath: second + "/" + package),
          "\(package)")
      }
    }
  }

  @Test("The gate's package has at most 15 MB, and 60 MB installed: attest is a second name of the gate's file")
  func sizes() async throws {
    let folder = try #require(made)
    let file = try #require(
      Self.files(in: folder, ending: ".deb").first { $0.wholeMatch(of: /sallyport_.*\.deb/) != nil })
    let package = folder + "/" + file
    let bytes = try FileManager.default.attributesOfItem(atPath: package)[.size] as? Int
    #expect(try #require(bytes) <= 15_000_000)
    let (exit, output, errors) = try await ChildProcess.run(
      Places.tool("dpkg-deb"), ["--field", package, "Installed-Size"], within: .seconds(60))
    try #require(exit == .code(0), "\(errors)")
    #expect(try #require(output.first.flatMap { Int($0) }) * 1024 <= 60_000_000)
    for program in ["sallyport", "attest"] {
      let (exit, output, errors) = try await ChildProcess.run(
        folder + "/programs/" + program, ["--version"], within: .seconds(60))
      #expect(exit == .code(0) && output.first?.hasPrefix(program + " ") == true, "\(output) \(errors)")
    }
  }

  /// What the test prints differs, or a program traps, if an item is missing.
  @Test("The part of ICU's data in the programs gives what the whole of it gives")
  func partOfICU() async throws {
    try await Places.withTemporaryFolder { folder in
      let source = ProjectFile.path("Tests/Gate/Programs/icu_uses.swift")
      let (exit, output, errors) = try await ChildProcess.run(
        ProjectFile.path("scripts/releasing/icu_data.py"), [folder + "/part.o"], within: .seconds(60))
      try #require(exit == .code(0), "\(output) \(errors)")
      var printed: [[String]] = []
      for (name, objects) in [("whole", []), ("part", [folder + "/part.o"])] {
        let program = folder + "/" + name
        // The compiler in PATH, of which the script reads the libraries.
        let compiled = try await ChildProcess.run(
          Places.tool("env"), ["swiftc", "-O", "-static-stdlib", source] + objects + ["-o", program],
          within: .seconds(300))
        try #require(compiled.exit == .code(0), "\(compiled.errors)")
        let (exit, output, errors) = try await ChildProcess.run(program, [], within: .seconds(60))
        #expect(exit == .code(0), "\(name): \(errors)")
        printed.append(output)
      }
      #expect(printed[0].count == 12)
      #expect(printed[0] == printed[1])
    }
  }

  @Test("A new Debian system without Swift installs, runs and purges them as the article says")
  func cleanSystem() async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      ProjectFile.path("Tests/Gate/Programs/clean_root.sh"), [#require(made), ProjectFile.root],
      within: .seconds(800))
    let report = output + errors
    #expect(exit == .code(0), "\(report.suffix(40).joined(separator: "\n"))")
    for step in [
      "first echoed frame", "all libraries of the programs", "the article's commands", "a renewed certificate",
      "systemd accepts", "an update keeps", "the backend starts", "nothing is left",
    ] {
      #expect(report.contains { $0.hasPrefix("passed: " + step) }, "\(step)")
    }
  }

  @Test("New Debian systems install from an apt repository, upgrade, and refuse one that was changed")
  func repository() async throws {
    let (exit, output, errors) = try await ChildProcess.run(
      ProjectFile.path("Tests/Gate/Programs/apt_root.sh"), within: .seconds(800))
    #expect(exit == .code(0), "\(errors.suffix(40).joined(separator: "\n"))")
    for step in ["12: apt upgrades", "13: apt upgrades", "12: apt refuses", "13: apt refuses", "13: the package takes"]
    {
      #expect(output.contains { $0.hasPrefix("passed: Debian " + step) }, "\(step)")
    }
  }

  /// Runs podman. A machine may deny that limits are raised, so they are given.
  private func podman(_ arguments: [String]) async throws -> (
    exit: ChildProcess.Exit, output: [String], errors: [String]
  ) {
    try await ChildProcess.run(
      Places.tool("podman"), ["--runtime", "runc"] + arguments, within: .seconds(120))
  }

  private let limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]

  @Test("The image runs the gate as an ordinary user with a read-only root, and closes within podman's grace period")
  func image() async throws {
    let archive = try only(".oci.tar")
    let (loaded, output, errors) = try await podman(["load", "--input", archive])
    try #require(loaded == .code(0), "\(errors)")
    let image = try #require(output.last?.split(separator: " ").last.map(String.init))
    let name = "sallyport-test-\(UUID().uuidString.lowercased())"
    let server = try ChildProcess(Places.product("attest"), ["echo", "--listen", "127.0.0.1:0"])
    defer { server.kill() }
    let upstream = try await server.output.first("the address of the echo server") { $0.hasPrefix("ws://") }
    let options = ["--read-only", "--network", "host", "--name", name] + limits

    // The default command reads the shipped configuration, which names a certificate that is not there yet.
    let bare = try await podman(["run", "--rm"] + options + [image])
    #expect(bare.exit == .code(78), "\(bare)")
    #expect(bare.errors.contains { $0.contains("/etc/sallyport/tls/fullchain.pem") }, "\(bare)")

    let port = try Places.freePort()
    let started = try await podman(
      ["run", "--detach"] + options
        + [image, "dev", "--folder", "/var/lib/sallyport/dev", "--port", "\(port)", "--upstream", upstream])
    try #require(started.exit == .code(0), "\(started.errors)")
    do {
      let user = try await podman(["exec", name, "id", "-u"])
      #expect(user.output == ["65532"], "\(user)")
      let written = try await podman(["exec", name, "touch", "/usr/bin/written"])
      #expect(written.exit != .code(0))
      var answer: [String] = []
      for _ in 0..<10 where answer.isEmpty {
        answer =
          try await podman(
            [
              "exec", "--env", "HOME=/var/lib/sallyport", name, "attest", "connect", "wss://localhost:\(port)/",
              "--authority", "/var/lib/sallyport/dev", "--once", "hello",
            ]
          ).output
      }
      #expect(answer == ["hello"])
      let stopped = try await podman(["stop", "--time", "10", name])
      #expect(stopped.exit == .code(0), "\(stopped)")
      let state = try await podman(["inspect", "--format", "{{.State.ExitCode}}", name])
      #expect(state.output == ["0"], "\(state)")
    }
    _ = try await podman(["rm", "--force", "--volumes", name])
    _ = try await podman(["rmi", "--force", image])
  }

  @Test("The Kubernetes manifest fits the schemas of Kubernetes, and a misspelled key does not")
  func manifest() async throws {
    let validator = PythonPackages(
      name: "kubernetes-python", packages: ["kubernetes-validate==1.37.0"], modules: "import kubernetes_validate")
    try #require(await validator.arePresent(), "kubernetes-validate could not be installed")
    func validate(_ path: String) async throws -> (
      exit: ChildProcess.Exit, output: [String], errors: [String]
    ) {
      try await ChildProcess.run(validator.python, ["-m", "kubernetes_validate", "--strict", "-k", "1.34", path])
    }
    let path = ProjectFile.path("config/kubernetes.yaml")
    let genuine = try await validate(path)
    #expect(genuine.exit == .code(0), "\(genuine)")
    #expect((genuine.output + genuine.errors).filter { $0.contains(" passed for resource ") }.count == 4, "\(genuine)")
    try await Places.withTemporaryFolder { folder in
      let broken = try ProjectFile.text("config/kubernetes.yaml")
        .replacing("terminationGracePeriodSeconds", with: "terminationGraceSeconds")
      try broken.write(toFile: folder + "/broken.yaml", atomically: true, encoding: .utf8)
      #expect(try await validate(folder + "/broken.yaml").exit == .code(1))
    }
  }
}
