internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import GateRuntime
internal import Settings

struct StoreRotateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate",
    abstract: "Makes a new key for nonces, as gates do by themselves every app_attest.challenge_key_rotation.",
    discussion: """
      Nonces of the old keys stay good until they expire, and gates take the new key over within seconds. After a leak \
      use --now: every nonce of before is refused at once, and apps fetch another.

      Example:

        sallyport store rotate -c /etc/sallyport/sallyport.yaml
      """)

  @Flag(help: "Refuse the nonces of the old keys from now on.")
  var now = false

  @OptionGroup var target: StoreTarget

  func run() async throws {
    do throws(SallyportError) {
      let places = try target.resolve()
      let choice = places.store
      if let file = places.challengeKeysFile {
        throw SallyportError(
          .configuration, error: "nonces are made with the keys in \(file), not with the store's",
          hint: "put a new key on the first line of that file, on every gate, and restart them")
      }
      // Opening a store makes it; where none is, a wrong name is more likely than a wish for an empty one.
      let whole = try choice.makeWhole()
      let schema = try StoreCall.on(whole) { () throws(StoreError) in try whole.schema() }
      guard schema.version > 0 else { throw .noStore(at: whole.place) }
      let store = try choice.makeStore(mostWaiting: 64)
      do throws(StoreError) {
        try await rotate(store, life: places.challengeTTL ?? .seconds(600))
      } catch {
        throw SallyportError(error, of: store.place)
      }
      await store.close()
      target.say(
        "\(store.place): a new key makes nonces\(now ? "; those of before are refused" : "")",
        ["store": .text(store.place), "old_refused": .boolean(now)])
    } catch {
      throw error.told()
    }
  }

  private func rotate(_ store: any GateStore, life: Duration) async throws(StoreError) {
    guard !now else { return try await store.replaceChallengeKeys(with: .random(madeAt: .now())) }
    // Another one that rotates at this instant is as good.
    _ = try await Challenges(storage: store, life: life).rotate(at: .now())
  }
}
