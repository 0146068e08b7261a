import Testing
import Transport

@testable import GateService

@Suite("What an upstream may say to a client")
struct HeaderSanitizerTests {
  private static func cleaned(_ name: String) -> [String] {
    var fields = HeaderFields()
    fields.append(name, "value")
    return HeaderSanitizer.cleaned(fromUpstream: fields).fields.map(\.name)
  }

  @Test(
    "It says nothing in the gate's name, with dashes or underscores, in any case",
    arguments: [
      "X-Attest-Error", "x-attest-anything", "X_Attest_Error", "X-Attest_Error", "X_ATTEST-ERROR", "X-Request-Id",
      "X_Request-Id",
    ])
  func isTheGates(_ name: String) { #expect(Self.cleaned(name) == []) }

  @Test("What only looks like it goes through", arguments: ["X-Attested", "Attest-Error", "X-Request", "Set_Cookie"])
  func isItsOwn(_ name: String) { #expect(Self.cleaned(name) == [name]) }
}
