import Testing

@testable import AndroidKeyAttestation

@Suite("Rejections of Android attestations")
struct RejectionTests {
  @Test("Only what another policy could accept is refused by the policy alone")
  func policyAlone() {
    let package = AndroidRuleRejection.packageDiffers(found: ["a"], expected: "b")
    #expect(AndroidAttestationRejection(package).isByPolicyAlone)
    #expect(AndroidAttestationRejection([package, .bootUnverified]).isByPolicyAlone)
    #expect(!AndroidAttestationRejection([package, .rootUnknown]).isByPolicyAlone)
    #expect(!AndroidAttestationRejection(.signature(1, reason: "another key")).isByPolicyAlone)
  }

  @Test("The sentence about the purposes names them, or says that there is none")
  func purposes() {
    #expect(AndroidRuleRejection.purposeWithoutSign(found: [3, 6]).description.contains("the purposes 3, 6, not 2"))
    let none = AndroidRuleRejection.purposeWithoutSign(found: []).description
    #expect(none.contains("no purpose") && none.contains("PURPOSE_SIGN"))
  }
}
