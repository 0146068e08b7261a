import Foundation

/// The commands of a program, as it describes itself.
public enum ProgramHelp {
  /// Returns every command of a program, as the words after its name; the program itself is the empty list.
  public static func commands(of program: String) async throws -> [[String]] {
    try await description(of: program).paths(below: [])
  }

  /// Returns what is wrong with the help of a program's commands: lines that are wider than a terminal of 80 columns,
  /// and examples with words that no program of this package accepts.
  public static func faults(of program: String) async throws -> [String] {
    var faults: [String] = []
    var descriptions: [String: CommandDescription] = [:]
    for words in try await commands(of: program) {
      let help = try await ChildProcess.run(
        Places.product(program), words + ["--help"], environment: ["COLUMNS": "80"]
      ).output
      let name = ([program] + words).joined(separator: " ")
      faults += help.filter { $0.count > 80 }.map { "\(name): \($0.count) columns: \($0)" }
      // An example is indented, and stands before the usage.
      let examples = help.prefix { !$0.hasPrefix("USAGE:") }.filter { $0.hasPrefix("  ") }
      for example in ShellText.commands(in: examples.joined(separator: "\n")) {
        guard let program = example.first else { continue }
        if descriptions[program] == nil { descriptions[program] = try await description(ifBuilt: program) }
        guard let description = descriptions[program] else { continue }
        if let fault = description.fault(in: example.dropFirst()) {
          faults.append("\(name): \(example.joined(separator: " ")): \(fault)")
        }
      }
    }
    return faults
  }

  private static let programs: Set = ["sallyport", "attest", "mfa-backend", "authenticator", "bearer"]

  private static func description(ifBuilt program: String) async throws -> CommandDescription? {
    guard programs.contains(program), (try? Places.product(program)) != nil else { return nil }
    return try await description(of: program)
  }

  private static func description(of program: String) async throws -> CommandDescription {
    struct Dump: Decodable { let command: CommandDescription }
    let run = try await ChildProcess.run(Places.product(program), ["--experimental-dump-help"])
    return try JSONDecoder().decode(Dump.self, from: Data(run.output.joined(separator: "\n").utf8)).command
  }
}

/// A command, as ArgumentParser's `--experimental-dump-help` describes it.
public struct CommandDescription: Decodable {
  struct Argument: Decodable {
    struct Name: Decodable {
      let kind: String
      let name: String
      var text: String { (kind == "long" ? "--" : "-") + name }
    }
    let kind: String
    let isOptional: Bool
    let isRepeating: Bool
    var names: [Name]?
    var allValues: [String]?
    /// One word for each value.
    var valueName: String?
  }

  let commandName: String
  var defaultSubcommand: String?
  var subcommands: [CommandDescription]?
  var arguments: [Argument]?

  fileprivate func paths(below parents: [String]) -> [[String]] {
    [parents]
      + (subcommands ?? []).filter { $0.commandName != "help" }.flatMap {
        $0.paths(below: parents + [$0.commandName])
      }
  }

  /// Returns why the command does not accept `words`; `nil` if it does.
  public func fault(in words: some Collection<String>) -> String? {
    if let name = words.first, let next = subcommands?.first(where: { $0.commandName == name }) {
      return next.fault(in: words.dropFirst())
    }
    if let name = defaultSubcommand, let next = subcommands?.first(where: { $0.commandName == name }) {
      return next.fault(in: words)
    }
    let arguments = arguments ?? []
    var values = 0
    var given: Set<String> = []
    var rest = Array(words)[...]
    while let word = rest.popFirst() {
      if word == "--" {
        values += rest.count
        break
      }
      guard word.hasPrefix("-"), word != "-" else {
        values += 1
        continue
      }
      let parts = word.split(separator: "=", maxSplits: 1)
      let name = String(parts[0])
      guard let argument = arguments.first(where: { $0.names?.contains { $0.text == name } == true }) else {
        return "\(name) is not an option"
      }
      given.formUnion(argument.names?.map(\.text) ?? [])
      guard argument.kind == "option" else { continue }
      guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else { return "\(name) has no value" }
      if let all = argument.allValues, !all.contains(value) { return "\(name) has no value \(value)" }
      for _ in (argument.valueName ?? "").split(separator: " ").dropFirst() where rest.popFirst() == nil {
        return "\(name) has too few values"
      }
    }
    let positional = arguments.filter { $0.kind == "positional" }
    guard values >= positional.count(where: { !$0.isOptional }) else { return "an argument is missing" }
    guard values <= positional.count || positional.contains(where: \.isRepeating) else {
      return "there are more arguments than it takes"
    }
    let missing = arguments.first { argument in
      argument.kind == "option" && !argument.isOptional && argument.names?.contains { given.contains($0.text) } == false
    }
    return missing.map { "\($0.names?.last?.text ?? "an option") is missing" }
  }
}

/// The commands of a shell's text, as far as examples use a shell: quotes, substitutions, pipes, lists, comments and
/// continued lines.
public enum ShellText {
  /// Returns the words of every command in `text`. A substitution is a command of its own.
  public static func commands(in text: String) -> [[String]] {
    var commands: [[String]] = []
    var words: [String] = []
    var word: String?
    var quote: Character?
    var characters = Array(text)[...]
    func endWord() {
      if let ended = word { words.append(ended) }
      word = nil
    }
    func endCommand() {
      endWord()
      if !words.isEmpty { commands.append(words) }
      words = []
    }
    while let character = characters.popFirst() {
      switch character {
      case "\\" where quote != "'":
        // A continued line, or a character that is meant literally.
        if let next = characters.popFirst(), next != "\n" { word = (word ?? "") + String(next) }
      case "$" where quote != "'" && characters.first == "(":
        let inner = substitution(&characters)
        commands += Self.commands(in: inner)
        word = (word ?? "") + "$(\(inner))"
      case "'", "\"":
        if quote == character {
          quote = nil
        } else if quote == nil {
          quote = character
          word = word ?? ""
        } else {
          word = (word ?? "") + String(character)
        }
      case _ where quote != nil: word = (word ?? "") + String(character)
      case "#" where word == nil:
        while let next = characters.first, next != "\n" { characters = characters.dropFirst(next == "\n" ? 0 : 1) }
      case "|":
        endCommand()
        // A pipe continues on the next line.
        while let next = characters.first, next.isWhitespace { characters = characters.dropFirst() }
      case "\n", ";", "&": endCommand()
      case ">", "<":
        endWord()
        while let next = characters.first, next == " " || next == character { characters = characters.dropFirst() }
        while let next = characters.first, !next.isWhitespace { characters = characters.dropFirst() }
      case _ where character.isWhitespace: endWord()
      default: word = (word ?? "") + String(character)
      }
    }
    endCommand()
    return commands
  }

  /// Takes the text up to the parenthesis that closes a substitution.
  private static func substitution(_ characters: inout ArraySlice<Character>) -> String {
    characters = characters.dropFirst()
    var depth = 1
    var inner = ""
    while let character = characters.popFirst() {
      depth += character == "(" ? 1 : character == ")" ? -1 : 0
      if depth == 0 { break }
      inner.append(character)
    }
    return inner
  }
}
