internal import Commands
internal import Foundation
internal import Glibc
internal import Locking

/// The gate and the MFA backend of `attest lab --all`: processes of the installed programs.
///
/// All their files are in one folder: the authority, the backend's socket, and the logs.
final class LabPrograms: Sendable {
  /// The URL of the gate.
  let url: String
  /// The folder of the authority, which vouches for the lab's devices.
  let authority: String
  /// The log of the backend, with the phone's codes.
  let messages: String
  private let processes: LabProcesses

  /// Starts both programs in `folder`. Returns when they serve.
  ///
  /// - Throws: A failure if a program is not found or exits, or if `signals` ended the start. No process runs then.
  init(in folder: LabFolder, until signals: ClosingSignals) async throws(Failure) {
    authority = folder.path + "/authority"
    messages = folder.path + "/backend.log"
    let socket = folder.path + "/mfa.sock"
    guard socket.utf8.count <= 107 else {
      throw Failure(
        .usage, "\(socket) is too long for a socket, which has at most 107 bytes",
        hint: "name a folder with a shorter path")
    }
    let processes = LabProcesses(in: folder)
    self.processes = processes
    do throws(Failure) {
      let gate = try processes.start(
        "sallyport",
        ["dev", "--upstream", "unix:\(socket)", "--forward", "all", "--folder", authority, "--port", "0", "--json"],
        output: folder.path + "/gate.json", log: folder.path + "/gate.log")
      let line = try await gate.line(of: folder.path + "/gate.json", until: signals) { $0.hasPrefix("{") }
      guard let url = (try? JSONDecoder().decode(GateSummary.self, from: Data(line.utf8)))?.url,
        let address = try? GateURL(url)
      else { throw Failure(.protocolFault, "not the summary of a development gate: \(line)") }
      self.url = url
      let backend = try processes.start(
        "mfa-backend",
        [
          "run", "--ephemeral", "--sms-sink", "log", "--webauthn-rp-id", "localhost", "--listen", "unix:\(socket)",
          "--gate-jwks",
          "https://\(address.hostField)/.well-known/sallyport/jwks.json", "--gate-ca", authority + "/tls-ca.pem",
          "--gate-issuer", "sallyport", "--audience", "sallyport-upstream",
        ], output: "/dev/null", log: messages)
      _ = try await backend.line(of: messages, until: signals) { $0.contains(#""message":"listening""#) }
    } catch {
      await processes.stop()
      throw error
    }
  }

  /// Returns the failure of the first program that exits before `stop`; `nil` when the task is cancelled.
  func failure() async -> Failure? {
    while true {
      if let failure = processes.failure { return failure }
      guard (try? await Task.sleep(for: .milliseconds(200))) != nil else { return nil }
    }
  }

  /// Stops both programs. Returns when they have exited.
  func stop() async { await processes.stop() }

  private struct GateSummary: Decodable {
    let url: String
  }
}

/// The folder of the lab's programs.
struct LabFolder {
  let path: String
  private let isTemporary: Bool

  /// Creates the folder at `path`, mode 0700; without a path, a temporary one.
  init(_ path: String?) throws(Failure) {
    if let path {
      isTemporary = false
      self.path = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
      do {
        try FileManager.default.createDirectory(
          atPath: self.path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw Failure(.cannotCreate, "cannot make the folder \(path)", hint: "name another one with --folder")
      }
      return
    }
    var template = Array((FileManager.default.temporaryDirectory.path + "/sallyport-lab.XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else {
      throw Failure(.cannotCreate, "cannot make a temporary folder", hint: "name one with --folder")
    }
    isTemporary = true
    self.path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Where the file `log` of this folder can be read after the command has failed.
  func hint(for log: String) -> String {
    isTemporary ? "its log is removed with the temporary folder; --folder DIR keeps it" : "its log is \(log)"
  }

  /// Removes a temporary folder. A folder that the user named stays.
  func remove() { if isTemporary { try? FileManager.default.removeItem(atPath: path) } }
}

/// Processes that this one has started.
private final class LabProcesses: Sendable {
  private let folder: LabFolder
  private let running = LockedValue<[LabProcess]>([])

  init(in folder: LabFolder) { self.folder = folder }

  /// Starts `program`, with its standard output and error in files.
  func start(
    _ program: String, _ arguments: [String], output: String, log: String
  ) throws(Failure) -> LabProcess {
    let process = try LabProcess(program, arguments, output: output, log: log, hint: folder.hint(for: log))
    running.withLock { $0.append(process) }
    return process
  }

  /// Why the first of them exited; `nil` while all run.
  var failure: Failure? { running.withLock { $0 }.lazy.compactMap(\.failure).first }

  /// Ends all, the last one first. A process that ignores SIGTERM for 10 seconds is killed.
  func stop() async {
    let all = running.withLock { running in
      defer { running = [] }
      return running
    }
    for process in all.reversed() { await process.stop() }
  }
}

/// A process of an installed program.
///
/// `Process` is not Sendable. It is used by one task at a time: the one that starts it, and the one that stops it.
private final class LabProcess: @unchecked Sendable {
  private let process = Process()
  private let program: String
  private let log: String
  private let hint: String

  /// - Parameter hint: Where the log can be read after a failure.
  init(_ program: String, _ arguments: [String], output: String, log: String, hint: String) throws(Failure) {
    (self.program, self.log, self.hint) = (program, log, hint)
    process.executableURL = URL(fileURLWithPath: try InstalledProgram.path(of: program))
    process.arguments = arguments
    // The variables of an installed backend are not those of the lab.
    process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("MFA_BACKEND_") }
    process.standardInput = FileHandle.nullDevice
    do {
      process.standardOutput = try Self.file(output)
      process.standardError = try Self.file(log)
      try process.run()
    } catch {
      throw Failure(.cannotCreate, "\(program) cannot be started: \(error.localizedDescription)")
    }
  }

  private static func file(_ path: String) throws -> FileHandle {
    if path == "/dev/null" { return .nullDevice }
    try Data().write(to: URL(fileURLWithPath: path))
    return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
  }

  /// Why it exited; `nil` while it runs.
  var failure: Failure? {
    guard !process.isRunning else { return nil }
    let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    let last = text.split(whereSeparator: \.isNewline).last.map { ": \($0)" } ?? ""
    return Failure(.unavailable, "\(program) has exited\(last)", hint: hint)
  }

  /// Waits for a line of the file at `path`, up to 30 seconds.
  func line(
    of path: String, until signals: ClosingSignals, where isWanted: (Substring) -> Bool
  ) async throws(Failure) -> String {
    for _ in 0..<600 {
      let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
      // The last part has no end yet.
      let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).dropLast()
      if let line = lines.first(where: isWanted) { return String(line) }
      if let failure { throw failure }
      if signals.wereReceived { throw Failure(.retryLater, "interrupted") }
      try? await Task.sleep(for: .milliseconds(50))
    }
    throw Failure(.unavailable, "\(program) does not serve after 30 seconds", hint: hint)
  }

  func stop() async {
    if process.isRunning { process.terminate() }
    for _ in 0..<200 where process.isRunning { try? await Task.sleep(for: .milliseconds(50)) }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }
}

/// The other programs of an installation.
enum InstalledProgram {
  /// The path of `name`: next to this program, or else in PATH.
  static func path(of name: String) throws(Failure) -> String {
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let folders =
      [own.split(separator: "/").dropLast().map { "/" + $0 }.joined()]
      + (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
      .map(String.init)
    guard let path = folders.map({ "\($0)/\(name)" }).first(where: FileManager.default.isExecutableFile) else {
      throw Failure(
        .unavailable, "\(name) is neither next to attest nor in PATH",
        hint: "install it: the packages sallyport and sallyport-mfa have these programs")
    }
    return path
  }
}
