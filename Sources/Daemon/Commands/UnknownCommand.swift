internal import ArgumentParser
internal import ByteCoding

/// A word in the place of a command that names none.
struct UnknownCommand {
  let word: String
  /// The words before it: the program and the commands that have this one as a subcommand.
  let path: String
  /// The command that was probably meant.
  let meant: String?
  /// Whether the word may be an argument of a command that may be left out.
  let mayBeArgument: Bool

  /// Returns the first unknown command among `arguments`; `nil` if each word in the place of a command names one.
  init?(in arguments: [String], of root: any ParsableCommand.Type) {
    var command = root
    var path = [Self.name(of: root)]
    for argument in arguments {
      let subcommands = command.configuration.subcommands
      guard !subcommands.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return nil }
      if let next = subcommands.first(where: { Self.names(of: $0).contains(argument) }) {
        command = next
        path.append(argument)
        continue
      }
      word = argument
      self.path = path.joined(separator: " ")
      meant = Suggestions.nearest(to: argument, in: subcommands.map(Self.name))
      mayBeArgument = command.configuration.defaultSubcommand != nil
      return
    }
    return nil
  }

  private static func name(of command: any ParsableCommand.Type) -> String {
    command.configuration.commandName ?? "\(command)"
  }

  private static func names(of command: any ParsableCommand.Type) -> [String] {
    [name(of: command)] + command.configuration.aliases
  }
}
