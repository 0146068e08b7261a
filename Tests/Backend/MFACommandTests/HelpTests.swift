import TestSupport
import Testing

@Suite("The help of mfa-backend", .timeLimit(.minutes(2)))
struct HelpTests {
  private static func mfa(
    _ arguments: [String]
  ) async throws -> (exit: ChildProcess.Exit, output: [String], errors: [String]) {
    try await ChildProcess.run(Places.product("mfa-backend"), arguments)
  }

  @Test("A-195 the program has all commands, each with help and what it does, and reports an unknown command")
  func complete() async throws {
    var (open, found) = ([[String]()], [String]())
    while let command = open.popLast() {
      let run = try await Self.mfa(command + ["--help"])
      #expect(run.exit == .code(0) && run.errors.isEmpty, "\(command)")
      #expect(run.output.first?.hasPrefix("OVERVIEW: ") == true, "\(command)")
      #expect(
        run.output.contains { $0.hasPrefix("USAGE: mfa-backend " + command.joined(separator: " ")) }, "\(command)")
      let list = run.output.drop { $0 != "SUBCOMMANDS:" }.dropFirst()
      let names = list.filter { $0.prefixMatch(of: #/  [a-z]/#) != nil }.map { String($0.split(separator: " ")[0]) }
      open += names.map { command + [$0] }
      if names.isEmpty { found.append(command.joined(separator: " ")) }
    }
    #expect(
      found.sorted() == [
        "admin cancel-recovery", "admin end-sessions", "admin grant", "admin history", "admin lock", "admin recoveries",
        "admin remove-device", "admin reset", "admin revoke", "admin rows", "admin show", "admin tables",
        "admin tokens assign",
        "admin tokens import", "admin tokens list", "admin tokens remove", "admin tokens resync",
        "admin tokens unassign", "admin unlock",
        "admin users", "audit export", "audit search", "audit verify", "check", "console", "drain", "keys make",
        "keys reseal", "keys rotate",
        "reload", "run", "status", "store backup", "store check", "store migrate", "store restore",
      ])
    #expect(try await Self.mfa(["serve"]).exit == .code(64))
  }
}
