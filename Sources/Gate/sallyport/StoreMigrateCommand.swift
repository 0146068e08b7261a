internal import ArgumentParser
internal import AttestGate
internal import GateRuntime
internal import Settings

struct StoreMigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Makes the store's tables, or brings them to this version.",
    discussion: """
      A gate does it by itself when it starts; this is for a role that may make tables where the gate's own may not, and \
      for doing it before. A store of a newer version is refused and left alone.

      Example:

        sallyport store migrate --store postgres://owner@db1.example/sallyport
      """)

  @OptionGroup var target: StoreTarget

  func run() async throws {
    do throws(SallyportError) {
      let store = try target.resolve().store.makeWhole()
      let change = try StoreCall.on(store) { () throws(StoreError) in try store.migrate() }
      let steps = change.steps.map { "  \($0)" }
      let verdict =
        steps.isEmpty
        ? "\(store.place): nothing to do, version \(change.before.newest)"
        : "\(store.place): from version \(change.before.version) to \(change.before.newest)"
      target.say(
        ([verdict] + steps).joined(separator: "\n"),
        [
          "store": .text(store.place), "from": .number(change.before.version), "to": .number(change.before.newest),
          "steps": .array(change.steps.map(JSONValue.text)),
        ])
    } catch {
      throw error.told()
    }
  }
}

/// Calls of a store whose faults a command tells.
enum StoreCall {
  static func on<Value>(
    _ store: any StoreArchive, _ body: () throws(StoreError) -> Value
  ) throws(SallyportError) -> Value {
    do throws(StoreError) { return try body() } catch { throw SallyportError(error, of: store.place) }
  }
}
