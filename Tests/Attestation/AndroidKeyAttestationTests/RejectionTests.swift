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
}
