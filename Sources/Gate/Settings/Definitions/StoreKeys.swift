internal import ConfigurationEngine

/// The settings of the section `store`.
extension Keys {
  static let storeKeys = [KeyDefinition](
    store, storePassword, mostWaitingForStore, pruneUnusedAfter, keepDecisions, mostDecisionsOfKey, mostDecisions)

  static let store = Key(
    "store.url", .database("store"), example: "sqlite:///var/lib/sallyport/state.db",
    "The store of keys and counters. By default `state.db` in the state folder. Several gates can share PostgreSQL."
  )
  static let storePassword = Key(
    "store.password_file", .file, credential: "store.password", example: "store.password",
    "A file with the PostgreSQL password on its first line. It is read for each new connection.")
  static let mostWaitingForStore = Key(
    "store.max_waiting", .integer(1...1_000_000), default: "4096",
    "The maximum number of waiting store calls, each for reads and writes. More are refused as `overloaded`.")
  static let pruneUnusedAfter = Key(
    "store.prune_unused_after", .durationOrOff(86_400_000...31_536_000_000), default: "off",
    "How long a key may stay unused before it is removed. Its device must then attest a new key.")
  static let keepDecisions = Key(
    "store.keep_decisions", .durationOrOff(3_600_000...31_536_000_000), default: "30d",
    "How long the decisions about a key, with the client's address, are kept for `sallyport keys decisions` and the "
      + "console. `off` keeps none.")
  static let mostDecisionsOfKey = Key(
    "store.max_decisions_per_key", .integer(1...100_000), default: "1000",
    "How many admissions and how many refusals of one key are kept at most. The oldest leave.")
  static let mostDecisions = Key(
    "store.max_decisions", .integer(1...1_000_000_000), default: "1000000",
    "How many decisions are kept in all, of about 300 bytes each. The oldest leave.")
}
