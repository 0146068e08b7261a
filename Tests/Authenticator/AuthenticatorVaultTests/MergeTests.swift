import AuthenticatorVault
import Testing

@Suite struct MergeTests {
  @Test func empty() { #expect(Vault().entries.isEmpty) }
}
