internal import ArgumentParser
internal import AttestGate
internal import Commands
internal import GateRuntime
internal import Settings

struct StoreMigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Creates the store's tables, or migrates them to this version.",
    discussion: """
      A gate migrates its store at start. Use this command to migrate earlier, or with a database role that may create \
      tables when the gate's role may not. A store with a newer version is refused and stays unchanged.

      Example:

        sallyport store migrate --store postgres://owner@db1.example/sallyport
      """)

  @OptionGroup var target: StoreTarget

  func run() async throws {
    let store = try target.resolve().store.makeWhole()
    let change = try StoreCall.on(store) { () throws(StoreError) in try store.migrate() }
    let steps = change.steps.map { "  \($0)" }
    let verdict =
      steps.isEmpty
      ? "\(store.place): up to date, version \(change.before.newest)"
      : "\(store.place): migrated from version \(change.before.version) to \(change.before.newest)"
    target.say(
      ([verdict] + steps).joined(separator: "\n"),
      [
        "store": .text(store.place), "from": .number(change.before.version), "to": .number(change.before.newest),
        "steps": .array(change.steps.map(JSONValue.text)),
      ])
  }
}

/// Runs store calls, and converts their errors into command failures.
enum StoreCall {
  static func on<Value>(
    _ store: any StoreArchive, _ body: () throws(StoreError) -> Value
  ) throws(Failure) -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(error, of: store.place) }
  }
}
