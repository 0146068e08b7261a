import ByteCoding
import Foundation
import Glibc
import MFADomain
import MFAFixtures
import TestSupport
import Testing

@Suite("SIGHUP", .timeLimit(.minutes(2)))
struct HangupTests {
  /// Returns whether the process `id` ignores SIGHUP, from proc(5).
  private static func ignoresHangup(_ id: pid_t) -> Bool { hasHangup(in: ["SigIgn:"], of: id) }

  /// Returns whether SIGHUP does not end the process `id`: it ignores the signal or has a handler, from proc(5).
  private static func survivesHangup(_ id: pid_t) -> Bool { hasHangup(in: ["SigIgn:", "SigCgt:"], of: id) }

  private static func hasHangup(in masks: [String], of id: pid_t) -> Bool {
    guard let status = try? String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8) else { return false }
    return status.split(separator: "\n").contains { line in
      guard masks.contains(where: line.hasPrefix) else { return false }
      let mask = line.split(whereSeparator: \.isWhitespace).last.flatMap { UInt64($0, radix: 16) } ?? 0
      return mask & 1 == 1
    }
  }

  @Test("SIGHUP during start does not end the backend, and SIGHUP during service reloads the configuration")
  func survives() async throws {
    let gate = try TestGate(clock: .system)
    let backend = try ChildProcess(
      Places.product("mfa-backend"),
      ["run", "--ephemeral", "--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate))
    defer { backend.kill() }
    // On a busy machine the backend ignores the signal and handles it before this task looks again.
    while !Self.survivesHangup(backend.id), !backend.hasEnded, !Task.isCancelled {}
    let hangups = Task {
      while !Task.isCancelled {
        backend.send(SIGHUP)
        // Without a pause, this task and the backend's handler of the signal would each take a whole processor.
        try? await Task.sleep(for: .milliseconds(1))
      }
    }
    _ = try await backend.errors.first("the port") { $0.contains(#""message":"listening""#) }
    hangups.cancel()
    await hangups.value
    backend.send(SIGHUP)
    _ = try await backend.errors.first("the reload") { $0.contains(#""message":"configuration reloaded""#) }
    backend.send(SIGTERM)
    #expect(try await backend.exit(within: .seconds(20)) == .code(0))
    // The deallocation of the gate removes the file with its keys.
    withExtendedLifetime(gate) {}
  }

  @Test("A configuration file that hangs at a reload does not keep the backend from ending")
  func hangingFile() async throws {
    let gate = try TestGate(clock: .system)
    try await Places.withTemporaryFolder { folder in
      let file = folder + "/backend.yaml"
      try "version: 1\n".write(toFile: file, atomically: true, encoding: .utf8)
      let backend = try ChildProcess(
        Places.product("mfa-backend"),
        ["run", "-c", file, "--ephemeral", "--listen", "127.0.0.1:0"] + BackendProcess.trusting(gate))
      defer { backend.kill() }
      _ = try await backend.errors.first("the port") { $0.contains(#""message":"listening""#) }
      try FileManager.default.removeItem(atPath: file)
      #expect(mkfifo(file, 0o600) == 0)
      backend.send(SIGHUP)
      // A writer can open the pipe as soon as the backend reads it.
      var writer: Int32 = -1
      while writer < 0, !backend.hasEnded {
        writer = open(file, O_WRONLY | O_NONBLOCK)
        try await Task.sleep(for: .milliseconds(1))
      }
      defer { close(writer) }
      backend.send(SIGTERM)
      #expect(try await backend.exit(within: .seconds(20)) == .code(0))
    }
    withExtendedLifetime(gate) {}
  }

  @Test("run ignores SIGHUP before it parses its arguments, and other commands keep the default action")
  func runAlone() async throws {
    // Child processes inherit the ignored signals of this process, for example under nohup.
    let inherited = signal(SIGHUP, SIG_DFL)
    defer { signal(SIGHUP, inherited) }
    for (command, isIgnored) in [("run", true), ("audit", false)] {
      var wasIgnored = false
      // On a busy machine the process can end before this one looks at it.
      for _ in 0..<20 where !wasIgnored {
        let process = try ChildProcess(Places.product("mfa-backend"), [command, "--help"])
        while !process.hasEnded, !Task.isCancelled { wasIgnored = wasIgnored || Self.ignoresHangup(process.id) }
      }
      #expect(wasIgnored == isIgnored, "\(command)")
    }
  }
}
