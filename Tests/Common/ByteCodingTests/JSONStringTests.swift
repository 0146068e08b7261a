import ByteCoding
import Testing

@Suite("JSON strings")
struct JSONStringTests {
  @Test(
    "A text that was written is read back, and nothing after it is touched",
    arguments: [
      "", "plain", "a\"b\\c", "\n\r\t", "\u{0}\u{1F}\u{7F}\u{9B}", "\u{2028}\u{2029}", "é 🚪", "\\u0041", "\",\"a\":\"b",
    ])
  func roundTrip(_ text: String) {
    var bytes: [UInt8] = []
    JSONText.append(text, to: &bytes)
    bytes += ",rest".utf8
    var rest = bytes[...]
    #expect(JSONText.takeString(from: &rest) == text)
    #expect(rest.elementsEqual(",rest".utf8))
  }

  @Test(
    "What does not begin with a whole string is left as it is",
    arguments: ["", "1", "true", "\"", "\"open", "\"end\\", "\"\\u12", "\"\\uD800\""])
  func otherText(_ text: String) {
    var rest = Array(text.utf8)[...]
    #expect(JSONText.takeString(from: &rest) == nil)
    #expect(rest.elementsEqual(text.utf8))
  }

  @Test("A name is written in quotation marks, behind its prefix")
  func names() {
    var bytes: [UInt8] = []
    JSONText.append("level", after: "metadata.", to: &bytes)
    JSONText.append("path", after: "", to: &bytes)
    #expect(bytes.elementsEqual("\"metadata.level\"\"path\"".utf8))
  }
}
