extension Denial {
  /// Whether the request had a valid signature of the key that it named.
  ///
  /// `false` for a used nonce, too: a copy of an earlier request has a valid signature.
  public var provesKey: Bool {
    switch self {
    case .counterReplayed, .keyRevoked, .riskTooHigh, .riskUnknown, .riskOutdated, .patchLevelOutdated, .appNotServed,
      .environmentRefused, .categoryRefused, .deviceRefused:
      true
    case .noCredentials, .partMissing, .partRepeated, .partsUnreadable, .partMalformed, .valueMalformed,
      .nonceMalformed, .nonceRefused, .nonceUsed, .attestationRefused, .androidAttestationRefused, .receiptNotFresh,
      .receiptTooOld, .keyExists, .unknownKey, .assertionMalformed, .assertionRefused, .androidProofRefused,
      .platformMismatch, .certificateRefused, .notConfigured, .platformNotConfigured, .statusListUnavailable,
      .storeUnavailable, .tooManyRegistrations:
      false
    }
  }
}
