internal import AppAttest
internal import ArgumentParser
internal import AttestGate
internal import Commands
internal import GateRuntime
internal import Settings

struct StoreCheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Reads the whole store and reports problems, with advice for each.",
    discussion: """
      Changes nothing; gates can keep running. Exits 0 if there are no problems or only warnings, and 1 otherwise.

      Example:

        sallyport store check
      """)

  @OptionGroup var target: StoreTarget

  func run() async throws {
    let findings: [StoreFinding]
    let choice = try target.resolve().store
    let whole = try choice.makeWhole()
    findings = try await Self.findings(choice, whole)
    tell(findings, of: whole.place)
    if findings.contains(where: { $0.weight == .problem }) {
      throw ExitCode(Status.problems.rawValue)
    }
  }

  private static func findings(
    _ choice: GateSettings.Store, _ whole: any StoreArchive
  ) async throws(Failure) -> [StoreFinding] {
    let store = try choice.makeStore(mostWaiting: 64, isPatient: true)
    do throws(StoreError) {
      let schema = try whole.schema()
      guard !schema.isCurrent else { return try await Self.findings(in: store) }
      if schema.version > 0 { return [Self.outdated(schema)] }
    } catch {
      guard case .corrupt(let reason) = error else { throw Failure(error, of: whole.place) }
      return [Self.damaged(reason)]
    }
    throw Failure.noStore(at: whole.place)
  }

  private static func findings(in store: any GateStore) async throws(StoreError) -> [StoreFinding] {
    let findings = try await store.findings(isThorough: true) + Self.unreadable(in: store)
    await store.close()
    return findings
  }

  private static func outdated(_ schema: SchemaState) -> StoreFinding {
    StoreFinding(
      .problem, in: .data, "its schema has version \(schema.version), this sallyport needs \(schema.newest)",
      advice: "run sallyport store migrate, or start a gate of this version; then check again")
  }

  private static func damaged(_ reason: String) -> StoreFinding {
    StoreFinding(
      .problem, in: .data, "damaged: \(reason)",
      advice: "stop the gates, keep a copy of the store, restore a backup: sallyport store restore FILE")
  }

  /// How many keys that cannot be read are named.
  private static let mostNamed = 20

  /// Reads every key in the same way as a gate. Returns a finding for each that cannot be read, and for other damage.
  private static func unreadable(in store: any GateStore) async throws(StoreError) -> [StoreFinding] {
    var cursor: KeyID?
    var (named, count): ([UnreadableKey], Int) = ([], 0)
    do throws(StoreError) {
      repeat {
        let page = try await store.keys(.all, after: cursor, limit: 1000)
        named += page.unreadable.prefix(mostNamed - named.count)
        count += page.unreadable.count
        cursor = page.next
      } while cursor != nil
      return named.map(damaged) + (count > named.count ? [damaged("\(count - named.count) more keys")] : [])
    } catch {
      guard case .corrupt(let reason) = error else { throw error }
      return [Self.damaged(reason)]
    }
  }

  private static func damaged(_ key: UnreadableKey) -> StoreFinding {
    let hash = KeyHash(of: key.keyID)
    return StoreFinding(
      .problem, in: .data, "damaged: the key \(hash.text): \(key.reason)",
      advice:
        "restore a backup: sallyport store restore FILE; or remove the key, whose device then registers another one: "
        + "sallyport keys rm \(hash.short)")
  }

  private func tell(_ findings: [StoreFinding], of place: String) {
    let lines = findings.flatMap { ["\($0.weight.rawValue): \($0.text)", "  \($0.advice)"] }
    let verdict = findings.isEmpty ? "\(place): no problems found" : "\(place):"
    target.say(
      ([verdict] + lines).joined(separator: "\n"),
      [
        "store": .text(place),
        "findings": .array(
          findings.map {
            [
              "weight": .text($0.weight.rawValue), "area": .text($0.area.rawValue), "text": .text($0.text),
              "advice": .text($0.advice),
            ]
          }),
      ])
  }
}
