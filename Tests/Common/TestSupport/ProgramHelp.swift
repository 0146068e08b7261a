import Foundation

/// The commands of a program, as it describes itself.
public enum ProgramHelp {
  private struct Dump: Decodable {
    struct Command: Decodable {
      let commandName: String
      var subcommands: [Command]?

      func paths(below parents: [String]) -> [[String]] {
        [parents]
          + (subcommands ?? []).filter { $0.commandName != "help" }.flatMap {
            $0.paths(below: parents + [$0.commandName])
          }
      }
    }
    let command: Command
  }

  /// Returns every command of a program, as the words after its name; the program itself is the empty list.
  public static func commands(of program: String) async throws -> [[String]] {
    let run = try await ChildProcess.run(Places.product(program), ["--experimental-dump-help"])
    let text = Data(run.output.joined(separator: "\n").utf8)
    return try JSONDecoder().decode(Dump.self, from: text).command.paths(below: [])
  }
}
