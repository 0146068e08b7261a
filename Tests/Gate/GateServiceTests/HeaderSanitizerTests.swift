import Testing
import Transport

@testable import GateService

@Suite("Response fields of an upstream")
struct HeaderSanitizerTests {
  private static func cleaned(_ name: String) -> [String] {
    var fields = HeaderFields()
    fields.append(name, "value")
    return HeaderSanitizer.cleaned(fromUpstream: fields).fields.map(\.name)
  }

  @Test(
    "An upstream cannot set a field of the gate, with dashes or underscores, in any case",
    arguments: [
      "X-Attest-Error", "x-attest-anything", "X_Attest_Error", "X-Attest_Error", "X_ATTEST-ERROR", "X-Request-Id",
      "X_Request-Id",
    ])
  func reservedFields(_ name: String) { #expect(Self.cleaned(name) == []) }

  @Test("Fields with similar names pass", arguments: ["X-Attested", "Attest-Error", "X-Request", "Set_Cookie"])
  func similarFields(_ name: String) { #expect(Self.cleaned(name) == [name]) }
}
