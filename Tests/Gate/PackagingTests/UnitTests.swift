import Foundation
import TestSupport
import Testing

/// systemd's tool that checks units; `nil` if it is not installed.
private let analyzer = try? Places.tool("systemd-analyze")

/// Checks the systemd units with systemd's own tools, which need no running systemd.
@Suite(
  "The systemd units",
  .enabled(if: analyzer != nil, "there is no systemd-analyze: install systemd to run this"),
  .timeLimit(.minutes(3)))
struct UnitTests {
  private static let folder = ProjectFile.path("config/systemd")
  private static let units = (try? FileManager.default.contentsOfDirectory(atPath: folder).sorted()) ?? []
  private static let services = units.filter { $0.hasSuffix(".service") }

  private func analyze(
    _ arguments: [String], environment: [String: String?] = [:]
  ) async throws -> (exit: ChildProcess.Exit, lines: [String]) {
    let (exit, output, errors) = try await ChildProcess.run(
      #require(analyzer), arguments, environment: environment)
    return (exit, output + errors)
  }

  private func exposure(_ path: String) async throws -> (exit: ChildProcess.Exit, lines: [String]) {
    try await analyze(["security", "--offline=true", "--threshold=15", "--no-pager", path])
  }

  @Test("Every service is hardened: its exposure is at most 1.5", arguments: services)
  func exposures(_ service: String) async throws {
    let (exit, lines) = try await exposure(Self.folder + "/" + service)
    #expect(exit == .code(0), "\(lines.suffix(1))")
    #expect(lines.contains { $0.contains("Overall exposure level for \(service)") }, "\(lines)")
  }

  @Test("A service that may gain privileges is above the limit")
  func exposureTwin() async throws {
    try await Places.withTemporaryFolder { folder in
      let unit = try String(contentsOfFile: Self.folder + "/sallyport.service", encoding: .utf8)
      let weak = folder + "/weak.service"
      try unit.replacing("CapabilityBoundingSet=\n", with: "").replacing("PrivateDevices=yes", with: "")
        .write(toFile: weak, atomically: true, encoding: .utf8)
      #expect(try await exposure(weak).exit != .code(0))
    }
  }

  /// Calls `body` with a folder of the units, in which each program is replaced by one that is installed here.
  private func withUnits<R>(_ body: (String) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      for name in Self.units {
        let unit = try String(contentsOfFile: Self.folder + "/" + name, encoding: .utf8)
        try unit.replacing(/\/usr\/bin\/(?:sallyport|mfa-backend)\b/, with: "/bin/true")
          .write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
      }
      return try await body(folder)
    }
  }

  /// Verifies a unit, and returns what concerns the units of this project.
  private func verify(
    _ unit: String, in folder: String, readsManual: Bool
  ) async throws -> (exit: ChildProcess.Exit, lines: [String]) {
    let (exit, lines) = try await analyze(
      ["verify", "--man=\(readsManual ? "yes" : "no")", folder + "/" + unit],
      environment: ["SYSTEMD_UNIT_PATH": folder + ":", "MANPATH": folder + "/man"])
    return (exit, lines.filter { line in line.contains("sallyport") || line.contains("mfa-backend") })
  }

  @Test("systemd accepts every line of every unit", arguments: units)
  func syntax(_ unit: String) async throws {
    try await withUnits { folder in
      let verdict = try await verify(unit, in: folder, readsManual: false)
      #expect(verdict.exit == .code(0) && verdict.lines.isEmpty, "\(verdict)")
      // A misspelled key is reported.
      let text = try String(contentsOfFile: folder + "/" + unit, encoding: .utf8)
      try text.replacing("\nDescription=", with: "\nDescribtion=")
        .write(toFile: folder + "/" + unit, atomically: true, encoding: .utf8)
      let broken = try await verify(unit, in: folder, readsManual: false)
      #expect(broken.lines.joined().contains("Describtion"), "\(broken)")
    }
  }

  @Test("The manual that the gate's unit names is among the pages that scripts/manuals writes")
  func manual() async throws {
    try await withUnits { folder in
      let bare = try await verify("sallyport.service", in: folder, readsManual: true)
      #expect(bare.exit != .code(0) && bare.lines.joined().contains("man sallyport(1)"), "\(bare)")
      let (exit, _, errors) = try await ChildProcess.run(
        Places.tool("python3"), [ProjectFile.path("scripts/manuals"), folder, "--build", Places.products])
      try #require(exit == .code(0), "\(errors)")
      let verdict = try await verify("sallyport.service", in: folder, readsManual: true)
      #expect(verdict.exit == .code(0) && verdict.lines.isEmpty, "\(verdict)")
    }
  }
}

/// Checks the files of the Debian packages against the units and the programs. `scripts/test --packages` makes and
/// installs the packages.
@Suite("The files of the Debian packages", .timeLimit(.minutes(1)))
struct DebianFilesTests {
  private func setting(_ name: String, in unit: String) -> [String] {
    unit.split(separator: "\n").filter { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
  }

  @Test(
    "Each service starts its socket first, requires it, and waits after an invalid configuration",
    arguments: [
      "sallyport", "mfa-backend",
    ])
  func sockets(_ name: String) throws {
    let unit = try ProjectFile.text("config/systemd/\(name).service")
    for key in ["Wants", "After"] {
      #expect(setting(key, in: unit).contains { $0.split(separator: " ").contains("\(name).socket") })
    }
    #expect(setting("Environment", in: unit) == ["SOCKET_UNIT=\(name).socket", "LIBDISPATCH_LOG=NO"])
    // A start limit would end the socket, too.
    #expect(setting("StartLimitIntervalSec", in: unit) == ["0"])
    #expect(
      setting("ExecStopPost", in: unit).contains {
        $0.contains("!= \(setting("RestartPreventExitStatus", in: unit)[0]) || sleep")
      })
  }

  @Test("The drop-in for systems without user namespaces changes one restriction of both units, and no other")
  func userNamespaces() throws {
    let dropIn = try ProjectFile.text("config/debian/no-user-namespaces.conf")
    #expect(dropIn.split(separator: "\n").filter { !$0.hasPrefix("#") } == ["[Service]", "PrivateUsers=no"])
    for name in ["sallyport", "mfa-backend"] {
      #expect(setting("PrivateUsers", in: try ProjectFile.text("config/systemd/\(name).service")) == ["yes"])
    }
  }

  @Test(
    "A console over TLS is a service of its own, with the user of its service, and cannot reach the database",
    arguments: [
      ("sallyport-console", "sallyport", "sallyport console"), ("mfa-console", "mfa-backend", "mfa-backend console"),
    ])
  func consoles(_ name: String, _ service: String, _ command: String) throws {
    let unit = try ProjectFile.text("config/systemd/\(name).service")
    let ofService = try ProjectFile.text("config/systemd/\(service).service")
    for key in ["User", "Group", "SystemCallArchitectures", "CapabilityBoundingSet", "NoNewPrivileges"] {
      #expect(setting(key, in: unit) == setting(key, in: ofService))
    }
    let file = try #require(setting("ExecStart", in: ofService).first?.split(separator: " ").last)
    #expect(setting("ExecStart", in: unit) == ["/usr/bin/\(command) --serve -c \(file)"])
    let folder = try #require(setting("StateDirectory", in: ofService).first)
    #expect(setting("InaccessiblePaths", in: unit) == ["-/var/lib/\(folder)"])
    #expect(setting("StateDirectory", in: unit).isEmpty && setting("RuntimeDirectory", in: unit).isEmpty)
    #expect(try ProjectFile.text("config/debian/rules").contains(" \(name).service"))
  }

  @Test("The package makes the user and the folders of the unit, and the files that the configuration names")
  func places() throws {
    let unit = try ProjectFile.text("config/systemd/sallyport.service")
    let users = try ProjectFile.text("config/debian/sallyport.sysusers")
    let folders = try ProjectFile.text("config/debian/sallyport.tmpfiles")
    let user = try #require(setting("User", in: unit).first)
    #expect(setting("Group", in: unit) == [user])
    #expect(users.contains("\nu \(user) "))
    for (kind, parent) in [("State", "/var/lib"), ("Runtime", "/run")] {
      let folder = try #require(setting(kind + "Directory", in: unit).first)
      #expect(setting(kind + "DirectoryMode", in: unit) == ["0700"])
      // For a new folder alone: an update of the package must not take the folder from the group of admin.group.
      #expect(folders.contains("\nd \(parent)/\(folder) :0700 :\(user) :\(user)\n"))
    }
    let configuration = try ProjectFile.text("config/debian/sallyport.yaml")
    let hook = try ProjectFile.text("config/debian/certbot-deploy-hook")
    let files = configuration.matches(of: /(?m)^ +(?:cert|key)_file: (.+)\/(.+)$/)
    #expect(files.count == 2)
    for file in files {
      #expect(folders.contains("\nd \(file.output.1) 0750 root \(user)\n"))
      #expect(hook.contains("${1:-\(file.output.1)}") && hook.contains("\"$RENEWED_LINEAGE/\(file.output.2)\""))
    }
    #expect(hook.contains("install -o \(user) -g \(user) -m 400 \"$RENEWED_LINEAGE/privkey.pem\""))
    #expect(configuration.contains("listen: unix:/run/\(setting("RuntimeDirectory", in: unit)[0])/"))
    #expect(setting("ExecStart", in: unit) == ["/usr/bin/sallyport run -c /etc/sallyport/sallyport.yaml"])
  }

  @Test("The backend's package makes the user and the folders of its unit, which its configuration names")
  func placesOfBackend() throws {
    let unit = try ProjectFile.text("config/systemd/mfa-backend.service")
    let users = try ProjectFile.text("config/debian/sallyport-mfa.sysusers")
    let folders = try ProjectFile.text("config/debian/sallyport-mfa.tmpfiles")
    let user = try #require(setting("User", in: unit).first)
    #expect(setting("Group", in: unit) == [user])
    #expect(users.contains("\nu \(user) "))
    for (kind, parent) in [("State", "/var/lib"), ("Runtime", "/run"), ("Logs", "/var/log")] {
      let folder = try #require(setting(kind + "Directory", in: unit).first)
      #expect(setting(kind + "DirectoryMode", in: unit) == ["0700"])
      #expect(folders.contains("\nd \(parent)/\(folder) 0700 \(user) \(user)\n"))
    }
    let configuration = try ProjectFile.text("config/mfa-backend.yaml")
    #expect(configuration.contains("\ndatabase: sqlite:///var/lib/\(setting("StateDirectory", in: unit)[0])/"))
    #expect(configuration.contains("\n  listen: unix:/run/\(setting("RuntimeDirectory", in: unit)[0])/"))
    #expect(configuration.contains("\n#  file: /var/log/\(setting("LogsDirectory", in: unit)[0])/"))
    #expect(setting("ExecStart", in: unit) == ["/usr/bin/mfa-backend run -c /etc/mfa/mfa.yaml"])
    // The commands find the same file without a flag.
    let commands = try ProjectFile.text("Sources/Backend/mfa-backend/Settings/SettingsReader.swift")
    #expect(commands.contains("standard: \"/etc/mfa/mfa.yaml\""))
  }

  @Test("The gate accepts the shipped configuration, also with the app that it shows, and only then is all in order")
  func configuration() async throws {
    try await Places.withTemporaryFolder { folder in
      let (made, _, errors) = try await ChildProcess.run(
        Places.tool("openssl"),
        [
          "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-x509", "-subj", "/CN=localhost",
          "-keyout", folder + "/privkey.pem", "-out", folder + "/fullchain.pem",
        ])
      try #require(made == .code(0), "\(errors)")
      let shipped = try ProjectFile.text("config/debian/sallyport.yaml")
        .replacing("/etc/sallyport/tls", with: folder)
      // Without the comment signs of the example, which ends at an empty line.
      let complete = shipped.replacing(/#app_attest:(?:\n#.*)*/) { $0.output.replacing("\n#", with: "\n").dropFirst() }
      try #require(complete.contains("\n    - team_id: AAABBBCCC1\n"))
      for (text, mentionsApps) in [(shipped, true), (complete, false)] {
        try text.write(toFile: folder + "/sallyport.yaml", atomically: true, encoding: .utf8)
        let (exit, output, errors) = try await ChildProcess.run(
          Places.product("sallyport"), ["check", "--offline", "-c", folder + "/sallyport.yaml"])
        #expect(exit == .code(0), "\(errors)")
        #expect((output + errors).contains { $0.contains("app_attest.apps") } == mentionsApps, "\(output) \(errors)")
      }
    }
  }

  @Test("The article about installing lists the steps of scripts/machine")
  func machine() async throws {
    let (exit, steps, errors) = try await ChildProcess.run(
      Places.tool("python3"), [ProjectFile.path("scripts/machine"), "--list"])
    try #require(exit == .code(0) && !steps.isEmpty, "\(errors)")
    let article = try ProjectFile.text("Sources/Gate/GateService/GateService.docc/Installing.md")
    #expect(article.contains("Their steps:\n\n" + steps.map { "- \($0)\n" }.joined() + "\n"))
  }

  @Test("The deploy hook refuses to run without certbot's variable, and names the command")
  func deployHook() async throws {
    let (exit, _, errors) = try await ChildProcess.run(
      ProjectFile.path("config/debian/certbot-deploy-hook"), environment: ["RENEWED_LINEAGE": nil])
    #expect(exit == .code(64))
    #expect(
      errors.first == "error: RENEWED_LINEAGE is not set" && errors.last?.hasPrefix("hint: ") == true, "\(errors)")
  }
}
