public import ArgumentParser

/// How a command prints its results: as text for people, or as JSON for programs.
public struct ResultFormat: ParsableArguments {
  @Flag(help: "Print each result as one line of JSON.")
  public var json = false

  public init() {}

  /// Prints a result: `text`, or with `--json` the line of `object`.
  public func print(_ text: @autoclosure () -> String, _ object: @autoclosure () -> some Encodable) {
    if json { JSONOutput.print(object()) } else { Console.print(text()) }
  }
}
