import Testing

@testable import Settings

@Suite("A file with header fields")
struct HeaderLinesTests {
  @Test("Each line is a field, without comments, empty lines and the blanks around a value")
  func valid() throws {
    let text = "# For the collector\n\nAuthorization: Bearer a:b\r\n  \nX-Scope_OrgID:1\n"
    let fields = try #require(HeaderLines.fields(in: Array(text.utf8)))
    #expect(fields.map(\.name) == ["Authorization", "X-Scope_OrgID"])
    #expect(fields.map(\.value) == ["Bearer a:b", "1"])
  }

  @Test(
    "A file with one line that is no field, or that sets one of the gate's own, is refused as a whole",
    arguments: [
      "", "# nothing\n", "Authorization\n", ": value", "a b: c", "Name : c", "Name:", "Name:  ", "Name: caf\u{E9}",
      "Name: a\u{7F}", "N\u{E4}me: a", "A: b\nHost: c", "host: c", "Content-Length: 4", "CONTENT-TYPE: text/plain",
      "Connection: close", "Transfer-Encoding: chunked", "User-Agent: other",
    ])
  func invalid(_ text: String) { #expect(HeaderLines.fields(in: Array(text.utf8)) == nil) }
}
