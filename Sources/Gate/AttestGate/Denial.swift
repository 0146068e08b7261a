public import AndroidKeyAttestation
public import AppAttest
public import ByteCoding

/// The reason why a registration or an admission is refused: the rule that failed, and the values that broke it.
///
/// `report` states what follows from it. The values are for the log and for tests. A client receives only the code and
/// the text of the report, which are the same for an unknown key and for a wrong signature.
public enum Denial: Error, Sendable, Hashable {
  /// The client sent no credentials that any rule checks.
  case noCredentials
  /// Some part of an assertion was sent, but not this one.
  case partMissing(AssertionClaim.Name)
  case partRepeated(AssertionClaim.Name)
  /// The parts of an assertion came together, in a form that cannot be read.
  case partsUnreadable(rule: String)
  /// A part of an assertion is not encoded correctly.
  case partMalformed(AssertionClaim.Name, rule: String)
  /// A value of a registration is not encoded correctly.
  case valueMalformed(RegistrationClaim.Name, rule: String)

  /// The nonce is not 64 lowercase hex digits.
  case nonceMalformed
  case nonceRefused(NonceRejection)
  /// The nonce was issued here and has not expired, but was already used.
  case nonceUsed

  case attestationRefused(AttestationRejection)
  case androidAttestationRefused(AndroidAttestationRejection)
  /// Signatures and chain are valid, and Apple created the receipt too long before or after now: the gate's clock is
  /// wrong.
  case receiptNotFresh(created: Timestamp, now: Timestamp)
  /// The device attested its key in time, and sent it more than five minutes later.
  case receiptTooOld(created: Timestamp, now: Timestamp)
  /// Another request registered the key before.
  case keyExists

  /// The key is not registered.
  case unknownKey
  /// The assertion cannot be parsed; no key was looked up.
  case assertionMalformed(AssertionRejection)
  case assertionRefused(AssertionRejection, AppName)
  /// The signature is not that of the Android key, or not one over the nonce.
  case androidProofRefused(AndroidKeyProofRejection, AppName)
  /// The proof has the form of another platform than the key.
  case platformMismatch(AppName)
  case counterReplayed(SignCount, stored: SignCount, AppName)
  case keyRevoked(AppName)
  /// The risk metric of the key is above the app's threshold.
  case riskTooHigh(Int, threshold: Int, AppName)
  /// No risk metric of the key was reported yet, and the app requires one.
  case riskUnknown(AppName)
  /// The risk metric of the key is outdated, and the app requires a current one.
  case riskOutdated(KeyRisk?, AppName)
  /// The security patches that the Android device had when it attested the key are too old for the app's risk policy.
  case patchLevelOutdated(PatchLevel, oldest: PatchLevel, AppName)

  /// The key belongs to an app that is no longer configured.
  case appNotServed(AppName)
  /// The configuration of the app does not allow the key's environment.
  case environmentRefused(AttestEnvironment, AppName)
  case categoryRefused(ValidationCategory?, AppName)
  /// The configuration of the app does not allow the Android device's hardware, system, patches or signer.
  case deviceRefused([AndroidRuleRejection], AppName)
  /// The debug path does not accept certificates with this subject.
  case certificateRefused(subject: String)

  /// No app is configured, so no attestation or assertion can be verified.
  case notConfigured
  /// No app of this platform is configured.
  case platformNotConfigured(Platform)
  /// The list of revoked Android attestation certificates is missing or too old, so no chain can be judged.
  case statusListUnavailable(age: Duration?)
  case storeUnavailable(StoreError)
  /// The maximum number of registrations is already in progress.
  case tooManyRegistrations
}
