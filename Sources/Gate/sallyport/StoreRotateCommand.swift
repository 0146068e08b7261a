internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import Settings

struct StoreRotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate",
    abstract: "Creates a new challenge key. Gates do this automatically every app_attest.challenge_key_rotation.",
    discussion: """
      Nonces of the old keys stay valid until they expire. Gates use the new key within seconds. After a leak use \
      --now: all earlier nonces are refused at once, and apps fetch new ones. If others may have read the store, use \
      --identity too: servers behind the gate refuse what the old keys signed as soon as they fetch the new ones.

      Examples:

        sallyport store rotate
        sallyport store rotate --now --identity
      """)

  @Flag(help: "Refuse nonces of the old keys immediately.")
  var now = false

  @Flag(help: "Replace the identity signing keys too, and publish the old ones no longer.")
  var identity = false

  @OptionGroup var target: StoreTarget

  func run() async throws {
    let places = try target.resolve()
    let choice = places.store
    if let file = places.challengeKeysFile, !identity {
      throw Failure(
        .configuration, "the challenge keys are in \(file), not in the store",
        hint: advice(about: "that file"))
    }
    // Opening a store creates it. A missing store more likely means a mistyped name.
    let whole = try choice.makeWhole()
    let schema = try StoreCall.on(whole) { () throws(StoreError) in try whole.schema() }
    guard schema.version > 0 else { throw Failure.noStore(at: whole.place) }
    let store = try choice.makeStore(mostWaiting: 64)
    do throws(StoreError) {
      if identity { try await replaceIdentityKeys(of: store) }
      if places.challengeKeysFile == nil { try await rotate(store, life: places.challengeTTL ?? .seconds(600)) }
    } catch {
      throw Failure(error, of: store.place)
    }
    await store.close()
    // Nonces of the keys in a file stay valid: this command does not change the file.
    let refusesOld = now && places.challengeKeysFile == nil
    let rotated = places.challengeKeysFile.map { "the challenge keys are in \($0), and stay valid" }
    target.say(
      "\(store.place): \(identity ? "identity key replaced; " : "")\(rotated ?? "challenge key rotated")"
        + (refusesOld ? "; nonces of the old keys are refused" : ""),
      ["store": .text(store.place), "old_refused": .boolean(refusesOld), "identity_replaced": .boolean(identity)])
    if now, let file = places.challengeKeysFile { Console.tell(.hint(advice(about: file))) }
  }

  /// How an operator replaces the challenge keys in `file`, which this command does not change.
  private func advice(about file: String) -> String {
    let removal = now ? ", remove the old keys" : ""
    return "put a new key on the first line of \(file) on every gate\(removal), then restart the gates"
  }

  private func replaceIdentityKeys(of store: any GateStore) async throws(StoreError) {
    let keys = IdentityKeys(storage: store)
    // If another process rotates at the same time, its ring may keep the old keys.
    while try await !keys.rotate(overlap: .zero) {}
  }

  private func rotate(_ store: any GateStore, life: Duration) async throws(StoreError) {
    guard !now else { return try await store.replaceChallengeKeys(with: .random(madeAt: .now())) }
    // If another command rotates at the same time, its key serves as well.
    _ = try await Challenges(storage: store, life: life).rotate(at: .now())
  }
}
