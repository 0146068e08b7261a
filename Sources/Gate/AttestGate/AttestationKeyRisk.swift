internal import AndroidKeyAttestation
public import AppAttest
public import ByteCoding

/// The risk metric of a key of Android: the number of registered keys that the same attestation key of a device signed.
///
/// A remotely provisioned attestation key belongs to one device, so the serial number of its certificate, the one above
/// the leaf, names the device for the weeks of its validity. The attestation key of a factory is in many devices and
/// says nothing about one: keys below it have no metric. Revoked keys count, and removed keys do not.
///
/// Stores count when they read a record, by an index on the serial number in `AttestedAndroidKey.evidenceText`. The time
/// of the metric is the newest registration that it counts.
public enum AttestationKeyRisk {
  /// The number of keys up to which stores count; more count as this number. It bounds what a lookup costs.
  public static let greatest = 100

  /// The number of keys that one call revokes.
  public static let mostRevoked = 1000
}

extension DeviceKey {
  /// Whether an attestation key that belongs to one Android device signed the attestation, so that the key has a metric
  /// by `AttestationKeyRisk`.
  public var isOfRemoteAttestationKey: Bool {
    if case .android(let key) = attestation { key.provisioning == .remote } else { false }
  }
}

/// Revokes keys of Android devices by their metric.
public protocol AttestationKeyStorage: Sendable {
  /// Revokes the keys that the attestation key of `keyID` signed, if they are more than `threshold`, in one transaction
  /// of which all gates are notified. One call revokes at most `AttestationKeyRisk.mostRevoked` keys.
  ///
  /// If several gates call at once, each key is in the result of one of them.
  func revokeKeys(
    attestedLike keyID: KeyID, above threshold: Int, at now: Timestamp
  ) async throws(StoreError) -> AttestationKeyRevocation
}

/// What a revocation by `AttestationKeyRisk` did.
public struct AttestationKeyRevocation: Sendable, Hashable {
  /// The number of keys of the attestation key; 0 for a key without a metric.
  public let metric: Int
  /// The keys that were revoked by the call.
  public let keys: [KeyID]

  public init(metric: Int, keys: [KeyID]) {
    self.metric = metric
    self.keys = keys
  }

  /// Nothing was revoked.
  public static func nothing(metric: Int) -> Self { Self(metric: metric, keys: []) }
}

/// Revokes the keys of an Android device when a registration makes them more than the threshold of their app.
///
/// The registration itself is not refused: the keys are refused at their next admission, as with App Attest. A gate that
/// is killed in between revokes nothing; the policy refuses the keys all the same.
public struct AttestationKeyEnforcement: Sendable {
  private let storage: any AttestationKeyStorage
  private let thresholds: [String: Int]
  private let clock: WallClock
  private let report: @Sendable (RiskEnforcement.Revocation) -> Void

  /// - Parameters:
  ///   - policies: The policies by package. Those with another action than `revoke` change nothing.
  ///   - report: Called for each key after its revocation was stored. It must not wait.
  public init(
    _ storage: any AttestationKeyStorage, policies: [String: RiskPolicy], clock: WallClock = .system,
    report: @escaping @Sendable (RiskEnforcement.Revocation) -> Void
  ) {
    self.storage = storage
    thresholds = policies.compactMapValues { $0.action == .revoke ? $0.threshold : nil }
    self.clock = clock
    self.report = report
  }

  /// Revokes what follows from the registration of `key`.
  ///
  /// An unavailable store does not fail the registration, which is stored: the next one of the device tries again.
  func enforce(after key: DeviceKey) async {
    guard key.isOfRemoteAttestationKey, let threshold = thresholds[key.app.text],
      let revocation = try? await storage.revokeKeys(attestedLike: key.keyID, above: threshold, at: clock.now())
    else { return }
    for keyID in revocation.keys {
      report(.init(key: KeyHash(of: keyID), app: key.app, metric: revocation.metric, threshold: threshold))
    }
  }
}
