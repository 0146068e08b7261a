/// An invariant of the stored data that no table constraint enforces, with the query that finds violations.
public struct StoreRule: Sendable {
  /// A query that every store supports. Its single value is the number of violations.
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

  /// Returns the finding for the operator; `nil` if the count is 0.
  public func finding(broken count: Int64) -> StoreFinding? {
    count == 0 ? nil : StoreFinding(weight, in: .data, "\(count) \(text)", advice: advice)
  }

  /// The advice of most rules.
  public static let restore = "restore a backup: sallyport store restore FILE"

  /// Returns the rules that apply to every store.
  ///
  /// - Parameters:
  ///   - hashOfID: An SQL expression for the `KeyHash` of `key_id`.
  ///   - isAndroid: An SQL condition for a key `k` of an Android device, which has no receipt.
  ///   - now: An SQL expression for the current time, in milliseconds since the epoch.
  public static func all(hashOfID: String, isAndroid: String, now: String) -> [StoreRule] {
    keys(hashOfID, isAndroid) + exchanges + nonces(now) + changes
  }

  private static func keys(_ hashOfID: String, _ isAndroid: String) -> [StoreRule] {
    [
      StoreRule(
        """
        SELECT COUNT(*) FROM attested_keys AS k
        WHERE NOT (\(isAndroid))
        AND NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.key_id = k.key_id AND length(r.receipt) > 0)
        """, "keys without a receipt", advice: "\(restore); the keys themselves work"),
      StoreRule(
        "SELECT COUNT(*) FROM attested_keys WHERE key_hash IS NULL OR key_hash <> \(hashOfID)",
        "keys whose hash does not match their id",
        advice: "\(restore); until then `sallyport keys` does not find them"),
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

  private static let exchanges = [
    StoreRule(
      """
      SELECT COUNT(*) FROM receipts AS r
      WHERE NOT EXISTS (SELECT 1 FROM receipt_exchanges AS e WHERE e.key_id = r.key_id)
      """, "receipts that are never exchanged for a risk metric", advice: "\(restore); the keys themselves work"),
    StoreRule(
      """
      SELECT COUNT(*) FROM receipt_exchanges AS e JOIN attested_keys AS k ON k.key_id = e.key_id
      WHERE e.is_revoked <> (k.revoked_at IS NOT NULL)
      """, "receipts whose exchange does not follow the revocation of their key",
      advice: "revoke and restore these keys (sallyport keys), the change last that they shall keep"),
  ]

  private static func nonces(_ now: String) -> [StoreRule] {
    [
      StoreRule(
        "SELECT 1 - COUNT(*) FROM nonce_watermark", "missing nonce watermark rows",
        advice: "\(restore); until then no nonce can be spent"),
      StoreRule(
        "SELECT COUNT(*) FROM nonce_watermark WHERE issued_at > \(now) + 5000",
        "nonce watermarks in the future: a clock ran ahead, and nonces issued before that time are refused",
        advice:
          "once the clock is right: sallyport store rotate --now, after which apps fetch new nonces; gates with "
          + "app_attest.challenge_keys_file also need a new key in that file"),
      StoreRule(
        "SELECT COUNT(*) FROM spent_nonces WHERE issued_at < \(now) - 86400000",
        "spent nonces older than a day: no gate has deleted them",
        advice: "no action needed if no gate was running; a gate deletes them within a minute", weight: .warning),
      StoreRule(
        "SELECT COUNT(*) FROM spent_nonces WHERE issued_at <= (SELECT issued_at FROM nonce_watermark)",
        "spent nonces that are no longer needed",
        advice: "no action needed: a gate deletes them within a minute", weight: .warning),
      StoreRule(
        "SELECT COUNT(*) FROM challenge_keys WHERE position = 0 AND retires_at IS NOT NULL",
        "challenge keys that issue nonces after their retirement", advice: "make a new key: sallyport store rotate"),
      StoreRule(
        "SELECT COUNT(*) FROM challenge_keys WHERE 0 = (SELECT COUNT(*) FROM challenge_keys WHERE position = 0)",
        "challenge keys, none of which issues nonces", advice: "make new keys: sallyport store rotate --now"),
    ]
  }

  private static let changes = [
    StoreRule(
      "SELECT 1 - COUNT(*) FROM change_position", "missing change position rows",
      advice: "\(restore); until then no key can be revoked"),
    StoreRule(
      "SELECT COUNT(*) FROM changes WHERE position > (SELECT MAX(position) FROM change_position)",
      "changes numbered beyond the newest", advice: "\(restore); until then gates may miss revocations"),
  ]
}
