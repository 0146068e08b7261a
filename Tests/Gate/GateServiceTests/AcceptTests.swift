import TestSupport
import Testing
import Transport

@testable import GateService

@Suite("Accept")
struct AcceptTests {
  private func namesJSON(_ values: String...) -> Bool {
    Accept.namesJSON(in: HeaderFields(values.map { HeaderFields.Field(name: "accept", value: $0) }))
  }

  @Test(
    "JSON is selected only by its name",
    arguments: [
      "application/json", "Application/JSON", "text/html, application/json;q=0.5",
      "\tapplication/json ; charset=utf-8 ",
      ",application/json", "application/json, application/json;q=0",
    ])
  func asked(value: String) {
    #expect(namesJSON(value))
    #expect(namesJSON("text/plain", value))
  }

  @Test(
    "Other values do not select JSON",
    arguments: [
      "", "*/*", "application/*", "application/jsonp", "application/jso", "text/plain;application/json",
      "application/json;q=0", "application/json; Q=0.000", "application/json;charset=utf-8;q=0", ",,;,",
      "application\u{F}json",
    ])
  func other(value: String) { #expect(!namesJSON(value)) }

  @Test("A field of the maximum length is parsed in milliseconds")
  func long() {
    let value = String(repeating: "a,", count: 8000)
    // The shortest of several calls, because a busy machine interrupts some.
    var shortest = Duration.seconds(60)
    for _ in 0..<20 {
      shortest = min(shortest, ContinuousClock().measure { #expect(!namesJSON(value)) })
    }
    // The first version needed 34 ms for each call, without optimization.
    #expect(shortest < (Sanitizer.isOn ? .milliseconds(50) : .milliseconds(10)))
  }
}
