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

  /// `scripts/bench --check` limits what such fields cost.
  @Test("A field of the maximum length is read to its end")
  func long() {
    let value = String(repeating: "a,", count: 8000)
    #expect(!namesJSON(value))
    #expect(namesJSON(value + "application/json"))
  }
}
