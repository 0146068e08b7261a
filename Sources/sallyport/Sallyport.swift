internal import ArgumentParser

/// The gate, for operators.
@main
struct Sallyport: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sallyport",
    abstract: "A TLS WebSocket gate that lets only genuine instances of an app through.",
    discussion: """
      Example: a gate for trying things, in front of a service on port 8080

        sallyport dev --upstream ws://127.0.0.1:8080
      """,
    version: Version.text,
    subcommands: [RunCommand.self, DevCommand.self])
}

enum Version {
  static let text = "0.1.0"
}
