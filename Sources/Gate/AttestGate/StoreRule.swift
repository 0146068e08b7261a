/// A rule about what is stored that no constraint of the tables states, and how to find where it is broken.
public struct StoreRule: Sendable {
  /// A statement in the dialect of every store, whose one value says how often the rule is broken.
  public let count: String
  private let text: String
  private let advice: String
  private let weight: StoreFinding.Weight

  public init(_ count: String, _ text: String, advice: String, weight: StoreFinding.Weight = .problem) {
    self.count = count
    self.text = text
    self.advice = advice
    self.weight = weight
  }

  /// What an operator is told; `nil` if the rule is kept.
  public func finding(broken count: Int64) -> StoreFinding? {
    count == 0 ? nil : StoreFinding(weight, in: .data, "\(count) \(text)", advice: advice)
  }

  /// What most rules advise.
  public static let restore = "restore a backup: sallyport store restore FILE"

  /// The rules of every store.
  ///
  /// - Parameters:
  ///   - hashOfID: an expression for the `KeyHash` of `key_id`.
  ///   - now: an expression for the present, in milliseconds since the epoch.
  public static func all(hashOfID: String, now: String) -> [StoreRule] { keys(hashOfID) + nonces(now) + changes }

  private static func keys(_ hashOfID: String) -> [StoreRule] {
    [
      StoreRule(
        """
        SELECT COUNT(*) FROM attested_keys AS k
        WHERE NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.key_id = k.key_id AND length(r.receipt) > 0)
        """, "keys without a receipt", advice: "\(restore); the keys themselves work"),
      StoreRule(
        "SELECT COUNT(*) FROM attested_keys WHERE key_hash IS NULL OR key_hash <> \(hashOfID)",
        "keys whose hash is not that of their id",
        advice: "\(restore); until then the keys command does not find them"),
      StoreRule(
        "SELECT COUNT(*) FROM attested_keys WHERE sha256(public_key) <> key_id",
        "keys whose id is not the SHA-256 of the public key",
        advice: "remove them (sallyport keys rm): no device has such a key"),
      StoreRule(
        """
        SELECT COUNT(*) FROM attested_keys
        WHERE counter < 0 OR counter > 4294967295 OR (counter > 0 AND used_counters & 1 = 0)
        """, "keys with a counter that could be used again",
        advice: "revoke them (sallyport keys revoke), then \(restore)"),
    ]
  }

  private static func nonces(_ now: String) -> [StoreRule] {
    [
      StoreRule(
        "SELECT 1 - COUNT(*) FROM nonce_watermark", "rows missing that tell which nonces were forgotten",
        advice: "\(restore): no nonce can be spent"),
      StoreRule(
        "SELECT COUNT(*) FROM nonce_watermark WHERE issued_at > \(now) + 5000",
        "rows in which nonces of the future are forgotten: a clock ran ahead, and every nonce of before is refused",
        advice:
          "once the clock is right: sallyport store rotate --now, which also has apps fetch new nonces; gates with "
          + "app_attest.challenge_keys_file need a new key in it as well"),
      StoreRule(
        "SELECT COUNT(*) FROM spent_nonces WHERE issued_at < \(now) - 86400000",
        "spent nonces older than a day: no gate has cleaned up",
        advice: "nothing, if no gate has run; a gate forgets them within a minute", weight: .warning),
      StoreRule(
        "SELECT COUNT(*) FROM spent_nonces WHERE issued_at <= (SELECT issued_at FROM nonce_watermark)",
        "spent nonces that are no longer needed", advice: "nothing: a gate removes them within a minute",
        weight: .warning),
      StoreRule(
        "SELECT COUNT(*) FROM challenge_keys WHERE position = 0 AND retires_at IS NOT NULL",
        "keys that issue nonces although they have retired", advice: "make a new one: sallyport store rotate"),
      StoreRule(
        "SELECT COUNT(*) FROM challenge_keys WHERE 0 = (SELECT COUNT(*) FROM challenge_keys WHERE position = 0)",
        "keys of nonces of which none issues", advice: "make new ones: sallyport store rotate --now"),
    ]
  }

  private static let changes = [
    StoreRule(
      "SELECT 1 - COUNT(*) FROM change_position", "rows missing that number the changes",
      advice: "\(restore): no revocation can be made"),
    StoreRule(
      "SELECT COUNT(*) FROM changes WHERE position > (SELECT MAX(position) FROM change_position)",
      "changes numbered beyond the newest", advice: "\(restore): gates do not hear of revocations"),
  ]
}
